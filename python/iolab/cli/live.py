# SPDX-License-Identifier: Apache-2.0
"""`iolab live`: record, and show it in a browser meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import say
from .record import command as record
from .view import announce, listening, serving_options

if TYPE_CHECKING:
    from ..server.alerts.commands import Commands

STARTS_WITHIN = 30.0
"""Seconds until a recording is there, or none comes. Another host takes longer: it must be reached
first."""
STARTS_FAR_WITHIN = 120.0
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
        self.params = [param for param in record.params if param.name in _FORWARDED] + self.params
        for param in self.params:
            if param.name == "words" and isinstance(param, click.Argument):
                self.params[self.params.index(param)] = click.Argument(
                    ["words"], metavar="[block] [syscall] [nfs] [counters]", nargs=-1
                )


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
    """
    from ..recorder.privilege import become, caller
    from ..recorder.session import preload
    from ..server.alerts.commands import read_commands
    from ..server.base.store import Store
    from ..server.http import page
    from ..server.http.preload import preload_server
    from ..server.prometheus.metrics import Exporter

    page.check()
    Exporter(Store(()), metrics)
    commands = read_commands(alert_commands)
    directory = (asked["output"] or Path(time.strftime("recording-%Y%m%dT%H%M%S"))).absolute()
    user = caller(os.environ)
    if user is not None:
        preload()
        preload_server(address)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    recorder = subprocess.Popen(
        _command({**asked, "output": directory}), stdin=subprocess.DEVNULL, process_group=0
    )
    try:
        if user is not None:
            become(user)
        if _begun(
            recorder,
            directory,
            STARTS_WITHIN if asked["host_words"] == "local" else STARTS_FAR_WITHIN,
        ):
            _show(recorder, directory, address, port, metrics, token_file, commands)
    except KeyboardInterrupt:
        pass
    finally:
        code = _end(recorder)
    return code


def _command(asked: dict[str, Any]) -> list[str]:
    """The command line of the recorder."""
    # what serves reads the recording, and is of no interest in it
    words = [sys.executable, "-P", "-m", __package__, "record", "--quiet"]
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


def _begun(recorder: subprocess.Popen[bytes], directory: Path, seconds: float) -> bool:
    """Whether the recording is there; False once the recorder has ended, which has said why."""
    from ..errors import RunError
    from ..recording.base.layout import is_recording

    # a recording that is continued is there before it begins
    before = _session(directory)
    deadline = time.monotonic() + seconds
    while recorder.poll() is None:
        if is_recording(directory) and _session(directory) != before:
            return True
        if time.monotonic() > deadline:
            raise RunError(f"no recording began within {seconds:g} s", where=directory)
        time.sleep(0.05)
    return False


def _session(directory: Path) -> Any:
    """The latest session of a recording, None where there is none."""
    from ..errors import IolabError
    from ..recording.base.metadata import read_facts

    try:
        sessions = read_facts(directory).sessions
    except IolabError:
        return None
    return sessions[-1] if sessions else None


def _show(
    recorder: subprocess.Popen[bytes],
    directory: Path,
    address: str | None,
    port: int | None,
    metrics: Sequence[str],
    token_file: Path | None,
    commands: Commands,
) -> None:
    from ..server.base.store import Store
    from ..server.http.actions import state_of_user
    from ..server.http.serve import serve

    listener = listening(address, port, token_file)
    pids: list[int] = []

    def go_on() -> bool:
        code = recorder.poll()
        if code is not None and not pids:
            pids.append(code)
            say("note: the recorder has ended; what it recorded is shown until Ctrl-C")
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


def _end(recorder: subprocess.Popen[bytes]) -> int:
    """Ask the recorder to end, and wait until what it has is on disk; its exit code."""
    number = signal.SIGINT
    deadline = time.monotonic() + ENDS_WITHIN
    is_requested = False
    while time.monotonic() < deadline:
        try:
            # until it has given up root as well, it can't be reached
            if not is_requested and recorder.poll() is None:
                with contextlib.suppress(PermissionError):
                    recorder.send_signal(number)
                    is_requested = True
            code = recorder.wait(0.5)
            return 128 - code if code < 0 else code
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt:
            number, is_requested = signal.SIGTERM, False
    say(f"warning: the recorder (process {recorder.pid}) does not end; what it recorded is kept")
    return 5
