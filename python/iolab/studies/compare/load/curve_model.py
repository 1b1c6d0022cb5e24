# SPDX-License-Identifier: Apache-2.0
"""Throughput against latency as values: what the hockey stick draws and the report's knee table
says.

Rates, throughputs and latencies are in the metrics' base units (1/s or B/s, and seconds).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from iolab.base.metrics import WITHOUT_SYNCS, Metric
from iolab.base.stats.curves.knee import KneeEstimate, NoKnee
from iolab.base.stats.curves.scalability import NoFit, UslFit
from iolab.base.verdict import Level

from ..model import Change, Estimate, Key, Warning


@dataclass(frozen=True)
class CurvePoint:
    """One load level of one variant.

    Attributes:
        load: level of the load factor.
        throughput, latency: geometric means over the runs that count, with their own intervals.
        level: the worst verdict among those runs; saturated: whether one of them missed its offered
        rate. n: runs that count.
    """

    load: float
    throughput: Estimate
    latency: Estimate
    level: Level
    saturated: bool
    n: int


@dataclass(frozen=True)
class Curve:
    """One variant at one combination of the other factors, ascending in load.

    Attributes:
        table: levels of `Curves.tables`; points: load levels with at least one run that counts.
        knee: over the repetitions that cover all levels, or why there is no clear one.
        usl: the Universal Scalability Law through every run that counts, or why there is no fit.
        left_out: runs that were INVALID, or without one of the two metrics.
        incomplete: repetitions that lack a level, and so give neither a knee nor a pair at equal
        load.
    """

    variant: str
    table: Key
    points: tuple[CurvePoint, ...]
    knee: KneeEstimate | NoKnee
    usl: UslFit | NoFit
    left_out: tuple[str, ...] = ()
    incomplete: int = 0


@dataclass(frozen=True)
class Matched:
    """Two arms where one quantity is the same for both.

    Attributes:
        at: the common throughput (or latency).
        baseline, variant: the other quantity there, interpolated between measured points: geometric
        means over the
            blocks in which both reach `at`, or read from the mean curves where no block does.
        change: variant over baseline, minus one, with an interval from those blocks; it has no
        interval and counts
            no pair where it comes from the mean curves. It has no q and is never `decided`: points
            along a curve are a picture of one finding, which the cells of the comparison decide.
    """

    at: float
    baseline: float
    variant: float
    change: Change


@dataclass(frozen=True)
class EqualLoad:
    """A variant against the baseline at equal throughput and at equal latency.

    Attributes:
        latency_at: latency at a few throughputs that both curves reach; throughput_at: throughput
        at a few latencies
            that both have. Empty where the curves have no such range in common: nothing is
            extrapolated.
    """

    variant: str
    table: Key
    latency_at: tuple[Matched, ...]
    throughput_at: tuple[Matched, ...]


@dataclass(frozen=True)
class Curves:
    """All curves of a sweep.

    Attributes:
        operation: `read`, `write`...; load: the factor that rises along a curve.
        tables: names of the other factors that vary, what a comparison has in its columns last;
        table_levels: their
            combinations, in order.
        fixed: factors with a single level.
        curves: in order of table, then variant, the baseline's first; equal: likewise, without the
        baseline. confidence: of every interval. warnings: what holds for all of them.
        is_without_syncs: latencies are of writes, and leave out their syncs.
    """

    operation: str
    load: str
    throughput: Metric
    latency: Metric
    baseline: str
    variants: tuple[str, ...]
    tables: tuple[str, ...]
    table_levels: tuple[Key, ...]
    curves: tuple[Curve, ...]
    equal: tuple[EqualLoad, ...]
    fixed: dict[str, object] = field(default_factory=dict)
    confidence: float = 0.95
    warnings: tuple[Warning, ...] = ()
    is_without_syncs: bool = False

    @property
    def latency_title(self) -> str:
        """The title of the latency; of writes it states that it leaves out syncs."""
        return f"{self.latency.title}{WITHOUT_SYNCS if self.is_without_syncs else ''}"

    def curve(self, table: Key, variant: str) -> Curve | None:
        """The curve at a place, or None where nothing was measured."""
        return next(
            (
                candidate
                for candidate in self.curves
                if (candidate.table, candidate.variant) == (table, variant)
            ),
            None,
        )
