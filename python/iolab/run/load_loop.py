# SPDX-License-Identifier: Apache-2.0
"""The load of a run, from its start to its end: sources and actions are polled meanwhile."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..clock import Clock
from ..errors import RunError
from ..hosts.base.host import Host, Process
from ..sources.base import Source
from ..workloads.base import Job, Load
from .actions import Actions
from .interrupts import Interrupts
from .process_registry import Starts
from .progress import Status
from .record import RunEnd
from .waiting import KernelWait

COMMAND_FILE = "command.txt"
STDOUT_FILE = "stdout.txt"
STDERR_FILE = "stderr.txt"
LAYOUT = "layout-"
"""Put before the names of the files that a layout of its own leaves."""
LONGEST_WAIT = 0.25
"""Seconds between looks at interrupts and listeners."""
STUCK = 3.0
"""Seconds that a load which should have ended waits in the kernel before that is said."""
STUCK_EARLY = 10.0
"""The same before its time is over, and while it lays out files: slow devices make it wait too."""
_GRACE, _PATIENCE, _LOOK = 0.5, 1.0, 0.05
"""Seconds for ending a load that waits in the kernel: it can't hear, and nobody should wait for it.
"""


class LoadRunner:
    """Runs jobs on one host and watches them."""

    def __init__(
        self,
        host: Host,
        clock: Clock,
        interrupts: Interrupts,
        starts: Starts,
        noticed: Callable[[str], None],
    ) -> None:
        self._host, self._clock, self._interrupts = host, clock, interrupts
        self._starts, self._noticed = starts, noticed

    def run(
        self,
        directory: Path,
        job: Job,
        load: Load,
        sources: Sequence[Source],
        actions: Actions,
        waiting: Callable[[float, float, Mapping[str, float]], None],
    ) -> RunEnd:
        """Run the job to its end or its limit. RunError where it can't be started, OSError where
        evidence can't be written.

        `directory` bears the run's name.
        """
        watched = list(sources)
        with contextlib.ExitStack() as stack:
            for source in sources:
                stack.callback(source.stop)
                source.start(directory)
            process = self._start(directory, job, "")
            try:
                self._starts.note("started", process, run=directory.name)
                actions.start(process, load.ramp)

                def poll(passed: float) -> float:
                    self._poll(watched)
                    actions.poll()
                    waiting(
                        passed,
                        load.ramp + load.runtime,
                        {name: value for one in watched for name, value in one.latest().items()},
                    )
                    return min([actions.due(), *(source.due() for source in watched)])

                cut, kernel = self._watch(process, job.limit, load.ramp + load.runtime, poll)
                exit_code, hung = self._ended(process, kernel) if cut else (process.wait(0), "")
                actions.stop()
            except BaseException:
                process.end()
                raise
        status, reason = cut or _end_of(exit_code, directory / STDERR_FILE)
        return RunEnd(
            status,
            reason + hung,
            exit_code,
            job=job,
            pid=process.pid,
            pid_started=process.started,
            hung=bool(hung),
        )

    def lay_out(self, directory: Path, job: Job) -> RunEnd:
        """Run a layout to its end. RunError where it can't be started."""
        process = self._start(directory, job, LAYOUT)
        try:
            self._starts.note("started", process, run=directory.name)
            cut, kernel = self._watch(process, job.limit, job.limit, lambda passed: float("inf"))
            exit_code, hung = self._ended(process, kernel) if cut else (process.wait(0), "")
        except BaseException:
            process.end()
            raise
        status, reason = cut or _end_of(exit_code, directory / f"{LAYOUT}{STDERR_FILE}")
        reason += hung
        return RunEnd(
            status,
            f"the files can't be laid out: {reason}" if status == "failed" else reason,
            hung=bool(hung),
        )

    def _start(self, directory: Path, job: Job, prefix: str) -> Process:
        for name, text in job.files.items():
            (directory / name).write_text(text, "utf-8")
        (directory / f"{prefix}{COMMAND_FILE}").write_text(shlex.join(job.command) + "\n", "utf-8")
        return self._host.start(
            job.command,
            cwd=directory,
            stdout=directory / f"{prefix}{STDOUT_FILE}",
            stderr=directory / f"{prefix}{STDERR_FILE}",
            environment=self._starts.environment,
            folders=job.folders,
        )

    def _watch(
        self, process: Process, limit: float, expected: float, poll: Callable[[float], float]
    ) -> tuple[tuple[Status, str] | None, KernelWait]:
        """Wait for the load; (status, reason) where it must be ended, None where it ended itself;
        and what was seen of it.

        `poll` gets the seconds passed and yields the monotonic second when it wants to be called
        next at the latest. A load that waits in the kernel without end is told at once; it is ended
        by the first request to stop, as it would not end by itself.
        """
        begin = self._clock.monotonic()
        due = begin
        kernel, said = KernelWait(self._host, process.pid), False
        while True:
            now = self._clock.monotonic()
            if process.wait(max(0.0, min(LONGEST_WAIT, due - now))) is not None:
                return None, kernel
            now = self._clock.monotonic()
            passed = now - begin
            late = passed > expected
            waits = False
            if late or said or self._interrupts.stop_after_run or expected == limit:
                seconds = kernel.seconds(now)
                if seconds > (STUCK if late else STUCK_EARLY):
                    waits = True
                    if not said:
                        planned = (
                            f"{expected:g} s were planned"
                            if expected < limit
                            else f"at most {limit:.0f} s were planned"
                        )
                        self._noticed(
                            f"the load does not end ({passed:.0f} s, {planned}): {kernel.words()} has waited in the kernel for "
                            f"{seconds:.0f} s. Is the file system frozen, or the device suspended? Ctrl-C stops the study; "
                            f"else the load is given up after {limit:.0f} s"
                        )
                    said = True
            if self._interrupts.stop_now or (waits and self._interrupts.stop_after_run):
                return ("interrupted", "stopped by the user"), kernel
            if passed > limit:
                return (
                    "failed",
                    f"hung: ended after {passed:.0f} s, {expected:g} s were planned",
                ), kernel
            due = poll(passed)

    def _ended(self, process: Process, kernel: KernelWait) -> tuple[int | None, str]:
        """End a load: its exit code, and what to add to the reason where something of it can't be
        ended. `kernel`: see `_watch`.

        Jobs of fio are in groups of their own: they end as their parent tells them, or are looked
        for by what was seen.
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
                self._noticed(f"{source.name} stopped: {error}")


def _end_of(exit_code: int | None, errors: Path) -> tuple[Status, str]:
    return (
        ("failed", f"exit code {exit_code}{_last_words(errors)}") if exit_code else ("finished", "")
    )


def _last_words(path: Path) -> str:
    """The load's last line on standard error, for a message."""
    try:
        lines = [
            line.strip() for line in path.read_text("utf-8", "replace").splitlines() if line.strip()
        ]
    except OSError:
        return ""
    return f": {lines[-1][:200]}" if lines else ""
