# SPDX-License-Identifier: Apache-2.0
"""The loop over a study's runs: everything checked first, each run journalled, what was made
removed at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iolab import __version__
from iolab.base import metrics, registry
from iolab.base.clock import Clock
from iolab.base.errors import FormatError, RunError
from iolab.base.files import write_atomically
from iolab.hosts.base.host import Host
from iolab.hosts.facts.host_facts import Facts
from iolab.hosts.kinds.parse import host_named

from ..plan.cells.plan import Plan, PlannedRun, plan_runs
from ..plan.file.load import Study
from ..results.derive.derive import derive
from ..results.evidence.files import PROFILES, RUNS, read_plan
from ..results.evidence.manifest import FILE as MANIFEST_FILE
from ..results.evidence.manifest import STUDY_FILE, Manifest, read_manifest, write_manifest
from ..targets.base import NOTHING_ALLOWED, Permissions, Target
from ..targets.made import SUFFIX as MADE
from .commands import CommandRunner
from .environment import gather, write_study_environment
from .execute import Executor, RunSetting
from .hooks import Hooks
from .load.clients import Clients
from .plugins import Equipment
from .progress import Outcome, ProgressListener
from .record import RunEnd
from .resuming.interrupts import Interrupts
from .resuming.journal import Journal
from .resuming.looks import Looks
from .resuming.process_registry import Starts
from .resuming.resume import (
    NOTHING,
    Past,
    check_host,
    check_surroundings,
    clear,
    find_changes,
    read_past,
)
from .resuming.sessions import Sessions


@dataclass(frozen=True)
class RunnerOptions:
    """How a study is done.

    Attributes:
        resume: continue existing results. fail_fast: stop at the first run that fails.
        variants: in a study with sessions, only sessions of these are measured now; empty: all.
        permissions: what targets may overwrite; its `force` also lets a resumed study continue
        in another environment.
    """

    resume: bool = False
    fail_fast: bool = False
    permissions: Permissions = NOTHING_ALLOWED
    variants: Sequence[str] = ()


@dataclass(frozen=True)
class _Ground:
    """What runs are done on from here on: names hold the hash of it. `names`: of the missing runs,
    by number."""

    environment: Facts
    tools: Mapping[str, str]
    names: Mapping[int, str]

    @property
    def surroundings(self) -> dict[str, Any]:
        return {"tools": dict(self.tools), "fingerprint": dict(self.environment.fingerprint)}


class StudyRunner:
    """Does one study in one results directory. The caller has the lock of the directory."""

    def __init__(
        self,
        study: Study,
        directory: Path,
        listener: ProgressListener,
        clock: Clock,
        host: Host,
        options: RunnerOptions | None = None,
        open_host: Callable[[str], Host] = host_named,
    ) -> None:
        """`open_host`: opens a client host by what names it."""
        self._study, self._directory, self._listener = study, directory, listener
        self._clock, self._host, self._options = clock, host, options or RunnerOptions()
        self._journal = Journal(directory, clock)
        self._starts = Starts(directory, host, self._journal)
        self._commands = CommandRunner(
            host, clock, self._journal, self._starts, study.directory, listener.notice
        )
        self._clients = Clients(study.cells, open_host)
        self._equipment = Equipment(
            study,
            host,
            clock,
            directory,
            listener.notice,
            self._options.permissions,
            clients=self._clients,
        )
        self._hung = False
        self._looks = Looks(study, directory, self._journal, listener.notice)
        self._sessions = Sessions(
            study,
            host,
            self._journal,
            self._commands,
            listener.notice,
            variants=self._options.variants,
            force=self._options.permissions.force,
        )
        self._given_up: set[int] = set()

    def run(self, interrupts: Interrupts, reproduce: Sequence[str]) -> Outcome:
        """Check tools, jobs and targets; write what the results are; do the runs that are missing.

        Raises RunError before anything is written where nothing could be measured, UsageError where
        a study can't be resumed here: it was begun on another host, or in another environment.
        """
        past = read_past(self._directory) if self._options.resume else NOTHING
        check_host(past, self._host, self._directory, self._options.permissions.force)
        plan = self._plan()
        self._sessions.recall(past.events, plan.runs)
        self._given_up = {
            run.number
            for run in plan.runs
            if run.number not in past.done and self._sessions.is_over(run)
        }
        clear(
            self._directory,
            past,
            self._journal,
            self._host,
            self._listener.notice,
            self._given_up,
        )
        if self._given_up:
            self._listener.notice(
                f"{len(self._given_up)} runs of sessions that are over are missing, and not repeated"
            )
        missing = [
            run
            for run in plan.runs
            if run.number not in past.done and run.number not in self._given_up
        ]
        if past.begun:
            self._looks = Looks(
                self._study, self._directory, self._journal, self._listener.notice, past.events
            )
            while self._looks.is_open and not self._looks.select(missing):
                self._looks.take()
            if not self._looks.select(missing):
                return self._nothing_to_do(plan, past)
        self._sessions.check_kernel()
        with ExitStack() as stack:
            stack.callback(self._clients.close)
            self._equipment.builds.make(lambda: interrupts.stop_after_run)
            tools = self._equipment.tools()
            self._equipment.check_images()
            head = stack.enter_context(ExitStack())
            if not past.begun:
                # where it is done is on record before anything is made over there, and until all of
                # that is gone
                head.push(self._take_back_head)
                self._write_head(reproduce)
            for target in self._equipment.targets:
                stack.callback(self._close, target)
                target.open(self._equipment.room(target))
            # a target has the modules as they were, which the pool of another would prevent
            stack.callback(self._release, None)
            ground = self._ground(missing, tools)
            if past.begun:
                self._go_on(past, plan, missing, ground)
            else:
                (self._directory / RUNS).mkdir(exist_ok=True)
                write_study_environment(self._directory, ground.environment)
                self._note_ground("opened", missing, ground, {}, runs=len(plan.runs))
                head.pop_all()
            for note in self._equipment.notes():
                self._listener.notice(note)
            if self._equipment.recorder is not None:
                stack.callback(self._equipment.recorder.stop)
                self._equipment.recorder.start(self._equipment.targets)
            stack.callback(self._equipment.client_recorders.stop)
            self._equipment.client_recorders.start()
            self._listener.begin_study(self._study, plan, self._directory)
            outcome = self._do(plan, missing, past, ground, interrupts)
        if not self._study.kernels:
            self._listener.outcome(outcome)
        self._sessions.restart(self._directory, interrupts)
        if self._study.kernels and not self.has_restarted:
            self._listener.outcome(outcome)
        return outcome

    @property
    def has_restarted(self) -> bool:
        """Whether the host was restarted for the next session, so that the study continues."""
        return self._sessions.has_restarted

    def _close(self, target: Target) -> None:
        """Have a target remove what it made, unless that would wait in the kernel as the load does."""
        if not self._hung:
            try:
                target.close()
            except (RunError, OSError) as error:
                self._listener.notice(str(error))

    def _release(self, coming: PlannedRun | None) -> None:
        """Before commands between variants: no target keeps what would be in their way, unless that
        would wait in the kernel."""
        if self._hung:
            return
        following = None if coming is None else self._equipment.target(coming.cell)
        for target in self._equipment.targets:
            try:
                target.release(target is following)
            except (RunError, OSError) as error:
                self._listener.notice(str(error))

    def _plan(self) -> Plan:
        """All runs. Where the host gives no profile those made for one are left out, and why is
        said: what is measured needs none."""
        profiler = self._equipment.profiler
        problem = None if profiler is None else profiler.problem()
        if problem is not None:
            self._listener.notice(f"profiles are left out: {problem}; --resume makes them later")
        return plan_runs(self._study, self._equipment.seconds, profiles=problem is None)

    def _ground(self, missing: Sequence[PlannedRun], tools: Mapping[str, str]) -> _Ground:
        ground = _Ground(
            gather(
                self._host,
                self._equipment.targets,
                tools,
                self._study.revisions,
                {client.name: client.host for client in self._clients.all()},
            ),
            tools,
            {},
        )
        surroundings = ground.surroundings
        return replace(ground, names={run.number: run.identity(surroundings) for run in missing})

    def _write_head(self, reproduce: Sequence[str]) -> None:
        """The manifest last: with it the study counts as begun, on this host."""
        write_atomically(self._directory / STUDY_FILE, self._study.text)
        write_manifest(
            self._directory,
            Manifest(
                name=self._study.name,
                description=self._study.description,
                origin="run",
                created_ns=self._clock.realtime_ns(),
                iolab=__version__,
                baseline=self._study.baseline,
                variants=list(self._study.variants),
                factors=list(self._study.factors),
                study=self._study.as_data(),
                source=None,
                layout=None,
                host=self._host.name,
                reproduce=list(reproduce),
            ),
        )

    def _take_back_head(self, kind: type[BaseException] | None, *_: object) -> None:
        """Where nothing could be measured at all, nothing is left, unless something is over there
        still."""
        if (
            kind is not None
            and issubclass(kind, Exception)
            and not any(self._directory.glob(f"*{MADE}"))
        ):
            for name in (MANIFEST_FILE, STUDY_FILE):
                (self._directory / name).unlink(missing_ok=True)

    def _go_on(
        self, past: Past, plan: Plan, missing: Sequence[PlannedRun], ground: _Ground
    ) -> None:
        changed = (
            []  # checked when the session has begun
            if self._study.session_order
            else check_surroundings(
                past,
                ground.names,
                ground.surroundings,
                read_manifest(self._directory),
                self._study,
                self._options.permissions.force,
            )
        )
        remaining = len(self._looks.select(missing))
        self._note_ground("resumed", missing, ground, past.planned, left=remaining)
        for change in changed:
            self._listener.notice(f"another environment than the runs before: {change}")
        self._listener.notice(
            f"resumed: {len(plan.runs) - len(missing)} of {len(plan.runs)} runs exist, "
            f"{remaining} remain"
        )

    def _note_ground(
        self,
        event: str,
        missing: Sequence[PlannedRun],
        ground: _Ground,
        planned: Mapping[int, str],
        **data: Any,
    ) -> None:
        """The event with what runs are done on, and under which names the missing ones are planned
        by now."""
        self._journal.write_all(
            [
                (
                    event,
                    {
                        "study": self._study.name,
                        "host": self._host.name,
                        **self._starts.facts,
                        "surroundings": ground.surroundings,
                        **data,
                    },
                ),
                *self._planned_events(
                    [
                        run
                        for run in self._looks.select(missing)
                        if planned.get(run.number) != ground.names[run.number]
                    ],
                    ground,
                ),
            ]
        )

    def _planned_events(
        self, runs: Sequence[PlannedRun], ground: _Ground
    ) -> list[tuple[str, dict[str, Any]]]:
        return [
            (
                "planned",
                {
                    "run": ground.names[run.number],
                    "variant": run.cell.variant,
                    "factors": dict(run.cell.factors),
                    "block": run.block,
                    **({"profile": True} if run.profile else {}),
                },
            )
            for run in runs
        ]

    def _nothing_to_do(self, plan: Plan, past: Past) -> Outcome:
        count = len(self._looks.select(plan.runs)) - len(self._given_up)
        if not past.events or past.events[-1]["event"] != "closed":
            self._journal.write("closed", finished=count, failed=0, left=0)
        self._listener.notice(f"all {count} runs are there; nothing is left to do")
        outcome = Outcome(self._directory, count, 0, 0, False, 0.0)
        self._listener.outcome(outcome)
        return outcome

    def _do(
        self,
        plan: Plan,
        missing: Sequence[PlannedRun],
        past: Past,
        ground: _Ground,
        interrupts: Interrupts,
    ) -> Outcome:
        begin = self._clock.monotonic()
        warm_up()
        hooks = Hooks(
            self._study,
            self._commands,
            self._directory,
            interrupts,
            self._listener.notice,
            self._release,
            self._equipment.builds,
        )
        with ExitStack() as stack:
            stack.callback(hooks.finish)
            failure = hooks.begin_study()
            if failure and not interrupts.stop_now:
                raise RunError(
                    failure,
                    hint="hooks.jsonl in the results has its output; continue with --resume once it works",
                )
            executor = Executor(
                self._host,
                self._clock,
                interrupts,
                hooks,
                self._commands,
                self._equipment,
                self._starts,
                self._listener,
            )
            stack.callback(executor.close)
            ends = self._runs(plan, missing, ground, interrupts, hooks, executor, begin)
        finished = sum(run.number in past.done for run in plan.runs) + sum(
            end.status == "finished" for end in ends
        )
        failed = sum(end.status == "failed" for end in ends)
        remaining = len(self._looks.select(plan.runs)) - len(self._given_up) - finished - failed
        self._journal.write(
            "stopped" if remaining else "closed", finished=finished, failed=failed, left=remaining
        )
        return Outcome(
            self._directory,
            finished,
            failed,
            remaining,
            interrupts.stop_after_run,
            self._clock.monotonic() - begin,
        )

    def _runs(
        self,
        plan: Plan,
        missing: Sequence[PlannedRun],
        ground: _Ground,
        interrupts: Interrupts,
        hooks: Hooks,
        executor: Executor,
        begin: float,
    ) -> list[RunEnd]:
        seconds = dict(zip((run.number for run in plan.runs), plan.run_seconds, strict=True))
        rest = Plan(tuple(missing), tuple(seconds[run.number] for run in missing))
        ends: list[RunEnd] = []
        session = 0
        for place, run in enumerate(missing):
            if interrupts.stop_after_run:
                break
            if self._looks.is_open and (run.profile or not self._looks.needs(run)):
                self._take_look(missing[place:], ground)
            if not self._looks.needs(run):
                continue
            if run.session != session:
                hooks.leave_session()
                pause = self._sessions.begin(run, self._directory, interrupts)
                if pause:
                    self._listener.notice(pause)
                    break
                ground = self._look_again(missing[place:], ground)
                self._sessions.confirm(run, ground.surroundings)
                session = run.session
            elif place > 0 and run.block != missing[place - 1].block:
                ground = self._look_again(missing[place:], ground)
            failure = hooks.come_to(run)
            if interrupts.stop_after_run:
                break
            end = self._one(run, ground, executor, failure)
            ends.append(end)
            name = ground.names[run.number]
            values = (
                headline(self._directory / RUNS / name)
                if end.status == "finished" and not run.profile
                else {}
            )
            self._listener.end_run(
                run,
                end.status,
                end.reason,
                rest.estimate_rest(len(ends), self._clock.monotonic() - begin),
                values,
            )
            if end.hung:
                self._hung = True
                self._listener.notice(
                    "stopped: the target of the load does not answer. Its files are left as they are; --resume "
                    "removes them and continues, once it answers again"
                )
                break
            if end.status == "failed" and self._options.fail_fast:
                self._listener.notice("stopped at the first failed run; --resume continues with it")
                break
        else:
            if self._looks.is_open:
                self._take_look((), ground)
        return ends

    def _take_look(self, missing: Sequence[PlannedRun], ground: _Ground) -> None:
        """Look at the results; the journal plans the runs that the next look needs."""
        planned = {run.number for run in self._looks.select(missing)}
        self._looks.take()
        self._journal.write_all(
            self._planned_events(
                [run for run in self._looks.select(missing) if run.number not in planned], ground
            )
        )

    def _one(self, run: PlannedRun, ground: _Ground, executor: Executor, failure: str) -> RunEnd:
        name = ground.names[run.number]
        self._listener.begin_run(run, name)
        place = self._directory / (PROFILES if run.profile else RUNS) / name
        setting = RunSetting(
            run,
            name,
            place,
            self._equipment.target(run.cell),
            self._equipment.workload(run.cell),
            self._equipment.load(run.cell),
            () if failure else self._equipment.sources(run.cell),
            ground.tools,
            ground.environment,
            self._study.actions,
            self._equipment.profiler if run.profile else None,
            self._clients.of(run.cell),
            self._equipment.program(run.cell),
        )
        end = executor.refuse(setting, failure) if failure else executor.execute(setting)
        self._journal.write(
            end.status,
            run=name,
            exit_code=end.exit_code,
            **({"reason": end.reason} if end.reason else {}),
            **({"hung": True} if end.hung else {}),
        )
        return end

    def _look_again(self, missing: Sequence[PlannedRun], ground: _Ground) -> _Ground:
        """At each block's start: has the environment changed? Runs from here on carry another hash
        then, and gates see it."""
        try:
            now = self._ground(missing, self._equipment.versions())
        except (RunError, OSError) as error:
            self._listener.notice(f"the environment can't be looked at: {error}")
            return ground
        changed = find_changes(ground.surroundings, now.surroundings)
        if not changed:
            return ground
        self._note_ground("drift", missing, now, ground.names, changed=changed)
        for change in changed:
            self._listener.notice(f"the environment changed: {change}")
        return now


def warm_up() -> None:
    """Load the plugins of `headline`, so that this does not happen during the second run."""
    registry.load_all("gate")
    registry.load_all("format")


def headline(run_dir: Path) -> Mapping[str, float]:
    """Headline metrics in base units; empty if the evidence has none."""
    try:
        observations = derive(run_dir, read_plan(run_dir)).observations
    except FormatError:
        return {}
    return {
        observation.metric: observation.value
        for observation in observations
        if (metric := metrics.find(observation.metric)) is not None and metric.headline
    }
