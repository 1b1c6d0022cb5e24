"""The one executor of questions to events: recordings and traces, maps and numbers over time.

A map of a trace whose conditions the native readers know goes straight through them, for speed;
tests hold it equal to this executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import UsageError
from ...recording.base.conditions import Where
from ...recording.base.counts import HeatCounts, Weight, Y
from ...recording.base.grids import LogLinear
from ...recording.read.recording import Recording
from ...recording.read.trace import STDIN, Trace
from ..answers.answers import Answer
from ..engine.dropped_segments import gone
from ..engine.engine import Engine
from ..engine.snapshot import choose, snapshot
from ..engine.windows import Window, attach, window_of
from ..language.catalogue import Entry
from ..language.conditions import filters_of
from ..language.fields import FIELDS, QUANTIZED, near
from ..language.intervals import check_interval
from ..language.names import Filter, Statistic, parse
from ..tiers import counters, over_time, segment_maps, trace_tier
from ..tiers.field_support import lacking, told_by
from ..tiers.heat import heat_of, maps_of
from .damage_notes import again, answered
from .plan import Coverage, Part, Plan, Question, Tier, plan
from .unmatched import with_unmatched

COLUMNS = 400
"""Columns of time that are chosen, where no interval is asked for."""


def heat(
    events: Trace | Recording,
    y: str,
    *,
    where: Where | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    interval_ns: int | None = None,
    columns: int = COLUMNS,
    low: int | None = None,
    high: int | None = None,
    buckets: int | None = None,
    weight: Weight = "count",
    source: str | None = None,
    kept: bool = True,
) -> HeatCounts:
    """Counts by time and y: latency, offset, size, or (of recordings) queue.

    Args:
        where: conditions, as `recording.conditions.parse_where` gives them. from_ns, until_ns: the
        span of time, cut exactly. interval_ns: length of a column; left open, one of 1, 2, 5 times
        a power of ten that makes at most `columns` of the span. low, high: of y, in ns or bytes;
        `low` <= y < `high`. buckets: at most so many equal ones, in the grid's place. source: of
        the events; left open, the block layer's where there are some. kept: whether kept statistics
        may answer where events are gone or too many; these know neither parts of `y` nor time
        spent.
    UsageError for what can't be asked, FormatError for what can't be read.
    """
    kind = next((each for each in QUANTIZED if each == y), None)
    if kind is None:
        raise UsageError(f"there is no map of '{y}'", hint=near(y, QUANTIZED))
    check_interval(interval_ns)
    filters = filters_of(where or {})

    def ask(events: Trace | Recording) -> HeatCounts:
        found = (
            _kept_heat(
                events, kind, filters, from_ns, until_ns, interval_ns, columns, source, weight
            )
            if kept and ((low, high, buckets) == (None, None, None) and weight != "time")
            else None
        )
        return (
            found
            if found is not None
            else _heat(
                events,
                kind,
                filters,
                None,
                source,
                from_ns,
                until_ns,
                interval_ns,
                columns,
                low,
                high,
                buckets,
                weight,
            )
        )

    return answered(events, ask)


def _kept_heat(
    events: Trace | Recording,
    kind: Y,
    filters: Sequence[Filter],
    from_ns: int | None,
    until_ns: int | None,
    interval_ns: int | None,
    columns: int,
    source: str | None,
    weight: Weight,
) -> HeatCounts | None:
    if isinstance(events, Recording):
        # not for traces: what it needs takes its time to load
        from ..kept.answer import answer_heat

        return answer_heat(
            events,
            kind,
            filters,
            from_ns=from_ns,
            until_ns=until_ns,
            interval_ns=interval_ns,
            columns=columns,
            source=source,
            weight=weight,
        )
    return None


def told_unmatched(
    counts: HeatCounts,
    events: Recording,
    where: Where,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    source: str | None = None,
) -> HeatCounts:
    """Counts that `heat` gave; where there are none, with a note for each name in the conditions
    that did not occur."""
    kind = next(y for y in QUANTIZED if y == counts.y)
    asked = Statistic("io", "ops", tuple(filters_of(where)), kind)
    events = events.frozen()
    # events as the map's, though counters could tell some of it
    chosen, _ = choose(snapshot(events).sources, None, source, events.path)
    found = with_unmatched(
        counts,
        asked,
        lambda other: _answer(events, other, from_ns, until_ns, None, 1, chosen, True),
    )
    assert isinstance(found, HeatCounts)
    return found


def query(
    events: Trace | Recording,
    statistic: Statistic | str,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    interval_ns: int | None = None,
    columns: int = COLUMNS,
    source: str | None = None,
    kept: bool = True,
) -> Answer:
    """The answer to a statistic: counts of a heat map where it is broken down by latency, queue,
    offset or size; a stack for any other breakdown; else a series. Arguments as in `heat`. Names in
    conditions that did not occur are in the notes of an empty answer."""
    asked = parse(statistic) if isinstance(statistic, str) else statistic
    check_interval(interval_ns)

    def ask(events: Trace | Recording) -> Answer:
        found = _answer(events, asked, from_ns, until_ns, interval_ns, columns, source, kept)
        if isinstance(events, Trace) and events.path == STDIN:
            return found
        return with_unmatched(
            found,
            asked,
            lambda other: _answer(events, other, from_ns, until_ns, None, 1, source, kept),
        )

    return answered(events, ask)


def explain(
    events: Trace | Recording,
    statistic: Statistic | str,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    interval_ns: int | None = None,
    columns: int = COLUMNS,
    source: str | None = None,
    kept: bool = True,
) -> Plan:
    """The plan by which `query` answers; arguments as there. Nothing is counted for it."""
    asked = parse(statistic) if isinstance(statistic, str) else statistic
    check_interval(interval_ns)
    question = Question(asked, (from_ns, until_ns), interval_ns, columns, source)

    def planned() -> Plan:
        frozen = events.frozen() if isinstance(events, Recording) else events
        return plan(question, _tiers(frozen, kept))

    return again(planned)


def _answer(
    events: Trace | Recording,
    asked: Statistic,
    from_ns: int | None,
    until_ns: int | None,
    interval_ns: int | None,
    columns: int,
    source: str | None,
    kept: bool,
) -> Answer:
    question = Question(asked, (from_ns, until_ns), interval_ns, columns, source)
    return plan(question, _tiers(events, kept)).coverage.answer()


def _tiers(events: Trace | Recording, kept: bool) -> list[Tier]:
    """What answers, the preferred first. `kept`: whether roll-ups may."""
    if isinstance(events, Trace):
        return [_TraceEvents(events)]
    return [
        *([_RollUps(events)] if kept else []),
        _Counters(events),
        _SegmentMaps(events),
        _Events(events),
    ]


@dataclass(frozen=True)
class _TraceEvents:
    trace: Trace
    name: str = "trace"

    def covers(self, question: Question) -> Coverage | str:
        asked = question.statistic
        if not asked.entry.sources:
            raise UsageError(
                f"{asked.entry.name} comes of counters, and a trace has none",
                where=self.trace.path,
                hint="iolab record counters keeps them",
            )

        def parts() -> list[Part]:
            from .plan_parts import trace_parts

            return trace_parts(Path(self.trace.path))

        def answer() -> Answer:
            y = _quantized(asked)
            if y is not None:
                return _heat(
                    self.trace,
                    y,
                    asked.filters,
                    asked.entry,
                    question.source,
                    *question.span,
                    question.interval_ns,
                    question.columns,
                    None,
                    None,
                    None,
                    asked.entry.weight,
                )
            return trace_tier.over_time(
                self.trace,
                asked,
                question.source,
                question.span,
                question.interval_ns,
                question.columns,
            )

        return Coverage(answer, parts)


@dataclass(frozen=True)
class _RollUps:
    recording: Recording
    name: str = "roll-ups"

    def covers(self, question: Question) -> Coverage | str:
        # not for traces: what it needs takes its time to load
        from ..kept.answer import choose as choose_roll_ups

        found = choose_roll_ups(
            self.recording,
            question.statistic,
            from_ns=question.span[0],
            until_ns=question.span[1],
            interval_ns=question.interval_ns,
            columns=question.columns,
            source=question.source,
        )
        if isinstance(found, str):
            return found

        def parts() -> list[Part]:
            from .plan_parts import roll_up_parts

            return roll_up_parts(found)

        return Coverage(found.answer, parts, found.notes)


@dataclass(frozen=True)
class _Counters:
    recording: Recording
    name: str = "counters"

    def covers(self, question: Question) -> Coverage | str:
        asked, (from_ns, until_ns) = question.statistic, question.span
        samples = counters.counted(self.recording, asked, question.source)
        if samples is None:
            return (
                "no counters of this are asked"
                if asked.entry.counter is None
                else "events are preferred, or no samples are there"
            )
        counter = asked.entry.counter
        assert counter is not None

        def parts() -> list[Part]:
            from .plan_parts import event_parts

            return event_parts(
                window_of(
                    samples,
                    counter.source,
                    from_ns,
                    until_ns,
                    question.interval_ns,
                    question.columns,
                )
            )

        return Coverage(
            lambda: counters.answer(
                samples,
                asked,
                from_ns=from_ns,
                until_ns=until_ns,
                interval_ns=question.interval_ns,
                columns=question.columns,
            ),
            parts,
        )


@dataclass(frozen=True)
class _SegmentMaps:
    recording: Recording
    name: str = "segment maps"

    def covers(self, question: Question) -> Coverage | str:
        asked, y = question.statistic, _quantized(question.statistic)
        windows = _windows(self.recording, question)
        if y is None:
            window, files = windows.whole, _map_files(windows.whole, asked)
            if files is None:
                return _why_no_maps(window, asked)
        else:
            maps = maps_of(
                windows.whole,
                y,
                asked.filters,
                free=question.interval_ns is None,
                buckets=None,
                weight=asked.entry.weight,
            )
            if isinstance(maps, str):
                return maps
            window, files = maps

        def parts() -> list[Part]:
            from .plan_parts import map_parts

            return map_parts(window, files)

        def answer() -> Answer:
            if y is None:
                return _over_time(windows, window, asked, files)
            return _recording_heat(
                windows,
                y,
                asked.filters,
                asked.entry,
                question.interval_ns is None,
                None,
                None,
                None,
                asked.entry.weight,
                (window, files),
            )

        coarse = (
            ("events are scanned instead where finer buckets are due than the maps have",)
            if y == "offset"
            else ()
        )
        return Coverage(answer, parts, coarse)


@dataclass(frozen=True)
class _Events:
    recording: Recording
    name: str = "events"

    def covers(self, question: Question) -> Coverage | str:
        asked, y = question.statistic, _quantized(question.statistic)
        windows = _windows(self.recording, question)
        window = windows.kept

        def parts() -> list[Part]:
            from .plan_parts import event_parts

            return event_parts(window)

        def answer() -> Answer:
            if y is None:
                return _over_time(windows, window, asked, None)
            counts, _ = heat_of(
                windows.whole,
                window,
                y,
                asked.filters,
                free=False,
                low=None,
                high=None,
                buckets=None,
                weight=asked.entry.weight,
                scan=True,
            )
            return _with_notes(windows, window, asked.entry, asked.filters, counts)

        return Coverage(answer, parts)


def _quantized(asked: Statistic) -> Y | None:
    return next((y for y in QUANTIZED if y == asked.breakdown), None)


def _windows(recording: Recording, question: Question) -> Windows:
    return Windows(
        recording,
        question.statistic.entry,
        question.source,
        *question.span,
        question.interval_ns,
        question.columns,
    )


def _over_time(
    windows: Windows, window: Window, asked: Statistic, files: segment_maps.MapFiles | None
) -> Answer:
    conditions, bound = window.conditions(asked.filters)
    with Engine(window.snap.place) as engine:
        found = []
        if files is None or window.snap.hot_of(window.source) is not None:
            attach(engine, window, sealed=files is None)
            found.append(
                over_time.sums(
                    engine,
                    asked,
                    conditions,
                    bound,
                    window.base_ns,
                    window.interval_ns,
                    window.columns,
                )
            )
        if files is not None:
            found.append(
                segment_maps.series(
                    engine, window, files, asked.filters, over_time.key_of(asked.breakdown)
                )
            )
    return over_time.answer(
        asked,
        over_time.added(found),
        source=window.source,
        base_ns=window.base_ns,
        interval_ns=window.interval_ns,
        columns=window.columns,
        span=window.span,
        recorded=window.recorded,
        notes=windows.notes(window, asked.breakdown, *(each.field for each in asked.filters)),
        losses=window.losses,
    )


class Windows:
    """The span of a recording that a question is about, by what is left of it.

    Attributes:
        whole: with the time of which only default maps remain. kept: the time of which there are
        events.
    """

    def __init__(
        self,
        recording: Recording,
        entry: Entry | None,
        source: str | None,
        from_ns: int | None,
        until_ns: int | None,
        interval_ns: int | None,
        columns: int,
    ) -> None:
        snap = snapshot(recording)
        self._entry = entry
        chosen, self._notes = choose(snap.sources, entry, source, recording.path)
        self._earlier = gone(snap).span(chosen)
        self.whole = window_of(
            snap, chosen, from_ns, until_ns, interval_ns, columns, earlier=self._earlier
        )
        self.kept = (
            self.whole
            if self._earlier is None
            else window_of(snap, chosen, from_ns, until_ns, interval_ns, columns)
        )

    def notes(self, window: Window, *asked: str | None) -> tuple[str, ...]:
        """What to know about the answer: which source gave it, what is gone, and which of the
        fields that were asked for nothing tells."""
        gone = (
            self._earlier is not None
            and window is not self.whole
            and self.whole.first_ns <= self._earlier[1]
        )
        lost = (
            ["events of earlier times are no longer kept, and their maps can't answer this"]
            if gone
            else []
        )
        known = told_by(window.snap.recording, (window.source,))
        untold = lacking(
            self._entry, [field for field in asked if field in FIELDS], window.source, known
        )
        return (*self._notes, *lost, *untold.values())


def _map_files(window: Window, asked: Statistic) -> segment_maps.MapFiles | None:
    """Default maps that answer a count exactly."""
    known = asked.breakdown in (None, *segment_maps.FIELDS)
    if asked.entry.measure != "ops" or not known or not segment_maps.suits(window, asked.filters):
        return None
    files = segment_maps.files_of(window, "latency")
    return files if files is not None and files.files else None


def _why_no_maps(window: Window, asked: Statistic) -> str:
    """Why `_map_files` has none."""
    if asked.entry.measure != "ops":
        return "segment maps count I/Os, not bytes"
    if asked.breakdown not in (None, *segment_maps.FIELDS):
        return f"segment maps do not tell the {asked.breakdown}"
    return (
        segment_maps.refusal(window, asked.filters)
        or "no map of this time is there, or one is missing or damaged"
    )


def _heat(
    events: Trace | Recording,
    y: Y,
    filters: Sequence[Filter],
    entry: Entry | None,
    source: str | None,
    from_ns: int | None,
    until_ns: int | None,
    interval_ns: int | None,
    columns: int,
    low: int | None,
    high: int | None,
    buckets: int | None,
    weight: Weight,
) -> HeatCounts:
    if isinstance(events, Trace):
        return trace_tier.heat(
            events,
            y,
            filters,
            entry,
            source,
            (from_ns, until_ns),
            interval_ns,
            columns,
            low,
            high,
            buckets,
            weight,
        )
    windows = Windows(events, entry, source, from_ns, until_ns, interval_ns, columns)
    return _recording_heat(
        windows, y, filters, entry, interval_ns is None, low, high, buckets, weight, None
    )


def _recording_heat(
    windows: Windows,
    y: Y,
    filters: Sequence[Filter],
    entry: Entry | None,
    free: bool,
    low: int | None,
    high: int | None,
    buckets: int | None,
    weight: Weight,
    maps: tuple[Window, segment_maps.MapFiles] | None,
) -> HeatCounts:
    counts, window = heat_of(
        windows.whole,
        windows.kept,
        y,
        filters,
        free=free,
        low=low,
        high=high,
        buckets=buckets,
        weight=weight,
        maps=maps,
    )
    return _with_notes(windows, window, entry, filters, counts)


def _with_notes(
    windows: Windows,
    window: Window,
    entry: Entry | None,
    filters: Sequence[Filter],
    counts: HeatCounts,
) -> HeatCounts:
    if entry is not None and entry.octaves and isinstance(counts.grid, LogLinear):
        counts = counts.coarser(steps=counts.grid.bits)
    return replace(
        counts,
        assumptions=(
            *windows.notes(window, *(each.field for each in filters)),
            *counts.assumptions,
        ),
    )
