"""`iolab record`: every I/O from the kernel, into a recording."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import output_option, say
from .record_words import budget_text, kept_text, live_line, summary_lines

if TYPE_CHECKING:
    from ..recorder.settings import Budget, Retention
    from ..recorder.status import Status

SOURCES = ("block", "syscall", "counters")


class _Record(click.Command):
    """Takes what stands after -- for itself, however it looks."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1:])
        return super().parse_args(ctx, args[:at])


@click.command("record", cls=_Record)
@click.argument("words", metavar="[block] [syscall] [counters] [-- COMMAND...]", nargs=-1)
@click.option("--device", "devices", metavar="NAME", multiple=True,
              help="block: only this device, such as sda, /dev/disk/by-id/... or 8:0; repeatable.")
@click.option("--fs", "mounts", metavar="PATH", multiple=True, type=click.Path(exists=True, file_okay=False),
              help="syscall: only files of the file system mounted there; block: its disk, unless --device is given. Repeatable.")
@click.option("--duration", metavar="TIME", help="Stop after this long, such as 30s. Default: at Ctrl-C.")
@output_option("The recording's directory; one that is there is gone on with. Default: recording-<time>.", required=False)
@click.option("--budget", metavar="SHARE|RATE", multiple=True,
              help="Suspend the costliest source when recording takes more than this share of all CPU time (5%), or grows faster "
                   "(20MiB/s); 'none' for no limit; repeatable. Default: 25%.")
@click.option("--keep", metavar="SIZE", help="Keep the newest segments up to this size, such as 10g, or 'all'. Default: 10g.")
@click.option("--keep-for", metavar="TIME", help="Keep what is not older, such as 12h, or 'ever'. Default: 7d.")
@click.option("--ring", metavar="SIZE", help="The kernel's buffer for each CPU, such as 64m. Default: about 2 s at 100 000 I/O a second.")
@click.option("-q", "--quiet", is_flag=True, help="No line a second.")
@click.option("--tracefs", type=click.Path(), metavar="DIR", hidden=True, help="Where tracefs is mounted, if elsewhere than usual.")
@click.option("--for-study", "study", type=int, metavar="PID", hidden=True, help="The study's process, whose I/O is left out too.")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], devices: tuple[str, ...], mounts: tuple[str, ...], duration: str | None,
            output: Path | None, budget: tuple[str, ...], keep: str | None, keep_for: str | None, ring: str | None, quiet: bool,
            study: int | None, tracefs: str | None) -> int:
    """Record I/O as the kernel sees it: which device or file, which process, how long it took. Default: block and counters.

    block: requests to block devices. syscall: reads, writes and syncs of files, by name. counters: of disks, CPUs, memory and
    network, once a second. block and syscall need root: sudo iolab record. All but the probe runs as the user who called sudo.
    With -- COMMAND it lasts as long as the command, whose exit code is returned. docs/guides/recording.md has more.
    """
    from ..errors import UsageError
    from ..recorder.settings import DEFAULT_SOURCES, Settings

    wanted: tuple[str, ...] = ctx.obj
    if wanted and duration is not None:
        raise UsageError("--duration stands beside a COMMAND", hint="give one of both: a recording lasts as long as its command")
    settings = Settings(sources=_sources(words) or DEFAULT_SOURCES, duration=None if duration is None else _seconds(duration, "--duration"),
                        budget=_budget(budget), retention=_retention(keep, keep_for))
    return _record(settings, devices, mounts, output, wanted, None if ring is None else _bytes(ring, "--ring"), quiet, study, tracefs)


def _record(settings: Any, devices: tuple[str, ...], mounts: tuple[str, ...], output: Path | None, wanted: tuple[str, ...],
            ring: int | None, quiet: bool, study: int | None, tracefs: str | None) -> int:
    import time

    from ..hosts.local import LocalHost
    from ..recorder.command import check_program
    from ..recorder.devices import devices_behind, find_devices
    from ..recorder.launch import DirectLauncher, StarterLauncher
    from ..recorder.privilege import become, caller, need_root_for
    from ..recorder.program import probe_command, probe_path
    from ..recorder.session import preload

    need_root_for(settings.sources)
    host = LocalHost()
    watched = find_devices(host, devices)
    if not devices and "block" in settings.sources:
        watched = [device for mount in mounts for device in devices_behind(host, mount)]
    directory = output if output is not None else Path(time.strftime("recording-%Y%m%dT%H%M%S"))
    program = probe_command(probe_path(), settings.sources, devices=[device.number for device in watched],
                            mounts=[str(Path(mount).resolve()) for mount in mounts] if "syscall" in settings.sources else [],
                            exclude=[os.getpid(), *([study] if study is not None else [])],
                            ring_kib=None if ring is None else max(ring // 1024, 4), tracefs=tracefs)
    user = caller(os.environ)
    launcher = DirectLauncher(program) if user is None else StarterLauncher(program)
    try:
        if user is not None:
            preload(f"{__package__}.progress", "iolab.units")
            become(user)
        if wanted:
            check_program(wanted[0])
        for device in watched:
            if device.said:
                say(device.said)
        origin = {"devices": [device.name for device in watched], **({"kind": "run"} if study is not None else {})}
        return _session(settings, directory, launcher, wanted, quiet, origin)
    finally:
        launcher.close()


def _session(settings: Any, directory: Path, launcher: Any, wanted: tuple[str, ...], quiet: bool, origin: Mapping[str, Any]) -> int:
    from ..recorder.session import Session, check_directory

    check_directory(directory)
    screen = _Screen(settings, directory, quiet)
    session = Session(settings, directory, launcher, screen, command=wanted, origin=origin)
    before = {number: signal.signal(number, lambda *_: session.stop()) for number in (signal.SIGINT,)}
    before |= {number: signal.signal(number, lambda *_: session.stop(now=True)) for number in (signal.SIGTERM, signal.SIGHUP)
               if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        outcome = session.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        screen.end()
    for line in summary_lines(outcome, directory):
        say(line)
    if outcome.exit_code:
        return outcome.exit_code
    if outcome.failure is not None:
        raise outcome.failure
    return 0


class _Screen:
    """What is told while it lasts: a line a second on stderr, drawn over itself on a terminal."""

    def __init__(self, settings: Any, directory: Path, quiet: bool) -> None:
        self._settings, self._directory, self._quiet = settings, directory, quiet
        self._tty = sys.stderr.isatty()
        self._drawn = False

    def started(self, hello: Mapping[str, Any]) -> None:
        if not self._quiet:
            say(f"recording {', '.join(self._settings.sources)} into {self._directory} ({kept_text(self._settings.retention)}; "
                f"{budget_text(self._settings.budget)}); " + ("Ctrl-C stops it" if self._settings.duration is None
                                                               else f"for {self._settings.duration:g} s"))

    def second(self, status: Status, events_per_s: float) -> None:
        if self._quiet:
            return
        line = live_line(status, events_per_s)
        if self._tty:
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()
            self._drawn = True
        else:
            say(line)

    def noticed(self, text: str) -> None:
        self.end()
        say(f"note: {text}")

    def end(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._drawn = False


def _sources(words: tuple[str, ...]) -> tuple[str, ...]:
    from ..errors import UsageError

    for word in words:
        if word not in SOURCES:
            raise UsageError(f"unknown source '{word}'", where="record",
                             hint=f"there are: {', '.join(SOURCES)}; a command to record comes after --")
    return tuple(dict.fromkeys(words))


def _seconds(text: str, flag: str) -> float:
    from ..errors import UsageError
    from ..units import parse_fio_time

    try:
        seconds = parse_fio_time(text)
    except UsageError as error:
        raise UsageError(error.message, where=flag, hint=error.hint) from None
    if seconds <= 0:
        raise UsageError(f"'{text}' is no time", where=flag)
    return seconds


def _bytes(text: str, flag: str) -> int:
    from ..errors import UsageError
    from ..units import parse_fio_size

    try:
        return parse_fio_size(text)
    except UsageError as error:
        raise UsageError(error.message, where=flag, hint=error.hint) from None


def _retention(keep: str | None, keep_for: str | None) -> Retention:
    from ..recorder.settings import Retention

    default = Retention()
    size = default.bytes if keep is None else None if keep == "all" else _bytes(keep, "--keep")
    age = default.age_s if keep_for is None else None if keep_for == "ever" else _seconds(keep_for, "--keep-for")
    return Retention(size, age)


def _budget(given: tuple[str, ...]) -> Budget:
    from ..errors import UsageError
    from ..recorder.settings import Budget
    from ..units import parse_quantity

    if not given:
        return Budget()
    if "none" in given:
        return Budget(None, None)
    share: float | None = None
    rate: float | None = None
    for text in given:
        try:
            if text.strip().endswith("%"):
                share = parse_quantity(text, "share")
            else:
                rate = parse_quantity(text, "bandwidth")
        except UsageError as error:
            raise UsageError(error.message, where="--budget", hint="a share of all CPU time (5%), a growth (20MiB/s), or none") from None
        if (share is not None and share <= 0) or (rate is not None and rate <= 0):
            raise UsageError(f"'{text}' leaves nothing to record with", where="--budget")
    return Budget(share, rate)
