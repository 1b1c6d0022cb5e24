# SPDX-License-Identifier: Apache-2.0
"""Counts over time and value, which heat maps draw, and the losses in their columns. Merging is
addition, coarsening is exact, nothing is averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from iolab.base.errors import FormatError, UsageError

from .grids import Grid, Linear, LogLinear

LostKind: TypeAlias = Literal["lost", "damaged", "unpaired"]

LOST_KINDS: tuple[LostKind, ...] = ("lost", "damaged", "unpaired")
"""Records that the kernel or a buffer dropped, those that could not be read, and unmatched issue or
completion events."""

LostAt: TypeAlias = tuple[int, LostKind, int]
"""Column, kind, and how many; 0: unknown."""


def sum_losses(parts: Iterable[LostAt]) -> tuple[LostAt, ...]:
    """Ascending by column, then in the order of kinds; those of one column and kind added up."""
    totals: dict[tuple[int, LostKind], int] = {}
    for column, kind, count in parts:
        totals[column, kind] = totals.get((column, kind), 0) + count
    return tuple(
        (column, kind, totals[column, kind])
        for column, kind in sorted(totals, key=lambda each: (each[0], LOST_KINDS.index(each[1])))
    )


def move_losses(parts: Iterable[LostAt], shift: int) -> tuple[LostAt, ...]:
    """The same in columns that lie `shift` further."""
    return tuple((column + shift, kind, count) for column, kind, count in parts)


def of_columns(parts: Iterable[LostAt]) -> tuple[tuple[int, int], ...]:
    """(column, how many of whatever kind), ascending."""
    totals: dict[int, int] = {}
    for column, _, count in parts:
        totals[column] = totals.get(column, 0) + count
    return tuple(sorted(totals.items()))


def of_kinds(
    parts: Iterable[LostAt], sums: Mapping[LostKind, int]
) -> list[tuple[LostKind, int, list[tuple[int, int]]]]:
    """(kind, how many there are, where: (column, how many)) of the kinds of which there are some;
    `sums` includes those without a time as well."""
    columns: dict[LostKind, list[tuple[int, int]]] = {}
    for column, kind, count in parts:
        columns.setdefault(kind, []).append((column, count))
    return [
        (kind, sums.get(kind, 0), columns.get(kind, []))
        for kind in LOST_KINDS
        if sums.get(kind) or kind in columns
    ]


Y: TypeAlias = Literal["latency", "offset", "size", "queue", "utilization"]
Weight: TypeAlias = Literal["count", "time", "bytes"]
Integers: TypeAlias = "npt.NDArray[np.int64]"

_TALLIES = ("events", "damaged", "without_y", "filtered", "outside", "lost", "unpaired")

MOST_BUCKETS = 2**15
"""Equal buckets that maps of different ranges share at most: more than a map can have."""

TABLE = 2**20
"""Indices up to which buckets are looked up in a table."""

UNITS: dict[Y, str] = {
    "latency": "ns",
    "offset": "B",
    "size": "B",
    "queue": "ns",
    "utilization": "",
}
"""The unit of each kind of y, all whole numbers. Recordings of the block layer alone know the time
in the queue; utilization is in percent, and what is counted there are readings of devices or
processors."""

OF_EVENTS: tuple[Y, ...] = ("latency", "offset", "size", "queue")
"""Kinds of y that events have."""


@dataclass(frozen=True)
class HeatCounts:
    """I/Os (or the time they took, or the bytes they moved) by column of time and bucket of value,
    without the empty ones.

    Attributes:
        y: what the buckets are of; t0_ns: start of column 0; interval_ns: length of a column.
        grid: the buckets.
        column, index, count: three arrays of one length, ascending by column, then index; counts
        above zero. weight: "count" (I/Os), "time" (nanoseconds spent in them) or "bytes" (that they
        moved). events: I/Os counted; damaged: lines or records that could not be read; without_y:
        I/Os that lack the value, or what is added up;
        filtered: I/Os left out by conditions; outside: I/Os beyond the range that was read; lost:
        records that the tracer lost; unpaired: starts without completion and the reverse.
        averaged: whether each line is the mean of a window, not one I/O; assumptions: what the
        trace leaves open. conditional: whether conditions were requested (then an empty column says
        nothing of the recording). lost_at: what was lost in which column, by kind, ascending; 0
        where something was lost and how much is unknown. Losses without a time are in the sums
        above alone. gaps: (first, one past the last) column without any recording. window: (first,
        one past the last) column of the time that was asked about. These are known of recordings;
        they may reach beyond the columns that hold counts, to either side. wide: columns at least.
    """

    y: Y
    t0_ns: int
    interval_ns: int
    grid: Grid
    column: Integers
    index: Integers
    count: Integers
    weight: Weight = "count"
    events: int = 0
    damaged: int = 0
    without_y: int = 0
    filtered: int = 0
    outside: int = 0
    lost: int = 0
    unpaired: int = 0
    averaged: bool = False
    conditional: bool = False
    assumptions: tuple[str, ...] = ()
    lost_at: tuple[LostAt, ...] = ()
    gaps: tuple[tuple[int, int], ...] = ()
    window: tuple[int, int] | None = None
    wide: int = 0

    def __repr__(self) -> str:
        return (
            f"<HeatCounts of {self.y} by {self.weight}: {self.events} events in {len(self.count)} cells, {self.columns} columns of "
            f"{self.interval_ns / 1e9:g} s>"
        )

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.count.sum())

    @property
    def columns(self) -> int:
        """Columns from the first to the last with a count, or as many as there are at least."""
        return max(self.wide, int(self.column[-1]) + 1 if len(self.column) else 0)

    @property
    def lost_by_column(self) -> tuple[tuple[int, int], ...]:
        """(column, records lost there, of any kind), ascending; 0 where the number is unknown."""
        return of_columns(self.lost_at)

    @property
    def span_ns(self) -> int:
        """From the start of the first column to the end of the last."""
        return self.columns * self.interval_ns

    @property
    def required_field(self) -> str:
        """What an I/O must have to be in a cell, in words: the value, and what is added up."""
        added = {"count": (), "time": ("latency",), "bytes": ("size",)}[self.weight]
        return " or ".join(dict.fromkeys((self.y, *added)))

    def with_all_columns(self, *, before: bool = True) -> HeatCounts:
        """With all columns of the time that was asked about, also those after the last count and,
        with `before`, those before the first: what a still picture shows. Unchanged where that time
        is not known."""
        if self.window is None:
            return self
        first, past = self.window
        first = first if before or not len(self.column) else 0
        shift = -min(0, first) if len(self.column) else -first
        return replace(
            self,
            t0_ns=self.t0_ns - shift * self.interval_ns,
            column=self.column + shift,
            window=(first + shift, past + shift),
            wide=max(self.wide + shift, past + shift),
            gaps=tuple((start + shift, end + shift) for start, end in self.gaps),
            lost_at=move_losses(self.lost_at, shift),
        )

    def by_index(self) -> tuple[Integers, Integers]:
        """(indices ascending, counts) over all time."""
        return sum_by_key(self.index, self.count)

    def coarser(self, *, columns: int = 1, steps: int = 0) -> HeatCounts:
        """`columns` columns in one, and `steps` bits of resolution fewer; both exact."""
        if columns == 1 and not steps:
            return self
        index = self._coarse_index(steps) if steps else self.index
        column, index, count = canonical(self.column // columns, index, self.count)
        gaps = ((-(-first // columns), past // columns) for first, past in self.gaps)
        window = (
            None
            if self.window is None
            else (self.window[0] // columns, -(-self.window[1] // columns))
        )
        return replace(
            self,
            interval_ns=self.interval_ns * columns,
            grid=self.grid.coarser(steps),
            column=column,
            window=window,
            wide=-(-self.wide // columns),
            index=index,
            count=count,
            lost_at=sum_losses((at // columns, kind, lost) for at, kind, lost in self.lost_at),
            gaps=tuple((first, past) for first, past in gaps if first < past),
        )

    def _coarse_index(self, steps: int) -> Integers:
        """The bucket of each cell on the grid with `steps` bits fewer."""
        most = int(self.index.max(initial=0))
        # a table by index takes a fifth of the time of sorted unique indices
        fine = np.flatnonzero(np.bincount(self.index)) if most < TABLE else np.unique(self.index)
        coarse = np.array(self.grid.coarse_indices(fine.tolist(), steps), dtype=np.int64)
        if most >= TABLE:
            return coarse[np.searchsorted(fine, self.index)]
        table = np.zeros(most + 1, dtype=np.int64)
        table[fine] = coarse
        return table[self.index]

    def within(self, whole: HeatCounts) -> HeatCounts:
        """Of each cell at most what the whole has there. For parts of a recording that grew after
        the whole was counted."""
        whole, part = alike([whole, self])
        if not len(part.count) or not len(whole.count):
            return replace(
                part, column=part.column[:0], index=part.index[:0], count=part.count[:0], events=0
            )
        shift = (part.t0_ns - whole.t0_ns) // whole.interval_ns
        whole_keys, part_keys = (
            (whole.column << 32) | whole.index,
            ((part.column + shift) << 32) | part.index,
        )
        place = np.minimum(np.searchsorted(whole_keys, part_keys), len(whole_keys) - 1)
        count = np.where(
            whole_keys[place] == part_keys, np.minimum(part.count, whole.count[place]), 0
        )
        positive = count > 0
        late = part.total - int(count.sum()) if self.weight == "count" else 0
        events = min(part.events - late, whole.events)
        return replace(
            part,
            column=part.column[positive],
            index=part.index[positive],
            count=count[positive],
            events=events,
        )

    def minus(self, parts: Sequence[HeatCounts], *, overlapping: bool = False) -> HeatCounts:
        """What remains after taking away parts of it, each at its own place in time.

        Args:
            overlapping: whether the parts may hold more than the whole (a partition next to its
            disk); no less than nothing then remains.

        Raises:
            UsageError: columns or buckets differ. FormatError: parts hold more than the whole and
            are not overlapping.
        """
        nonempty = [part for part in parts if len(part.count)]
        if any(
            (part.interval_ns, part.grid, part.weight) != (self.interval_ns, self.grid, self.weight)
            for part in nonempty
        ):
            raise UsageError(
                "these counts have different columns or buckets",
                hint="read them with the same interval and range",
            )
        shifts = [(part.t0_ns - self.t0_ns) // self.interval_ns for part in nonempty]
        column = np.concatenate(
            [
                self.column,
                *(part.column + shift for part, shift in zip(nonempty, shifts, strict=True)),
            ]
        )
        index = np.concatenate([self.index, *(part.index for part in nonempty)])
        count = np.concatenate([self.count, *(-part.count for part in nonempty)])
        # parts may begin before the whole only by mistake; keys of cells must not be negative
        first = int(column.min()) if len(column) else 0
        column, index, count = canonical(column - first, index, count)
        column, events = column + first, self.events - sum(part.events for part in parts)
        if overlapping:
            column, index, count, events = (
                column[count > 0],
                index[count > 0],
                count[count > 0],
                max(0, events),
            )
        elif (len(count) and int(count.min()) < 0) or events < 0:
            raise FormatError(
                "parts of a map hold more than the map",
                hint="it changed while it was read, or is damaged: try again",
            )
        return replace(self, column=column, index=index, count=count, events=events)


def alike(maps: Sequence[HeatCounts]) -> list[HeatCounts]:
    """The same maps on the same buckets: the coarsest resolution among them, and equal buckets from
    the lowest start on, wide enough that `MOST_BUCKETS` hold all. Exact."""
    nonempty = [heat_map for heat_map in maps if len(heat_map.count)]
    grids = [counts.grid for counts in nonempty]
    if all(isinstance(grid, LogLinear) for grid in grids):
        fewest = min((grid.bits for grid in grids if isinstance(grid, LogLinear)), default=0)
        return [
            heat_map.coarser(steps=heat_map.grid.bits - fewest)
            if len(heat_map.count) and isinstance(heat_map.grid, LogLinear)
            else heat_map
            for heat_map in maps
        ]
    if not all(isinstance(grid, Linear) for grid in grids):
        raise UsageError("equal buckets and the logarithmic grid can't be shown together")
    width = max(grid.width for grid in grids if isinstance(grid, Linear))
    # what lies far apart needs wider buckets than each alone
    first = min(grid.low for grid in grids if isinstance(grid, Linear))
    past = max(
        counts.grid.low + (int(counts.index.max()) + 1) * counts.grid.width
        for counts in nonempty
        if isinstance(counts.grid, Linear)
    )
    while -(-past // width) - first // width > MOST_BUCKETS:
        width *= 2
    wide = [
        heat_map.coarser(steps=(width // heat_map.grid.width).bit_length() - 1)
        if len(heat_map.count) and isinstance(heat_map.grid, Linear)
        else heat_map
        for heat_map in maps
    ]
    low = min(
        counts.grid.low for counts in wide if len(counts.count) and isinstance(counts.grid, Linear)
    )
    return [
        replace(
            counts, grid=Linear(low, width), index=counts.index + (counts.grid.low - low) // width
        )
        if len(counts.count) and isinstance(counts.grid, Linear)
        else counts
        for counts in wide
    ]


def merge(parts: Sequence[HeatCounts]) -> HeatCounts:
    """Several traces of the same time as one: counts add up.

    Columns start at multiples of their length, so those of the parts coincide. UsageError where
    columns or buckets differ.
    """
    if len(parts) == 1:
        return parts[0]
    # one in which nothing is left has no place in time, and whatever buckets
    nonempty = [part for part in parts if len(part.count)]
    first = nonempty[0] if nonempty else parts[0]
    if any(
        (part.y, part.interval_ns, part.grid, part.weight)
        != (first.y, first.interval_ns, first.grid, first.weight)
        for part in nonempty
    ):
        raise UsageError(
            "these counts have different columns or buckets",
            hint="read them with the same interval and range",
        )
    t0 = min((part.t0_ns for part in nonempty), default=first.t0_ns)
    shifts = [(part.t0_ns - t0) // first.interval_ns for part in parts]
    column, index, count = canonical(
        np.concatenate([part.column + shift for part, shift in zip(parts, shifts, strict=True)]),
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.count for part in parts]),
    )
    totals = {name: sum(getattr(part, name) for part in parts) for name in _TALLIES}
    windows = [
        _move_span(part.window or (0, part.columns), shift)
        for part, shift in zip(parts, shifts, strict=True)
        if len(part.count) or (part.window is not None and part.interval_ns == first.interval_ns)
    ]
    is_known = bool(windows) and any(part.window is not None for part in parts)
    return replace(
        first,
        t0_ns=t0,
        column=column,
        index=index,
        count=count,
        **totals,
        window=(min(low for low, _ in windows), max(high for _, high in windows))
        if is_known
        else None,
        wide=max(
            part.wide + shift if part.wide else 0 for part, shift in zip(parts, shifts, strict=True)
        ),
        conditional=any(part.conditional for part in parts),
        averaged=any(part.averaged for part in parts),
        lost_at=sum_losses(
            move_loss
            for part, shift in zip(parts, shifts, strict=True)
            for move_loss in move_losses(part.lost_at, shift)
        ),
        gaps=_common(
            [
                [(start + shift, past + shift) for start, past in part.gaps]
                for part, shift in zip(parts, shifts, strict=True)
            ]
        ),
        assumptions=tuple(dict.fromkeys(text for part in parts for text in part.assumptions)),
    )


def _move_span(span: tuple[int, int], shift: int) -> tuple[int, int]:
    return span[0] + shift, span[1] + shift


def sum_by_key(key: Integers, count: Integers) -> tuple[Integers, Integers]:
    """(keys ascending, sum of the counts of each), in whole numbers."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    if not len(ordered):
        return ordered, count
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.add.reduceat(count[order], starts)


def _common(parts: Sequence[Sequence[tuple[int, int]]]) -> tuple[tuple[int, int], ...]:
    """Spans that lie in a gap of every part: where one of them was recorded, something was."""
    spans = list(parts[0])
    for other in parts[1:]:
        spans = [
            (max(first, start), min(past, end))
            for first, past in spans
            for start, end in other
            if max(first, start) < min(past, end)
        ]
    return tuple(sorted(spans))


def canonical(
    column: Integers, index: Integers, count: Integers
) -> tuple[Integers, Integers, Integers]:
    """Sorted by column, then index, equal cells added up, empty ones dropped."""
    key, total = sum_by_key((column << 32) | index, count)
    nonzero = total != 0
    key, total = key[nonzero], total[nonzero]
    return key >> 32, key & 0xFFFFFFFF, total
