# SPDX-License-Identifier: Apache-2.0
"""One run: a fresh place, the sources, the load, and what all of them leave."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.base.files import write_atomically
from iolab.hosts.base.host import Host, HungError, Place
from iolab.hosts.facts.host_facts import Facts, temperatures

from ..plan.cells.plan import PlannedRun
from ..plan.client_hosts import ClientHosts
from ..plan.commands import Action
from ..results.evidence.clients import KEY as CLIENTS
from ..results.evidence.clients import common_window
from ..results.evidence.files import PASSES, TARGET_FILE, write_plan
from ..results.evidence.marks import add_marks
from ..results.evidence.model import KERNEL, PROGRAM, PROGRAM_BUILD, SESSION, RunPlan
from ..sources.base import Source
from ..targets.base import RunContext, Target
from ..targets.cache import drop_caches
from ..workloads.base import Job, Load, StartTime, Workload
from ..workloads.fio.ios import FOLDER
from .builds.build_places import watch_program
from .builds.program_builds import ProgramUse
from .commands import CommandRunner
from .environment import write_run_environment
from .hooks import Hooks, variables
from .load.actions import Actions
from .load.clients import Client, ClientLaunch, client_places, path_on_clients
from .load.launch import HostLaunch, Launch
from .load.loop import LoadRunner
from .load.profiling import MARK, Profiler
from .load.tracing import active_tracing
from .logs.log_ios import keep_ios
from .logs.picture import read_picture
from .plugins import Equipment
from .progress import ProgressListener
from .record import RunEnd
from .resuming.interrupts import Interrupts
from .resuming.process_registry import Starts

KERNEL_FILE = "dmesg.txt"
SCHEMA = 1
_GRAVE = ("emerg", "alert", "crit", "err", "warn")
"""Levels of kernel messages that are reported at once; the rest is in the evidence."""


@dataclass(frozen=True)
class RunSetting:
    """What a run is done with.

    Attributes:
        load: that of all clients together. tools: name to version.
        profiler: of a run that is made for a profile.
        clients: those that put the load on the target; none for a load on the target's host.
        program: of a run in a study with builds.
    """

    run: PlannedRun
    name: str
    directory: Path
    target: Target
    workload: Workload
    load: Load
    sources: Sequence[Source]
    tools: Mapping[str, str]
    environment: Facts
    actions: Sequence[Action] = ()
    profiler: Profiler | None = None
    clients: Sequence[Client] = ()
    program: ProgramUse | None = None


class Executor:
    """Does runs on one host."""

    def __init__(
        self,
        host: Host,
        clock: Clock,
        interrupts: Interrupts,
        hooks: Hooks,
        commands: CommandRunner,
        equipment: Equipment,
        starts: Starts,
        listener: ProgressListener,
    ) -> None:
        self._host, self._clock, self._interrupts = host, clock, interrupts
        self._hooks, self._commands, self._starts = hooks, commands, starts
        self._recorder, self._client_recorders = equipment.recorder, equipment.client_recorders
        self._waiting, self._notice = listener.update_run, listener.notice
        self._kernel_log = host.kernel_log()

    def close(self) -> None:
        """Stop reading the kernel's log."""
        if self._kernel_log is not None:
            self._kernel_log.close()

    def execute(self, setting: RunSetting) -> RunEnd:
        """Do the run and write its evidence, `run.json` last: a directory without it was never
        finished.

        What goes wrong with the run is its end, recorded, a full disk under the evidence too.
        OSError is raised where not even `run.json` can be written.
        """
        self._prepare(setting)
        load = setting.load
        try:
            end = (
                self._in_place(setting, load)
                if setting.profiler is None
                else self._profile(setting, setting.profiler, load)
            )
        except RunError as error:
            end = RunEnd("failed", str(error), hung=isinstance(error, HungError))
        except OSError as error:
            end = RunEnd("failed", f"its evidence can't be written: {error.strerror or error}")
        if end.status == "finished" and setting.profiler is None:
            keep_ios(
                setting.directory,
                load,
                end.window,
                self._host.name,
                self._notice,
                recorder=self._recorder,
                ahead_ns=int(end.recording.get("ahead_ns", 0)),
            )
            read_picture(setting.directory, self._notice)
        self._record(setting, load, end)
        return end

    def refuse(self, setting: RunSetting, reason: str) -> RunEnd:
        """Record a run that can't be done: something before it failed."""
        self._prepare(setting)
        end = RunEnd("failed", reason)
        self._record(setting, setting.load, end)
        return end

    def _prepare(self, setting: RunSetting) -> None:
        setting.directory.mkdir(parents=True)
        write_run_environment(setting.directory, setting.environment, temperatures(self._host))

    def _record(self, setting: RunSetting, load: Load, end: RunEnd) -> None:
        write_plan(
            setting.directory,
            _plan_of(setting, load, end, self._host.name),
        )

    def _in_place(self, setting: RunSetting, load: Load) -> RunEnd:
        run = setting.run
        place = setting.target.begin(
            RunContext(setting.name, run.cell.identity(), run.block, load.space_bytes)
        )
        end = RunEnd("failed", hung=True)  # until it is known that the place answers
        try:
            failure = self._hooks.before_run(run, setting.name, setting.directory, place.path)
            try:
                if failure:
                    end = RunEnd("interrupted" if self._interrupts.stop_now else "failed", failure)
                    return end
                with self._places(setting, place) as places:
                    end = self._load(setting, load, place, places)
                if not end.hung:
                    self._observe(setting)
                return end
            except HungError:
                raise
            except BaseException:
                end = replace(end, hung=False)
                raise
            finally:
                self._hooks.after_run(run, setting.name, setting.directory, place.path)
        finally:
            if not end.hung:  # what is there is removed by --resume, once the place answers again
                self._tidy(setting)

    def _profile(self, setting: RunSetting, profiler: Profiler, load: Load) -> RunEnd:
        """A run for a profile: it fails without one. Its log of every I/O is deleted."""
        profiler.begin()
        try:
            end = self._in_place(setting, load)
            shutil.rmtree(setting.directory / FOLDER, ignore_errors=True)
            if end.status == "finished":
                try:
                    profiler.collect(setting.directory, load, self._commands, self._interrupts)
                except RunError as error:
                    end = replace(
                        end,
                        status="interrupted" if self._interrupts.stop_now else "failed",
                        reason=str(error),
                    )
            return end
        finally:
            for problem in profiler.end():
                self._notice(problem)

    @contextlib.contextmanager
    def _places(self, setting: RunSetting, place: Place) -> Iterator[dict[str, Place]]:
        """Where the load works: the target's place under an empty name, or one for each client."""
        hosts = setting.run.cell.load
        if hosts is None:
            yield {"": place}
            return
        if place.kind == "device":
            raise RunError(
                "clients share a directory, and the target is a device",
                where=place.path,
                hint="use a target of kind 'directory', 'filesystem' or 'zpool'",
            )
        path = path_on_clients(place.path, self._export(setting, hosts), hosts.path)
        with client_places(setting.clients, path, self._host, place.path, self._notice) as places:
            yield places

    def _export(self, setting: RunSetting, hosts: ClientHosts) -> str | None:
        """The directory of this host that clients see at their path."""
        export = hosts.export or getattr(setting.run.cell.target, "path", None)
        return None if export is None else self._host.resolve(export)

    def _launch(
        self,
        setting: RunSetting,
        job: Callable[[Place, StartTime | None], Job],
        places: Mapping[str, Place],
        jobs: int,
        environment: Mapping[str, str] | None = None,
    ) -> Launch:
        """`jobs`: of each client, that start together; 0 if they need not. `environment`: of a load
        on the host of the target."""
        if not setting.clients:
            host = self._host if setting.program is None else setting.program.host
            return HostLaunch(host, job(places[""], None), environment)
        return ClientLaunch(
            setting.clients,
            lambda name, start: job(places[name], start),
            self._host,
            self._clock,
            jobs,
        )

    def _load(
        self, setting: RunSetting, load: Load, place: Place, places: Mapping[str, Place]
    ) -> RunEnd:
        runner = LoadRunner(self._clock, self._interrupts, self._starts, self._notice)
        words = variables(
            run=setting.name,
            cell=setting.run.cell,
            block=setting.run.block,
            directory=setting.directory,
            target=place.path,
        )
        if setting.program is not None:
            words |= setting.program.environment
        launch = self._launch(
            setting,
            lambda place, start: (
                setting.workload.job(place)
                if start is None  # which workloads that do not wait do not know
                else setting.workload.job(place, start)
            ),
            places,
            load.jobs // (len(setting.clients) or 1),
            words if PROGRAM in load.facts else {},
        )
        if setting.target.cold() or load.layout_first:
            layout = self._lay_out(runner, setting, places)
            if layout.status != "finished":
                return layout
        passes = self._read_passes(runner, setting, places)
        if passes.status != "finished":
            return passes
        done = (
            setting.actions
            if setting.profiler is None
            else (*setting.actions, setting.profiler.action(load))
        )
        actions = Actions(
            done, self._host, self._clock, self._commands, setting.directory, words, self._notice
        )
        if self._kernel_log is not None:
            self._kernel_log.new()  # what came before is of no load
        recorder = self._recorder if setting.profiler is None else None
        client_recorders = self._client_recorders if setting.profiler is None else None
        if recorder is not None:
            recorder.begin()
        if client_recorders is not None:
            client_recorders.begin()
        tracing = self._tracing(setting)
        use = setting.program
        watch = None if use is None else watch_program(use.host, use.program, use.file)
        try:
            end = runner.run(
                setting.directory,
                launch,
                load,
                setting.sources,
                actions,
                lambda passed, expected, latest: self._waiting(
                    setting.run, passed, expected, latest
                ),
                watch,
            )
        finally:
            self._keep_kernel_messages(setting)
        if MARK in actions.never and setting.profiler is not None and end.status == "finished":
            end = replace(
                end,
                status="failed",
                reason="no profile: the load had ended before sampling began; say an earlier profile.after",
            )
        facts = {
            "variant": setting.run.cell.variant,
            "factors": dict(setting.run.cell.factors),
            "block": setting.run.block,
        }
        if isinstance(launch, ClientLaunch):
            clients = launch.runs(setting.workload.window)
            if client_recorders is not None:
                clients = client_recorders.end(setting.name, clients, facts)
            end, window = replace(end, clients=clients), common_window(clients)
        else:
            window = setting.workload.window(setting.directory)
        if PROGRAM in load.facts:
            window = end.span
        if window is not None:
            add_marks(setting.directory, setting.workload.marks(window))
        recording = {} if recorder is None else recorder.end(setting.name, window, facts)
        tracing = list(dict.fromkeys([*tracing, *self._tracing(setting)]))
        return replace(
            end,
            window=window,
            job=setting.workload.job(next(iter(places.values()))),
            place=place,
            recording=recording,
            tracing=tracing,
            build={} if use is None or watch is None else use.evidence(watch.programs()),
        )

    def _tracing(self, setting: RunSetting) -> list[str]:
        return active_tracing(self._host, str(setting.directory.parent.parent.absolute()))

    def _lay_out(
        self, runner: LoadRunner, setting: RunSetting, places: Mapping[str, Place]
    ) -> RunEnd:
        """Files are laid out by jobs of their own, and for a cold start put out of memory then."""
        layout = setting.workload.layout(next(iter(places.values())))
        end = RunEnd("finished")
        if layout is not None:
            launch = self._launch(
                setting, lambda place, _: setting.workload.layout(place) or layout, places, 0
            )
            end = runner.lay_out(setting.directory, launch)
        if end.status == "finished":
            self._chill(setting)
        return end

    def _read_passes(
        self, runner: LoadRunner, setting: RunSetting, places: Mapping[str, Place]
    ) -> RunEnd:
        """All passes of a load that reads several times, but the last one, which is measured as any
        load is. The files remain, and leave the memory after each pass if the target is cold."""
        count = int(setting.load.facts.get(PASSES, 1))
        if count > 1 and setting.clients:
            raise RunError(
                "passes are read on the host of the target",
                where="workload.passes",
                hint="leave [load] or passes out",
            )
        for number in range(1, count if setting.profiler is None else 1):
            launch = self._launch(setting, lambda place, _: setting.workload.job(place), places, 0)
            end = runner.read_pass(setting.directory, launch, number)
            if end.status != "finished":
                return end
            if self._interrupts.stop_now:
                return RunEnd("interrupted", "stopped by the user")
            self._chill(setting)
        return RunEnd("finished")

    def _chill(self, setting: RunSetting) -> None:
        """Nothing of the files stays in memory, if the target is cold."""
        if setting.target.cold():
            for client in setting.clients:
                drop_caches(client.host)
            setting.target.chill()

    def _observe(self, setting: RunSetting) -> None:
        """What the target says of the run. That it can't is no harm to what was measured."""
        try:
            said = dict(setting.target.observe())
        except HungError:
            raise
        except RunError as error:
            self._notice(str(error))
            return
        if said:
            write_atomically(
                setting.directory / TARGET_FILE,
                json.dumps({"schema": SCHEMA, **said}, indent=1, default=str) + "\n",
                durable=False,
            )

    def _keep_kernel_messages(self, setting: RunSetting) -> None:
        lines = self._kernel_log.new() if self._kernel_log is not None else []
        if lines:
            with contextlib.suppress(OSError):
                write_atomically(setting.directory / KERNEL_FILE, "\n".join(lines) + "\n")
        for line in [line for line in lines if line.startswith(_GRAVE)][:1]:
            self._notice(
                f"run {setting.name}: the kernel says: {line} ({KERNEL_FILE} has all {len(lines)} lines)"
            )

    def _tidy(self, setting: RunSetting) -> None:
        """Files that can't be removed don't unmake what was measured."""
        try:
            setting.target.end(setting.name)
        except HungError:
            raise
        except RunError as error:
            self._notice(str(error))


def _plan_of(setting: RunSetting, load: Load, end: RunEnd, host: str) -> RunPlan:
    """`run.json` of a run that ended."""
    run = setting.run
    extra: dict[str, Any] = {
        "options": dict(load.options),
        "time_based": True,
        **load.facts,
        "job": end.job.files[end.job.main] if end.job else "",
        "sources": [source.name for source in setting.sources],
        "readings": {
            source.name: {
                "taken": source.readings,
                "lost": source.lost,
                **({"trouble": source.trouble} if source.trouble else {}),
            }
            for source in setting.sources
        },
        "devices": list(setting.target.devices()),
    }
    if setting.target.cold():  # nothing of its files was in memory when it began
        extra["cold"] = True
    if end.place is not None:
        extra["place"] = asdict(end.place)
    if end.pid is not None:
        extra["pid"], extra["pid_started_ticks"] = end.pid, end.pid_started
    if end.recording:
        extra["recording"] = dict(end.recording)
    if end.clients:
        extra[CLIENTS] = [client.as_data() for client in end.clients]
    if end.build:
        extra[PROGRAM_BUILD] = dict(end.build)
    if end.tracing:
        extra["tracing"] = list(end.tracing)
    if run.profile:
        extra["profile"] = True
    if run.session:
        extra[SESSION] = run.session
    if run.cell.kernel is not None:
        extra[KERNEL] = run.cell.kernel
    if end.reason:
        extra["failure"] = end.reason
    return RunPlan(
        run=setting.name,
        variant=run.cell.variant,
        factors=dict(run.cell.factors),
        repetition=run.repetition,
        block=run.block,
        status=end.status,
        host=host,
        jobs=load.jobs,
        depth=load.depth,
        runtime=load.runtime,
        ramp=load.ramp,
        offered_iops=load.offered_iops,
        window=end.window,
        command=end.job.command if end.job else (),
        exit_code=end.exit_code,
        tools=dict(setting.tools),
        extra=extra,
    )
