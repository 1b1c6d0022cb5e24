# SPDX-License-Identifier: Apache-2.0
"""Events of a recording, sealed and unsealed, scanned by SQL.

One scan reads both kinds: names beyond the largest are summed up, which is exact only over all of
them together.

Where a recording grows, a question that is asked again reads only what was appended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...store.base.counts import HeatCounts
from ...store.base.grids import Grid, Linear, LogLinear
from ...store.base.loss_log import when
from ...store.read.recording import Recording, Segment
from ...store.read.trace import BITS
from ..engine.cells import (
    INSIDE,
    Asked,
    all_sums_sql,
    count,
    counts_of,
    ends_of,
    most_keys,
    sum_cells,
    sums,
    where,
)
from ..engine.engine import Engine, int64s, single
from ..engine.snapshot import Snapshot, choose, deleted_segments, missing_fields, snapshot, told_by
from ..engine.windows import Window, attach, window_of
from ..language.fields import FIELDS
from ..plan import UNSEALED, Bounds, Cost, Frame, Numbers, Part, Reading, Span, Sums, files_part
from ..question import Filter, Question
from .event_sums import ANY_WIDTH, EventSums, Rows, limit_rows, sum_rows, sums_of


def frame_of(recording: Recording, question: Question, *, with_deleted: bool) -> Frame:
    """The frame of a question about events. with_deleted: whether the time of deleted segments of
    which maps remain belongs to it."""
    snap = snapshot(recording)
    source, notes = choose(snap.sources, question.entry, question.source, recording.path)
    deleted = deleted_segments(snap).span(source)
    ends = (*question.span, question.interval_ns, question.columns)
    window = window_of(snap, source, *ends, earlier=deleted if with_deleted else None)
    notes += _deletion_notes(recording, question, window, deleted, with_deleted=with_deleted)
    fields = [condition.field for condition in question.filters]
    if question.y is None and question.breakdown is not None:
        fields.insert(0, question.breakdown)
    missing = missing_fields(
        question.entry,
        [field for field in fields if field in FIELDS],
        source,
        told_by(recording, (source,)),
    )
    return Frame(question, window, (*notes, *missing.values()))


def _deletion_notes(
    recording: Recording,
    question: Question,
    window: Window,
    deleted: tuple[int, int] | None,
    *,
    with_deleted: bool,
) -> list[str]:
    """Notes on events of the time of a question that were deleted. deleted: the time of those of
    which maps remain."""
    dropped, from_ns = recording.facts.dropped, question.span[0]
    if dropped is None or (from_ns is not None and from_ns >= dropped["until_ns"]):
        return []
    notes = []
    mapless_ns = dropped.get("maps_until_ns") or (dropped["until_ns"] if deleted is None else 0)
    # an open question begins with what remains
    if from_ns is None and deleted is None:
        notes.append(
            f"events before {when(mapless_ns)} are no longer kept, nor are their maps: the answer begins there"
        )
    if from_ns is not None and from_ns < mapless_ns:
        notes.append(
            f"events before {when(mapless_ns)} are no longer kept, nor are their maps: nothing answers for them"
        )
    if deleted is None:
        return notes
    if not with_deleted:
        ends = (*question.span, question.interval_ns, question.columns)
        if window_of(window.snap, window.source, *ends, earlier=deleted).first_ns <= deleted[1]:
            notes.append(
                f"events before {when(dropped['until_ns'])} are no longer kept, and their maps can't"
                " answer this: they have the operation and the device alone"
            )
    elif recording.in_archive and window.first_ns <= deleted[1] and window.until_ns > deleted[0]:
        notes.append(
            "events of earlier times were deleted by age: segment maps answer, by operation and"
            " device, in columns of whole seconds"
        )
    return notes


class Events:
    """Events of a recording."""

    name = "events"

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._sizes: dict[int, _Sizes] = {}

    def frame(self, question: Question) -> Frame | str:
        return frame_of(self._recording, question, with_deleted=False)

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        if frame.window.snap.kind != "events":
            return "counters are asked"
        deleted = frame.window.snap.recording.facts.dropped_through
        return [frame.full_span._replace(first=deleted + 1)]

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        key = id(frame.window)
        if key not in self._sizes:
            self._sizes[key] = _Sizes(frame.window)
        return self._sizes[key].cost(span)

    def read(self, frame: Frame, spans: Sequence[Span]) -> Scan:
        return Scan(frame, self._windows(frame, spans))

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        return [part for window in self._windows(frame, spans) for part in event_parts(window)]

    def _windows(self, frame: Frame, spans: Sequence[Span]) -> list[Window]:
        times = dict.fromkeys(span[2:] for span in spans)
        windows = [
            window_within(frame.window, [span for span in spans if span[2:] == time])
            for time in times
        ]
        return [window for window in windows if not window.is_empty]


class _Sizes:
    """Sizes of the events of a window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._segments = sorted(window.segments(), key=lambda segment: segment.number)
        self._numbers = [segment.number for segment in self._segments]
        self._total = [0]
        for segment in self._segments:
            self._total.append(self._total[-1] + (segment.facts.get("bytes") or 0))

    @cached_property
    def _unsealed_bytes(self) -> int:
        unsealed = self._window.unsealed_rows()
        return 0 if unsealed is None else int(unsealed.nbytes)

    def cost(self, span: Span) -> Cost:
        first = bisect_left(self._numbers, span.first)
        last = bisect_right(self._numbers, span.last)
        unsealed = self._unsealed_bytes if span.last >= UNSEALED else 0
        return Cost(last - first, self._total[last] - self._total[first] + unsealed)


def window_within(window: Window, spans: Sequence[Span]) -> Window:
    """The window with the events of some spans alone, which are of one time."""
    snap = window.snap
    deleted = snap.recording.facts.dropped_through
    if list(spans) == [Span(deleted + 1, UNSEALED, window.first_ns, window.until_ns)]:
        return window
    starts = [span.first for span in spans]

    def is_within(segment: Segment) -> bool:
        place = bisect_right(starts, segment.number) - 1
        return place >= 0 and segment.number <= spans[place].last

    unsealed = snap.hot if any(span.last >= UNSEALED for span in spans) else None
    sealed = tuple(segment for segment in snap.sealed if is_within(segment))
    part = Snapshot(snap.recording, sealed, unsealed, snap.kind)
    return replace(window.between(*spans[0][2:]), snap=part)


class Scan(Reading):
    """Scans of events, one for each window; columns are those of the frame."""

    def __init__(self, frame: Frame, windows: Sequence[Window]) -> None:
        self._frame = frame
        self._windows = windows
        self._stack = ExitStack()
        self._open_engines: dict[int, Engine] = {}

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _engine(self, window: Window) -> Engine:
        # the lock of a cached property would stop other questions that are answered together
        engine = self._open_engines.get(id(window))
        if engine is None:
            engine = self._stack.enter_context(self.open_engine(window))
            self.attach(engine, window)
            self._open_engines[id(window)] = engine
        return engine

    def open_engine(self, window: Window) -> Engine:
        """The engine that scans a window."""
        return Engine(window.snap.place)

    def attach(self, engine: Engine, window: Window) -> None:
        """Make the events of a window `events` to an engine."""
        attach(engine, window)

    def count_all(self, engine: Engine, window: Window) -> int:
        """I/Os of the window, before conditions."""
        return _count_all(engine, window)

    def _map_question(self, window: Window, grid: Grid | None) -> Asked:
        return map_question(self._frame, window, grid)

    def bounds(self) -> Sequence[Bounds]:
        question = self._frame.question
        if self._frame.is_coarse or None not in (question.low, question.high):
            return []  # the grid does not depend on values
        return [self._bounds(window) for window in self._windows]

    def _bounds(self, window: Window) -> Bounds:
        return Bounds(ends_of(self._engine(window), self._map_question(window, None)))

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        if self._frame.question.y is None:
            return [self._numbers(window) for window in self._windows]
        return [self._counts(window, grid) for window in self._windows]

    def _numbers(self, window: Window) -> Numbers:
        statistic, frame = self._frame.question.statistic, self._frame.window
        assert statistic is not None
        conditions, bound = window.conditions(statistic.filters)
        columns = (frame.base_ns, frame.interval_ns, frame.columns)
        return Numbers(sums(self._engine(window), statistic, conditions, bound, *columns))

    def _counts(self, window: Window, grid: Grid | None) -> HeatCounts:
        engine = self._engine(window)
        counts = count(engine, self._map_question(window, grid))
        if not self._frame.question.filters:
            return counts
        counted = counts.events + counts.without_y + counts.outside
        return replace(counts, filtered=self.count_all(engine, window) - counted)


def map_question(frame: Frame, window: Window, grid: Grid | None) -> Asked:
    """What a map shows of a window."""
    question = frame.question
    assert question.y is not None
    conditions, bound = window.conditions(question.filters)
    return Asked(
        question.y,
        frame.window.base_ns,
        frame.window.interval_ns,
        conditions,
        bound,
        question.low,
        question.high,
        grid or Linear(0, 1),
        question.weight,
    )


def _count_all(engine: Engine, window: Window) -> int:
    """I/Os of the window, before conditions: of sealed segments that lie in it whole, their own
    count says it."""
    segments = window.segments()
    edges = [segment for segment in segments if not is_whole(window, segment)]
    views = ["hot"] if window.unsealed_rows() is not None else []
    if edges:
        engine.files("edges", [segment.part for segment in edges])
        views.append("edges")
    conditions, bound = window.conditions([])
    clause = where(conditions)
    counted = [
        single(
            engine.ask(f"SELECT CAST(sum(count) AS BIGINT) AS n FROM {view} {clause}", bound)["n"]
        )
        or 0
        for view in views
    ]
    cut = {segment.number for segment in edges}
    return sum(counted) + sum(
        segment.sources[window.source] for segment in segments if segment.number not in cut
    )


def is_whole(window: Window, segment: Segment) -> bool:
    """Whether a window has all I/Os of a segment."""
    return not window.cut or (
        window.first_ns <= segment.first_ns and segment.last_ns < window.until_ns
    )


def event_parts(window: Window) -> list[Part]:
    """Events (or samples) of a window: sealed ones, and those that are not sealed yet."""
    kind = window.snap.kind
    segments = window.segments()
    parts = []
    if segments:
        times = [(segment.first_ns, segment.last_ns + 1) for segment in segments]
        paths = [segment.part.path for segment in segments]
        parts.append(files_part(f"sealed {kind}", paths, times))
    unsealed = window.unsealed_rows()
    if unsealed is not None:
        import pyarrow.compute as pc

        ends = pc.min_max(unsealed["time_ns"]).as_py()
        parts.append(
            Part(
                f"unsealed {kind}",
                ends["min"],
                ends["max"] + 1,
                0,
                unsealed.num_rows,
                unsealed.nbytes,
            )
        )
    return parts


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
