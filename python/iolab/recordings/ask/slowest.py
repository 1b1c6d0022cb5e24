# SPDX-License-Identifier: Apache-2.0
"""The slowest I/Os of a recording: the layer that they are read from, the value from which on they are
the slowest percent, their times, and bursts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from iolab.base.errors import UsageError

from ..store.base.counts import HeatCounts

UPPERMOST = (("app.ops", "fio"), ("file.ops", "syscall"), ("nfs.ops", "nfs"))
"""Statistics of the layers above the block layer with the source of each, the uppermost first. A
process waits for its system calls. A request of the block layer may belong to a kernel thread, or to
a process that writes out what another one had written."""
BLOCK = "io.ops"

_CONCENTRATED = 0.8
"""Share of the slow I/Os that bursts hold at least."""
_SPARSE = 0.5
"""Share of the columns that bursts fill at most: slow I/Os in more of them are no bursts."""
_DENSER, _FEWEST = 10.0, 8.0
"""A column of a burst holds so many times as much as one between bursts, and a burst so many slow
I/Os, in the mean. I/Os that are spread at random fill at most columns that are four to eight times as
dense, or groups of two (simulated for 0.1 to 5 I/Os a column)."""
_REGULAR = 0.2
"""Relative deviation (median, of the gaps from their median) up to which bursts have a period."""


@dataclass(frozen=True)
class Columns:
    """Columns of time: `numbers` of those of `interval_ns` from `t0_ns` on."""

    t0_ns: int
    interval_ns: int
    numbers: tuple[int, ...]

    @property
    def sql(self) -> str:
        """The condition that an event completed in one of them."""
        numbers = ", ".join(map(str, self.numbers))
        return f"(time_ns - {self.t0_ns}) // {self.interval_ns} IN ({numbers})"


@dataclass(frozen=True)
class Bursts:
    """Slow I/Os that come together.

    Attributes:
        count: bursts.
        period_ns: median time from the beginning of a burst to the next one. None for fewer than
        three bursts, or where they are irregular.
        share: of the slow I/Os that are in bursts.
    """

    count: int
    period_ns: int | None
    share: float


@dataclass(frozen=True)
class Slowest:
    """The largest values of a map.

    Attributes:
        low: the least value (ns or bytes) that belongs to them, the lower end of a bucket. inside,
        total: I/Os from there on, and all with a value. columns: those that hold such I/Os. bursts:
        None where the I/Os are spread over time.
    """

    low: int
    inside: int
    total: int
    columns: Columns
    bursts: Bursts | None


def uppermost(sources: Collection[str]) -> str:
    """The statistic of the uppermost layer among recorded sources of events."""
    return next((name for name, source in UPPERMOST if source in sources), BLOCK)


def slowest(counts: HeatCounts, share: float) -> Slowest | None:
    """The buckets from the top that hold at least `share` (0 to 1) of the I/Os of a map; None for a
    map without I/Os.

    The grid's buckets are not divided, so that `inside` may be more than the share. UsageError for
    a share out of range.
    """
    if not 0 < share < 1:
        raise UsageError(f"{100 * share:g} % is not a part", hint="more than 0 %, less than 100 %")
    if not counts.total:
        return None
    order = np.argsort(counts.index, kind="stable")[::-1]
    above = np.cumsum(counts.count[order])
    index = int(counts.index[order][np.searchsorted(above, share * counts.total)])
    is_slow = counts.index >= index
    numbers, per_column = np.unique(counts.column[is_slow], return_inverse=True)
    slow = np.bincount(per_column, weights=counts.count[is_slow]).astype(np.int64)
    return Slowest(
        int(counts.grid.bounds(index, index)[0]),
        int(slow.sum()),
        counts.total,
        Columns(counts.t0_ns, counts.interval_ns, tuple(map(int, numbers))),
        find_bursts(numbers, slow, counts.columns, counts.interval_ns),
    )


def find_bursts(
    numbers: np.ndarray, amounts: np.ndarray, columns: int, interval_ns: int
) -> Bursts | None:
    """Bursts among columns of time.

    Bursts are the fullest columns that together hold 80 %. They are at most half of all columns and
    ten times as dense as the others. They form two groups or more, of eight I/Os or more in the mean.
    Columns of a group have a gap of at most one between them.

    Args:
        numbers, amounts: columns that hold something, ascending, and how much. columns: all that
        were looked at. interval_ns: length of one.
    """
    if len(numbers) < 2 or not amounts.sum():
        return None
    order = np.argsort(-amounts, kind="stable")
    cumulative = np.cumsum(amounts[order]) / amounts.sum()
    # columns as full as the last one that is needed belong to them: equal bursts are all counted
    level = amounts[order[np.searchsorted(cumulative, _CONCENTRATED)]]
    most = int(np.count_nonzero(amounts >= level))
    if most > _SPARSE * columns:
        return None
    burst_columns = np.sort(numbers[order[:most]])
    begins = burst_columns[np.concatenate(([True], np.diff(burst_columns) > 2))]
    within, total = int(amounts[order[:most]].sum()), int(amounts.sum())
    between = (total - within) / (columns - most)
    if len(begins) < 2 or within < _FEWEST * len(begins) or within < _DENSER * between * most:
        return None
    gaps = np.diff(begins)
    middle = float(np.median(gaps))
    is_regular = len(gaps) > 1 and float(np.median(np.abs(gaps - middle))) <= _REGULAR * middle
    return Bursts(
        len(begins),
        round(middle * interval_ns) if is_regular else None,
        float(cumulative[most - 1]),
    )
