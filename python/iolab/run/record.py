# SPDX-License-Identifier: Apache-2.0
"""How a run ended, and the plan that is written with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..hosts.base.target_path import Place
from ..results.evidence.clients import KEY as CLIENTS
from ..results.evidence.clients import ClientRun
from ..results.evidence.model import KERNEL, PROGRAM_BUILD, SESSION, RunPlan
from ..sources.base import Source
from ..study.cells.plan import PlannedRun
from ..workloads.base import Job, Load
from .progress import Status


@dataclass(frozen=True)
class RunEnd:
    """How a run ended; `reason` is empty where it finished.

    Attributes:
        exit_code: the load's, None where there was none. window: see `RunPlan`.
        job, place: what was executed, and where.
        pid, pid_started: of the load, see `hosts.base.Process`.
        hung: whether something of it waits in the kernel and couldn't be ended. Access to its place
        would wait as well.
        recording: where its events are, see `recording.StudyRecorder.end`.
        tracing: see `tracing.active_tracing`. clients: of a load from several hosts.
        build: of the program that ran, see `program_builds.ProgramUse.evidence`.
        span: realtime nanoseconds from the start of the load's process to its end.
    """

    status: Status
    reason: str = ""
    exit_code: int | None = None
    window: tuple[int, int] | None = None
    job: Job | None = None
    place: Place | None = None
    pid: int | None = None
    pid_started: int | None = None
    hung: bool = False
    recording: Mapping[str, Any] = field(default_factory=dict)
    tracing: Sequence[str] = ()
    clients: Sequence[ClientRun] = ()
    build: Mapping[str, Any] = field(default_factory=dict)
    span: tuple[int, int] | None = None


def plan_of(
    run: PlannedRun,
    name: str,
    load: Load,
    end: RunEnd,
    *,
    host: str,
    tools: Mapping[str, str],
    sources: Sequence[Source],
    devices: Sequence[str],
    cold: bool = False,
) -> RunPlan:
    """`run.json` of a run that ended; `cold`: nothing of its files was in the host's memory when it
    began."""
    extra: dict[str, Any] = {
        "options": dict(load.options),
        "time_based": True,
        **load.facts,
        "job": end.job.files[end.job.main] if end.job else "",
        "sources": [source.name for source in sources],
        "readings": {
            source.name: {
                "taken": source.readings,
                "lost": source.lost,
                **({"trouble": source.trouble} if source.trouble else {}),
            }
            for source in sources
        },
        "devices": list(devices),
    }
    if cold:
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
        run=name,
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
        tools=dict(tools),
        extra=extra,
    )
