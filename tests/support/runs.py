"""Runs made by hand, for comparisons without files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iolab.results.evidence.model import Observation, Run, RunPlan
from iolab.verdict import Level, Reason, Verdict


def run(
    variant: str,
    value: float | None,
    *,
    block: int = 1,
    metric: str = "write.iops",
    unit: str = "1/s",
    level: Level = Level.OK,
    environment: Mapping[str, str] | None = None,
    host: str = "local",
    **factors: Any,
) -> Run:
    """One run with one observation (none for None) and one verdict."""
    name = f"{block:04d}-{variant}-" + "-".join(f"{key}{level_}" for key, level_ in factors.items())
    reasons = (
        []
        if level is Level.OK
        else [Reason("stall", level, "moved nothing for 4 s", {"seconds": 4})]
    )
    observations = (
        {}
        if value is None
        else {metric: Observation(metric, value, unit, "fio.json", "jobs[0].write.iops")}
    )
    plan = RunPlan(
        run=name, variant=variant, factors=factors, repetition=block, block=block, host=host
    )
    return Run(plan, Path("runs") / name, observations, Verdict.of(reasons), environment or {})
