# SPDX-License-Identifier: Apache-2.0
"""Runs made by hand, for comparisons without files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from iolab.base.verdict import Level, Reason, Verdict
from iolab.studies.results.evidence.model import Observation, Run, RunPlan


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


def study(
    change: float = 1.2,
    blocks: int = 6,
    noise: float = 0.02,
    loads: tuple[int, ...] = (1, 2, 4),
    seed: int = 1,
) -> list[Run]:
    """`project` against `master` at some loads, log-normal noise per run."""
    rng = np.random.default_rng(seed)
    return [
        run(
            variant,
            1000.0 * load * factor * math.exp(rng.normal(0, noise)),
            block=block,
            numjobs=load,
        )
        for block in range(1, blocks + 1)
        for load in loads
        for variant, factor in (("master", 1.0), ("project", change))
    ]
