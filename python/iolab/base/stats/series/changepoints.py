# SPDX-License-Identifier: Apache-2.0
"""Change points of a series: where its mean or its noise changed, how sure that is, by how much,
and when.

`ruptures` finds the segmentation, a test judges each of its changes. The test knows that the place
of the change was searched for: it is of the largest t statistic of all places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from ..arrays import Floats, Values, finite
from .trend import LEAST_VALUES, Trend, fit_trend, slope_of

LEAST_SEGMENT = 3
"""Values on each side of a change: a change is seen this many values after it at the earliest."""

LEAST_NOISE_SEGMENT = 6
"""The same for a change of the noise, of which fewer values say little."""

_PLACE_LIMIT = -2 * math.log(1 - math.sqrt(0.95))
"""How much worse than the best place, in units of the variance, a place of the 95 % set may fit."""

_FAR = 3.0
"""Standard deviations beyond which a value is an outlier."""

_NEIGHBOURS = 4
"""Values on each side of the neighbourhood of a value."""

_MOST_RHO = 0.8
"""Autocorrelation up to which the noise is widened."""

_STEPS = 8
"""Parts of a series that are screened for changes which cancel over the whole."""


_MOST_ROUNDS = 4
"""Fits of a slope and of its steps."""


@dataclass(frozen=True)
class ChangePoint:
    """A change of the mean.

    Attributes:
        place: index of the first value after it. earliest, latest: 95 % confidence set of that
        index, as a range.
        before, after: means of the segments on both sides. low, high: 95 % interval of after minus
        before, for a place that was known.
        p: p value of "no change between the neighbouring changes", for a place that was searched.
    """

    place: int
    earliest: int
    latest: int
    before: float
    after: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class NoiseChange:
    """A change of the standard deviation of values around the mean of their segment.

    Attributes:
        place, earliest, latest, p: as those of a `ChangePoint`.
        ratio: standard deviation after it, divided by that before it. low, high: 95 % interval for
        normal noise and a known place.
    """

    place: int
    earliest: int
    latest: int
    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Changes:
    """Changes of a series, in order: of the mean, and of the noise.

    Attributes:
        trend: a slope over the whole series, which describes it better than steps do. Then `means`
        and `noise` are of what the slope leaves.
    """

    means: tuple[ChangePoint, ...] = ()
    noise: tuple[NoiseChange, ...] = ()
    trend: Trend | None = None


STEP_SHARE, TREND_SHARE = 0.6, 0.4
"""Shares of the level: a series without a change has two chances to appear to have one."""


def find_changes(values: Values, *, level: float = 0.05) -> Changes:
    """Changes of the mean, or a trend, and changes of the noise.

    Changes of the mean have p up to `STEP_SHARE` of the level, a trend up to `TREND_SHARE` of it,
    changes of the noise up to the level.

    A trend is a slope; steps are searched again next to it. It is reported where it is significant
    next to these steps, and where both describe the values better than steps alone. The Bayesian
    information criterion decides, with two parameters for each step and one for the slope (Schwarz 1978,
    "Estimating the dimension of a model").

    Changes of the noise are those of the mean of |residual|^(2/3), which is nearly normal where
    residuals are (Wilson & Hilferty 1931). Where the noise changes, changes of the mean are judged
    again with the noise of their own time: otherwise a series that becomes noisier appears to have
    changes of the mean.

    Args:
        values: in order of time, one per session (logarithms for a ratio), shape (n,).

    Raises:
        ValueError: a value is nan or infinite.
    """
    series = finite(values, "values")
    if not len(series):
        return Changes()
    means, noise = _steps(series, level)
    trend = None
    if len(series) >= LEAST_VALUES:
        slope, places = _fit_slope(series, level)
        if slope.p <= TREND_SHARE * level and _is_better(series, places, means):
            trend = slope
            series = series - _line(slope, len(series))
            means, noise = _steps(series, level)
    residuals = _residuals(series, [change.place for change in means])
    return Changes(tuple(means), tuple(_noise_changes(residuals, noise)), trend)


def _fit_slope(series: Floats, level: float) -> tuple[Trend, list[int]]:
    """A slope, and the places of steps. Each is fitted to what the other leaves, until the
    places stay."""
    line: Floats = slope_of(series) * np.arange(len(series), dtype=np.float64)
    tried: list[list[int]] = []
    while True:
        rest = series - line
        scale = _noise(rest)
        places = [change.place for change in _mean_changes(rest, STEP_SHARE * level, [])]
        slope = fit_trend((_clip(rest, scale) if scale else rest) + line, places)
        if places in tried or len(tried) == _MOST_ROUNDS:
            return slope, places
        tried.append(places)
        line = _line(slope, len(series))


def _line(slope: Trend, count: int) -> Floats:
    line: Floats = slope.change / (count - 1) * np.arange(count, dtype=np.float64)
    return line


def _steps(series: Floats, level: float) -> tuple[list[ChangePoint], list[ChangePoint]]:
    """Changes of the mean, and those of the dispersion."""
    of_means = STEP_SHARE * level
    means = _mean_changes(series, of_means, [])
    noise = _mean_changes(_dispersion(series, means), level, [], LEAST_NOISE_SEGMENT)
    if noise:
        means = _mean_changes(series, of_means, [change.place for change in noise])
        noise = _mean_changes(_dispersion(series, means), level, [], LEAST_NOISE_SEGMENT)
    return means, noise


def _is_better(series: Floats, places: list[int], means: list[ChangePoint]) -> bool:
    """Whether a line with steps at these places describes the series better than the changes of the
    mean do."""
    n = len(series)
    criteria = []
    for steps, columns in (
        (places, [np.arange(n)]),
        ([change.place for change in means], []),
    ):
        parts = [np.ones(n), *columns, *(np.arange(n) >= place for place in steps)]
        design = np.stack(parts, axis=1).astype(np.float64)
        rest = series - design @ np.linalg.lstsq(design, series, rcond=None)[0]
        squares = max(float(rest @ rest), np.finfo(float).tiny)
        criteria.append(n * math.log(squares) + math.log(n) * (len(columns) + 2 * len(steps)))
    return criteria[0] < criteria[1]


def change_points(values: Values, *, level: float = 0.05) -> list[ChangePoint]:
    """Changes of the mean with p up to `level`, in order, of a series with constant noise.

    Segments are those of optimal partitioning of the squared error (PELT of `ruptures`), at least
    `LEAST_SEGMENT` values each. The penalty is 2 log n per change, in units of the variance.
    The least significant change is removed until the remaining ones have p up to `level`. Outliers
    are clipped first, and the noise is widened for autocorrelation.

    Args:
        values: in order of time, one per session (logarithms for a ratio), shape (n,).

    Raises:
        ValueError: a value is nan or infinite.

    Source: Killick, Fearnhead & Eckley (2012) for PELT; James, James & Siegmund (1987), "Tests for
    a change-point", for the p value; Hansen (2000) for the set of places.
    """
    return _mean_changes(finite(values, "values"), level, [])


def _mean_changes(
    series: Floats, level: float, noise_places: list[int], least: int = LEAST_SEGMENT
) -> list[ChangePoint]:
    """`change_points` with segments of at least so many values, where the noise changes at some
    places."""
    n = len(series)
    if n < 2 * least:
        return []
    noise = _noise(series)
    if noise == 0:
        return []
    clipped = _clip(series, noise)
    inflation = _inflation(clipped)
    scaled, penalty = clipped / (noise * inflation), 2 * math.log(n)
    places = _segment(scaled, penalty, least) if _is_suspicious(scaled, penalty) else []
    while places:
        changes = _judge(clipped, places, inflation, noise_places)
        weakest = max(changes, key=lambda change: change.p)
        if weakest.p <= level:
            return changes
        places.remove(weakest.place)
    return []


def _noise(series: Floats) -> float:
    """Standard deviation of a value, from steps between neighbours, which changes hardly affect."""
    steps = np.abs(np.diff(series))
    scale = float(np.median(steps)) / (0.6745 * math.sqrt(2))
    tiny = 1e-12 * float(np.max(np.abs(series)))
    if scale <= tiny:
        scale = float(np.sqrt(np.mean(steps**2) / 2))
    return scale if scale > tiny else 0.0


def _clip(series: Floats, noise: float) -> Floats:
    """The series with outliers moved to `_FAR` standard deviations from the median of their
    neighbourhood: a single bad session is no change."""
    padded = np.pad(series, _NEIGHBOURS, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1)
    middle = np.median(windows, axis=1)
    clipped: Floats = np.clip(series, middle - _FAR * noise, middle + _FAR * noise)
    return clipped


def _inflation(series: Floats) -> float:
    """By how much autocorrelation of the first order widens the noise of a mean.

    The variance of steps over two values is 1 + rho times that of steps over one; unlike the
    autocorrelation itself this is hardly affected by changes of the mean.
    """
    variances = []
    for lag in (1, 2):
        steps = series[lag:] - series[:-lag]
        limit = _FAR * float(np.median(np.abs(steps))) / 0.6745
        variances.append(float(np.mean(np.clip(steps, -limit, limit) ** 2)))
    if variances[0] == 0:
        return 1.0
    rho = min(max(variances[1] / variances[0] - 1, 0.0), _MOST_RHO)
    return math.sqrt((1 + rho) / (1 - rho))


def _is_suspicious(series: Floats, penalty: float) -> bool:
    """Whether a single change, in the whole or in an eighth of it or more, pays its penalty or
    nearly so: most series have none, and segmentation is slow."""
    n = len(series)
    length = n
    while length >= max(2 * LEAST_SEGMENT, n // _STEPS):
        step = max(1, length // 2)
        starts = {*range(0, n - length + 1, step), n - length}
        windows = np.stack([series[start : start + length] for start in sorted(starts)])
        sums = np.cumsum(windows - windows.mean(axis=1, keepdims=True), axis=1)[:, :-1]
        counts = np.arange(1, length)
        gain = sums**2 * length / (counts * (length - counts))
        inner = gain[:, LEAST_SEGMENT - 1 : length - LEAST_SEGMENT]
        if inner.size and float(inner.max()) > 0.9 * penalty:
            return True
        length = (length + 1) // 2
    return False


def _segment(series: Floats, penalty: float, least: int) -> list[int]:
    from ruptures.detection import KernelCPD

    model = KernelCPD(kernel="linear", min_size=least)
    return [int(end) for end in model.fit(series.reshape(-1, 1)).predict(pen=penalty)[:-1]]


def _judge(
    series: Floats, places: list[int], inflation: float, noise_places: list[int]
) -> list[ChangePoint]:
    """Every change of a segmentation, with the variance of each stretch of constant noise."""
    ends = [0, *places, len(series)]
    variance, df = _variance(series, places, noise_places)
    variance *= inflation**2
    changes = []
    for number, place in enumerate(places):
        sides = [slice(ends[number], place), slice(place, ends[number + 2])]
        before, after = (float(series[side].mean()) for side in sides)
        difference = after - before
        counts = [side.stop - side.start for side in sides]
        errors = [
            float(variance[side].mean()) / count for side, count in zip(sides, counts, strict=True)
        ]
        error = math.sqrt(sum(errors))
        if error <= 1e-12 * abs(difference):
            earliest, latest, half = place, place, 0.0
            p = _equal_p(*counts)
        else:
            start, end = ends[number], ends[number + 2]
            near = _places(series[start:end], float(variance[start:end].mean()))
            earliest, latest = (start + index for index in near)
            freedom = _freedom(errors, [float(df[side].min()) for side in sides])
            half = float(scipy.special.stdtrit(freedom, 0.975)) * error
            p = searched_p(difference / error, freedom, len(series))
        changes.append(
            ChangePoint(
                place,
                min(earliest, place),
                max(latest, place),
                before,
                after,
                difference - half,
                difference + half,
                p,
            )
        )
    return changes


def _variance(series: Floats, places: list[int], noise_places: list[int]) -> tuple[Floats, Floats]:
    """Variance of the noise and its degrees of freedom at each value, shape (n,) each: pooled over
    the segments of the mean within a stretch of constant noise."""
    variance, df = np.empty(len(series)), np.empty(len(series))
    for start, end in pairwise([0, *noise_places, len(series)]):
        inner = [place for place in places if start < place < end]
        segments = [series[first:last] for first, last in pairwise([start, *inner, end])]
        freedom = max(1, end - start - len(segments))
        squares = sum(float(((segment - segment.mean()) ** 2).sum()) for segment in segments)
        variance[start:end], df[start:end] = squares / freedom, freedom
    return variance, df


def _freedom(errors: list[float], freedoms: list[float]) -> float:
    """Degrees of freedom of a difference (Satterthwaite); those of one variance where both sides
    share it."""
    if freedoms[0] == freedoms[1] or sum(errors) == 0:
        return freedoms[0]
    parts = sum(error**2 / freedom for error, freedom in zip(errors, freedoms, strict=True))
    return sum(errors) ** 2 / parts


def _residuals(series: Floats, places: list[int]) -> Floats:
    """Values minus the mean of their segment, with the variance of the noise."""
    residuals = np.empty(len(series))
    for start, end in pairwise([0, *places, len(series)]):
        segment = series[start:end]
        scale = math.sqrt(len(segment) / max(1, len(segment) - 1))
        residuals[start:end] = (segment - segment.mean()) * scale
    return residuals


def _dispersion(series: Floats, means: list[ChangePoint]) -> Floats:
    """Nearly normal values, the mean of which grows with the noise."""
    residuals = np.abs(_residuals(series, [change.place for change in means]))
    dispersion: Floats = residuals ** (2 / 3)
    return dispersion


def _noise_changes(residuals: Floats, changes: list[ChangePoint]) -> list[NoiseChange]:
    ends = [0, *(change.place for change in changes), len(residuals)]
    result = []
    for number, change in enumerate(changes):
        before = residuals[ends[number] : change.place]
        after = residuals[change.place : ends[number + 2]]
        if not before.any() or not after.any():
            continue  # a stretch of equal values has no noise to compare with
        ratio = math.sqrt(float(np.mean(after**2)) / float(np.mean(before**2)))
        freedoms = len(after) - 1, len(before) - 1
        low, high = (
            ratio / math.sqrt(float(scipy.special.fdtri(*freedoms, share)))
            for share in (0.975, 0.025)
        )
        result.append(
            NoiseChange(change.place, change.earliest, change.latest, ratio, low, high, change.p)
        )
    return result


def _equal_p(before: int, after: int) -> float:
    """Of values that are equal on either side: the share of orders that are as extreme."""
    return min(1.0, 2 * (before + after) / math.comb(before + after, before))


def _places(window: Floats, variance: float) -> tuple[int, int]:
    n = len(window)
    counts = np.arange(1, n)
    sums = np.cumsum(window - window.mean())[:-1]
    gain = sums**2 * n / (counts * (n - counts))
    near = np.flatnonzero(gain >= gain.max() - _PLACE_LIMIT * variance) + 1
    return int(near[0]), int(near[-1])


def searched_p(t: float, df: float, n: int) -> float:
    """P value of the largest |t| over all places of a change in `n` values with at least
    `LEAST_SEGMENT` on each side.

    The normal quantile of the same two-sided p as t with `df` degrees of freedom is used in the
    approximation for a known variance. Never more than the p of a known place times the places.

    Source: James, James & Siegmund (1987); the overshoot is exp(-0.583 x), Siegmund (1985).
    """
    single = 2 * float(scipy.special.stdtr(df, -abs(t)))
    if single <= 0:
        return 0.0
    b = -float(scipy.special.ndtri(single / 2))
    if not math.isfinite(b):
        return min(1.0, single * n)
    counts = np.arange(LEAST_SEGMENT, n - LEAST_SEGMENT + 1)
    distance = counts * (n - counts) / n
    density = math.exp(-b * b / 2) / math.sqrt(2 * math.pi)
    passages = float(np.sum(np.exp(-0.583 * b / np.sqrt(distance)) / distance)) * b * density
    return min(1.0, single + passages, single * len(counts))
