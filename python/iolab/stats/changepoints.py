"""Change points of a series: where its mean changed, how sure that is, by how much, and when.

`ruptures` finds the segmentation, a test judges each of its changes. The test knows that the place
of the change was searched for: it is of the largest t statistic of all places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .arrays import Floats, Values, finite

LEAST_SEGMENT = 3
"""Values on each side of a change: a change is seen this many values after it at the earliest."""

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


def change_points(values: Values, *, level: float = 0.05) -> list[ChangePoint]:
    """Changes of the mean with p up to `level`, in order.

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
    series = finite(values, "values")
    n = len(series)
    if n < 2 * LEAST_SEGMENT:
        return []
    noise = _noise(series)
    if noise == 0:
        return []
    clipped = _clip(series, noise)
    inflation = _inflation(clipped)
    scaled, penalty = clipped / (noise * inflation), 2 * math.log(n)
    places = _segment(scaled, penalty) if _is_suspicious(scaled, penalty) else []
    while places:
        changes = _judge(clipped, places, inflation)
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


def _segment(series: Floats, penalty: float) -> list[int]:
    from ruptures.detection import KernelCPD

    model = KernelCPD(kernel="linear", min_size=LEAST_SEGMENT)
    return [int(end) for end in model.fit(series.reshape(-1, 1)).predict(pen=penalty)[:-1]]


def _judge(series: Floats, places: list[int], inflation: float) -> list[ChangePoint]:
    """Every change of a segmentation, with the variance within all segments."""
    from scipy import special  # slow to load, and answers from a cache need none of it

    n = len(series)
    ends = [0, *places, n]
    segments = [series[start:end] for start, end in pairwise(ends)]
    df = n - len(segments)
    squares = sum(float(((segment - segment.mean()) ** 2).sum()) for segment in segments)
    variance = squares / df * inflation**2
    changes = []
    for number, place in enumerate(places):
        before, after = segments[number], segments[number + 1]
        difference = float(after.mean() - before.mean())
        error = math.sqrt(variance * (1 / len(before) + 1 / len(after)))
        if error <= 1e-12 * abs(difference):
            earliest, latest, half = place, place, 0.0
            p = _equal_p(len(before), len(after))
        else:
            start, end = ends[number], ends[number + 2]
            earliest, latest = (start + near for near in _places(series[start:end], variance))
            half = float(special.stdtrit(df, 0.975)) * error
            p = searched_p(difference / error, df, n)
        changes.append(
            ChangePoint(
                place,
                min(earliest, place),
                max(latest, place),
                float(before.mean()),
                float(after.mean()),
                difference - half,
                difference + half,
                p,
            )
        )
    return changes


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
    from scipy import special

    single = 2 * float(special.stdtr(df, -abs(t)))
    if single <= 0:
        return 0.0
    b = -float(special.ndtri(single / 2))
    if not math.isfinite(b):
        return min(1.0, single * n)
    counts = np.arange(LEAST_SEGMENT, n - LEAST_SEGMENT + 1)
    distance = counts * (n - counts) / n
    density = math.exp(-b * b / 2) / math.sqrt(2 * math.pi)
    passages = float(np.sum(np.exp(-0.583 * b / np.sqrt(distance)) / distance)) * b * density
    return min(1.0, single + passages, single * len(counts))
