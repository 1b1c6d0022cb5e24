# SPDX-License-Identifier: Apache-2.0
"""`iolab record`: every I/O from the kernel, into a recording."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..base.archives import label_option, parse_labels
from ..base.completion import complete_devices
from ..base.options import PATH, bytes_of, group_options, limit_of, output_option, seconds_of
from ..base.output import on_terminal, redraw, say
from .words import budget_text, kept_text, live_line, summary_lines

if TYPE_CHECKING:
    from iolab.base.errors import IolabError
    from iolab.recordings.record.session import Preparation, Session
    from iolab.recordings.record.settings import Budget, Retention, Settings
    from iolab.recordings.record.status import Status

    from .place import Asked

STOPS_WITHIN = 60.0
"""Seconds in which a recorder must have sealed its last."""
LEAST_RATE = 100_000
"""Bytes a second: a number without a unit that is below is not believed."""
SOURCES = ("block", "syscall", "nfs", "counters")


class _Record(click.Command):
    """A command that takes all words after -- unparsed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@dataclass(frozen=True)
class Keeping:
    """What the recording keeps, and for how long."""

    duration: str | None
    budget: tuple[str, ...]
    keep: str | None
    keep_for: str | None
    archive: str | None
    drops_archived: bool
    labels: tuple[str, ...]
    statistics: tuple[str, ...]

    def settings(self, words: tuple[str, ...], *, of_study: bool) -> Settings:
        """The recorder's settings; UsageError where an option is wrong. words: the sources."""
        from iolab.recordings.record.settings import DEFAULT_SOURCES, Settings

        return Settings(
            sources=_sources(words) or DEFAULT_SOURCES,
            budget=_budget(self.budget),
            duration=None if self.duration is None else seconds_of(self.duration, "--duration"),
            retention=_retention(self.keep, self.keep_for),
            statistics=_statistics(self.statistics or (("none",) if of_study else ())),
            archive=_archive(self.archive, self.drops_archived, self.labels),
            drops_archived=self.drops_archived,
            labels=self.labels,
        )


@dataclass(frozen=True)
class Scope:
    """Which I/O is recorded, and by which buffers. study: the process of a study."""

    devices: tuple[str, ...]
    mounts: tuple[str, ...]
    ring: str | None
    tracefs: str | None
    study: int | None
    leave_out: tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """Where is recorded, into which directory, and what is printed meanwhile."""

    host_words: str
    output: Path | None
    quiet: bool
    shared: bool


@click.command("record", cls=_Record)
@click.argument("words", metavar="[block] [syscall] [nfs] [counters] [-- COMMAND...]", nargs=-1)
@click.option(
    "--device",
    "devices",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_devices,
    help="block: only this device, such as sda, /dev/disk/by-id/... or 8:0; repeatable.",
)
@click.option(
    "--host",
    "host_words",
    metavar="HOST",
    default="local",
    show_default=True,
    help="The machine to record: rig:NAME, USER@HOST[:PORT] by ssh, or local. Root is needed there, not here.",
)
@click.option(
    "--fs",
    "mounts",
    metavar="PATH",
    multiple=True,
    help="syscall: only files of the file system mounted there, and those that may be: named 'unknown', and counted. block: its "
    "disk, unless --device is given. Repeatable.",
)
@click.option(
    "--duration", metavar="TIME", help="Stop after this long, such as 30s. Default: at Ctrl-C."
)
@output_option(
    "Directory of the recording; an existing recording is continued. Default: recording-<time>.",
    required=False,
)
@click.option(
    "--budget",
    metavar="SHARE|RATE",
    multiple=True,
    help="Suspend the costliest source when recording takes more than this share of all CPU time (5%), or grows faster "
    "(20MiB/s); 'none' for no limit; repeatable. Default: 25%.",
)
@click.option(
    "--keep",
    metavar="SIZE",
    help="Keep the newest segments up to this size, such as 10g, or 'all'. Default: 10g.",
)
@click.option(
    "--keep-for",
    metavar="TIME",
    help="Keep what is not older, such as 12h, or 'ever'. Default: 7d.",
)
@click.option(
    "--archive",
    metavar="ARCHIVE",
    help="Push segments into this archive (see iolab archive) as they are sealed. While its store is away, segments are kept "
    "here, up to --keep.",
)
@click.option(
    "--drop-archived",
    "drops_archived",
    is_flag=True,
    help="With --archive: delete events here once they are archived. Default maps and kept statistics remain.",
)
@label_option
@click.option(
    "--statistic",
    "statistics",
    metavar="NAME",
    multiple=True,
    help="Keep this statistic longer than its events (see iolab keep), instead of the default ones; 'none' for none; repeatable.",
)
@click.option(
    "--ring",
    metavar="SIZE",
    help="The kernel's buffer for each CPU, such as 64m. Default: about 2 s at 100 000 I/O a second.",
)
@click.option(
    "--clean",
    "cleans",
    is_flag=True,
    help="Remove the tracefs instances of killed recorders; record nothing.",
)
@click.option(
    "--shared",
    is_flag=True,
    help="Allow other users to read it, as the umask permits. Default: only the owner.",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not print a line per second.")
@click.option(
    "--stop", "ending", type=PATH, metavar="DIR", help="Stop the recorder that writes to DIR."
)
@click.option(
    "--tracefs",
    type=click.Path(),
    metavar="DIR",
    hidden=True,
    help="Where tracefs is mounted, if elsewhere than usual.",
)
@click.option(
    "--for-study",
    "study",
    type=int,
    metavar="PID",
    hidden=True,
    help="The study's process; its I/O is left out.",
)
@click.option(
    "--leave-out",
    type=int,
    metavar="PID",
    multiple=True,
    hidden=True,
    help="A process; its I/O is left out.",
)
@click.pass_context
@group_options(
    keeping="cli.record.command:Keeping",
    scope="cli.record.command:Scope",
    output="cli.record.command:Output",
)
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    keeping: Keeping,
    scope: Scope,
    output: Output,
    cleans: bool,
    ending: Path | None,
) -> int:
    """Record I/O as the kernel sees it: which device or file, which process, how long it took.
    Default: block and counters.

    block: requests to block devices. syscall: reads, writes and syncs of files, by name. nfs:
    operations of this machine's NFS server, by client. counters: disks, CPUs, memory and network,
    once a second.

    All sources but counters need root: sudo iolab record. Only the probe runs as root; everything
    else runs as the user who called sudo. With --host, the probe is copied to another machine and
    removed afterwards; this machine then needs no root. With -- COMMAND, the recording ends with
    the command, which runs on this machine, and the exit code is that of the command.
    """
    from iolab.base.errors import UsageError

    from .place import Asked

    command_words: tuple[str, ...] = ctx.obj
    if cleans:
        return _clean(ctx)
    if ending is not None:
        return _stop(ctx, ending)
    if command_words and keeping.duration is not None:
        raise UsageError(
            "--duration cannot be combined with a COMMAND",
            hint="omit one of the two: a recording lasts as long as its command",
        )
    request = Asked(
        keeping.settings(words, of_study=scope.study is not None),
        scope.devices,
        scope.mounts,
        None if scope.ring is None else bytes_of(scope.ring, "--ring"),
        scope.tracefs,
        (*scope.leave_out, *([scope.study] if scope.study is not None else [])),
    )
    return _record(request, output, command_words, of_study=scope.study is not None)


def _record(
    asked: Asked,
    output: Output,
    wanted: tuple[str, ...],
    *,
    of_study: bool,
) -> int:
    import time

    from iolab.hosts.kinds.parse import host_named
    from iolab.recordings.record.command import check_program

    from .place import ready

    directory = output.output or Path(time.strftime("recording-%Y%m%dT%H%M%S"))
    with ready(asked, host_named(output.host_words)) as prepared:
        if wanted:
            check_program(wanted[0])
        if of_study:
            prepared = replace(prepared, origin={**prepared.origin, "kind": "run"})
        return _session(prepared, directory, wanted, output.quiet, output.shared)


def _session(
    prepared: Preparation,
    directory: Path,
    wanted: tuple[str, ...],
    quiet: bool,
    shared: bool,
) -> int:
    from iolab.recordings.record.session import Session, check_directory

    check_directory(directory)
    screen = _Screen(prepared.settings, directory, quiet)
    session = Session(prepared, directory, screen, command=wanted, is_shared=shared)
    before = {
        number: signal.signal(number, lambda *_: session.stop()) for number in (signal.SIGINT,)
    }
    before |= {
        number: signal.signal(number, lambda *_: session.stop(now=True))
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        outcome = session.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        screen.end()
    for line in summary_lines(outcome, directory):
        say(line)
    failure = _finish_archive(session, prepared.settings.archive)
    if outcome.exit_code:
        return outcome.exit_code
    if outcome.failure is not None:
        raise outcome.failure
    if failure is not None:
        raise failure
    return 0


def _archive(url: str | None, drops_archived: bool, labels: tuple[str, ...]) -> str | None:
    """The archive to push into. UsageError where it can't be one."""
    from iolab.base.errors import UsageError
    from iolab.recordings.archive.store import check_address

    if url is not None:
        check_address(url)
        parse_labels(labels)
    elif labels:
        raise UsageError("needs --archive", where="--label", hint="name an archive")
    elif drops_archived:
        raise UsageError("needs --archive", where="--drop-archived", hint="name an archive")
    return url


def _finish_archive(session: Session, url: str | None) -> IolabError | None:
    """Push the last segments. Returns the error where something is not archived."""
    from iolab.base.errors import IolabError, ResultsError

    if url is None:
        return None
    say(f"pushing the last segments into {url}; Ctrl-C leaves it to iolab archive push")
    try:
        session.finish_archive()
    except IolabError as error:
        return error
    except KeyboardInterrupt:
        return ResultsError(
            "the last segments are not archived", where=url, hint="iolab archive push continues"
        )
    say("everything is archived")
    return None


def _stop(ctx: click.Context, directory: Path) -> int:
    """End the recorder of a directory and wait until all is on disk."""
    from iolab.base.errors import UsageError
    from iolab.recordings.record.control import end_recorder
    from iolab.recordings.store.base.metadata import read_facts

    from .words import thousands

    extra_options = [
        name
        for name in ctx.params
        if name != "ending" and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if extra_options or ctx.obj:
        raise UsageError(
            "cannot be combined with other arguments",
            where="--stop",
            hint="iolab record --stop DIR",
        )
    read_facts(directory)
    status = end_recorder(directory, STOPS_WITHIN)
    events, lost = (sum(status.get(key, {}).values()) for key in ("events", "lost"))
    say(f"{directory}: recording ended: {thousands(events)} events, {thousands(lost)} lost")
    return 0


def _clean(ctx: click.Context) -> int:
    """Remove the tracefs instances of dead probes."""
    from iolab.base.errors import UsageError
    from iolab.hosts.kinds.local import LocalHost
    from iolab.recordings.record.probe.program import clean, probe_path

    extra_options = [
        name
        for name in ctx.params
        if name != "cleans" and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if extra_options or ctx.obj:
        raise UsageError(
            "cannot be combined with other arguments", where="--clean", hint="iolab record --clean"
        )
    removed, kept = clean(LocalHost(), str(probe_path()))
    for name in removed:
        say(f"removed tracefs instance {name}")
    for name in kept:
        say(f"{name} is in use and stays")
    if not removed and not kept:
        say("nothing was left")
    return 1 if kept else 0


class _Screen:
    """Messages of a recording: a line per second on stderr, redrawn on a terminal."""

    def __init__(self, settings: Any, directory: Path, quiet: bool) -> None:
        self._settings, self._directory, self._quiet = settings, directory, quiet
        self._tty = on_terminal()
        self._drawn = False

    def begin(self, hello: Mapping[str, Any]) -> None:
        if not self._quiet:
            say(
                f"recording {', '.join(self._settings.sources)} into {self._directory} ({kept_text(self._settings.retention)}; "
                f"{budget_text(self._settings.budget)}); "
                + (
                    "Ctrl-C stops it"
                    if self._settings.duration is None
                    else f"for {self._settings.duration:g} s"
                )
            )

    def second(self, status: Status, events_per_s: float) -> None:
        if self._quiet:
            return
        line = live_line(status, events_per_s)
        if self._tty:
            redraw(line)
            self._drawn = True
        else:
            say(line)

    def notice(self, text: str) -> None:
        self.end()
        say(f"note: {text}")

    def end(self) -> None:
        if self._drawn:
            redraw("")
            self._drawn = False


def _sources(words: tuple[str, ...]) -> tuple[str, ...]:
    from iolab.base.errors import UsageError

    for word in words:
        if word not in SOURCES:
            raise UsageError(
                f"unknown source '{word}'",
                where="record",
                hint=f"there are: {', '.join(SOURCES)}; the recording comes after -o, a command to record after --",
            )
    return tuple(dict.fromkeys(words))


def _statistics(given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Those to keep from the start; None for the default ones."""
    from iolab.recordings.ask.kept.manage import parse_name

    if not given:
        return None
    return () if "none" in given else tuple(str(parse_name(name)) for name in given)


def _retention(keep: str | None, keep_for: str | None) -> Retention:
    from iolab.recordings.record.settings import Retention

    default = Retention()
    size = default.bytes if keep is None else None if keep == "all" else limit_of(keep, "--keep")
    age = (
        default.age_s
        if keep_for is None
        else None
        if keep_for == "ever"
        else seconds_of(keep_for, "--keep-for")
    )
    return Retention(size, age)


def _budget(given: tuple[str, ...]) -> Budget:
    from iolab.base.errors import UsageError
    from iolab.base.units import parse_quantity
    from iolab.recordings.record.settings import Budget

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
            raise UsageError(
                error.message,
                where="--budget",
                hint="a share of all CPU time (5%), a growth (20MiB/s), or none",
            ) from None
        if (share is not None and share <= 0) or (rate is not None and rate <= 0):
            raise UsageError(f"'{text}' leaves nothing to record with", where="--budget")
        if rate is not None and rate < LEAST_RATE and text.strip()[-1].isdigit():
            raise UsageError(
                f"'{text}' is {text.strip()} bytes a second, too few to record with",
                where="--budget",
                hint=f"write a unit, such as {text.strip()}MiB/s, or {text.strip()}% of all CPU time",
            )
    return Budget(share, rate)
