# SPDX-License-Identifier: Apache-2.0
"""Maps made ready to be drawn: panels on one time axis, with common scales where they are
compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from iolab.base.errors import UsageError

from ..store.base.counts import UNITS, HeatCounts
from ..store.read.trace import Dimension
from . import overlays, words
from .lost import NOTHING_LOST, Lost, lost_of, unrecorded_spans, without
from .model import Cells, Frame, View, cells_of, frame_of, fullest, gaps
from .scale import Floats, Scale, scale_of
from .ticks import Tick, linear_ticks, log_ticks, quantity

LINE_STEPS = 100
"""Percentiles change at most so often across a map."""


@dataclass(frozen=True)
class Layout:
    """Room that a renderer has: cells across at most, pixels up for a map, and how many of them a
    row is at least."""

    columns: int
    height: int
    least: float


@dataclass(frozen=True)
class Panel:
    """One map, ready to draw.

    Attributes:
        label: what it is of; heading: with its counts; y, unit: the quantity on the axis, "ns" or
        "B".
        frame, cells, scale: where, how many and which level.
        signed: a difference, second minus first.
        gaps: spans of columns without I/O where some was expected, in columns.
        unrecorded: spans in which nothing was recorded.
        lost: records lost by column.
        lines: name to a value for each column, nan where there is none.
        notes: what is not shown and what was lost.
        weight: what a cell holds; at: a value near which its axis has a mark.
    """

    label: str
    heading: str
    y: str
    unit: str
    frame: Frame
    cells: Cells
    scale: Scale
    signed: bool = False
    gaps: tuple[tuple[float, float], ...] = ()
    unrecorded: tuple[tuple[float, float], ...] = ()
    lost: Lost = NOTHING_LOST
    lines: dict[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    weight: str = "count"
    at: float = 1.0

    @cached_property
    def levels(self) -> Floats:
        """Level of each cell, nan for background; from -1 to 1 where signed."""
        levels = self.scale.level(self.cells.shades)
        return np.where(self.cells.counts < 0, -levels, levels) if self.signed else levels

    @property
    def columns(self) -> int:
        """Columns across."""
        return int(self.cells.counts.shape[1])

    @property
    def signs(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """The spans that are drawn as each of `words.SIGNS`."""
        return {"shaded": self.gaps, "hatched": self.unrecorded}

    def value_ticks(self, most: int) -> list[Tick]:
        """At most so many marks of its values."""
        if self.frame.y_scale == "log":
            return log_ticks(self.frame.low, self.frame.high, most, self.unit, self.at)
        return linear_ticks(self.frame.low, self.frame.high, most, self.unit)

    @property
    def span_ns(self) -> float:
        """Length of the time axis."""
        return float(self.columns * self.cells.column_ns)


@dataclass(frozen=True)
class Named:
    """Counts with their name, and with their owner where requested."""

    label: str
    counts: HeatCounts
    dimensions: tuple[Dimension, ...] = ()


def panels(
    maps: Sequence[Named],
    view: View,
    layout: Layout,
    *,
    percentiles: bool = False,
    difference: bool = False,
) -> list[Panel]:
    """Panels of maps of one kind of y on common axes and one scale of colour; with `difference` of
    two, theirs last.

    Offsets are addresses and get no percentiles. Raises UsageError for percentiles of time spent or
    bytes, FormatError where nothing is left to draw.
    """
    counts = [map_of_group.counts for map_of_group in maps]
    if percentiles and counts[0].weight != "count":
        weight = counts[0].weight
        raise UsageError(
            f"percentiles are of I/Os, not of {'time spent' if weight == 'time' else weight}",
            hint=f"leave out --weight {weight} or --percentiles",
        )
    frame = frame_of(counts, view)
    most = max(counts_of_map.columns for counts_of_map in counts)
    factor = max(1, -(-most // layout.columns))
    across = -(-most // factor)
    cells = [
        cells_of(
            counts_of_map,
            frame,
            columns=across,
            factor=factor,
            height=layout.height,
            least=layout.least,
        )
        for counts_of_map in counts
    ]
    scale = scale_of([cells_of_map.shades for cells_of_map in cells], view.color)
    unit, at = UNITS[counts[0].y], fullest(cells)
    panel_list = []
    for named, cells_of_map in zip(maps, cells, strict=True):
        percentile_lines, pace = (
            _lines(named.counts, factor, across)
            if percentiles and named.counts.y != "offset"
            else ({}, "")
        )
        notes = [
            words.begins(named.counts),
            pace,
            *words.outside(named.counts, cells_of_map, frame.high, frame.low, unit),
            *words.losses(named.counts),
        ]
        blind = unrecorded_spans(named.counts, across, factor)
        lost = lost_of(named.counts, across, factor)
        panel_list.append(
            Panel(
                named.label,
                words.headline(named.label, named.counts, cells_of_map),
                named.counts.y,
                unit,
                frame,
                cells_of_map,
                scale,
                gaps=without(
                    tuple((start / factor, end / factor) for start, end in gaps(named.counts)),
                    blind,
                ),
                unrecorded=blind,
                lost=lost,
                lines=percentile_lines,
                notes=tuple(note for note in notes if note),
                weight=named.counts.weight,
                at=at,
            )
        )
    if difference:
        panel_list.append(_difference(panel_list[0], panel_list[1], view))
    return panel_list


def _lines(counts: HeatCounts, factor: int, across: int) -> tuple[dict[str, Floats], str]:
    """Percentiles and mean for each column, from spans long enough that a line can be followed; and
    how long they are."""
    joined = -(-across // LINE_STEPS)
    spans = overlays.lines(counts.coarser(columns=factor * joined), -(-across // joined))
    pace = f"lines of each {quantity(counts.interval_ns * factor * joined, 'ns')}"
    return dict(
        zip(overlays.names(), np.repeat(spans, joined, axis=1)[:, :across], strict=True)
    ), pace


def _difference(first: Panel, second: Panel, view: View) -> Panel:
    """Second minus first, cell by cell, on a scale of its own."""
    cells = Cells(
        first.cells.column_ns,
        first.cells.edges,
        second.cells.counts - first.cells.counts,
        second.cells.above - first.cells.above,
        second.cells.below - first.cells.below,
        first.cells.densities,
    )
    heading = f"difference: {second.label} minus {first.label} (blue: fewer, orange: more)"
    return Panel(
        "difference",
        heading,
        first.y,
        first.unit,
        first.frame,
        cells,
        scale_of([cells.shades], view.color),
        signed=True,
        weight=first.weight,
        at=first.at,
    )
