# SPDX-License-Identifier: Apache-2.0
"""Events of a recording that may grow: a question that is asked again reads only what was appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...recording.base.counts import HeatCounts
from ...recording.base.grids import Grid, Linear, LogLinear
from ...recording.read.trace import BITS
from ..engine.cells import (
    INSIDE,
    all_sums_sql,
    counts_of,
    most_keys,
    sum_cells,
)
from ..engine.engine import Engine, int64s
from ..engine.windows import Window, attach
from ..language.names import Filter
from ..plan import Frame, Span
from ..sums import Bounds, Numbers
from .event_sums import ANY_WIDTH, EventSums, Rows, limit_rows, sum_rows, sums_of
from .events import Events, Scan, is_whole, map_question

_ALL_IOS = ("ops", None, ())
"""Measure, breakdown and conditions of the number of all I/Os."""


class GrowingEvents(Events):
    """Events of a recording that may grow."""

    def read(self, frame: Frame, spans: Sequence[Span]) -> GrowingScan:
        return GrowingScan(frame, self._windows(frame, spans))


class GrowingScan(Scan):
    """Scans that remember sums of events, where a question is asked again. Their sums are those of
    `Scan`."""

    def _numbers(self, window: Window) -> Numbers:
        statistic = self._frame.question.statistic
        assert statistic is not None
        breakdown = statistic.breakdown
        question = (statistic.entry.measure, breakdown, tuple(statistic.filters))
        remembered = sums_of(window, ("numbers", *question), ("key",))
        if remembered is None:
            return super()._numbers(window)
        parts = remembered.read(window, partial(_read_numbers, remembered, *question))
        limit_rows(remembered)
        rows = sum_rows(parts, ("key",))
        codes = rows["key"]
        if len(np.unique(codes)) > most_keys(self._frame.window.columns):
            # a scan sums the smallest keys up
            return super()._numbers(window)
        names = np.array([*remembered.names], dtype=object)
        keys = _no_keys(len(codes)) if breakdown is None else names[codes]
        column = rows["c"] - self._first_column
        return Numbers({"c": column, "k": keys, "n": rows["n"], "lacking": rows["lacking"]})

    @property
    def _first_column(self) -> int:
        """The first column of the answer, from time 0 on."""
        return self._frame.window.base_ns // self._frame.window.interval_ns

    def _bounds(self, window: Window) -> Bounds:
        remembered = self._cells_of(window)
        if remembered is None or remembered.width is None:
            return super()._bounds(window)
        width = remembered.width
        read = partial(_read_cells, self._frame, Linear(0, width))
        ends = []
        for rows in remembered.read(window, read, width=width, widest=ANY_WIDTH):
            inside = rows["place"] == INSIDE
            if inside.any():
                ends.append((int(rows["low"][inside].min()), int(rows["high"][inside].max())))
        if not ends:
            return Bounds(None)
        return Bounds((min(low for low, _ in ends), max(high for _, high in ends)))

    def _counts(self, window: Window, grid: Grid | None) -> HeatCounts:
        remembered = self._cells_of(window)
        if remembered is None:
            return super()._counts(window, grid)
        width = grid.width if isinstance(grid, Linear) else 1
        same_width = LogLinear(BITS) if isinstance(grid, LogLinear) else Linear(0, width)
        parts = remembered.read(window, partial(_read_cells, self._frame, same_width), width=width)
        remembered.width = width
        limit_rows(remembered)
        cells = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        cells["c"] = cells["c"] - self._first_column
        counts = counts_of(map_question(self._frame, window, grid), cells)
        if not self._frame.question.filters:
            return counts
        counted = counts.events + counts.without_y + counts.outside
        return replace(counts, filtered=self._count_window(window) - counted)

    def _cells_of(self, window: Window) -> EventSums | None:
        """What is remembered of a map."""
        question = self._frame.question
        is_linear = question.y == "offset" or question.buckets is not None
        of_map = (question.y, question.filters, question.low, question.high, question.weight)
        return sums_of(window, ("map", is_linear, *of_map), ("bucket", "place"))

    def _count_window(self, window: Window) -> int:
        """I/Os of the window, before conditions."""
        remembered = sums_of(window, ("numbers", *_ALL_IOS), ("key",))
        if remembered is None:
            return self.count_all(self._engine(window), window)
        segments = window.segments()
        cut = [segment for segment in segments if not is_whole(window, segment)]
        rest = replace(window, snap=replace(window.snap, sealed=tuple(cut)))
        parts = remembered.read(rest, partial(_read_numbers, remembered, *_ALL_IOS))
        limit_rows(remembered)
        return sum(int(rows["n"].sum()) for rows in parts) + sum(
            segment.sources[window.source] for segment in segments if is_whole(window, segment)
        )


def _no_keys(count: int) -> Any:
    return np.ma.array(np.zeros(count, dtype=object), mask=True)


def _first_column_of(window: Window) -> int:
    """The column of the first of its events, from time 0 on."""
    bounds = window.snap.bounds(window.source)
    assert bounds is not None
    return bounds[0] // window.interval_ns


@contextmanager
def _open_engine(window: Window) -> Iterator[Engine]:
    """An engine with the events of a window."""
    with Engine(window.snap.place) as engine:
        rows = window.unsealed_rows()
        if rows is None or window.segments():
            attach(engine, window)
        else:
            # a view of these takes as long as to sum a second of them
            engine.register("events", rows)
        yield engine


def _read_numbers(
    remembered: EventSums,
    measure: str,
    breakdown: str | None,
    filters: tuple[Filter, ...],
    window: Window,
) -> Rows:
    """Sums by column and key: `key`, a number of a name, `n` and `lacking`."""
    conditions, bound = window.conditions(filters)
    first = _first_column_of(window)
    times = {"base": first * window.interval_ns, "interval": window.interval_ns}
    with _open_engine(window) as engine:
        sums = engine.ask(all_sums_sql(measure, breakdown, conditions), {**bound, **times})
    column = int64s(sums["c"]) + first
    if breakdown is None:
        codes = np.zeros(len(column), dtype=np.int64)
    else:
        names, places = np.unique(np.ma.getdata(sums["k"]).astype(str), return_inverse=True)
        codes = remembered.codes_of(names.tolist())[places]
    return {
        "c": column,
        "key": codes,
        "n": int64s(sums["n"]),
        "lacking": int64s(sums["lacking"]),
    }


def _read_cells(frame: Frame, grid: Grid, window: Window) -> Rows:
    """Sums by column, bucket and place on the map."""
    first = _first_column_of(window)
    question = replace(map_question(frame, window, grid), base_ns=first * window.interval_ns)
    with _open_engine(window) as engine:
        cells = sum_cells(engine, question, has_ends=isinstance(grid, Linear))
    cells["c"] = cells["c"] + first
    return cells
