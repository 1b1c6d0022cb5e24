# SPDX-License-Identifier: Apache-2.0
"""The form in which heat maps go to a page: counts, bounds, finished lines and colours. The page
joins cells and picks colours.

The service, the report and the page of `iolab heatmap -o x.html` send these models; `group_of`
makes them of counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from iolab.base.documents import Model

from ..store.base.counts import UNITS, HeatCounts, Integers, alike, of_kinds
from ..store.base.grids import LogLinear
from . import overlays, words
from .figure import Named
from .lost import unrecorded_spans, without
from .model import View, frame_of, gaps
from .theme import Palette, Theme

CELLS = 150_000
"""A map with more cells than this is given to the page one or two steps coarser; lines are made
before that."""

CROPS = (0.0, 0.0001, 0.001, 0.01, 0.05)
"""Shares of I/Os that can be left above a map."""

FEWEST_STEPS = 40
"""Percentiles are made for columns joined by twos until so few are left."""

Numbers: TypeAlias = Annotated[list[int], Field(json_schema_extra={"tsType": "ArrayLike<number>"})]
"""Whole numbers that the page may hold as an array of one type, as it gets them in binary."""


class SparseCounts(Model):
    """Counts by column: those of column c are `rows[k]`, `counts[k]` for k from `starts[c]` to
    `starts[c + 1]`."""

    starts: Numbers
    rows: Numbers
    counts: Numbers


class PartCounts(Model):
    """The counts of one value of a dimension, such as op = read."""

    name: str
    cells: SparseCounts


class DimensionParts(Model):
    """A dimension and what its values did; together they are the map."""

    name: str
    parts: list[PartCounts]


class LossesOfKind(Model):
    """What was lost of a kind: records that were dropped, those that could not be read, or starts
    and completions without their other half. `count`: how many in all, as far as anybody knows;
    `columns`: (column, how many), ascending, 0 where that is unknown."""

    kind: Literal["lost", "damaged", "unpaired"]
    count: int
    columns: list[tuple[int, int]]


class OverlayLevel(Model):
    """Percentiles and mean where `joined` columns are one: a row of values for each of the group's
    `lines`, null where nothing was."""

    joined: int
    values: list[list[float | None]]


class HeatMapCounts(Model):
    """One map. `gaps` are spans of columns without any I/O where some was expected, `unrecorded` those
    in which nothing was recorded; `lost` is what was lost in these columns, by kind; `begins` says
    when, where that is known."""

    label: str
    begins: str
    columns: int
    events: int
    cells: SparseCounts
    gaps: list[tuple[int, int]]
    unrecorded: list[tuple[int, int]]
    lost: list[LossesOfKind]
    overlays: list[OverlayLevel]
    dimensions: list[DimensionParts]
    notes: list[str]


class HeatMapGroup(Model):
    """Maps of one y on common axes: `bounds` are the rows' bounds in `unit`, one more than rows;
    `low`..`high` is shown at first.

    `least` is where a logarithmic axis begins; `crops` are (share left above, where the map then
    ends). `lines` name the overlays; of two maps the page shows the difference, second minus first,
    where `difference` says so.
    """

    y: Literal["latency", "offset", "size", "queue", "utilization"]
    title: str
    unit: Literal["ns", "B", ""]
    weight: Literal["count", "time", "bytes"]
    interval_ns: float
    columns: int
    bounds: list[float]
    y_scale: Literal["log", "linear"]
    color: Literal["rank", "log", "linear"]
    low: float
    high: float
    least: float
    crops: list[tuple[float, float]]
    lines: list[str]
    show_lines: bool
    difference: bool
    maps: list[HeatMapCounts]


class ThemeColours(Model):
    """Colours for canvases; palettes are `rrggbb` after each other, from few to many, or far fewer
    to far more."""

    background: str
    text: str
    faint: str
    grid: str
    hatch: str
    palette: str
    signed: str
    lines: list[str]
    lost: str


class HeatMapPage(Model):
    """The page's document."""

    generator: str
    title: str
    conditions: list[str]
    notes: list[str]
    light: ThemeColours
    dark: ThemeColours
    groups: list[HeatMapGroup]


class SparseArrays(NamedTuple):
    """Counts by column, as in `SparseCounts`; `column` of each as well."""

    starts: Integers
    column: Integers
    rows: Integers
    counts: Integers


def lists(cells: SparseArrays) -> SparseCounts:
    """The numbers themselves."""
    return SparseCounts(
        starts=cells.starts.tolist(), rows=cells.rows.tolist(), counts=cells.counts.tolist()
    )


def group_of(
    view: View,
    maps: Sequence[Named],
    percentiles: bool,
    *,
    steps: int = 0,
    joined: int = 1,
    written: Callable[[SparseArrays], SparseCounts] = lists,
) -> HeatMapGroup:
    """Maps of one y on common axes. FormatError where nothing is left to draw.

    Args:
        steps: how many steps coarser than counted the buckets are at least. joined: columns that
        the finest percentiles are of, 0 for
            no percentiles at all. written: the text in the group for the cells of each map
            followed by those of its parts; left out, the numbers themselves.
    """
    full = [named.counts for named in maps]
    over_time = [_over_time(item) for item in full]
    frame = frame_of(over_time, view)
    coarse = [item.coarser(steps=steps) for item in full]
    while steps < 3 and max(len(item.count) for item in coarse) > CELLS:
        steps += 1
        coarse = [item.coarser(steps=steps) for item in full]
    alike_maps = alike(coarse)
    grid = next((item for item in alike_maps if len(item.count)), alike_maps[0]).grid
    usual = grid.index(frame.low if frame.low >= 1 else 0)
    first = min((int(item.index.min()) for item in alike_maps if len(item.count)), default=usual)
    last = max((int(item.index.max()) for item in alike_maps if len(item.count)), default=usual)
    lowest_row = frame_of(over_time, View("log", tail=0)).low
    # linear axes of the page begin at zero, so its rows do
    first = 0 if isinstance(grid, LogLinear) else min(first, grid.index(frame.low))
    last = max(last, grid.index(frame.high - 1))
    columns = max(item.columns for item in alike_maps)
    first_map = full[0]
    lined = first_map.y != "offset" and first_map.weight == "count"
    return HeatMapGroup(
        y=first_map.y,
        title=words.TITLES[first_map.y],
        unit=UNITS[first_map.y],
        weight=first_map.weight,
        interval_ns=alike_maps[0].interval_ns,
        columns=columns,
        bounds=grid.bounds(first, last).tolist(),
        y_scale=view.y_scale,
        color=view.color,
        low=frame.low,
        high=frame.high,
        least=min(lowest_row, frame.low) if view.y_scale == "log" else lowest_row,
        crops=[(share, frame_of(over_time, View(view.y_scale, share)).high) for share in CROPS],
        lines=overlays.names() if lined else [],
        show_lines=percentiles and lined,
        difference=len(maps) == 2,
        maps=[
            _map(named, counts, steps, first, columns, joined if lined else 0, written)
            for named, counts in zip(maps, alike_maps, strict=True)
        ],
    )


def _over_time(counts: HeatCounts) -> HeatCounts:
    """All columns as one: what a frame is made of."""
    index, count = counts.by_index()
    return replace(counts, column=np.zeros(len(index), dtype=np.int64), index=index, count=count)


def _map(
    named: Named,
    counts: HeatCounts,
    steps: int,
    first: int,
    columns: int,
    joined: int,
    written: Callable[[SparseArrays], SparseCounts],
) -> HeatMapCounts:
    cells = written(_sparse(counts, first, columns, counts.t0_ns))
    dimensions = []
    for dimension in named.dimensions:
        coarse = alike([counts, *(part.coarser(steps=steps) for _, part in dimension.parts)])[1:]
        dimensions.append(
            DimensionParts(
                name=dimension.name,
                parts=[
                    PartCounts(
                        name=name, cells=written(_sparse(part, first, columns, counts.t0_ns))
                    )
                    for (name, _), part in zip(dimension.parts, coarse, strict=True)
                ],
            )
        )
    blind = unrecorded_spans(named.counts, counts.columns)
    idle = without(tuple((float(start), float(end)) for start, end in gaps(named.counts)), blind)
    # what the strip tells is said of the part that is shown
    lost = _lost(named.counts, counts.columns)
    return HeatMapCounts(
        label=named.label,
        begins=words.begins(counts),
        columns=counts.columns,
        events=counts.events,
        cells=cells,
        gaps=_whole_spans(idle),
        unrecorded=_whole_spans(blind),
        lost=lost,
        dimensions=dimensions,
        overlays=_overlays(named.counts, columns, joined) if joined else [],
        notes=words.losses(
            replace(
                counts,
                **{loss.kind: max(0, getattr(counts, loss.kind) - loss.count) for loss in lost},
            )
        ),
    )


def _lost(counts: HeatCounts, columns: int) -> list[LossesOfKind]:
    """What was lost in the columns of a map; outside there is no strip."""
    return [
        LossesOfKind(
            kind=kind, count=sum(count for _, count in columns_of_kind), columns=columns_of_kind
        )
        for kind, _, columns_of_kind in of_kinds(
            [loss for loss in counts.lost_at if 0 <= loss[0] < columns], {}
        )
    ]


def _sparse(counts: HeatCounts, first: int, columns: int, t0_ns: int) -> SparseArrays:
    """Counts by column from `t0_ns` on."""
    column = (
        counts.column + (counts.t0_ns - t0_ns) // counts.interval_ns
        if len(counts.count)
        else counts.column
    )
    return SparseArrays(
        np.searchsorted(column, np.arange(columns + 1)), column, counts.index - first, counts.count
    )


def _whole_spans(spans: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    return [(round(start), round(end)) for start, end in spans]


def _overlays(counts: HeatCounts, columns: int, joined: int) -> list[OverlayLevel]:
    levels = []
    coarse = counts.coarser(columns=joined)
    while True:
        across = -(-columns // joined)
        lines = overlays.lines(coarse, across)
        values = [
            [None if math.isnan(value) else float(round(value)) for value in line]
            for line in lines.tolist()
        ]
        levels.append(OverlayLevel(joined=joined, values=values))
        if across <= FEWEST_STEPS:
            return levels
        joined *= 2
        coarse = coarse.coarser(columns=2)


def colours(theme: Theme) -> ThemeColours:
    """A theme for canvases."""
    return ThemeColours(
        background=theme.background,
        text=theme.text,
        faint=theme.faint,
        grid=theme.grid,
        hatch=theme.hatch,
        palette=_hex(theme.palette),
        signed=_hex(theme.signed),
        lines=list(theme.lines),
        lost=theme.lost,
    )


def _hex(palette: Palette) -> str:
    return palette.tobytes().hex()
