# SPDX-License-Identifier: Apache-2.0
"""Histograms of OpenZFS that only ever grow, as counts of the intervals between readings, on
iolab's grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolab._core import take_over_log2

from ..core.tables import Floats, HostTable
from ..host.counters_log import Damage, Reading, times_of
from ..host.host_columns import Column, host_table

BITS = 0
"""A power of two per bucket is all that OpenZFS reports."""


@dataclass(frozen=True)
class Counts:
    """One histogram over time. indices: ascending, on the grid of `BITS` bits, shape (m,); counts:
    shape (intervals, m)."""

    indices: NDArray[np.uint32]
    counts: NDArray[np.uint64]


@dataclass(frozen=True)
class HistogramTable(HostTable):
    """Counts per interval of each owner and quantity, such as ("vdb", "write.wait").

    Attributes:
        quantity: what is on the grid: `latency` (ns) or `size` (bytes).
        ends_ns: realtime at the end of the histograms' intervals, shape (intervals,), where
        `time_ns` may be cut to a window. An interval in which a counter went back (the pool was
        imported again) is nan in `columns`, and has no counts.
    """

    quantity: str = "latency"
    ends_ns: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    histograms: Mapping[tuple[str, str], Counts] = field(default_factory=dict)

    def total(self, owner: str, name: str) -> dict[int, int]:
        """Index on the grid to count, over the intervals of `time_ns`; KeyError for what is not
        there."""
        counts = self.histograms[owner, name]
        summed = counts.counts[np.isin(self.ends_ns, self.time_ns)].sum(axis=0)
        return {
            int(index): int(count)
            for index, count in zip(counts.indices, summed, strict=True)
            if count
        }


Grown = Sequence[Mapping[int, int] | None]
"""Per reading: n to how many values in [2^n, 2^(n+1)) so far; None where the reading lacks them."""


def histogram_table(
    kind: str,
    quantity: str,
    readings: Sequence[Reading],
    grown: Mapping[tuple[str, str], Grown],
    damaged: Damage,
) -> HistogramTable:
    """The differences of counts that grow.

    Args:
        grown: by owner and name.
    """
    steps, times = times_of(readings)
    columns, histograms = [], {}
    for (owner, name), counts in grown.items():
        rows, is_known = _differences(counts)
        histograms[owner, name] = _on_grid(rows)
        totals: Floats = np.where(
            is_known, np.array([sum(row) for row in rows], dtype=np.float64), np.nan
        )
        columns.append(
            Column(
                f"{kind}.{name}[{owner}]", totals / steps, "1/s", f"{name} of {owner}, all buckets"
            )
        )
    table = host_table(kind, readings, columns, damaged)
    return HistogramTable(**vars(table), quantity=quantity, ends_ns=times, histograms=histograms)


def _differences(grown: Grown) -> tuple[list[list[int]], NDArray[np.bool_]]:
    """Counts per interval by n, in whole numbers however large; which intervals are known."""
    width = 1 + max((n for row in grown if row is not None for n in row), default=-1)
    rows, is_known = [], np.ones(max(len(grown) - 1, 0), dtype=np.bool_)
    for place in range(len(grown) - 1):
        before, after = grown[place], grown[place + 1]
        row = (
            [after.get(n, 0) - before.get(n, 0) for n in range(width)]
            if before is not None and after is not None
            else [-1]
        )
        is_known[place] = min(row, default=0) >= 0
        rows.append(row if is_known[place] else [0] * width)
    return rows, is_known


def _on_grid(rows: Sequence[Sequence[int]]) -> Counts:
    grid_rows = [dict(zip(*take_over_log2(list(row)), strict=True)) for row in rows]
    indices = sorted({index for row in grid_rows for index in row})
    counts = np.array(
        [[row.get(index, 0) for index in indices] for row in grid_rows], dtype=np.uint64
    ).reshape(len(rows), len(indices))
    return Counts(np.array(indices, dtype=np.uint32), counts)
