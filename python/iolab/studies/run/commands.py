# SPDX-License-Identifier: Apache-2.0
"""Running a study's own commands: each recorded with its exit code and how long it took, its output
kept."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.base.files import open_for_writing
from iolab.hosts.base.host import Host, Process

from ..plan.commands import Command
from .resuming.journal import Journal
from .resuming.process_registry import Starts

RECORDS = "hooks.jsonl"
OUTPUTS = "hooks"
"""Directory of what the commands wrote; below a run it is a directory so that no output is mistaken
for a measurement."""
LONGEST_WAIT = 0.25
"""Seconds between looks at interrupts."""
SLOW = 30.0
"""Seconds after which the command that the study waits for is reported."""


_KILLED = 3.0
"""Seconds within which a command ends after SIGKILL, unless it waits in the kernel."""


@dataclass(frozen=True)
class Running:
    """A command that was started. `title`: when and for what it runs, in words; `number`: names its
    output."""

    command: Command
    title: str
    directory: Path
    number: int
    process: Process
    begun: float
    time_ns: int


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended. `failure`: empty where it ended well, else the words for it."""

    exit_code: int
    seconds: float
    failure: str


class CommandRunner:
    """Starts and ends commands of one study on its host."""

    def __init__(
        self,
        host: Host,
        clock: Clock,
        journal: Journal,
        starts: Starts,
        directory: Path,
        notice: Callable[[str], None],
    ) -> None:
        """`starts`: of the study's attempt; `directory`: where commands are started, the study
        file's own."""
        self._host, self._clock, self._journal = host, clock, journal
        self._starts, self._directory, self._notice = starts, directory.absolute(), notice

    def start(
        self, command: Command, title: str, directory: Path, environment: Mapping[str, str]
    ) -> Running:
        """Start a command, its output going below `directory`; RunError where that can't be done."""
        outputs = directory / OUTPUTS
        try:
            outputs.mkdir(exist_ok=True)
            number = 1 + sum(path.suffix == ".out" for path in outputs.iterdir())
        except OSError as error:
            raise RunError(
                f"its output can't be kept: {error.strerror or error}", where=outputs
            ) from None
        begun, time_ns = self._clock.monotonic(), self._clock.realtime_ns()
        process = self._host.start(
            command.arguments,
            cwd=self._directory,
            stdout=outputs / f"{number:02d}.out",
            stderr=outputs / f"{number:02d}.err",
            environment={**environment, **self._starts.environment},
        )
        with self._report_full_disk():
            self._starts.note("hook", process, title=title, command=command.text)
        return Running(command, title, directory, number, process, begun, time_ns)

    def run(
        self,
        command: Command,
        title: str,
        directory: Path,
        environment: Mapping[str, str],
        stop: Callable[[], bool],
    ) -> CommandEnd:
        """Run a command to its end, or end it once `stop` returns True. Failures are returned, not
        raised."""
        try:
            running = self.start(command, title, directory, environment)
        except RunError as error:
            self._write(
                directory,
                {
                    "title": title,
                    "command": command.text,
                    "arguments": list(command.arguments),
                    "time_ns": self._clock.realtime_ns(),
                    "exit_code": None,
                    "seconds": 0.0,
                    "failure": str(error),
                },
            )
            return CommandEnd(127, 0.0, str(error))
        is_reported = False
        while running.process.wait(LONGEST_WAIT) is None:
            if stop():
                return self.finish(running, stopped=True)
            if not is_reported and self._clock.monotonic() - running.begun > SLOW:
                is_reported = True
                self._notice(f"waiting for {title}: {command.text}")
        return self.finish(running)

    def finish(self, running: Running, *, stopped: bool = False) -> CommandEnd:
        """Note the end of a command, ending it first where it is `stopped`."""
        code = running.process.end(patience=_KILLED) if stopped else running.process.wait(0)
        seconds = self._clock.monotonic() - running.begun
        failure = "stopped by the user" if stopped else ""
        if code is None:
            code, failure = (
                137,
                f"process {running.process.pid} waits in the kernel and could not be ended",
            )
        if code and not stopped:
            failure = f"exit code {code}{_last_words(running.directory / OUTPUTS / f'{running.number:02d}.err')}"
        self._write(
            running.directory,
            {
                "title": running.title,
                "command": running.command.text,
                "arguments": list(running.command.arguments),
                "time_ns": running.time_ns,
                "seconds": round(seconds, 6),
                "exit_code": code,
                "output": f"{OUTPUTS}/{running.number:02d}.out",
                "errors": f"{OUTPUTS}/{running.number:02d}.err",
                **({"failure": failure} if failure else {}),
            },
        )
        with self._report_full_disk():
            self._journal.write(
                "hook-ended",
                title=running.title,
                pid=running.process.pid,
                exit_code=code,
                seconds=round(seconds, 6),
            )
        return CommandEnd(code, seconds, failure)

    @contextlib.contextmanager
    def _report_full_disk(self) -> Iterator[None]:
        """A full disk must not keep a command from putting things back."""
        try:
            yield
        except OSError as error:
            self._notice(f"the journal can't be written: {error.strerror or error}")

    def _write(self, directory: Path, record: Mapping[str, Any]) -> None:
        try:
            with os.fdopen(
                open_for_writing(directory / RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
                "a",
                encoding="utf-8",
            ) as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            self._notice(f"{directory / RECORDS} can't be written: {error.strerror or error}")


def _last_words(path: Path) -> str:
    with contextlib.suppress(OSError):
        lines = [
            line.strip() for line in path.read_text("utf-8", "replace").splitlines() if line.strip()
        ]
        return f": {lines[-1][:200]}" if lines else ""
    return ""
