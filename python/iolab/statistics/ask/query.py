# SPDX-License-Identifier: Apache-2.0
"""Questions to recordings and traces: maps, and numbers over time.

The native readers count a map of a trace if they know all conditions, for speed; tests compare it
with this executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import UsageError
from ...recording.base.conditions import Where
from ...recording.base.counts import HeatCounts
from ...recording.read.recording import Recording
from ...recording.read.trace import STDIN, Trace
from ..answers.answers import Answer, Series, Stack
from ..engine.engine import Engine
from ..engine.snapshot import choose, snapshot
from ..execute import execute
from ..language.conditions import filters_of, sql_of
from ..language.fields import QUANTIZED, near
from ..language.host_names import host_names
from ..language.intervals import check_interval
from ..language.names import Filter, Statistic, parse, places_asked
from ..plan import Plan, Tier, plan
from ..question import COLUMNS, Question
from ..tiers import trace_tier
from ..tiers.counters import Counters
from ..tiers.events import Events
from ..tiers.growing_events import GrowingEvents
from ..tiers.segment_maps import SegmentMaps
from .disk_groups import DiskGroups
from .notes import answer_with_notes, retry, with_notes, with_unmatched, with_unrecorded_calls

if TYPE_CHECKING:
    from ..kept.roll_ups import RollUps

T = TypeVar("T")


def heat(
    events: Trace | Recording,
    y: str,
    question: Question | None = None,
    *,
    where: Where | None = None,
    kept: bool = True,
) -> HeatCounts:
    """Counts by time and y: latency, offset, size, or (of recordings) queue.

    Args:
        question: span, columns, values, weight and source. where: conditions, as
        `recording.conditions.parse_where` gives them. kept: whether kept statistics may answer
        where events are deleted or too many. These know neither parts of `y` nor time spent.
    UsageError for what can't be asked, FormatError for what can't be read.
    """
    kind = next((quantized_name for quantized_name in QUANTIZED if quantized_name == y), None)
    if kind is None:
        raise UsageError(f"there is no map of '{y}'", hint=near(y, QUANTIZED))
    question = question or Question()
    check_interval(question.interval_ns)
    if question.high is not None and question.high <= (question.low or 0):
        raise UsageError("the range of values is empty: its end is not above its beginning")
    question = replace(
        question,
        statistic=None,
        y=kind,
        filters=host_names().filters(filters_of(where or {})),
    )

    def ask(events: Trace | Recording) -> HeatCounts:
        counts = _execute(events, question, kept)
        assert isinstance(counts, HeatCounts)
        return counts

    return answer_with_notes(events, (question, kept), ask)


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
    chosen_source, _ = choose(snapshot(events).sources, None, source, events.path)
    question = Question.of(statistic, (from_ns, until_ns), None, 1, chosen_source)
    counts_with_notes = with_unmatched(
        counts, statistic, lambda other: _execute(events, question.with_statistic(other), True)
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
    offset or size; a stack for any other breakdown; else a series. Names in conditions that did not
    occur are in the notes of an empty answer.

    Args:
        from_ns, until_ns: the span of time, cut exactly. interval_ns: length of a column; left
        open, one of 1, 2, 5 times a power of ten that makes at most `columns` of the span.
        source: of the events; default: the block layer where it was recorded. kept: see `heat`.
    """
    parsed = parse(statistic) if isinstance(statistic, str) else statistic
    question = Question.of(parsed, (from_ns, until_ns), interval_ns, columns, source)
    return answer(events, question, kept=kept)


def answer(events: Trace | Recording, question: Question, *, kept: bool = True) -> Answer:
    """The answer to the question of a statistic; see `query`."""
    named = question.statistic
    assert named is not None
    check_interval(question.interval_ns)
    by_address = host_names().statistic(named)
    groups = DiskGroups.of(events, places_asked(named), question.span)
    question = question.with_statistic(groups.statistic(by_address))
    # a condition on disks that none meets has a note of its own
    of_events = groups.without(by_address)

    def ask(events: Trace | Recording) -> Answer:
        result = _execute(events, question, kept)
        if isinstance(events, Trace) and events.path == STDIN:
            return result
        question_of_span = replace(question, interval_ns=None, columns=1)
        result = with_unmatched(
            result,
            of_events,
            lambda other: _execute(events, question_of_span.with_statistic(other), kept),
        )
        if isinstance(events, Trace):
            return result
        return with_unrecorded_calls(
            result,
            by_address,
            events,
            lambda other, of: _execute(
                events, replace(question_of_span.with_statistic(other), source=of), kept
            ),
        )

    result = with_notes(
        answer_with_notes(events, (question, kept), ask), groups.notes(by_address.filters)
    )
    if isinstance(result, Stack):
        counter = named.entry.counter
        is_counted = counter is not None and result.source == counter.source
        result = groups.merge_disks(result, named.breakdown, is_counted)
        keys = host_names().labels(named.breakdown, result.keys)
        return replace(result, statistic=named, keys=keys)
    return replace(result, statistic=named) if isinstance(result, Series) else result


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
    parsed = parse(statistic) if isinstance(statistic, str) else statistic
    question = Question.of(parsed, (from_ns, until_ns), interval_ns, columns, source)
    return plan_of(events, question, kept=kept)


def plan_of(events: Trace | Recording, question: Question, *, kept: bool = True) -> Plan:
    """The plan by which `answer` answers the question of a statistic."""
    statistic = question.statistic
    assert statistic is not None
    groups = DiskGroups.of(events, places_asked(statistic), question.span)
    statistic = groups.statistic(host_names().statistic(statistic))
    check_interval(question.interval_ns)
    question = question.with_statistic(statistic)

    def make_plan() -> Plan:
        frozen = events.frozen() if isinstance(events, Recording) else events
        return plan(question, tiers_of(frozen, kept=kept))

    return retry(make_plan)


def _execute(events: Trace | Recording, question: Question, kept: bool) -> Answer:
    return execute(question, tiers_of(events, kept=kept))


def tiers_of(events: Trace | Recording, *, kept: bool = True) -> list[Tier]:
    """All tiers, the preferred form of an answer first. `kept`: whether roll-ups may answer."""
    if isinstance(events, Trace):
        return [trace_tier.TraceEvents(events)]
    exact: list[Tier]
    if events.in_archive:
        from ..tiers.archived import ArchiveMaps

        exact = [Counters(events), ArchiveMaps(events), events_of(events)]
    else:
        exact = [Counters(events), SegmentMaps(events), events_of(events)]
    return [roll_ups_of(events), *exact] if kept else exact


def roll_ups_of(recording: Recording) -> RollUps:
    """The tier of the kept statistics of a recording."""
    # not for traces: what it needs takes its time to load
    if not recording.in_archive:
        from ..kept.roll_ups import RollUps

        return RollUps(recording)
    from ...archive.recordings import ArchivedEvents
    from ..kept.archived import ArchivedRollUps

    assert isinstance(recording, ArchivedEvents)
    return ArchivedRollUps(recording)


def events_of(recording: Recording) -> Events:
    """The tier of the events of a recording."""
    if not recording.in_archive:
        return GrowingEvents(recording)
    # not imported above: it loads pyarrow, which takes longer than an answer from roll-ups
    from ..tiers.archived import ArchiveEvents

    return ArchiveEvents(recording)


@dataclass(frozen=True)
class OpenEvents:
    """Events that are `events` to an engine.

    Attributes:
        events: the trace, or the recording at one moment. source: of the events. conditions, bound:
        of the question, in SQL. notes: about the events.
    """

    events: Trace | Recording
    engine: Engine
    source: str
    conditions: tuple[str, ...]
    bound: dict[str, Any]
    notes: tuple[str, ...] = ()


def scan(
    events: Trace | Recording,
    question: Question,
    filters: Sequence[Filter],
    read: Callable[[OpenEvents], T],
) -> T:
    """What `read` makes of the events of a question under conditions. A trace can be read once in
    it; of a recording it is called again where a file turns out to be damaged."""
    if isinstance(events, Trace):
        name = trace_tier.source_name(events, question.entry, question.source)
        core, rest = trace_tier.conditions(events, filters, question.span)
        texts, bound = sql_of(rest)
        return trace_tier.stream_events(
            events,
            name,
            core,
            lambda engine: read(OpenEvents(events, engine, name, tuple(texts), bound)),
        )[0]
    recording = events

    def scan_recording() -> T:
        frozen = recording.frozen()
        tier = events_of(frozen)
        frame = plan(question, [tier]).frame
        reading, window = tier.read(frame, []), frame.window
        with reading.open_engine(window) as engine:
            reading.attach(engine, window)
            conditions = window.conditions(filters)
            return read(OpenEvents(frozen, engine, window.source, *conditions, frame.notes))

    return retry(scan_recording)
