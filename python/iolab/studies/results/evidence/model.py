# SPDX-License-Identifier: Apache-2.0
"""What `derive` yields and `Results` holds: runs with their verdict, observations, series and
histograms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iolab.base.integrity import FileDigest
from iolab.base.verdict import Verdict

NO_PLAN = "no-plan"
"""Code of the reason why a run with a missing or damaged `run.json` is INVALID."""

Factors = Mapping[str, Any]
"""Factor name to level: int, float, str or bool."""


@dataclass(frozen=True)
class Observation:
    """One value of one metric for one run.

    Attributes:
        value: in the metric's base unit; a float also where the file has an integer, so that it
            prints the same whether it comes from the file or from the cache.
        source_file: relative to the results directory.
        source_field, source_value, source_unit: as the file has it; a value computed from several
            fields names them and has no source value.
    """

    metric: str
    value: float
    unit: str
    source_file: str
    source_field: str
    source_value: float | None = None
    source_unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if self.source_value is not None:
            object.__setattr__(self, "source_value", float(self.source_value))


@dataclass(frozen=True)
class Series:
    """A quantity over the time of one run, a second each or as often as was read, for charts and
    the gates of steadiness and stalls.

    Attributes:
        name: `write.iops`, `device.write.bw`...; a device's own series is `device.write.bw[sdb]`.
        time: seconds since the window's start at which each value's interval ends, shape (n,).
        values: base unit, shape (n,), nan where nothing is known.
        reading: seconds of a reading, where each value is of one thing that ended within it (a
        transaction group; several may have the
            same time); None where a value is of all the time since the one before.
    """

    name: str
    unit: str
    time: NDArray[np.float64]
    values: NDArray[np.float64]
    reading: float | None = None

    @property
    def steps(self) -> NDArray[np.float64]:
        """Seconds up to its time that each value is of, shape (n,): since the one before (the first
        takes the usual step), or a reading."""
        if self.reading is not None:
            return np.full(len(self.time), self.reading)
        between = np.diff(self.time)
        first = np.median(between) if len(between) else 1.0
        return np.concatenate(([first], between))[: len(self.time)]


@dataclass(frozen=True)
class Histogram:
    """Latency counts of one run on the grid of `bits` bits (nanoseconds).

    Attributes:
        name: `write.clat`, `read.lat`...
        indices: ascending grid indices, shape (n,); counts: shape (n,).
    """

    name: str
    bits: int
    indices: NDArray[np.uint32]
    counts: NDArray[np.uint64]


@dataclass(frozen=True)
class Derived:
    """Everything that one run's evidence says.

    Attributes:
        environment: by what runs may differ unasked: the recorded fingerprint, and fio's version
        from its own result. options: what fio echoed of its job; flags without a value are missing.
        window: realtime nanoseconds in which the load ran, of the plan or else of fio's result;
        None where neither has times. boot: boot id of the host; empty where it was not recorded.
    """

    observations: tuple[Observation, ...]
    verdict: Verdict
    series: tuple[Series, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    assumptions: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    boot: str = ""


PROGRAM_BUILD = "build"
"""Key of `RunPlan.extra`: the build of the program that a run requested, and the program that ran."""

PROGRAM = "program"
"""Key of `RunPlan.extra`: the load was a program that ran once, and its window is the result."""

KERNEL = "kernel"
"""Key of `RunPlan.extra`: name of the kernel that the study started the host with."""

SESSION = "session"
"""Key of `RunPlan.extra`: the session of a run, from 1, in a study over several boots."""


@dataclass(frozen=True)
class RunPlan:
    """A run's `run.json`: the plan as plain data, and what became of it.

    Attributes:
        run: `0042-1a2b3c4d`: number in order of execution (or import) and a hash.
        status: `finished`, `failed` or `interrupted`; `imported` for a foreign tree, `published`
        for a table's row. jobs: concurrent jobs planned, or None where unknown; depth: I/Os in
        flight per job as the engine does them. runtime, ramp: seconds planned, or None.
        offered_iops: planned rate over all jobs (open loop), or None.
        window: realtime nanoseconds [t0, t1] of the measured window, where known.
        command: argument list that the run executed; exit_code: its exit code, None where unknown.
        tools: name to version; host: where it ran.
        extra: whatever else was recorded.
        files: path below the run's directory to the digest of what was there when the run ended,
        `run.json` apart; None where no digests
            were recorded (by an older iolab).
    """

    run: str
    variant: str
    factors: Factors
    repetition: int = 1
    block: int = 1
    status: str = "finished"
    host: str = "local"
    jobs: int | None = None
    depth: int | None = None
    runtime: float | None = None
    ramp: float | None = None
    offered_iops: float | None = None
    window: tuple[int, int] | None = None
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, FileDigest] | None = None


@dataclass(frozen=True)
class Run:
    """One run: its plan, the place of its evidence, its observations and verdict.

    Attributes:
        evidence: the run's directory (or a table's file).
        environment: host facts by which runs may differ unasked: `kernel`, `fio`, ... to a short
        text. options: what fio echoed of its job. window, boot: as `Derived` has them.
        results: name of the results directory where runs of several are compared, else empty.
    """

    plan: RunPlan
    evidence: Path
    observations: Mapping[str, Observation]
    verdict: Verdict
    environment: Mapping[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    boot: str = ""
    results: str = ""

    @property
    def id(self) -> str:
        """The run's name."""
        return self.plan.run

    @property
    def variant(self) -> str:
        """The arm of the comparison."""
        return self.plan.variant

    @property
    def factors(self) -> Factors:
        """What was swept, and where this run stood."""
        return self.plan.factors

    def value(self, metric: str) -> float | None:
        """The run's value of a metric in base units, or None where it wasn't observed."""
        observation = self.observations.get(metric)
        return None if observation is None else observation.value
