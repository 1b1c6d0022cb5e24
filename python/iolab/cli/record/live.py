# SPDX-License-Identifier: Apache-2.0
"""`iolab live`: record one host or several, and show it in a browser meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.output import say
from ..results.view import announce, listening, serving_options
from .command import command as record

if TYPE_CHECKING:
    from iolab.output.server.alerts.commands import Commands

STARTS_WITHIN = 30.0
"""Seconds until a recording is there, or none comes. Another host takes longer: it must be reached
first."""
STARTS_FAR_WITHIN = 120.0
OTHERS_WITHIN = 10.0
"""Seconds that other hosts have after the first. A host that takes longer is shown later."""
ENDS_WITHIN = 60.0

_FORWARDED = (
    "words",
    "devices",
    "mounts",
    "host_words",
    "output",
    "budget",
    "keep",
    "keep_for",
    "statistics",
    "ring",
    "shared",
    "tracefs",
)
"""Parameters of `iolab record` that this command takes and hands on."""


class _Live(click.Command):
    """A command with the options of `iolab record` and its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: dict[str | None, click.Parameter] = {
            "words": click.Argument(
                ["words"], metavar="[block] [syscall] [nfs] [counters]", nargs=-1
            ),
            "host_words": click.Option(
                ["--host", "host_words"],
                metavar="HOST",
                multiple=True,
                help="The machine to record: rig:NAME, USER@HOST[:PORT] by ssh, or local. Repeatable: a recording for each "
                "host, and one page of all hosts. Root is needed there, not here.",
            ),
        }
        forwarded = [param for param in record.params if param.name in _FORWARDED]
        self.params = [own.get(param.name, param) for param in forwarded] + self.params


@click.command("live", cls=_Live)
@serving_options
def command(
    port: int | None,
    address: str | None,
    metrics: tuple[str, ...],
    token_file: Path | None,
    alert_commands: Path | None,
    **asked: Any,
) -> int:
    """Record I/O and show it live in a browser. Needs root on the recorded machine: sudo iolab
    live.

    The recorder is a separate process and takes the options of iolab record. The server runs without
    root; if it is slow or ends, the recording continues. Prints one address with its token. Ctrl-C
    ends both. iolab view shows the recording afterwards.

    With several --host, each host has a recorder and a recording in DIR. The page has a row for each
    host, and a click shows its worksheet. A host that fails does not end the others.
    """
    from iolab.output.server.alerts.commands import read_commands
    from iolab.output.server.base.store import Store
    from iolab.output.server.http import page
    from iolab.output.server.http.preload import preload_server
    from iolab.output.server.prometheus.metrics import Exporter
    from iolab.recordings.record.probe.privilege import become, caller
    from iolab.recordings.record.session import preload

    page.check()
    Exporter(Store(()), metrics)
    commands = read_commands(alert_commands)
    directory = (asked["output"] or Path(time.strftime("recording-%Y%m%dT%H%M%S"))).absolute()
    places = _places(asked["host_words"] or ("local",), directory)
    user = caller(os.environ)
    if user is not None:
        preload()
        preload_server(address)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    recorders: list[_Recorder] = []
    try:
        for host, place in places.items():
            words = _command({**asked, "host_words": host, "output": place})
            recorders.append(_start(host, place, words, is_one=len(places) == 1))
        if user is not None:
            become(user)
        if _have_begun(recorders):
            _show(recorders, directory, address, port, metrics, token_file, commands)
    except KeyboardInterrupt:
        pass
    finally:
        code = _end(recorders)
    return code


@dataclass(frozen=True)
class _Recorder:
    """The recorder of a host, and the directory of its recording."""

    host: str
    directory: Path
    process: subprocess.Popen[bytes]
    messages: threading.Thread | None = None


def _start(host: str, place: Path, words: Sequence[str], *, is_one: bool) -> _Recorder:
    """Start the recorder of a host. Of several, each line on stderr begins with the host."""
    stderr = None if is_one else subprocess.PIPE
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=stderr, process_group=0)
    if process.stderr is None:
        return _Recorder(host, place, process)
    lines = process.stderr

    def repeat() -> None:
        for line in lines:
            say(f"{place.name}: {line.decode(errors='replace').rstrip()}")

    messages = threading.Thread(target=repeat, daemon=True)
    messages.start()
    return _Recorder(host, place, process, messages)


def _places(hosts: Sequence[str], directory: Path) -> dict[str, Path]:
    """The directory of each host's recording. UsageError for a host that is given twice."""
    from iolab.base.errors import UsageError
    from iolab.hosts.kinds.parse import host_named

    if len(hosts) == 1:
        return {hosts[0]: directory}
    places: dict[str, Path] = {}
    names: set[str] = set()
    for host in hosts:
        name = host_named(host).name
        if name in names:
            raise UsageError(f"'{name}' is given twice", where="--host", hint="give each host once")
        names.add(name)
        # names with other characters can have the same directory name: a number tells them apart
        stem = re.sub(r"[^\w.@-]+", "-", name).strip(".-") or "host"
        free = (stem, *(f"{stem}-{number}" for number in range(2, len(hosts) + 1)))
        places[host] = next(
            place for item in free if (place := directory / item) not in places.values()
        )
    return places


def _command(asked: dict[str, Any]) -> list[str]:
    """The command line of the recorder."""
    # what serves reads the recording, and is of no interest in it
    words = [sys.executable, "-P", "-m", "iolab.cli", "record", "--quiet"]
    words += ["--leave-out", str(os.getpid())] if asked["host_words"] == "local" else []
    for param in record.params:
        value = asked.get(param.name or "")
        if param.name in _FORWARDED and isinstance(param, click.Option) and value is not None:
            if param.is_flag:
                words += [param.opts[0]] if value else []
                continue
            for item in value if isinstance(value, tuple) else (value,):
                words += [param.opts[0], str(item)]
    return [*words, *asked["words"]]


def _have_begun(recorders: Sequence[_Recorder]) -> bool:
    """Whether a recording is there; False once all recorders have ended, which have said why. Others
    have some time to begin as well."""
    from iolab.base.errors import RunError

    # a recording that is continued is there before it begins
    before = {recorder.host: _session(recorder.directory) for recorder in recorders}
    waiting = list(recorders)
    hosts = {recorder.host for recorder in recorders}
    seconds = STARTS_WITHIN if hosts == {"local"} else STARTS_FAR_WITHIN
    deadline = time.monotonic() + seconds
    has_begun = False
    while waiting and time.monotonic() < deadline:
        for recorder in list(waiting):
            if _has_begun(recorder, before[recorder.host]):
                deadline = deadline if has_begun else time.monotonic() + OTHERS_WITHIN
                has_begun = True
                waiting.remove(recorder)
            elif recorder.process.poll() is not None:
                waiting.remove(recorder)
        time.sleep(0.05)
    if waiting and not has_begun:
        raise RunError(f"no recording began within {seconds:g} s", where=waiting[0].directory)
    return has_begun


def _has_begun(recorder: _Recorder, before: Any) -> bool:
    from iolab.recordings.store.base.layout import is_recording

    is_there = recorder.process.poll() is None and is_recording(recorder.directory)
    return is_there and _session(recorder.directory) != before


def _session(directory: Path) -> Any:
    """The latest session of a recording, None where there is none."""
    from iolab.base.errors import IolabError
    from iolab.recordings.store.base.metadata import read_facts

    try:
        sessions = read_facts(directory).sessions
    except IolabError:
        return None
    return sessions[-1] if sessions else None


def _show(
    recorders: Sequence[_Recorder],
    directory: Path,
    address: str | None,
    port: int | None,
    metrics: Sequence[str],
    token_file: Path | None,
    commands: Commands,
) -> None:
    from iolab.output.server.base.store import Store
    from iolab.output.server.http.actions import state_of_user
    from iolab.output.server.http.serve import serve

    listener = listening(address, port, token_file)
    running = list(recorders)

    def go_on() -> bool:
        for recorder in list(running):
            if recorder.process.poll() is not None:
                running.remove(recorder)
                of_host = f" of {recorder.host}" if len(recorders) > 1 else ""
                say(
                    f"note: the recorder{of_host} has ended; what it recorded is shown until Ctrl-C"
                )
        return True

    def ready() -> None:
        say(f"recording into {directory}")
        announce(listener)

    serve(
        state_of_user(Store((directory,)), commands),
        listener,
        metrics=metrics,
        ready=ready,
        go_on=go_on,
    )


def _end(recorders: Sequence[_Recorder]) -> int:
    """Ask the recorders to end, and wait until what they have is on disk; the largest exit code."""
    number = signal.SIGINT
    deadline = time.monotonic() + ENDS_WITHIN
    requested: set[int] = set()
    running = [recorder.process for recorder in recorders]
    while running and time.monotonic() < deadline:
        try:
            for process in running:
                # until it has given up root as well, it can't be reached
                if process.pid not in requested and process.poll() is None:
                    with contextlib.suppress(PermissionError):
                        process.send_signal(number)
                        requested.add(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running[0].wait(0.5)
            running = [process for process in running if process.poll() is None]
        except KeyboardInterrupt:
            number, requested = signal.SIGTERM, set()
    for process in running:
        say(f"warning: the recorder (process {process.pid}) does not end; what it recorded is kept")
    for recorder in recorders:
        if recorder.messages is not None:
            # the last lines; a process that does not end keeps its end of the pipe
            recorder.messages.join(1)
    if running:
        return 5
    codes = [recorder.process.returncode for recorder in recorders]
    return max((128 - code if code < 0 else code for code in codes), default=0)
