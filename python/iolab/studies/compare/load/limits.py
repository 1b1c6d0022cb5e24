# SPDX-License-Identifier: Apache-2.0
"""Limits of systems: the largest rate over a load, the load that reaches it, and what was busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolab.base.errors import UsageError
from iolab.base.metrics import OPERATIONS
from iolab.base.stats.means import geometric_mean
from iolab.base.verdict import Level

from ...results.evidence.model import Run
from ..axes import key_of, levels
from ..cells import worst
from ..model import Key
from .curves import load_factor

NEAR = 0.95
"""Share of the largest rate from which on a load reaches the limit."""

BUSY = (
    ("CPU", "host.cpu.busy", 0.9),
    ("busiest CPU", "host.cpu.busiest", 0.95),
    ("devices", "device.util", 0.95),
    ("link", "host.net.util", 0.9),
)
"""What can be saturated: name, metric, least mean. Utilization of a device that serves several I/Os
at once is no proof (iostat(1), %util)."""


@dataclass(frozen=True)
class Limit:
    """The limit of an operation in a cell of a system.

    Attributes:
        cell: levels of `Limits.factors`.
        level: the least load with 95 % of the largest rate.
        bw, iops: geometric means at that load (bytes/s, 1/s); low, high: the smallest and largest
        rate of its runs (1/s). iops decides.
        count: runs that count there.
        is_growing: the largest load reaches the limit alone, so that more load can give more.
        unknown_levels: larger loads of which all runs are INVALID: they may give more.
        busy: means of the metrics of `BUSY` by name, of those that were measured.
        verdict: the worst of the runs that count.
    """

    system: str
    cell: Key
    operation: str
    level: float
    bw: float | None
    iops: float
    low: float
    high: float
    count: int
    is_growing: bool
    unknown_levels: tuple[float, ...]
    busy: dict[str, float]
    verdict: Level

    @property
    def saturation(self) -> tuple[str, ...]:
        """What was saturated, as far as metrics say."""
        names = [name for name, _, least in BUSY if self.busy.get(name, 0.0) >= least]
        return tuple(name for name in names if name != "busiest CPU" or "CPU" not in names)


@dataclass(frozen=True)
class Limits:
    """Limits of one or several systems. load: the factor that rises. factors: of the cells."""

    load: str
    factors: tuple[str, ...]
    limits: tuple[Limit, ...]


def find_limits(runs: Sequence[Run], load: str | None = None) -> Limits:
    """Limits over a load, of each variant (a system, of several results) in each cell.

    INVALID runs do not count. UsageError: no factor is a load, or no run counts.
    """
    if not runs:
        raise UsageError("there is no run to find limits of")
    load = load_factor(runs, load)
    factors = _cell_factors(runs, load)
    by_cell: dict[tuple[Key, str], list[Run]] = {}
    for run in runs:
        by_cell.setdefault((key_of(run, factors), run.variant), []).append(run)
    systems = dict.fromkeys(run.variant for run in runs)
    limits = [
        limit
        for cell in levels(runs, factors)
        for operation in OPERATIONS
        for system in systems
        if (limit := _limit(by_cell.get((cell, system), []), system, cell, operation, load))
    ]
    if not limits:
        raise UsageError("no run has a rate", hint="INVALID runs do not count: iolab show RESULTS")
    return Limits(load, factors, tuple(limits))


def _cell_factors(runs: Sequence[Run], load: str) -> tuple[str, ...]:
    """Factors with several levels that no factor before them determines, as zipped ones do."""
    kept: list[str] = []
    for name in dict.fromkeys(name for run in runs for name in run.factors):
        count = len(set(levels(runs, (name,))))
        is_determined = any(
            len(levels(runs, (other, name))) == len(levels(runs, (other,))) for other in kept
        )
        if name != load and count > 1 and not is_determined:
            kept.append(name)
    return tuple(kept)


def _limit(runs: Sequence[Run], system: str, cell: Key, operation: str, load: str) -> Limit | None:
    rate = f"{operation}.iops"
    by_level: dict[float, list[Run]] = {}
    attempted: set[float] = set()
    for run in runs:
        level = run.factors.get(load)
        if not isinstance(level, int | float):
            continue
        attempted.add(float(level))
        if run.verdict.level is not Level.INVALID and run.value(rate):
            by_level.setdefault(float(level), []).append(run)
    if not by_level:
        return None
    means = {level: geometric_mean(_values(at, rate)) for level, at in sorted(by_level.items())}
    level = next(level for level, mean in means.items() if mean >= NEAR * max(means.values()))
    unknown_levels = tuple(sorted(other for other in attempted - by_level.keys() if other > level))
    at_limit = by_level[level]
    values, throughputs = _values(at_limit, rate), _values(at_limit, f"{operation}.bw")
    busy = {
        name: sum(measured) / len(measured)
        for name, metric, _ in BUSY
        if (measured := _values(at_limit, metric))
    }
    return Limit(
        system,
        cell,
        operation,
        level,
        geometric_mean(throughputs) if throughputs else None,
        means[level],
        min(values),
        max(values),
        len(at_limit),
        level == max(means) and not unknown_levels,
        unknown_levels,
        busy,
        worst(run.verdict.level for run in at_limit),
    )


def _values(runs: Sequence[Run], metric: str) -> list[float]:
    return [float(value) for run in runs if (value := run.value(metric)) is not None]
