"""The one executor of questions to events: recordings and traces, maps and numbers over time.

A map of a trace whose conditions the native readers know goes straight through them, for speed;
tests hold it equal to this executor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import UsageError
from ...recording.base.conditions import Where
from ...recording.base.counts import HeatCounts, Weight
from ...recording.base.grids import LogLinear
from ...recording.read.recording import Recording
from ...recording.read.trace import STDIN, Trace
from ..answers.answers import Answer, Series, Stack
from ..engine.dropped_segments import gone
from ..engine.snapshot import choose, snapshot
from ..engine.windows import Window, window_of
from ..language.conditions import filters_of
from ..language.fields import FIELDS, QUANTIZED, near
from ..language.host_names import host_names
from ..language.intervals import check_interval
from ..language.names import Statistic, parse
from ..question import Question
from ..tiers import counters, over_time, segment_maps, trace_tier
from ..tiers.field_support import lacking, told_by
from ..tiers.heat import heat_of, maps_of
from .damage_notes import again, answered
from .plan import Coverage, Part, Plan, Tier, plan
from .unmatched import with_unmatched
from .unrecorded_calls import with_unrecorded_calls

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
        `low` <= y < `high`. buckets: at most so many equal ones, instead of the grid. source: of
        the events; default: the block layer where it was recorded. kept: whether kept statistics
        may answer where events are deleted or too many. These know neither parts of `y` nor time
        spent.
    UsageError for what can't be asked, FormatError for what can't be read.
    """
    kind = next((each for each in QUANTIZED if each == y), None)
    if kind is None:
        raise UsageError(f"there is no map of '{y}'", hint=near(y, QUANTIZED))
    check_interval(interval_ns)
    if high is not None and high <= (low or 0):
        raise UsageError("the range of values is empty: its end is not above its beginning")
    question = Question(
        None,
        (from_ns, until_ns),
        interval_ns,
        columns,
        source,
        y=kind,
        filters=host_names().filters(filters_of(where or {})),
        weight=weight,
        low=low,
        high=high,
        buckets=buckets,
    )

    def ask(events: Trace | Recording) -> HeatCounts:
        counts = _answer(events, question, kept)
        assert isinstance(counts, HeatCounts)
        return counts

    return answered(events, ask)


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
    statistic = Statistic("io", "ops", host_names().filters(filters_of(where)), kind)
    events = events.frozen()
    # events as the map's, though counters could tell some of it
    chosen, _ = choose(snapshot(events).sources, None, source, events.path)
    question = Question.of(statistic, (from_ns, until_ns), None, 1, chosen)
    counts_with_notes = with_unmatched(
        counts, statistic, lambda other: _answer(events, question.with_statistic(other), True)
    )
    assert isinstance(counts_with_notes, HeatCounts)
    return counts_with_notes


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
    named = parse(statistic) if isinstance(statistic, str) else statistic
    asked = host_names().statistic(named)
    check_interval(interval_ns)
    question = Question.of(asked, (from_ns, until_ns), interval_ns, columns, source)

    def ask(events: Trace | Recording) -> Answer:
        answer = _answer(events, question, kept)
        if isinstance(events, Trace) and events.path == STDIN:
            return answer
        whole = replace(question, interval_ns=None, columns=1)
        answer = with_unmatched(
            answer, asked, lambda other: _answer(events, whole.with_statistic(other), kept)
        )
        if isinstance(events, Trace):
            return answer
        return with_unrecorded_calls(
            answer,
            asked,
            events,
            lambda other, of: _answer(
                events, replace(whole.with_statistic(other), source=of), kept
            ),
        )

    answer = answered(events, ask)
    if isinstance(answer, Stack):
        keys = host_names().labels(named.breakdown, answer.keys)
        return replace(answer, statistic=named, keys=keys)
    return replace(answer, statistic=named) if isinstance(answer, Series) else answer


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
    asked = host_names().statistic(asked)
    check_interval(interval_ns)
    question = Question.of(asked, (from_ns, until_ns), interval_ns, columns, source)

    def planned() -> Plan:
        frozen = events.frozen() if isinstance(events, Recording) else events
        return plan(question, _tiers(frozen, kept))

    return again(planned)


def _answer(events: Trace | Recording, question: Question, kept: bool) -> Answer:
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
        if asked is not None and not asked.entry.sources:
            raise UsageError(
                f"{asked.entry.name} comes of counters, and a trace has none",
                where=self.trace.path,
                hint="iolab record counters keeps them",
            )

        def parts() -> list[Part]:
            from .plan_parts import trace_parts

            return trace_parts(Path(self.trace.path))

        def answer() -> Answer:
            if question.y is not None:
                return trace_tier.heat(self.trace, question)
            return trace_tier.over_time(self.trace, question)

        return Coverage(answer, parts)


@dataclass(frozen=True)
class _RollUps:
    recording: Recording
    name: str = "roll-ups"

    def covers(self, question: Question) -> Coverage | str:
        # not for traces: what it needs takes its time to load
        from ..kept.answer import choose as choose_roll_ups

        found = choose_roll_ups(self.recording, question)
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
        asked = question.statistic
        counter = None if asked is None else asked.entry.counter
        if asked is None or counter is None:
            return "no counters of this are asked"
        samples = counters.counted(self.recording, asked, question.source)
        if samples is None:
            return "events are preferred, or no samples are there"
        from_ns, until_ns = question.span

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
        windows = Windows(self.recording, question)
        if question.y is None:
            window, found = windows.whole, segment_maps.find_counts(windows.whole, question)
            if isinstance(found, str):
                return found
            files = found
        else:
            maps = maps_of(windows.whole, question)
            if isinstance(maps, str):
                return maps
            window, files = maps

        def parts() -> list[Part]:
            from .plan_parts import map_parts

            return map_parts(window, files)

        def answer() -> Answer:
            if question.y is None:
                return _over_time(windows, window, question, files)
            return windows.with_notes(
                *heat_of(windows.whole, windows.kept, question, (window, files)), question
            )

        coarse = (
            ("events are scanned instead where finer buckets are due than the maps have",)
            if question.y == "offset"
            else ()
        )
        return Coverage(answer, parts, coarse)


@dataclass(frozen=True)
class _Events:
    recording: Recording
    name: str = "events"

    def covers(self, question: Question) -> Coverage | str:
        windows = Windows(self.recording, question)
        window = windows.kept

        def parts() -> list[Part]:
            from .plan_parts import event_parts

            return event_parts(window)

        def answer() -> Answer:
            if question.y is None:
                return _over_time(windows, window, question, None)
            return windows.with_notes(*heat_of(windows.whole, window, question, None), question)

        return Coverage(answer, parts)


def _over_time(
    windows: Windows, window: Window, question: Question, files: segment_maps.MapFiles | None
) -> Answer:
    asked = question.statistic
    assert asked is not None
    return over_time.answer(
        asked,
        over_time.added(over_time.sums_of(window, asked, files)),
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

    def __init__(self, recording: Recording, question: Question) -> None:
        snap = snapshot(recording)
        self._entry = question.entry
        chosen, self._notes = choose(snap.sources, self._entry, question.source, recording.path)
        self._earlier = gone(snap).span(chosen)
        ends = (*question.span, question.interval_ns, question.columns)
        self.whole = window_of(snap, chosen, *ends, earlier=self._earlier)
        self.kept = self.whole if self._earlier is None else window_of(snap, chosen, *ends)

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

    def with_notes(self, counts: HeatCounts, window: Window, question: Question) -> HeatCounts:
        """Counts of a window with what to know about them, on the grid of the statistic."""
        if self._entry is not None and self._entry.octaves and isinstance(counts.grid, LogLinear):
            counts = counts.coarser(steps=counts.grid.bits)
        notes = self.notes(window, *(each.field for each in question.filters))
        return replace(counts, assumptions=(*notes, *counts.assumptions))
