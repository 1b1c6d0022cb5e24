# SPDX-License-Identifier: Apache-2.0
"""Actions of a study at given times of a run: commands and marks, without delaying the load."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, Process, text_or_none

from ...plan.commands import Action
from ...results.evidence.marks import Mark, add_marks
from ..commands import CommandRunner, Running


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


_TICKS = 100
"""Clock ticks per second in /proc, the same on all of Linux's usual machines
(sysconf(_SC_CLK_TCK))."""
_OWN_THREADS = 2
"""fio's own: the main one and its helper. A third is a job (option `thread`)."""


def shows_threads(host: Host, pid: int) -> bool:
    """Whether the host shows the threads of a process."""
    try:
        host.list_directory(f"/proc/{pid}/task")
    except OSError:
        return False
    return True


def age_of_jobs(host: Host, pid: int) -> float | None:
    """Seconds since the first job of a load was started; None before.

    A load lays out its files and then starts its jobs as processes or threads. The start time of
    the oldest job counts, exact to a clock tick (proc_pid_stat(5), field 22).
    """
    try:
        threads = host.list_directory(f"/proc/{pid}/task")
    except OSError:
        return None
    jobs = [
        f"/proc/{child}/stat"
        for child in (text_or_none(host, f"/proc/{pid}/task/{pid}/children") or "").split()
    ]
    if not jobs and len(threads) > _OWN_THREADS:
        ids = sorted(int(thread) for thread in threads if thread.isdecimal())[_OWN_THREADS:]
        jobs = [f"/proc/{pid}/task/{thread}/stat" for thread in ids]
    starts = [
        ticks for path in jobs if (ticks := _start_ticks(text_or_none(host, path))) is not None
    ]
    uptime = (text_or_none(host, "/proc/uptime") or "").split()
    if not starts or not uptime:
        return None
    return max(0.0, float(uptime[0]) - min(starts) / _TICKS)


def _start_ticks(stat: str | None) -> int | None:
    fields = (stat or "").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else None
