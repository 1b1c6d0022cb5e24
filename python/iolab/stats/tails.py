"""Percentiles over repetitions: counts are added, and the interval comes from resampling repetitions.

A percentile of a mean of percentiles is none. What repetitions measured is pooled by adding their histograms on the
one grid; how well the pooled percentile is known depends on how much the repetitions differ, not on how many I/Os they
had: a million I/Os of one run share one run's luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import _core

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

    The interval is the bootstrap's percentile interval, widened for few repetitions as Student's t widens the normal
    one (the expanded percentile interval of Hesterberg 2015, "What Teachers Should Know About the Bootstrap", section
    3.3): with four repetitions or fewer it reaches from the lowest resample to the highest. `docs/method/comparison.md`
    has what it covers.

    Args:
        histograms: one per repetition, on the grid of `bits` bits; a repetition without counts is left out.
        quantiles: 0 to 1.
        resamples: drawn with `seed`, so that the same data give the same interval.

    Returns:
        (value, low, high) per quantile, in the grid's unit (nanoseconds): upper bounds of buckets. low and high are None
        for a single repetition, and all three where nothing was counted.

    Raises:
        ValueError: indices do not ascend, lengths differ, a count is negative, or a quantile or the confidence is out of
            range.
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence lies between 0 and 1")
    counted = [_checked(histogram) for histogram in histograms]
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
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    spread = np.array([_read(every, weights @ table, bits, quantiles) for weights in drawn])
    limit = float(special.stdtrit(n - 1, (1 + confidence) / 2)) * math.sqrt(n / (n - 1))
    outside = float(special.ndtr(-limit))
    lows = np.quantile(spread, outside, axis=0, method="inverted_cdf")
    highs = np.quantile(spread, 1 - outside, axis=0, method="inverted_cdf")
    return [(value, float(low), float(high)) for value, low, high in zip(values, lows, highs, strict=True)]


def _checked(histogram: Histogram) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    found = _core.quantiles(indices.tolist(), counts.tolist(), list(quantiles), bits)
    return [float(value) for value in found if value is not None]
