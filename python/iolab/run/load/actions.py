# SPDX-License-Identifier: Apache-2.0
"""Actions of a study at given times of a run: commands and marks, without delaying the load."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...clock import Clock
from ...errors import RunError
from ...hosts.base.host import Host, Process
from ...results.evidence.marks import Mark, add_marks
from ...study.commands import Action
from ..commands import CommandRunner, Running
from .start import age_of_jobs, shows_threads


class Actions:
    """The actions of one run. Polled by the run's loop; times count from the start of the measured
    window.

    The window starts with the load's jobs plus the ramp. Where the host doesn't show when jobs
    start, they count from the start of the load's program, so that a layout of files comes on top.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        host: Host,
        clock: Clock,
        commands: CommandRunner,
        directory: Path,
        environment: Mapping[str, str],
        notice: Callable[[str], None],
    ) -> None:
        self._waiting = sorted(actions, key=lambda action: action.at)
        self._host, self._clock, self._commands = host, clock, commands
        self._directory, self._environment, self._notice = directory, environment, notice
        self._origin: float | None = None
        self._process: Process | None = None
        self._ramp = 0.0
        self._running: list[tuple[Action, Running]] = []
        self.never: tuple[str, ...] = ()
        """Marks of actions that were not executed before the load ended; set by `stop`."""

    def start(self, process: Process, ramp: float, begins: float | None = None) -> None:
        """The load was started; `begins`: the monotonic second at which it does I/O, if known."""
        self._process, self._ramp = process, ramp
        if begins is not None:
            self._origin = begins + ramp
        elif self._waiting and not shows_threads(self._host, process.pid):
            self._origin = self._clock.monotonic() + ramp

    def due(self) -> float:
        """Monotonic second of the next action; infinite without one, or before the window's start
        is known."""
        return (
            self._origin + self._waiting[0].at
            if self._waiting and self._origin is not None
            else math.inf
        )

    def poll(self) -> None:
        """Execute the actions of this time, and record commands that ended."""
        if self._waiting and self._origin is None and self._process is not None:
            age = age_of_jobs(self._host, self._process.pid)
            if age is not None:
                self._origin = self._clock.monotonic() - age + self._ramp
        while self._waiting and self._clock.monotonic() >= self.due():
            self._do(self._waiting.pop(0))
        for pair in [pair for pair in self._running if pair[1].process.wait(0) is not None]:
            self._running.remove(pair)
            self._note_end(*pair, stopped=False)

    def stop(self) -> None:
        """The load ended: end running commands, and report actions that were not executed."""
        for action, running in self._running:
            over = running.process.wait(0) is not None
            self._note_end(action, running, stopped=not over)
        self._running = []
        self.never = tuple(action.mark for action in self._waiting)
        for action in self._waiting:
            self._notice(
                f"action '{action.mark}' at {action.at:g} s never came: the load had ended"
            )
        self._waiting = []

    def _do(self, action: Action) -> None:
        if action.command is None:
            add_marks(
                self._directory,
                [Mark(self._clock.realtime_ns(), "mark", action.mark, data={"at": action.at})],
            )
            return
        try:
            self._running.append(
                (
                    action,
                    self._commands.start(
                        action.command,
                        f"action at {action.at:g} s",
                        self._directory,
                        self._environment,
                    ),
                )
            )
        except RunError as error:
            add_marks(
                self._directory,
                [
                    Mark(
                        self._clock.realtime_ns(),
                        "action",
                        action.mark,
                        data={
                            "at": action.at,
                            "command": action.command.text,
                            "exit_code": 127,
                            "seconds": 0.0,
                            "failure": str(error),
                        },
                    )
                ],
            )
            self._notice(f"action '{action.mark}': {error}")

    def _note_end(self, action: Action, running: Running, *, stopped: bool) -> None:
        end = self._commands.finish(running, stopped=stopped)
        failure = "ended with the run" if stopped else end.failure
        add_marks(
            self._directory,
            [
                Mark(
                    running.time_ns,
                    "action",
                    action.mark,
                    data={
                        "at": action.at,
                        "command": running.command.text,
                        "exit_code": end.exit_code,
                        "seconds": round(end.seconds, 6),
                        **({"failure": failure} if failure else {}),
                    },
                )
            ],
        )
        if failure:
            self._notice(f"action '{action.mark}': '{running.command.text}': {failure}")
