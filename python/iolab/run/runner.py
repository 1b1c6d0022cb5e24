"""The loop over a study's runs: everything checked first, each run journalled, what was made removed at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

from ..clock import Clock
from ..hosts.base import Host, Process
from ..hosts.facts import Facts
from ..results.evidence import RUNS
from ..results.manifest import Manifest, write_atomically, write_manifest
from ..study.load import Study
from ..study.plan import Plan, PlannedRun, plan_runs
from .environment import gather, write_study_environment
from .equipment import Equipment
from .execute import Executor, RunEnd, RunSetting
from .interrupts import Interrupts
from .journal import Journal
from .progress import Outcome, ProgressListener

STUDY_FILE = "study.toml"


class StudyRunner:
    """Does one study in one results directory, whose lock the caller holds."""

    def __init__(self, study: Study, directory: Path, listener: ProgressListener, clock: Clock, host: Host) -> None:
        self._study, self._directory, self._listener = study, directory, listener
        self._clock, self._host = clock, host
        self._journal = Journal(directory, clock)
        self._equipment = Equipment(study, host, clock, directory, listener.noticed)

    def run(self, interrupts: Interrupts, reproduce: Sequence[str]) -> Outcome:
        """Check tools, jobs and targets; write what the results are; do the runs.

        Raises RunError before anything is written where nothing could be measured.
        """
        with ExitStack() as stack:
            tools = self._equipment.tools()
            for target in self._equipment.targets:
                stack.callback(target.close)
                target.open(self._equipment.room(target))
            environment = gather(self._host, self._equipment.targets, tools)
            plan = plan_runs(self._study, self._equipment.seconds)
            surroundings = {"tools": tools, "fingerprint": environment.fingerprint}
            names = {run.number: run.identity(surroundings) for run in plan.runs}
            self._write_head(environment, reproduce)
            self._journal.write_all([("opened", {"study": self._study.name, "runs": len(plan.runs)}),
                                     *(("planned", _as_line(run, names)) for run in plan.runs)])
            for note in dict.fromkeys(note for target in self._equipment.targets for note in target.notes()):
                self._listener.noticed(note)
            self._listener.planned(self._study, plan, self._directory)
            outcome = self._do(plan, names, environment, tools, interrupts)
        self._listener.outcome(outcome)
        return outcome

    def _write_head(self, environment: Facts, reproduce: Sequence[str]) -> None:
        write_atomically(self._directory / STUDY_FILE, self._study.text)
        write_study_environment(self._directory, environment)
        (self._directory / RUNS).mkdir()
        write_manifest(self._directory, Manifest(
            name=self._study.name, description=self._study.description, origin="run", created_ns=self._clock.realtime_ns(),
            iolab=metadata.version("iolab"), baseline=self._study.baseline, variants=list(self._study.variants),
            factors=list(self._study.factors), study=self._study.resolved(), source=None, layout=None,
            reproduce=list(reproduce)))

    def _do(self, plan: Plan, names: Mapping[int, str], environment: Facts, tools: Mapping[str, str],
            interrupts: Interrupts) -> Outcome:
        begin = self._clock.monotonic()
        executor = Executor(self._host, self._clock, interrupts, waiting=self._listener.waiting, launched=self._launched,
                            noticed=self._listener.noticed)
        ends: list[RunEnd] = []
        for run in plan.runs:
            if interrupts.stop_after_run:
                break
            name = names[run.number]
            self._listener.started(run, name)
            end = executor.execute(RunSetting(
                run, name, self._directory / RUNS / name, self._equipment.target(run.cell), self._equipment.workload(run.cell),
                self._equipment.sources(run.cell), tools, environment))
            ends.append(end)
            self._journal.write(end.status, run=name, exit_code=end.exit_code, **({"reason": end.reason} if end.reason else {}))
            self._listener.ended(run, end.status, end.reason, plan.left(len(ends), self._clock.monotonic() - begin))
        finished = sum(end.status == "finished" for end in ends)
        failed = sum(end.status == "failed" for end in ends)
        left = len(plan.runs) - finished - failed
        self._journal.write("stopped" if left else "closed", finished=finished, failed=failed, left=left)
        return Outcome(self._directory, finished, failed, left, interrupts.stop_after_run, self._clock.monotonic() - begin)

    def _launched(self, name: str, process: Process) -> None:
        self._journal.write("started", run=name, host=self._host.name, pid=process.pid, pid_started_ticks=process.started)


def _as_line(run: PlannedRun, names: Mapping[int, str]) -> dict[str, object]:
    return {"run": names[run.number], "variant": run.cell.variant, "factors": dict(run.cell.factors), "block": run.block}
