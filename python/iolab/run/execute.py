"""One run: a fresh place, the sources, the load, and what all of them leave."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..clock import Clock
from ..errors import RunError
from ..hosts.base import Host, Process
from ..hosts.facts import Facts
from ..results.evidence import write_plan
from ..results.model import RunPlan
from ..sources.base import Source
from ..study.plan import PlannedRun
from ..targets.base import RunContext, Target
from ..workloads.base import Job, Load, Workload
from .environment import write_run_environment
from .interrupts import Interrupts
from .progress import Status

COMMAND_FILE = "command.txt"
STDOUT_FILE = "stdout.txt"
STDERR_FILE = "stderr.txt"
LONGEST_WAIT = 0.25
"""Seconds between looks at interrupts and listeners."""


@dataclass(frozen=True)
class RunSetting:
    """What a run is done with. `tools`: name to version."""

    run: PlannedRun
    name: str
    directory: Path
    target: Target
    workload: Workload
    sources: Sequence[Source]
    tools: Mapping[str, str]
    environment: Facts


@dataclass(frozen=True)
class RunEnd:
    """How a run ended; `reason` is empty where it finished."""

    status: Status
    reason: str
    exit_code: int | None
    window: tuple[int, int] | None
    pid: int | None = None
    pid_started: int | None = None


class Executor:
    """Does runs on one host."""

    def __init__(self, host: Host, clock: Clock, interrupts: Interrupts, *, waiting: Callable[[PlannedRun, float, float], None],
                 launched: Callable[[str, Process], None], noticed: Callable[[str], None]) -> None:
        self._host, self._clock, self._interrupts = host, clock, interrupts
        self._waiting, self._launched, self._noticed = waiting, launched, noticed

    def execute(self, setting: RunSetting) -> RunEnd:
        """Do the run and write its evidence, `run.json` last: a directory without it was never finished.

        What goes wrong with the run is its end, recorded; OSError of the results directory itself is raised.
        """
        load = setting.workload.load()
        setting.directory.mkdir(parents=True)
        write_run_environment(setting.directory, setting.environment)
        job: Job | None = None
        try:
            run = setting.run
            place = setting.target.begin(RunContext(setting.name, run.cell.identity(), run.block, load.space_bytes))
            try:
                job = setting.workload.job(place.path)
                end = self._run(setting, load, job)
            finally:
                self._tidy(setting)
        except RunError as error:
            end = RunEnd("failed", str(error), None, None)
        write_plan(setting.directory, _plan_of(setting, load, job, end, self._host.name))
        return end

    def _run(self, setting: RunSetting, load: Load, job: Job) -> RunEnd:
        directory = setting.directory
        for name, text in job.files.items():
            (directory / name).write_text(text, "utf-8")
        (directory / COMMAND_FILE).write_text(shlex.join(job.command) + "\n", "utf-8")
        with contextlib.ExitStack() as stack:
            for source in setting.sources:
                stack.callback(source.stop)
                source.start(directory)
            process = self._host.start(job.command, cwd=directory, stdout=directory / STDOUT_FILE, stderr=directory / STDERR_FILE)
            try:
                self._launched(setting.name, process)
                cut = self._watch(setting, process, load.ramp + load.runtime, job.limit)
            except BaseException:
                process.end()
                raise
        exit_code = process.end() if cut else process.wait(0)
        return _judge(setting, exit_code, cut, process)

    def _watch(self, setting: RunSetting, process: Process, expected: float, limit: float) -> tuple[Status, str] | None:
        """Wait for the load, polling the sources; (status, reason) where it must be ended, None where it ended itself."""
        begin = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            dues = [source.due() - now for source in setting.sources]
            if process.wait(max(0.0, min([LONGEST_WAIT, *dues]))) is not None:
                return None
            for source in setting.sources:
                source.poll()
            passed = self._clock.monotonic() - begin
            if self._interrupts.stop_now:
                return "interrupted", "stopped by the user"
            if passed > limit:
                return "failed", f"hung: ended after {passed:.0f} s, {expected:g} s were planned"
            self._waiting(setting.run, passed, expected)

    def _tidy(self, setting: RunSetting) -> None:
        """Files that can't be removed don't unmake what was measured."""
        try:
            setting.target.end(setting.name)
        except RunError as error:
            self._noticed(str(error))


def _judge(setting: RunSetting, exit_code: int | None, cut: tuple[Status, str] | None, process: Process) -> RunEnd:
    window = setting.workload.window(setting.directory)
    if cut is not None:
        status, reason = cut
    elif exit_code:
        status, reason = "failed", f"exit code {exit_code}{_last_words(setting.directory)}"
    else:
        status, reason = "finished", ""
    return RunEnd(status, reason, exit_code, window, process.pid, process.started)


def _last_words(directory: Path) -> str:
    """The load's last line on standard error, for a message."""
    try:
        lines = [line.strip() for line in (directory / STDERR_FILE).read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f": {lines[-1][:200]}" if lines else ""


def _plan_of(setting: RunSetting, load: Load, job: Job | None, end: RunEnd, host: str) -> RunPlan:
    extra: dict[str, Any] = {
        "options": dict(load.options), "time_based": True, "job": job.files[job.main] if job else "",
        "sources": [source.name for source in setting.sources],
        "readings": {source.name: {"taken": source.readings, "lost": source.lost} for source in setting.sources},
        "devices": list(setting.target.devices()),
    }
    if end.pid is not None:
        extra["pid"], extra["pid_started_ticks"] = end.pid, end.pid_started
    if end.reason:
        extra["failure"] = end.reason
    run = setting.run
    return RunPlan(run=setting.name, variant=run.cell.variant, factors=dict(run.cell.factors), repetition=run.repetition,
                   block=run.block, status=end.status, host=host, jobs=load.jobs, depth=load.depth, runtime=load.runtime,
                   ramp=load.ramp, offered_iops=load.offered_iops, window=end.window,
                   command=job.command if job else (), exit_code=end.exit_code, tools=dict(setting.tools), extra=extra)
