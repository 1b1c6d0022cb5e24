"""Heat maps as one self-contained HTML file: the maps' counts beside the page that draws, zooms and asks them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple

import numpy as np

from ...heatmap import overlays, words
from ...heatmap.figure import Named
from ...heatmap.lost import unrecorded, without
from ...heatmap.model import View, frame_of, gaps
from ...heatmap.theme import DARK, LIGHT, Palette, Theme
from ...recording.base.counts import UNITS, HeatCounts, Integers, alike
from ...recording.base.grids import LogLinear
from ...recording.base.loss_columns import of_kinds
from ..model.heatmap_payload import (
    DimensionParts,
    HeatMapCounts,
    HeatMapGroup,
    HeatMapPage,
    LossesOfKind,
    OverlayLevel,
    PartCounts,
    SparseCounts,
    ThemeColours,
)
from . import html

CELLS = 150_000
"""A map with more cells than this is given to the page one or two steps coarser; lines are made before that."""

CROPS = (0.0, 0.0001, 0.001, 0.01, 0.05)
"""Shares of I/Os that can be left above a map."""

FEWEST_STEPS = 40
"""Percentiles are made for columns joined by twos until so few are left."""


def build(groups: Sequence[tuple[View, Sequence[Named]]], title: str, *, conditions: Sequence[str] = (), notes: Sequence[str] = (),
          percentiles: bool = False) -> str:
    """The page. Each group is maps of one y, of which two are compared.

    Raises FormatError where nothing is left to draw, IolabError where the page's script has not been built.
    """
    from ... import __version__

    document = HeatMapPage(
        generator=f"iolab {__version__}", title=title, conditions=list(conditions), notes=list(notes), light=colours(LIGHT),
        dark=colours(DARK), groups=[group_of(view, maps, percentiles) for view, maps in groups])
    return html.page("heatmap", title, document.generator, {"iolab-heatmap": document}, _without_script(document))


class SparseArrays(NamedTuple):
    """Counts by column, as in `SparseCounts`; `column` of each as well."""

    starts: Integers
    column: Integers
    rows: Integers
    counts: Integers


def lists(cells: SparseArrays) -> SparseCounts:
    """The numbers themselves."""
    return SparseCounts(starts=cells.starts.tolist(), rows=cells.rows.tolist(), counts=cells.counts.tolist())


def group_of(view: View, maps: Sequence[Named], percentiles: bool, *, steps: int = 0, joined: int = 1,
             written: Callable[[SparseArrays], SparseCounts] = lists) -> HeatMapGroup:
    """Maps of one y on common axes. FormatError where nothing is left to draw.

    Args:
        steps: how many steps coarser than counted the buckets are at least. joined: columns that the finest percentiles are of, 0 for
            no percentiles at all. written: what stands in the group for the cells of each map followed by those of its parts; left out, the
            numbers themselves.
    """
    full = [named.counts for named in maps]
    over_time = [_over_time(each) for each in full]
    frame = frame_of(over_time, view)
    coarse = [each.coarser(steps=steps) for each in full]
    while steps < 3 and max(len(each.count) for each in coarse) > CELLS:
        steps += 1
        coarse = [each.coarser(steps=steps) for each in full]
    shown = alike(coarse)
    grid = next((each for each in shown if len(each.count)), shown[0]).grid
    usual = grid.index(frame.low if frame.low >= 1 else 0)
    first = min((int(each.index.min()) for each in shown if len(each.count)), default=usual)
    last = max((int(each.index.max()) for each in shown if len(each.count)), default=usual)
    whole = frame_of(over_time, View("log", tail=0)).low
    # linear axes of the page begin at zero, so its rows do
    first = 0 if isinstance(grid, LogLinear) else min(first, grid.index(frame.low))
    last = max(last, grid.index(frame.high - 1))
    columns = max(each.columns for each in shown)
    one = full[0]
    lined = one.y != "offset" and one.weight == "count"
    return HeatMapGroup(
        y=one.y, title=words.TITLES[one.y], unit=UNITS[one.y], weight=one.weight, interval_ns=shown[0].interval_ns,
        columns=columns, bounds=grid.bounds(first, last).tolist(), y_scale=view.y_scale, color=view.color, low=frame.low, high=frame.high,
        least=min(whole, frame.low) if view.y_scale == "log" else whole,
        crops=[(share, frame_of(over_time, View(view.y_scale, share)).high) for share in CROPS],
        lines=overlays.names() if lined else [], show_lines=percentiles and lined, difference=len(maps) == 2,
        maps=[_map(named, counts, steps, first, columns, joined if lined else 0, written)
              for named, counts in zip(maps, shown, strict=True)])


def _over_time(counts: HeatCounts) -> HeatCounts:
    """All columns as one: what a frame is made of."""
    index, count = counts.by_index()
    return replace(counts, column=np.zeros(len(index), dtype=np.int64), index=index, count=count)


def _map(named: Named, counts: HeatCounts, steps: int, first: int, columns: int, joined: int,
         written: Callable[[SparseArrays], SparseCounts]) -> HeatMapCounts:
    cells = written(_sparse(counts, first, columns, counts.t0_ns))
    dimensions = []
    for dimension in named.dimensions:
        coarse = alike([counts, *(part.coarser(steps=steps) for _, part in dimension.parts)])[1:]
        dimensions.append(DimensionParts(name=dimension.name, parts=[
            PartCounts(name=name, cells=written(_sparse(part, first, columns, counts.t0_ns)))
            for (name, _), part in zip(dimension.parts, coarse, strict=True)]))
    blind = unrecorded(named.counts, counts.columns)
    idle = without(tuple((float(start), float(end)) for start, end in gaps(named.counts)), blind)
    # what the strip tells is said of the part that is shown
    lost = _lost(named.counts, counts.columns)
    return HeatMapCounts(
        label=named.label, begins=words.begins(counts), columns=counts.columns, events=counts.events,
        cells=cells, gaps=_whole(idle), unrecorded=_whole(blind),
        lost=lost, dimensions=dimensions,
        overlays=_overlays(named.counts, columns, joined) if joined else [],
        notes=words.losses(replace(counts, **{each.kind: max(0, getattr(counts, each.kind) - each.count) for each in lost})))


def _lost(counts: HeatCounts, columns: int) -> list[LossesOfKind]:
    """What was lost in the columns of a map; beside them there is no strip."""
    return [LossesOfKind(kind=kind, count=sum(count for _, count in found), columns=found)
            for kind, _, found in of_kinds([each for each in counts.lost_at if 0 <= each[0] < columns], {})]


def _sparse(counts: HeatCounts, first: int, columns: int, t0_ns: int) -> SparseArrays:
    """Counts by column from `t0_ns` on."""
    column = counts.column + (counts.t0_ns - t0_ns) // counts.interval_ns if len(counts.count) else counts.column
    return SparseArrays(np.searchsorted(column, np.arange(columns + 1)), column, counts.index - first, counts.count)


def _whole(spans: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    return [(round(start), round(end)) for start, end in spans]


def _overlays(counts: HeatCounts, columns: int, joined: int) -> list[OverlayLevel]:
    levels = []
    coarse = counts.coarser(columns=joined)
    while True:
        across = -(-columns // joined)
        lines = overlays.lines(coarse, across)
        values = [[None if math.isnan(value) else float(round(value)) for value in line] for line in lines.tolist()]
        levels.append(OverlayLevel(joined=joined, values=values))
        if across <= FEWEST_STEPS:
            return levels
        joined *= 2
        coarse = coarse.coarser(columns=2)


def colours(theme: Theme) -> ThemeColours:
    """A theme for canvases."""
    return ThemeColours(background=theme.background, text=theme.text, faint=theme.faint, grid=theme.grid, hatch=theme.hatch,
                        palette=_hex(theme.palette), signed=_hex(theme.signed), lines=list(theme.lines), lost=theme.lost)


def _hex(palette: Palette) -> str:
    return palette.tobytes().hex()


def _without_script(document: HeatMapPage) -> str:
    """Title and counts for readers whose browser runs no scripts."""
    lines = [f"<p>{escape(group.title)} of {escape(each.label)}: {escape(words.ios(each.events))}.</p>"
             for group in document.groups for each in group.maps]
    return f"<main><h1>{escape(document.title)}</h1><p>The maps need JavaScript.</p>{''.join(lines)}</main>"
