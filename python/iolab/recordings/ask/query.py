# SPDX-License-Identifier: Apache-2.0
"""Questions to recordings and traces: maps, and numbers over time.

The native readers count a map of a trace if they know all conditions, for speed; tests compare it
with this executor.

Answers have notes: damaged files, names that did not occur, and disk I/O that file operations do not
explain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.units import format_quantity

from ..store.base.conditions import Where
from ..store.base.counts import HeatCounts
from ..store.ledger import DamagedError
from ..store.read.recording import Recording
from ..store.read.trace import STDIN, Trace
from .aliases import DiskGroups, host_names
from .answers.answers import Answer, Series, Stack
from .engine.engine import Engine
from .engine.snapshot import choose, snapshot
from .engine.windows import filters_of, sql_of
from .execute import execute
from .kept.files.paths import DEFINITIONS, LIST, NO_STATISTICS, STATE, has_statistics, stamp
from .language.fields import QUANTIZED, missing, near
from .plan import Absent, Plan, Tier, plan
from .question import COLUMNS, Filter, Question, Statistic, check_interval, parse, places_asked
from .tiers.events import Events, GrowingEvents
from .tiers.segment_maps import SegmentMaps

if TYPE_CHECKING:
    from .kept.roll_ups import RollUps

TRIES = 5
"""Files of so many kinds may turn out to be damaged one after the other."""

MOST_ANSWERS = 32
MOST_BYTES = 16 << 20
"""Answers to one recording that are remembered, and the size of their arrays."""

_guard = threading.Lock()

T = TypeVar("T")
A = TypeVar("A", bound="Series | Stack | HeatCounts")


def answer_with_notes(
    events: Trace | Recording, question: Hashable, ask: Callable[[Trace | Recording], A]
) -> A:
    """An answer with what is damaged of its recording as a note. `ask` gets the recording frozen,
    so that all of an answer is of one moment; it is asked again, of a later moment, where a file
    turns out to be damaged or was deleted meanwhile. An answer is remembered by its question until
    the recording changes; its arrays can't be written."""
    if not isinstance(events, Recording):
        return ask(events)

    def answer() -> A:
        frozen = events.frozen()
        if frozen is events:
            return with_notes(ask(frozen), trouble(frozen))
        answers = frozen.catalogue().answers
        key = question, stamp(frozen.path)
        remembered: A | None = answers.get(key)
        if remembered is None:
            remembered = with_notes(ask(frozen), trouble(frozen))
            _remember(answers, key, remembered)
        return remembered

    return retry(answer)


def _remember(answers: dict[Hashable, Any], key: Hashable, answer: Answer) -> None:
    """Remember an answer, and forget the oldest ones beyond the bounds."""
    if sum(array.nbytes for array in _arrays(answer)) > MOST_BYTES:
        return
    for array in _arrays(answer):
        array.flags.writeable = False
    with _guard:
        answers[key] = answer
        sizes = {
            key: sum(array.nbytes for array in _arrays(other)) for key, other in answers.items()
        }
        while len(sizes) > MOST_ANSWERS or sum(sizes.values()) > MOST_BYTES:
            oldest = next(iter(sizes))
            del sizes[oldest], answers[oldest]


def _arrays(answer: Answer) -> list[np.ndarray[Any, Any]]:
    return [value for value in vars(answer).values() if isinstance(value, np.ndarray)]


def trouble(events: Trace | Recording) -> tuple[str, ...]:
    """What is damaged of a recording and of its kept statistics, as notes."""
    if isinstance(events, Trace):
        return ()
    kept: tuple[str, ...] = ()
    if any((events.path / name).exists() for name in (DEFINITIONS, STATE, LIST)):
        # not for recordings without: what it needs takes its time to load
        from .kept import recorded

        kept = recorded.trouble(events)
    return (*events.trouble(), *kept)


def retry(ask: Callable[[], T]) -> T:
    """Ask, and ask once more where a file turns out to be damaged, as it is known then."""
    for _ in range(TRIES):
        with suppress(DamagedError):
            return ask()
    return ask()


def with_notes(answer: A, notes: tuple[str, ...]) -> A:
    """An answer with more notes."""
    if not notes:
        return answer
    if isinstance(answer, HeatCounts):
        return cast("A", replace(answer, assumptions=(*answer.assumptions, *notes)))
    return cast("A", replace(answer, notes=(*answer.notes, *notes)))


NAMED = (
    "device",
    "process",
    "file",
    "mount",
    "client",
    "job",
    "vdev",
    "pool",
    "procedure",
    "version",
)
"""Fields with names as values, which may be mistyped."""


def with_unmatched(answer: Answer, asked: Statistic, of: Callable[[Statistic], Answer]) -> Answer:
    """The answer; where it is empty, with a note for each name in its conditions that did not occur
    in the same time.

    `of` answers another statistic for that time.
    """
    fields = {
        condition.field: condition.values
        for condition in asked.filters
        if condition.sign == "="
        and condition.field in NAMED
        and condition.field in asked.entry.breakdowns
    }
    if not fields or not _is_empty(answer):
        return answer
    notes: list[str] = []
    for field, values in fields.items():
        answer_of_field = of(replace(asked, filters=(), breakdown=field))
        # of more names than are told apart nobody knows which are among the others
        if isinstance(answer_of_field, Stack) and not answer_of_field.rest_keys:
            notes += missing(
                field,
                map(str, values),
                [
                    key
                    for key, total in zip(answer_of_field.keys, answer_of_field.totals, strict=True)
                    if total
                ],
            )
    if isinstance(answer, HeatCounts):
        return replace(answer, assumptions=tuple(dict.fromkeys([*answer.assumptions, *notes])))
    return replace(answer, notes=tuple(dict.fromkeys([*answer.notes, *notes])))


def _is_empty(answer: Answer) -> bool:
    if isinstance(answer, HeatCounts):
        return answer.y != "utilization" and answer.events == 0
    return (
        isinstance(answer, Series | Stack) and answer.statistic.entry.additive and answer.total == 0
    )


MOST_EVENTS = 50_000_000
"""A recording with more events of both sources gets no note: a scan of them takes too long."""
LEAST_SHARE = 0.05
"""Of the bytes of all processes: less is a program that is started, or a directory that is read."""
LEAST_BYTES = 1 << 20
BEYOND = 10
"""A disk moves so many times the bytes of a program's system calls: read-ahead does not."""
MOST_NAMED = 3


def with_unrecorded_calls(
    answer: Answer, asked: Statistic, recording: Recording, of: Callable[[Statistic, str], Answer]
) -> Answer:
    """The answer to a statistic of files with a note that names the processes with such disk I/O.

    `of` answers another statistic from a source, for the same time. Threads of the kernel are left
    out: they do I/O for other processes.
    """
    if asked.group != "file" or not {"block", "syscall"} <= set(snapshot(recording).sources):
        return answer
    events = sum(sum(segment.sources.values()) for segment in recording.segments())
    if events > MOST_EVENTS:
        return answer
    of_process = tuple(condition for condition in asked.filters if condition.field == "process")
    programs = {line["process"] for line in recording.processes() if line["command"]}
    unseen: dict[str, int] = {}
    for op in ("read", "write"):
        conditions = (Filter("op", "=", (op,)), *of_process)
        on_disk, by_calls = (
            of(Statistic(group, "bytes", conditions, "process"), source)
            for group, source in (("io", "block"), ("file", "syscall"))
        )
        if not isinstance(on_disk, Stack) or not isinstance(by_calls, Stack) or by_calls.rest_keys:
            return answer
        called = dict(zip(by_calls.keys, by_calls.totals, strict=True))
        least = max(LEAST_BYTES, LEAST_SHARE * (sum(on_disk.totals) + on_disk.rest_total))
        for process, moved in zip(on_disk.keys, on_disk.totals, strict=True):
            if moved >= max(least, BEYOND * called.get(process, 0)) and process in programs:
                unseen[f"{process} ({op} {format_quantity(moved, 'B', 3)})"] = moved
    named = sorted(unseen, key=lambda words: -unseen[words])
    if not unseen:
        return answer
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return with_notes(
        answer,
        (
            f"disk I/O that is not in file operations: {', '.join(named[:MOST_NAMED])}{more}; I/O by io_uring, "
            "libaio and mapped files makes no system calls that are recorded",
        ),
    )


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
        return plan(question, tiers_of(frozen, kept=kept, counted=question.is_counted))

    return retry(make_plan)


def _execute(events: Trace | Recording, question: Question, kept: bool) -> Answer:
    return execute(question, tiers_of(events, kept=kept, counted=question.is_counted))


def tiers_of(events: Trace | Recording, *, kept: bool = True, counted: bool = True) -> list[Tier]:
    """All tiers, the preferred form of an answer first. `kept`: whether roll-ups may answer.
    `counted`: whether statistics of counters are asked."""
    # tiers that do not answer are not loaded: it takes longer than a short answer
    if isinstance(events, Trace):
        from .tiers.trace_tier import TraceEvents

        return [TraceEvents(events)]
    counters: Tier = Absent("counters", "no counters of this are asked")
    if counted:
        from .tiers.counters import Counters

        counters = Counters(events)
    maps: Tier
    if events.in_archive:
        from .tiers.archived import ArchiveMaps

        maps = ArchiveMaps(events)
    else:
        maps = SegmentMaps(events)
    exact = [counters, maps, events_of(events)]
    if not kept:
        return exact
    return [roll_ups_of(events) or Absent("roll-ups", NO_STATISTICS), *exact]


def roll_ups_of(recording: Recording) -> RollUps | None:
    """The tier of the kept statistics of a recording, if it has them."""
    if recording.in_archive:
        from ..archive.recordings import ArchivedEvents
        from .kept.archived import ArchivedRollUps

        assert isinstance(recording, ArchivedEvents)
        return ArchivedRollUps(recording)
    if not has_statistics(recording.path):
        return None
    from .kept.roll_ups import RollUps

    return RollUps(recording)


def events_of(recording: Recording) -> Events:
    """The tier of the events of a recording."""
    if not recording.in_archive:
        return GrowingEvents(recording)
    # not imported above: it loads pyarrow, which takes longer than an answer from roll-ups
    from .tiers.archived import ArchiveEvents

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
        from .tiers import trace_tier

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
