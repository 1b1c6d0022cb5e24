# SPDX-License-Identifier: Apache-2.0
"""How a run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iolab.hosts.base.host import Place

from ..results.evidence.clients import ClientRun
from ..workloads.base import Job
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
