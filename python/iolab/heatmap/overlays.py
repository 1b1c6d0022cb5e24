# SPDX-License-Identifier: Apache-2.0
"""Percentiles and mean over time, from the buckets of each column: counted again for every length
of column, never averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..recording.base.counts import HeatCounts
from .scale import Floats

PERCENTILES = (0.5, 0.9, 0.99)


def names(percentiles: Sequence[float] = PERCENTILES) -> list[str]:
    """`p50`, `p90`, `p99` and `mean`: the rows of `lines`."""
    return [*(f"p{100 * share:g}" for share in percentiles), "mean"]


def lines(counts: HeatCounts, columns: int, percentiles: Sequence[float] = PERCENTILES) -> Floats:
    """Value of each percentile, then the mean, by column; shape (len(percentiles) + 1, columns),
    nan where nothing happened.

    A percentile is the largest value of the bucket that holds the I/O of rank `ceil(q n)`, as in
    the native core; the mean takes each bucket at its middle. Both are within the grid's bound of
    the true value.
    """
    values = np.full((len(percentiles) + 1, columns), np.nan)
    if not len(counts.count):
        return values
    first = int(counts.index.min())
    bounds = counts.grid.bounds(first, int(counts.index.max()))
    place = counts.index - first
    columns_with_counts, starts = np.unique(counts.column, return_index=True)
    totals = np.add.reduceat(counts.count, starts)
    cumulated = np.cumsum(counts.count)
    before = cumulated[starts] - counts.count[starts]
    for number, share in enumerate(percentiles):
        # rounding first keeps 0.9 * 10 from being ten and a bit
        rank = np.clip(np.ceil(np.round(share * totals, 9)).astype(np.int64), 1, totals)
        values[number, columns_with_counts] = (
            bounds[place[np.searchsorted(cumulated, before + rank)] + 1] - 1
        )
    middle = (bounds[place] + bounds[place + 1] - 1) / 2
    values[-1, columns_with_counts] = np.add.reduceat(middle * counts.count, starts) / totals
    return values
