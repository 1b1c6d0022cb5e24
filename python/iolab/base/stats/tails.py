# SPDX-License-Identifier: Apache-2.0
"""Percentiles over repetitions: counts are added, and the interval comes from resampling
repetitions.

A percentile of a mean of percentiles is none. What repetitions measured is pooled by adding their
histograms on the one grid. How well the pooled percentile is known depends on how much the
repetitions differ, not on how many I/Os they had. A million I/Os of one run share one run's luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from iolab import _core

LEAST_BEYOND = 10
"""I/Os of a repetition beyond a quantile, in half of the repetitions, for an interval of it."""

LEAST_SHARE = 0.5
"""Effective repetitions among the I/Os beyond a quantile, as a share of all, for an interval of it.
Where the stalls of few repetitions make a tail, drawing repetitions says little about it."""

Histogram = tuple[Sequence[int] | NDArray[np.uint32], Sequence[int] | NDArray[np.uint64]]
"""(ascending grid indices, counts) of one repetition."""


def pooled_quantiles(
    histograms: Sequence[Histogram],
    bits: int,
    quantiles: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = 400,
    seed: int = 8086,
) -> list[tuple[float | None, float | None, float | None]]:
    """Quantiles of the summed counts, each with an interval over repetitions.

    Repetitions are drawn with replacement. The spread of the logarithms of what the draws give is
    the standard error, and Student's t with one degree of freedom less than repetitions makes it an
    interval. Both are corrected for few of them (the spread of draws is too small by sqrt((n - 1) /
    n)). The plain percentile interval can't reach beyond the repetitions' own range, which for
    three of them holds a median's truth in three cases of four only. `docs/method/comparison.md`
    has what this one covers.

    Args:
        histograms: one per repetition, on the grid of `bits` bits; a repetition without counts is
        left out. quantiles: 0 to 1.
        resamples: drawn with `seed`, so that the same data give the same interval.

    Returns:
        (value, low, high) per quantile, in the grid's unit (nanoseconds); the value is the upper
        bound of a bucket. low and high are None for a single repetition, and where the interval
        would cover the truth less often than stated: with fewer than `LEAST_BEYOND` I/Os beyond the
        quantile in most repetitions, or most of those in few (`LEAST_SHARE`); the median always has
        them. All three are None where nothing was counted.

    Source: Efron & Tibshirani (1993), "An Introduction to the Bootstrap", chapters 6 and 12; for
    few values Hesterberg (2015), "What Teachers Should Know About the Bootstrap", section 3.3.

    Raises:
        ValueError: indices do not ascend, lengths differ, a count is negative, or a quantile or the
        confidence is out of
            range.
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence must be between 0 and 1")
    counted = [_check(histogram) for histogram in histograms]
    counted = [(indices, counts) for indices, counts in counted if counts.sum() > 0]
    if not counted:
        _core.quantiles([], [], list(quantiles), bits)
        return [(None, None, None)] * len(quantiles)
    every = np.unique(np.concatenate([indices for indices, _ in counted]))
    table = np.zeros((len(counted), len(every)), dtype=np.int64)
    for row, (indices, counts) in zip(table, counted, strict=True):
        row[np.searchsorted(every, indices)] = counts
    values = _read(every, table.sum(axis=0), bits, quantiles)
    n = len(counted)
    if n == 1:
        return [(value, None, None) for value in values]
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    spread = np.array([_read(every, weights @ table, bits, quantiles) for weights in draws])
    # One nanosecond more keeps the logarithm of an empty latency finite and moves nothing else.
    logs = np.log1p(spread)
    half = (
        float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2))
        * math.sqrt(n / (n - 1))
        * logs.std(axis=0, ddof=1)
    )
    middle = np.log1p(values)
    with np.errstate(over="ignore"):
        lows, highs = np.expm1(np.maximum(middle - half, 0.0)), np.expm1(middle + half)
    return [
        (value, min(float(low), value), max(float(high), value))
        if _is_covered(table, quantile)
        else (value, None, None)
        for quantile, value, low, high in zip(quantiles, values, lows, highs, strict=True)
    ]


def _is_covered(table: NDArray[np.int64], quantile: float) -> bool:
    """Whether the interval of a quantile has about its stated coverage, by the counts of each
    repetition (shape (repetitions, buckets))."""
    if quantile == 0.5:
        return True
    counts = table.sum(axis=1)
    beyond = np.minimum(quantile, 1 - quantile) * counts
    if 2 * int((beyond >= LEAST_BEYOND * (1 - 1e-9)).sum()) < len(table):
        return False
    total = table.sum(axis=0)
    place = int(np.searchsorted(np.cumsum(total), math.ceil(quantile * int(total.sum()))))
    far = table[:, place:] if quantile > 0.5 else table[:, : place + 1]
    shares = far.sum(axis=1) / np.maximum(counts, 1)
    return bool(shares.sum() ** 2 >= LEAST_SHARE * len(table) * (shares**2).sum())


def _check(histogram: Histogram) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    indices, counts = (np.asarray(part).astype(np.int64) for part in histogram)
    if indices.shape != counts.shape or indices.ndim != 1:
        raise ValueError("as many counts as indices are needed")
    if (np.diff(indices) <= 0).any() or (indices < 0).any():
        raise ValueError("indices must ascend")
    if (counts < 0).any():
        raise ValueError("a count is not negative")
    return indices, counts


def _read(
    indices: NDArray[np.int64], counts: NDArray[np.int64], bits: int, quantiles: Sequence[float]
) -> list[float]:
    """Quantiles by the core, which alone knows the grid. There is at least one count."""
    quantile_values = _core.quantiles(indices.tolist(), counts.tolist(), list(quantiles), bits)
    return [float(value) for value in quantile_values if value is not None]
