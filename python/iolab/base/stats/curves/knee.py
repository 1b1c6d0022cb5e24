# SPDX-License-Identifier: Apache-2.0
"""The knee of a throughput-against-latency curve: up to there more load buys throughput, beyond it
buys waiting.

Kneedle's idea (Satopää, Albrecht, Irwin & Raghavan 2011, "Finding a 'Kneedle' in a Haystack"):
scale both axes to [0, 1]; the knee is where the curve is farthest from the diagonal. For latency
over throughput, which rises and bends upwards, that is the largest throughput - latency. Points are
taken in order of load, not of throughput, so that a curve that turns back beyond saturation needs
no special care: its turning part is above the diagonal.

Kneedle's weakness remains: the axes are scaled by what was measured, so that a sweep that
goes much farther beyond saturation finds the knee a level later. Knees are compared between arms
swept over the same loads.

Scaling also magnifies noise: throughput that is saturated at all loads and varies by 10 % fills
the plane as well as a true curve does. So a knee needs a bend that noise alone would not make,
`bend_p`. The shape without a knee is a power law: a straight line over the logarithm of load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..arrays import Floats, Values, finite, positive

LEAST_POINTS = 4
"""Fewer load levels have no shape to speak of."""

SENSITIVITY = 1.0
"""Kneedle's S: the bend must exceed S mean distances between neighbouring points."""

LEAST_THROUGHPUT_GAIN = 0.10
"""A throughput that varies by less over all loads is saturated throughout, and scaling it would
magnify noise."""

LEAST_LATENCY_RISE = 0.20
"""A latency that varies by less shows no saturation at all."""


BEND_LEVEL = 0.05
"""Above this p value a bend cannot be distinguished from noise."""

_DRAWS, _SEED = 20_000, 1011
_ROUNDING = 1e-9
"""Logarithms that differ by less are equal."""


@dataclass(frozen=True)
class NoKnee:
    """No clear knee, and why."""

    reason: str


@dataclass(frozen=True)
class Knee:
    """The knee of one curve: always one of its measured points.

    Attributes:
        index: of the point in order of load.
        throughput, latency: of that point, in the units given.
        bend: distance from the diagonal in the scaled plane, 0 (straight) to 1 (right angle).
    """

    index: int
    throughput: float
    latency: float
    bend: float


@dataclass(frozen=True)
class KneeEstimate:
    """The knee of a variant over its repetitions.

    Attributes:
        load, throughput, latency: medians over the repetitions that have a knee (the lower one for
            load, which is always a measured level).
        load_range, throughput_range, latency_range: where the knee may be, over those repetitions:
            from the level before the lowest knee to the level after the highest, because the loads
            do not resolve what is between two levels; down to where a shorter sweep of the same
            points has its knee. None for a single repetition, which does not show the scatter.
        repetitions: curves looked at; with_knee: those with a knee.
    """

    load: float
    throughput: float
    latency: float
    load_range: tuple[float, float] | None
    throughput_range: tuple[float, float] | None
    latency_range: tuple[float, float] | None
    repetitions: int
    with_knee: int


def knee(throughput: Values, latency: Values) -> Knee | NoKnee:
    """The knee of one curve, or why there is none.

    Args:
        throughput, latency: one per load level in ascending order of load, shape (levels,); above
        zero, any unit.

    Raises:
        ValueError: lengths differ, or a value is not finite or not above zero.
    """
    x, y = positive(throughput, "throughput"), positive(latency, "latency")
    if len(x) != len(y):
        raise ValueError("as many latencies as throughputs are needed")
    if len(x) < LEAST_POINTS:
        return NoKnee(f"{len(x)} load levels; at least {LEAST_POINTS} are needed")
    gain, rise = float(x.max() / x.min() - 1), float(y.max() / y.min() - 1)
    if gain < LEAST_THROUGHPUT_GAIN:
        return NoKnee(f"throughput varies by only {gain:.1%} over the loads: saturated throughout")
    if rise < LEAST_LATENCY_RISE:
        return NoKnee(f"latency varies by only {rise:.1%} over the loads: not saturated anywhere")
    bend = _scale(x) - _scale(y)
    top = int(np.argmax(bend))
    if bend[top] < SENSITIVITY / (len(x) - 1):
        return NoKnee(
            "latency rises about as evenly as throughput: no bend wider than the distance between loads"
        )
    if top == 0:
        return NoKnee("the lowest load is already the best: the knee is below the measured loads")
    if bend[top] - bend[top:].min() < SENSITIVITY / (len(x) - 1):
        return NoKnee("the highest loads are still the best: the knee is beyond the measured loads")
    return Knee(top, float(x[top]), float(y[top]), float(bend[top]))


def _scale(values: Floats) -> Floats:
    return np.asarray((values - values.min()) / np.ptp(values))


def bend_p(curves: Sequence[tuple[Values, Values]], loads: Values) -> float:
    """p value of "log throughput and log latency are straight over log load", against throughput
    that bends down or latency that bends up at one of the loads.

    The largest t statistic of a hinge over the inner loads counts, for the mean of all repetitions.
    Its noise is what differs between repetitions, without their common level; of a single
    repetition, what the hinge leaves. The null distribution is simulated with a fixed seed, since
    the place is searched for. The smaller p of throughput and latency is doubled.

    Args:
        curves, loads: as `knee_over_repetitions` takes them, with at least one curve and
            `LEAST_POINTS` loads.

    Source: Davies (1987), "Hypothesis testing when a nuisance parameter is present only under the
    alternative".
    """
    levels = finite(loads, "loads")
    if levels[0] > 0:
        levels = np.log(levels)
    # shape (2, repetitions, loads); a bend is positive in both
    logs = np.log(np.array(curves, dtype=np.float64)).transpose(1, 0, 2)
    logs[0] *= -1
    count, size = logs.shape[1:]
    mean = logs.mean(axis=1)
    basis = _hinges(tuple(levels.tolist()))
    bend = (mean @ basis).max(axis=1)
    if count > 1:
        rest = logs - mean[:, None] - logs.mean(axis=2, keepdims=True)
        rest += mean.mean(axis=1)[:, None, None]
        noise = np.sqrt((rest**2).sum(axis=(1, 2)) / ((count - 1) * (size - 1)) / count)
    else:
        noise = np.sqrt((_line_residuals(levels, mean) ** 2).sum(axis=1))
    null = _null_bends(tuple(levels.tolist()), count)
    p_values = [
        1.0
        if one_bend <= _ROUNDING
        else (len(null) - int(np.searchsorted(null, one_bend / one_noise)) + 1) / (len(null) + 1)
        if one_noise > _ROUNDING
        else 0.0
        for one_bend, one_noise in zip(bend.tolist(), noise.tolist(), strict=True)
    ]
    return min(1.0, 2 * min(p_values))


def _line_residuals(levels: Floats, values: Floats) -> Floats:
    """What a straight line over the levels leaves of each row, shape of the values."""
    line = np.stack([np.ones(len(levels)), levels - levels.mean()])
    line /= np.sqrt((line**2).sum(axis=1, keepdims=True))
    residuals: Floats = values - values @ line.T @ line
    return residuals


@lru_cache(maxsize=64)
def _hinges(levels: tuple[float, ...]) -> Floats:
    """Hinges at the inner levels without their straight part, of length 1; shape (loads, hinges)."""
    points = np.array(levels)
    hinges = _line_residuals(points, np.maximum(0.0, points - points[1:-1, None]))
    hinges /= np.sqrt((hinges**2).sum(axis=1, keepdims=True))
    return np.asarray(hinges.T)


@lru_cache(maxsize=64)
def _null_bends(levels: tuple[float, ...], count: int) -> Floats:
    """Ascending statistics of straight curves with noise."""
    random = np.random.default_rng(_SEED)
    noise = random.normal(size=(_DRAWS, len(levels)))
    bends = (noise @ _hinges(levels)).max(axis=1)
    if count > 1:
        df = (count - 1) * (len(levels) - 1)
        return np.sort(bends / np.sqrt(random.chisquare(df, _DRAWS) / df))
    residuals = _line_residuals(np.array(levels), noise)
    return np.sort(bends / np.sqrt((residuals**2).sum(axis=1)))


def knee_over_repetitions(
    curves: Sequence[tuple[Values, Values]], loads: Values
) -> KneeEstimate | NoKnee:
    """The knee with the range over which the repetitions and the distance between loads leave it.

    Every repetition has a knee of its own. The range is no confidence interval: knees are measured
    levels, and a few of them have no distribution to estimate.

    Args:
        curves: (throughput, latency) of each repetition, all at the same loads.
        loads: the load levels, ascending, shape (levels,).

    Returns:
        NoKnee where fewer than half of the repetitions have one, with the most frequent reason, and
        where the bend cannot be distinguished from noise.

    Raises:
        ValueError: as `knee`, or a curve does not have one point per load, or loads do not ascend.
    """
    levels = finite(loads, "loads")
    if (np.diff(levels) <= 0).any():
        raise ValueError("loads must ascend")
    if not curves:
        return NoKnee("no repetition covers all loads")
    if any(len(throughput) != len(levels) for throughput, _ in curves):
        raise ValueError("every curve needs one point per load")
    answers = [knee(throughput, latency) for throughput, latency in curves]
    knees = [answer for answer in answers if isinstance(answer, Knee)]
    spans = [
        _unresolved_part(curve, answer)
        for curve, answer in zip(curves, answers, strict=True)
        if isinstance(answer, Knee)
    ]
    if 2 * len(knees) < len(answers):
        reasons = [answer.reason for answer in answers if isinstance(answer, NoKnee)]
        reason = max(reasons, key=reasons.count)
        return NoKnee(
            reason
            if len(answers) == 1
            else f"{len(knees)} of {len(answers)} repetitions have one; {reason}"
        )
    p = bend_p(curves, levels)
    if p > BEND_LEVEL:
        return NoKnee(f"the curve bends no more than its noise makes it (p = {p:.2g})")
    at = np.sort([levels[one_knee.index] for one_knee in knees])
    throughputs, latencies = (
        [one_knee.throughput for one_knee in knees],
        [one_knee.latency for one_knee in knees],
    )
    several = len(knees) > 1
    return KneeEstimate(
        load=float(at[(len(at) - 1) // 2]),
        throughput=float(np.median(throughputs)),
        latency=float(np.median(latencies)),
        load_range=_ends([levels[span] for span, _, _ in spans]) if several else None,
        throughput_range=_ends([values for _, values, _ in spans]) if several else None,
        latency_range=_ends([values for _, _, values in spans]) if several else None,
        repetitions=len(answers),
        with_knee=len(knees),
    )


def _unresolved_part(curve: tuple[Values, Values], longest: Knee) -> tuple[slice, Floats, Floats]:
    """The levels among which the knee of a curve may be, with throughput and latency at them.

    A load between two levels may be the true one. The further a sweep continues beyond saturation,
    the higher is the level that it finds: shorter sweeps of the same points show how far down the
    knee may be.
    """
    x, y = positive(curve[0], "throughput"), positive(curve[1], "latency")
    shorter = [
        knee(x[:length], y[:length])
        for length in range(max(LEAST_POINTS, longest.index + 1), len(x))
    ]
    lowest = min(point.index for point in (longest, *shorter) if isinstance(point, Knee))
    levels = slice(lowest - 1, longest.index + 2)
    return levels, x[levels], y[levels]


def _ends(values: Sequence[Floats]) -> tuple[float, float]:
    joined = np.concatenate(values)
    return float(joined.min()), float(joined.max())
