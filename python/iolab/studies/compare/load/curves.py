# SPDX-License-Identifier: Apache-2.0
"""Throughput against latency per variant: curves, their knees, scalability, and comparisons at
equal load."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.metrics import OPERATIONS, Metric, of
from iolab.base.stats.arrays import Floats
from iolab.base.stats.blocks import t_intervals
from iolab.base.stats.curves.equal_load import efficient_part, latency_at, throughput_at
from iolab.base.stats.curves.knee import knee_over_repetitions
from iolab.base.stats.curves.scalability import NoFit, UslFit, fit_usl
from iolab.base.stats.means import geometric_mean, log_mean_interval
from iolab.base.verdict import Level

from ...results.evidence.model import Run
from ..axes import LOADS, Layout, choose, key_of, levels, unknown_factor
from ..cells import worst
from ..model import Change, Estimate, Key, Warning
from ..remarks import syncs_warning
from .achieved import with_achieved
from .curve_model import Curve, CurvePoint, Curves, EqualLoad, Matched

CONFIDENCE = 0.95

THROUGHPUTS = ("iops", "bw")

CONCURRENCY = ("numjobs", "iodepth", "threads", "jobs", "procs")
"""Loads that count what is in flight, which is what the Universal Scalability Law is about."""


@dataclass
class _Gathered:
    """Runs of one variant and table. `valid` maps load to the runs that count, in block order."""

    valid: dict[float, list[Run]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def curves(
    runs: Sequence[Run],
    *,
    operation: str | None = None,
    load: str | None = None,
    throughput: str | None = None,
    latency: str = "lat.mean",
    baseline: str | None = None,
    confidence: float = CONFIDENCE,
    notes: Sequence[Warning] = (),
) -> Curves:
    """Throughput-against-latency curves of every variant and every combination of the other
    factors.

    Args:
        runs: INVALID ones included: they are left out here, and counted. Of several results
        directories there is no comparison at equal load: their blocks are no pairs.
        operation: `read`, `write`...; default the operation of most runs.
        load: the factor that rises along a curve; default the one of `axes.LOADS` with most numeric
        levels, or else
            any factor with most.
        throughput: `iops` or `bw`, default the first of them that was observed; latency:
        `lat.mean`, `clat.p99`...: the
            metrics' names without their operation.
        baseline: an arm's name; default the first in order of appearance.
        notes: further notes on the curves (see `remarks.study_notes`).

    Raises:
        UsageError: there is no such factor, operation, metric or baseline, or no factor is a load.
    """
    named = with_achieved([run for run in runs if run.variant != "?"])
    if not named:
        raise UsageError("there is no run to draw a curve of")
    operation, throughput = _choose_axes(named, operation, throughput, latency)
    load = load_factor(named, load)
    rate, delay = of(f"{operation}.{throughput}"), of(f"{operation}.{latency}")
    variants = list(dict.fromkeys(run.variant for run in named))
    base = _baseline(baseline, variants)
    variants = [base, *(variant for variant in variants if variant != base)]
    axes = choose(named, Layout(rows=[load]))
    tables = (*axes.tables, *axes.cols)
    gathered = _gather(named, load, tables, rate, delay)
    fitted_curves, blocks = [], dict[tuple[Key, str], BlockCurves]()
    table_levels = levels(named, tables)
    for place in ((table, variant) for table in table_levels for variant in variants):
        if place in gathered:
            curve, blocks[place] = _curve(*place, gathered[place], load, rate, delay, confidence)
            fitted_curves.append(curve)
    equal = [
        equal_load(blocks[table, base], blocks[table, variant], variant, table, confidence)
        for table in table_levels
        for variant in variants[1:]
        if not any(run.results for run in named)
        and (table, base) in blocks
        and (table, variant) in blocks
    ]
    return Curves(
        operation,
        load,
        rate,
        delay,
        base,
        tuple(variants),
        tables,
        table_levels,
        tuple(fitted_curves),
        tuple(equal),
        axes.fixed,
        confidence,
        tuple(notes),
        bool(syncs_warning(named, delay)),
    )


def _curve(
    table: Key,
    variant: str,
    gathered: _Gathered,
    load: str,
    rate: Metric,
    delay: Metric,
    confidence: float,
) -> tuple[Curve, BlockCurves]:
    loads = sorted(gathered.valid)
    points = tuple(_point(level, gathered.valid[level], rate, delay, confidence) for level in loads)
    complete, partial = _repetitions(gathered, loads, rate, delay)
    knee = knee_over_repetitions(list(complete.values()), loads)
    runs = [(level, run) for level in loads for run in gathered.valid[level]]
    curve = Curve(
        variant, table, points, knee, _usl(runs, load, rate), tuple(gathered.left_out), len(partial)
    )
    mean = (
        [geometric_mean(point.throughput.values) for point in points],
        [geometric_mean(point.latency.values) for point in points],
    )
    return curve, BlockCurves(complete, partial, mean)


def _gather(
    runs: Iterable[Run], load: str, tables: Sequence[str], rate: Metric, delay: Metric
) -> dict[tuple[Key, str], _Gathered]:
    gathered: dict[tuple[Key, str], _Gathered] = {}
    for run in sorted(runs, key=lambda run: (run.plan.block, run.plan.repetition, run.id)):
        place = gathered.setdefault((key_of(run, tables), run.variant), _Gathered())
        level = _number(run.factors.get(load))
        if (
            run.verdict.level is Level.INVALID
            or level is None
            or not (_above_zero(run, rate) and _above_zero(run, delay))
        ):
            place.left_out.append(run.id)
        else:
            place.valid.setdefault(level, []).append(run)
    return gathered


def _point(
    level: float, runs: Sequence[Run], rate: Metric, delay: Metric, confidence: float
) -> CurvePoint:
    worst_level = worst(run.verdict.level for run in runs)
    names = tuple(run.id for run in runs)
    estimates = []
    for metric in (rate, delay):
        values = tuple(_value(run, metric) for run in runs)
        estimates.append(
            Estimate(*log_mean_interval(values, confidence), values, names, worst_level)
        )
    saturated = any(run.verdict.has("saturated") for run in runs)
    return CurvePoint(level, estimates[0], estimates[1], worst_level, saturated, len(runs))


def _repetitions(
    gathered: _Gathered, loads: Sequence[float], rate: Metric, delay: Metric
) -> tuple[dict[Repetition, Line], frozenset[Repetition]]:
    """(throughput, latency) of each repetition that covers all loads, and the repetitions that do
    not."""
    by_repetition: dict[Repetition, dict[float, list[Run]]] = {}
    for level in loads:
        for run in gathered.valid[level]:
            key = (run.plan.block, run.plan.host, run.plan.repetition)
            by_repetition.setdefault(key, {}).setdefault(level, []).append(run)
    complete = {}
    for key, at in by_repetition.items():
        if len(at) == len(loads):
            rates = [geometric_mean([_value(run, rate) for run in at[level]]) for level in loads]
            delays = [geometric_mean([_value(run, delay) for run in at[level]]) for level in loads]
            complete[key] = rates, delays
    return complete, frozenset(by_repetition) - frozenset(complete)


def _usl(runs: Sequence[tuple[float, Run]], load: str, rate: Metric) -> UslFit | NoFit:
    if load not in CONCURRENCY:
        return NoFit(f"'{load}' is not a concurrency")
    if any(run.plan.offered_iops is not None for _, run in runs):
        return NoFit("the rate was offered, not found (open loop)")
    if not runs:
        return NoFit("no run counts")
    return fit_usl(
        np.array([level for level, _ in runs]), np.array([_value(run, rate) for _, run in runs])
    )


def _choose_axes(
    runs: Sequence[Run], operation: str | None, throughput: str | None, latency: str
) -> tuple[str, str]:
    """The operation and the throughput that most runs observed together with the latency, within
    the requested ones."""
    if operation is not None and operation not in OPERATIONS:
        raise UsageError(f"unknown operation '{operation}'", hint=f"one of {', '.join(OPERATIONS)}")
    rates = THROUGHPUTS if throughput is None else (throughput,)
    operations = OPERATIONS if operation is None else (operation,)

    def count(choice: tuple[str, str]) -> int:
        needed = {f"{choice[0]}.{choice[1]}", f"{choice[0]}.{latency}"}
        return sum(needed <= run.observations.keys() for run in runs)

    best = max(((candidate, rate) for rate in rates for candidate in operations), key=count)
    if not count(best):
        observed_names = (
            ", ".join(sorted({name for run in runs for name in run.observations})) or "nothing"
        )
        prefix = operation or "<operation>"
        raise UsageError(
            f"no run has both {prefix}.{' or .'.join(rates)} and {prefix}.{latency}",
            hint=f"observed: {observed_names}",
        )
    return best


def load_factor(runs: Sequence[Run], asked: str | None) -> str:
    """The factor that is the load: `asked`, or the one of `axes.LOADS` with most numeric levels, or
    any with most. UsageError: none has numeric levels."""
    names = dict.fromkeys(name for run in runs for name in run.factors)
    numbers = {
        name: {number for run in runs if (number := _number(run.factors.get(name))) is not None}
        for name in names
    }
    if asked is not None:
        if asked not in numbers:
            raise unknown_factor(asked, runs)
        if not numbers[asked]:
            raise UsageError(
                f"'{asked}' is not a load: its levels are not numbers",
                hint="choose a factor such as numjobs",
            )
        return asked
    varying = [name for name in names if len(numbers[name]) > 1]
    if not varying:
        stepped = any(run.plan.extra.get("steps") for run in runs)
        raise UsageError(
            "no factor is a load: none has two levels that are numbers",
            hint="the load rises within these runs: --steps takes each step as a cell"
            if stepped
            else "a curve needs a sweep over, for example, numjobs, iodepth or rate_iops",
        )
    return max(varying, key=lambda name: (name in LOADS, len(numbers[name])))


def _baseline(asked: str | None, variants: Sequence[str]) -> str:
    if asked is None:
        return variants[0]
    if asked not in variants:
        near = difflib.get_close_matches(asked, variants, n=1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(
            f"there is no variant '{asked}' to be the baseline",
            hint=f"{guess}variants are {', '.join(variants)}",
        )
    return asked


def _number(level: object) -> float | None:
    if isinstance(level, bool) or not isinstance(level, int | float) or not math.isfinite(level):
        return None
    return float(level)


def _above_zero(run: Run, metric: Metric) -> bool:
    value = run.value(metric.name)
    return value is not None and math.isfinite(value) and value > 0


def _value(run: Run, metric: Metric) -> float:
    value = run.value(metric.name)
    assert value is not None, "runs without the metric were left out"
    return value


# Two arms where they do the same work, or wait the same time: pairs of interpolated values, block
# by block.

POINTS = 5
"""Places of comparison on a range that both arms have."""

Repetition = tuple[int, str, int]
"""Block, host and repetition: what one curve of a single repetition is made of."""

Line = tuple[list[float], list[float]]
"""Throughput and latency per load level."""

Read = Callable[[Sequence[float], Sequence[float], float], float | None]


@dataclass(frozen=True)
class BlockCurves:
    """One arm: a curve per repetition that covers all loads, the repetitions that lack one, and the
    curve of means."""

    complete: Mapping[Repetition, Line]
    partial: frozenset[Repetition]
    mean: Line


def equal_load(
    baseline: BlockCurves, variant: BlockCurves, name: str, table: Key, confidence: float
) -> EqualLoad:
    """Latency at equal throughput and throughput at equal latency, at round numbers within both
    curves' range."""
    if not baseline.mean[0] or not variant.mean[0]:
        return EqualLoad(name, table, (), ())
    rates = _round_marks(*_common_range(baseline, variant, 0), np.linspace)
    delays = _round_marks(*_common_range(baseline, variant, 1), np.geomspace)
    at_rates = (_match(baseline, variant, at, latency_at, -1, confidence) for at in rates)
    at_delays = (_match(baseline, variant, at, throughput_at, 1, confidence) for at in delays)
    return EqualLoad(
        name,
        table,
        tuple(delay for delay in at_rates if delay),
        tuple(delay for delay in at_delays if delay),
    )


def _match(
    baseline: BlockCurves,
    variant: BlockCurves,
    at: float,
    read: Read,
    better: int,
    confidence: float,
) -> Matched | None:
    """Both arms at one mark; None where neither a block nor the mean curves reach it. `better` is
    the sign of a change for the better."""
    pairs = []
    for block, line in baseline.complete.items():
        if block in variant.complete:
            first, second = read(*line, at), read(*variant.complete[block], at)
            if first is not None and second is not None:
                pairs.append((first, second))
    every = baseline.complete.keys() | variant.complete.keys() | baseline.partial | variant.partial
    dropped = len(every) - len(pairs)
    if not pairs:
        mean_first, mean_second = read(*baseline.mean, at), read(*variant.mean, at)
        if mean_first is None or mean_second is None:
            return None
        value = mean_second / mean_first - 1
        return Matched(
            at,
            mean_first,
            mean_second,
            Change(value, None, None, 0, dropped, improves=_improves(value, better)),
        )
    table = np.array(pairs)
    interval = t_intervals([np.log(table[:, 1] / table[:, 0])], confidence=confidence)[0]
    low = None if interval.low is None else math.expm1(interval.low)
    high = None if interval.high is None else math.expm1(interval.high)
    value = math.expm1(interval.mean)
    change = Change(
        value,
        low,
        high,
        len(pairs),
        dropped,
        interval.df,
        False,
        interval.p,
        improves=_improves(value, better),
        excluded=None if low is None or high is None else max(abs(low), abs(high)),
    )
    return Matched(at, geometric_mean(table[:, 0]), geometric_mean(table[:, 1]), change)


def _common_range(baseline: BlockCurves, variant: BlockCurves, which: int) -> tuple[float, float]:
    """Lowest and highest throughput (0) or latency (1) to compare at; low > high where there is
    none.

    It is what every block reaches in both arms, so that the outcome doesn't choose which blocks
    count. Where blocks lie so far apart that nothing is left, it is what the middle one reaches;
    without any whole block, what the mean curves reach.
    """
    shared = [
        _overlap(which, baseline.complete[block], variant.complete[block])
        for block in baseline.complete
        if block in variant.complete
    ]
    usable = [(low, high) for low, high in shared if low <= high]
    if not usable:
        return _overlap(which, baseline.mean, variant.mean)
    lows, highs = zip(*usable, strict=True)
    if max(lows) <= min(highs):
        return max(lows), min(highs)
    return float(np.median(lows)), float(np.median(highs))


def _overlap(which: int, first: Line, second: Line) -> tuple[float, float]:
    """What the efficient parts of two curves both have of throughput (0) or latency (1)."""
    first_part, other = efficient_part(*first)[which], efficient_part(*second)[which]
    return max(float(first_part[0]), float(other[0])), min(float(first_part[-1]), float(other[-1]))


def _improves(value: float, better: int) -> bool | None:
    return None if value == 0 else value * better > 0


def _round_marks(low: float, high: float, spread: Callable[..., Floats]) -> list[float]:
    """Up to five marks from low to high, rounded to two digits where that leaves them inside; none
    if low > high."""
    if low > high:
        return []
    exact = spread(low, high, POINTS + 2)[1:-1].tolist()
    rounded = [float(f"{mark:.1e}") for mark in exact]
    return sorted(
        {
            short if low <= short <= high else mark
            for short, mark in zip(rounded, exact, strict=True)
        }
    )
