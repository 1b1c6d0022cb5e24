# SPDX-License-Identifier: Apache-2.0
"""The load of a run, from its start to its end: sources and actions are polled meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Process

from ...results.evidence.files import PASSES
from ...sources.base import Source
from ...workloads.base import Load
from ..builds.build_places import Watch
from ..progress import Status
from ..record import RunEnd
from ..resuming.interrupts import Interrupts
from ..resuming.process_registry import Starts
from .actions import Actions
from .launch import Launch
from .waiting import Wait

LAYOUT = "layout-"
"""Put before the names of the files that a layout of its own leaves."""
LONGEST_WAIT = 0.25
"""Seconds between looks at interrupts and listeners."""
STUCK = 3.0
"""Seconds that an overdue load waits in the kernel before a message."""
STUCK_EARLY = 10.0
"""The same before its time is over, and while it lays out files: slow devices make it wait too."""
_GRACE, _PATIENCE, _LOOK = 0.5, 1.0, 0.05
"""Seconds for ending a load that waits in the kernel and ignores signals."""


class LoadRunner:
    """Starts loads and watches them."""

    def __init__(
        self,
        clock: Clock,
        interrupts: Interrupts,
        starts: Starts,
        notice: Callable[[str], None],
    ) -> None:
        self._clock, self._interrupts = clock, interrupts
        self._starts, self._notice = starts, notice

    def run(
        self,
        directory: Path,
        launch: Launch,
        load: Load,
        sources: Sequence[Source],
        actions: Actions,
        waiting: Callable[[float, float, Mapping[str, float]], None],
        watch: Watch | None = None,
    ) -> RunEnd:
        """Run the load to its end or its limit. RunError where it can't be started, OSError where
        evidence can't be written.

        `directory` bears the run's name; `watch` looks at the load's processes until it ends.
        """
        watched = list(sources)
        with contextlib.ExitStack() as stack:
            for source in sources:
                stack.callback(source.stop)
                source.start(directory)
            process = launch.start(directory, "", self._starts.environment)
            begin, begin_ns = self._clock.monotonic(), self._clock.realtime_ns()
            try:
                if watch is not None:
                    watch.look(process.pid)
                self._starts.note("started", process, run=directory.name, **launch.facts())
                actions.start(process, load.ramp, launch.begins)
                wait = launch.kernel_wait(process)

                def poll(passed: float) -> float:
                    self._poll(watched)
                    actions.poll()
                    if watch is not None:
                        watch.look(process.pid)
                    waiting(
                        passed,
                        load.ramp + load.runtime,
                        {
                            name: value
                            for source in watched
                            for name, value in source.latest().items()
                        },
                    )
                    return min([actions.due(), *(source.due() for source in watched)])

                cut = self._watch(process, wait, launch.limit, load.ramp + load.runtime, poll)
                end_ns = begin_ns + round((self._clock.monotonic() - begin) * 1e9)
                exit_code, hung = self._end(process, wait) if cut else (process.wait(0), "")
                actions.stop()
            except BaseException:
                process.end()
                raise
        status, reason = cut or launch.outcome(exit_code)
        return RunEnd(
            status,
            reason + hung,
            exit_code,
            pid=None if process.started is None else process.pid,
            pid_started=process.started,
            hung=bool(hung),
            span=(begin_ns, end_ns),
        )

    def lay_out(self, directory: Path, launch: Launch) -> RunEnd:
        """Run a layout to its end. RunError where it can't be started."""
        return self._complete(
            directory, launch, LAYOUT, directory.name, "the files can't be laid out"
        )

    def read_pass(self, directory: Path, launch: Launch, number: int) -> RunEnd:
        """Run a pass of reading that precedes the measured one, in a directory of its own below the
        run's. RunError where it can't be started."""
        place = directory / PASSES / f"{number:03}"
        place.mkdir(parents=True)
        return self._complete(place, launch, "", directory.name, f"pass {number} can't be read")

    def _complete(
        self, directory: Path, launch: Launch, prefix: str, run: str, problem: str
    ) -> RunEnd:
        """Run a load without sources to its end."""
        process = launch.start(directory, prefix, self._starts.environment)
        try:
            self._starts.note("started", process, run=run, **launch.facts())
            wait = launch.kernel_wait(process)
            cut = self._watch(
                process, wait, launch.limit, launch.limit, lambda passed: float("inf")
            )
            exit_code, hung = self._end(process, wait) if cut else (process.wait(0), "")
        except BaseException:
            process.end()
            raise
        status, reason = cut or launch.outcome(exit_code)
        reason += hung
        return RunEnd(
            status,
            f"{problem}: {reason}" if status == "failed" else reason,
            hung=bool(hung),
        )

    def _watch(
        self,
        process: Process,
        kernel: Wait,
        limit: float,
        expected: float,
        poll: Callable[[float], float],
    ) -> tuple[Status, str] | None:
        """Wait for the load; (status, reason) if it must be ended, None if it ended itself.

        `poll` gets the seconds passed and returns the monotonic second of its next call at the
        latest. A load that waits in the kernel without end is reported; the first request to stop
        ends it.
        """
        begin = self._clock.monotonic()
        next_poll = begin
        is_reported = False
        while True:
            now = self._clock.monotonic()
            if process.wait(max(0.0, min(LONGEST_WAIT, next_poll - now))) is not None:
                return None
            now = self._clock.monotonic()
            passed = now - begin
            late = passed > expected
            waits = False
            if late or is_reported or self._interrupts.stop_after_run or expected == limit:
                seconds = kernel.seconds(now)
                if seconds > (STUCK if late else STUCK_EARLY):
                    waits = True
                    if not is_reported:
                        planned = (
                            f"{expected:g} s were planned"
                            if expected < limit
                            else f"at most {limit:.0f} s were planned"
                        )
                        self._notice(
                            f"the load does not end ({passed:.0f} s, {planned}): {kernel.words()} has waited in the kernel for "
                            f"{seconds:.0f} s. Is the file system frozen, or the device suspended? Ctrl-C stops the study; "
                            f"else the load is given up after {limit:.0f} s"
                        )
                    is_reported = True
            if self._interrupts.stop_now or (waits and self._interrupts.stop_after_run):
                return "interrupted", "stopped by the user"
            if passed > limit:
                return (
                    "failed",
                    f"hung: ended after {passed:.0f} s, {expected:g} s were planned",
                )
            next_poll = poll(passed)

    def _end(self, process: Process, kernel: Wait) -> tuple[int | None, str]:
        """End a load: its exit code, and an addition to the reason if a process can't be ended.

        fio's jobs have process groups of their own: their parent ends them. `kernel` shows those
        that remain.
        """
        waits = kernel.seconds(self._clock.monotonic()) > STUCK
        code = process.end(_GRACE, patience=_PATIENCE) if waits else process.end()
        limit = self._clock.monotonic() + _PATIENCE
        while words := kernel.remaining():
            if self._clock.monotonic() >= limit:
                return None, f"; {words} waits in the kernel and could not be ended"
            self._clock.sleep(_LOOK)
        return (
            code,
            ""
            if code is not None
            else f"; process {process.pid} waits in the kernel and could not be ended",
        )

    def _poll(self, watched: list[Source]) -> None:
        """A source that fails is left where it stopped: its gate judges what it has."""
        for source in list(watched):
            try:
                source.poll()
            except RunError as error:
                watched.remove(source)
                self._notice(f"{source.name} stopped: {error}")
