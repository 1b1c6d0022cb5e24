# SPDX-License-Identifier: Apache-2.0
"""Percentiles and mean over time, from the buckets of each column: counted again for every length
of column, never averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iolab.base.errors import UsageError

from ..store.base.counts import HeatCounts
from .scale import Floats

PERCENTILES = (0.5, 0.9, 0.99)
TAILS = (0.5, 0.9, 0.99, 0.999, 1.0)
TAIL_NAMES = ("p50", "p90", "p99", "p99.9", "max", "mean")
"""Lines of `tails`, the mean last."""
THIN, LEAST_COLUMNS = 0.1, 20
"""A column at an end is thin with less than this share of the I/Os of the median column, where
there are at least so many columns."""


def names(percentiles: Sequence[float] = PERCENTILES) -> list[str]:
    """`p50`, `p90`, `p99` and `mean`: the rows of `lines`."""
    return [*(f"p{100 * share:g}" for share in percentiles), "mean"]


def lines(counts: HeatCounts, columns: int, percentiles: Sequence[float] = PERCENTILES) -> Floats:
    """Value of each percentile, then the mean, by column; shape (len(percentiles) + 1, columns),
    nan where nothing happened.

    A percentile is the largest value of the bucket of the I/O of rank `ceil(q n)`, as in the native
    core. The mean takes the middle of each bucket. Both are within the bound of the grid.
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


@dataclass(frozen=True)
class Tails:
    """Percentiles of a map over time.

    Attributes:
        values: by line (`TAIL_NAMES`) and column, nan in columns without I/Os. A thin column at an
        end has its maximum alone. overall: of each line over all columns together. notes: thin
        columns, and lines that most columns have too few I/Os for.
    """

    values: Floats
    overall: Floats
    notes: tuple[str, ...]


def tails(counts: HeatCounts, *, where: str, hint: str) -> Tails:
    """Percentiles of a map of I/Os by latency, size or time in the queue.

    Args:
        where, hint: of the UsageError for offsets, which are addresses, and for maps of bytes.
    """
    if counts.y == "offset":
        raise UsageError("offsets are addresses, and have no percentiles", where=where, hint=hint)
    if counts.weight != "count":
        raise UsageError(
            f"percentiles are of I/Os, not of {'time spent' if counts.weight == 'time' else 'bytes'}",
            where=where,
            hint=f"ask for a statistic of I/Os, such as io.ops[{counts.y}]",
        )
    joined = counts.coarser(columns=max(1, counts.columns))
    values = lines(counts, counts.columns, TAILS)
    totals = np.zeros(counts.columns, dtype=np.int64)
    np.add.at(totals, counts.column, counts.count)
    ends = _thin_ends(totals)
    for end in ends:
        values[[name != "max" for name in TAIL_NAMES], end] = np.nan
    thin = (
        f"the {'last' if end else 'first'} column has {totals[end]} I/Os: only their maximum is shown"
        for end in ends
    )
    return Tails(values, lines(joined, 1, TAILS)[:, 0], (*_few(totals[totals > 0]), *thin))


def _thin_ends(totals: npt.NDArray[np.int64]) -> list[int]:
    """The first column (0) and the last (-1), where they have few I/Os: a recording begins or ends
    within them. All percentiles of such a column are nearly one value. totals: I/Os by column."""
    with_ios = totals[totals > 0]
    if len(with_ios) < LEAST_COLUMNS:
        return []
    return [end for end in (0, -1) if 0 < totals[end] < THIN * np.median(with_ios)]


def _few(totals: npt.NDArray[np.int64]) -> list[str]:
    """Notes on percentiles that columns have too few I/Os for. Of fewer than 1 / (1 - q) I/Os the
    percentile q is the maximum. totals: I/Os of the columns that have some."""
    notes = []
    for name, share in zip(TAIL_NAMES, TAILS, strict=False):
        if not 0.9 < share < 1:
            continue
        needed = round(1 / (1 - share))
        few = int((totals < needed).sum())
        if few:
            notes.append(
                f"{name} is the maximum in {few} of {len(totals)} columns: they have fewer than "
                f"{needed} I/Os"
            )
    return notes
