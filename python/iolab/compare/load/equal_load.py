# SPDX-License-Identifier: Apache-2.0
"""Two arms where they do the same work, or wait the same time: pairs of interpolated values, block
by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...stats.arrays import Floats
from ...stats.blocks import t_intervals
from ...stats.curves.equal_load import efficient_part, latency_at, throughput_at
from ...stats.means import geometric_mean
from ..model import Change, Key
from .curve_model import EqualLoad, Matched

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
