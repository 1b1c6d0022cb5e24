# SPDX-License-Identifier: Apache-2.0
"""From counts to cells: which part of y is shown, in which rows and columns. Every count is in
one cell, or is counted as above or below.

Three spaces follow each other: *values* (ns or bytes, the buckets' bounds), *positions* (0 at the
bottom of the map to 1 at its top, along a linear or logarithmic scale), and *pixels* (or
characters) of whoever draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from iolab.base.errors import FormatError

from ..store.base.counts import UNITS, HeatCounts, Integers, sum_by_key
from ..store.base.grids import Linear
from .scale import Floats, Kind

YScale: TypeAlias = Literal["log", "linear"]

_LEAST_SPAN = 4.0
"""A logarithmic axis that follows the data spans at least this factor."""

_ROOM = 2**0.5
"""Left free below and above sizes on a logarithmic axis: they are few and exact, so that the first
and the last are lines of their own."""


@dataclass(frozen=True)
class View:
    """The requested view: the scale of y, the share of I/Os to leave above the map, a range of y,
    the scale of colour, and the share of sizes to leave below a logarithmic map, which a handful of
    tiny ones would stretch."""

    y_scale: YScale
    crop: float = 0.0
    low: int | None = None
    high: int | None = None
    color: Kind = "rank"
    tail: float = 0.001


@dataclass(frozen=True)
class Frame:
    """The part of y that is shown, from `low` to `high` (exclusive), both bounds of buckets."""

    low: float
    high: float
    y_scale: YScale

    def position(self, values: Floats) -> Floats:
        """Values as positions; beyond the frame they lie below 0 or above 1."""
        if self.y_scale == "linear":
            return (values - self.low) / (self.high - self.low)
        low, high = math.log(self.low), math.log(self.high)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(values, 0))
        result: Floats = (logs - low) / (high - low)
        return result

    def value(self, position: float) -> float:
        """The value at a position."""
        if self.y_scale == "linear":
            return self.low + position * (self.high - self.low)
        return float(
            math.exp(math.log(self.low) + position * (math.log(self.high) - math.log(self.low)))
        )


@dataclass(frozen=True)
class Cells:
    """Rows and columns of counts.

    Attributes:
        column_ns: length of a column; edges: bounds of the rows in values, ascending, one more than
        rows. counts: shape (rows, columns), row 0 being the lowest; signed where it is a
        difference. above, below: the counts outside the frame. densities: factor of each row's
        counts for its colour.
    """

    column_ns: int
    edges: Floats
    counts: Integers
    above: int
    below: int
    densities: Floats

    @property
    def shades(self) -> Floats:
        """Counts as colours show them: those of a row by its height."""
        result: Floats = self.counts * self.densities[:, np.newaxis]
        return result


def frame_of(maps: Sequence[HeatCounts], view: View) -> Frame:
    """The frame that suits all these maps together, so that they can be compared.

    A range wins over a crop; a crop leaves at most that share of all counts above, and ends with a
    whole bucket, as a tail does below. A time of which it is known that nothing happened has an
    empty one. FormatError where nothing is left to show.
    """
    filled_maps = [item for item in maps if len(item.count)]
    if not filled_maps and all(
        item.window is not None and not item.conditional and not item.events and not item.without_y
        for item in maps
    ):
        return _empty_frame(maps[0], view)
    if not filled_maps:
        raise FormatError("nothing is left to draw", hint=_why_nothing(maps))
    grid = filled_maps[0].grid
    lowest, highest = (
        min(int(item.index.min()) for item in filled_maps),
        max(int(item.index.max()) for item in filled_maps),
    )
    last = highest
    if view.high is not None:
        last = grid.index(max(view.high - 1, 0))
    elif view.crop > 0:
        last = _crop_index(filled_maps, view.crop)
    first = lowest
    if view.low is not None:
        first = grid.index(view.low)
    elif view.y_scale == "linear" and not isinstance(grid, Linear):
        first = 0
    elif view.tail > 0 and view.high is None and filled_maps[0].y == "size":
        first = min(last, _tail_index(filled_maps, view.tail))
    if view.high is not None and view.low is None:
        first = min(first, last)
    if first > last or first > highest or last < lowest:
        raise FormatError(
            "no I/O is in the requested range of y",
            hint="leave --y-range out to see all",
        )
    bounds = grid.bounds(first, last)
    if view.y_scale == "log" and view.low is None and view.high is None:
        # a single value would fill the map from bottom to top: give it room to be seen as one
        around = max(
            (_LEAST_SPAN * max(bounds[0], 0.5) / bounds[-1]) ** 0.5,
            _ROOM if filled_maps[0].y == "size" else 1,
        )
        if around > 1:
            bounds = grid.bounds(grid.index(bounds[0] / around), grid.index(bounds[-1] * around))
    low = float(bounds[0])
    if view.y_scale == "log":
        low = max(low, 0.5)
    return Frame(low, float(bounds[-1]), view.y_scale)


def _empty_frame(counts: HeatCounts, view: View) -> Frame:
    """Values as they are wont to be, in whole buckets."""
    grid = counts.grid
    usual = (
        (0.0, 99.0)
        if isinstance(grid, Linear)
        else (1e3, 1e9)
        if UNITS[counts.y] == "ns"
        else (512.0, 2.0**20)
    )
    low, high = (
        value if value is not None else other
        for value, other in zip((view.low, view.high), usual, strict=True)
    )
    first = 0 if view.y_scale == "linear" and view.low is None else grid.index(low)
    bounds = grid.bounds(first, max(first, grid.index(high)))
    return Frame(
        max(float(bounds[0]), 0.5) if view.y_scale == "log" else float(bounds[0]),
        float(bounds[-1]),
        view.y_scale,
    )


def cells_of(
    counts: HeatCounts, frame: Frame, *, columns: int, factor: int, height: float, least: float
) -> Cells:
    """Cells of one map: `factor` columns in one, buckets joined until a row is `least` of `height`
    pixels high."""
    coarse = counts.coarser(columns=factor)
    grid = coarse.grid
    first, last = grid.index(frame.low if frame.low >= 1 else 0), grid.index(frame.high - 1)
    bounds = grid.bounds(first, last)
    starts = joined_rows((frame.position(np.maximum(bounds, frame.low)) * height).tolist(), least)
    edges = bounds[[*starts, len(bounds) - 1]]
    edges[0] = frame.low
    rows = np.searchsorted(np.array(starts), coarse.index - first, side="right") - 1
    inside = (coarse.index >= first) & (coarse.index <= last)
    cells = np.zeros((len(starts), columns), dtype=np.int64)
    np.add.at(cells, (rows[inside], coarse.column[inside]), coarse.count[inside])
    return Cells(
        coarse.interval_ns,
        edges,
        cells,
        above=int(coarse.count[coarse.index > last].sum()),
        below=int(coarse.count[coarse.index < first].sum()),
        # sizes are few and exact: a row's height says nothing of how many there are
        densities=np.ones(len(starts))
        if counts.y == "size"
        else densities_of(frame.position(edges)),
    )


def joined_rows(edges: Sequence[float], least: float) -> list[int]:
    """First bucket of each row: buckets between these edges (pixels, ascending) join until a row is
    `least` high.

    What remains at the top joins the last row. The page does the same while it is zoomed
    (`web/src/canvas/rows.ts`).
    """
    starts, start = [0], edges[0]
    for bucket in range(1, len(edges) - 1):
        if edges[bucket] - start >= least - 1e-9:
            starts.append(bucket)
            start = edges[bucket]
    if len(starts) > 1 and edges[-1] - edges[starts[-1]] < least - 1e-9:
        starts.pop()
    return starts


def densities_of(edges: Floats) -> Floats:
    """Factors of the rows between these edges (in any unit of height) for their colours.

    A row twice as high as the usual one holds twice as many I/Os of the same density. In steps of
    1/32, so that equal rows are equal. The page does the same.
    """
    heights = np.diff(edges)
    usual = np.sort(heights)[len(heights) >> 1]
    result: Floats = np.maximum(1, np.floor(32 * usual / heights + 0.5)) / 32
    return result


def gaps(counts: HeatCounts) -> list[tuple[int, int]]:
    """Runs of columns (first, one past the last) without a single I/O where ten were expected.

    Expected at the rate before or after, whichever is less, over four times the run's
    length but at least 20 columns. By chance that happens less than once in 20 000 times (Poisson),
    so there the recording or the storage stood still. A map under conditions has none: an empty
    column there says only that nothing met them. One of bytes has none either: a column without
    bytes may hold I/Os that move none.
    """
    if (
        counts.conditional
        or counts.weight == "bytes"
        or not len(counts.column)
        or not counts.events
    ):
        return []
    filled_columns, sums = sum_by_key(counts.column, counts.count)
    # time spent stands for I/Os in proportion
    ios_before = np.concatenate([[0], np.cumsum(sums)]) * (counts.events / counts.total)
    spans = []
    for place in np.flatnonzero(np.diff(filled_columns) > 1).tolist():
        start, end = int(filled_columns[place]) + 1, int(filled_columns[place + 1])
        around = max(20, 4 * (end - start))
        first, last = max(0, start - around), min(int(filled_columns[-1]) + 1, end + around)
        before = ios_before[place + 1] - ios_before[np.searchsorted(filled_columns, first)]
        after = ios_before[np.searchsorted(filled_columns, last)] - ios_before[place + 1]
        if (end - start) * min(before / (start - first), after / (last - end)) >= 10:
            spans.append((start, end))
    return spans


def fullest(maps: Sequence[Cells]) -> float:
    """The highest whole value of the row that holds most in maps of the same rows, at least 1: the
    marks of an axis begin there."""
    row = int(np.argmax(sum(np.abs(item.counts).sum(axis=1) for item in maps)))
    return max(1.0, float(maps[0].edges[row + 1]) - 1)


def _crop_index(maps: Sequence[HeatCounts], crop: float) -> int:
    """The lowest last bucket that leaves at most `crop` of all counts above it."""
    index, kept = _summed_up(maps)
    place = int(np.searchsorted(kept, math.ceil(kept[-1] * (1 - crop) - 1e-9)))
    return int(index[min(place, len(index) - 1)])


def _tail_index(maps: Sequence[HeatCounts], tail: float) -> int:
    """The highest first bucket that leaves at most `tail` of all counts below it."""
    index, kept = _summed_up(maps)
    return int(index[int(np.searchsorted(kept, math.floor(kept[-1] * tail + 1e-9), side="right"))])


def _summed_up(maps: Sequence[HeatCounts]) -> tuple[Integers, Integers]:
    """Buckets of all counts, ascending, and how many counts there are up to each."""
    index = np.concatenate([item.index for item in maps])
    order = np.argsort(index, kind="stable")
    return index[order], np.cumsum(np.concatenate([item.count for item in maps])[order])


def _why_nothing(maps: Sequence[HeatCounts]) -> str:
    """What became of the I/Os of empty maps."""
    filtered, without, outside, damaged, events = (
        sum(getattr(item, name) for item in maps)
        for name in ("filtered", "without_y", "outside", "damaged", "events")
    )
    parts = [
        f"{filtered} I/Os do not meet --where" if filtered else "",
        f"{without} I/Os have no {maps[0].required_field}" if without else "",
        f"{outside} I/Os lie outside --y-range" if outside else "",
        f"{damaged} lines are damaged" if damaged else "",
        f"{events} I/Os moved no bytes" if events and maps[0].weight == "bytes" else "",
    ]
    nothing = (
        "no I/O meets the conditions"
        if any(item.conditional for item in maps)
        else "the trace holds no I/O"
    )
    unmatched = dict.fromkeys(
        note for item in maps for note in item.assumptions if note.startswith("there was no ")
    )
    return "; ".join([", ".join(part for part in parts if part) or nothing, *unmatched])
