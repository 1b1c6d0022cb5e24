# SPDX-License-Identifier: Apache-2.0
"""Questions to a text trace: maps by the native readers if these know the conditions, all else by SQL
over a stream of the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from iolab import _core
from iolab.base.errors import FormatError, IolabError, UsageError

from ...store.base.counts import HeatCounts
from ...store.base.grids import Grid, Linear
from ...store.read.trace import STDIN, Trace
from ...store.write.ingest import source_of
from ..engine.cells import Asked, count, ends_of, sums
from ..engine.engine import Engine, int64s
from ..engine.snapshot import Span as Time
from ..engine.snapshot import choose, missing_fields, told_by
from ..engine.windows import filters_of, for_core, sql_of
from ..language.catalogue import Entry
from ..language.fields import FIELDS
from ..plan import Axis, Bounds, Cost, Frame, Numbers, Part, Reading, Span, Sums
from ..question import SECOND, Between, Filter, Question, columns_of, round_interval

if TYPE_CHECKING:
    import pyarrow as pa


BATCH = 1 << 17


@dataclass
class Stream:
    """Events of a trace that meet conditions which the native readers know; the trace's own are
    left to `where`.

    Attributes:
        events: I/Os that met them so far; damaged, losses, unpaired, skipped: what was left out.
        averaged: whether each is the mean of a window; assumptions: what the trace leaves open.
        failed: the reader's words, where it gave up.
    """

    trace: Trace
    source: str
    where: dict[str, list[str]]
    events: int = 0
    damaged: int = 0
    losses: int = 0
    unpaired: int = 0
    skipped: int = 0
    averaged: bool = False
    assumptions: tuple[str, ...] = ()
    failed: str | None = field(default=None)

    def reader(self) -> pa.RecordBatchReader:
        """The stream. What is wrong with the trace comes out of `error`, for the engine would wrap
        it."""
        import pyarrow as pa

        from ...store.base.schema import EVENTS

        return pa.RecordBatchReader.from_batches(EVENTS, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        from ...store.segments.columns import NameTables, events_of

        names = NameTables()
        trace = self.trace
        try:
            for raw in _core.trace_events(
                str(trace.path), trace.format, trace.columns, self.where or None, BATCH
            ):
                self.damaged, self.losses, self.unpaired = (
                    raw["damaged"],
                    raw["losses"],
                    raw["unpaired"],
                )
                self.skipped, self.averaged, self.assumptions = (
                    raw["skipped_by_filter"],
                    raw["averaged"],
                    tuple(raw["assumptions"]),
                )
                self.events += int(np.frombuffer(raw["count"], dtype="<u8").sum())
                yield events_of(raw, names, self.source)
        except ValueError as error:
            self.failed = str(error)
            raise

    def error(self) -> FormatError | None:
        """The reader's words as an error, None where it did not fail."""
        if self.failed is None:
            return None
        place = (
            None
            if str(self.trace.path) in self.failed
            else "standard input"
            if self.trace.path == STDIN
            else str(self.trace.path)
        )
        return FormatError(self.failed.removeprefix("-: "), where=place)


Ends = tuple[int | None, int | None]
"""From and until (ns), None where left open."""

_T = TypeVar("_T")


class TraceEvents:
    """Events of a text trace."""

    name = "trace"

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`. The time is known after reading."""
        statistic = question.statistic
        if statistic is not None and not statistic.entry.sources:
            raise UsageError(
                f"{statistic.entry.name} comes of counters, and a trace has none",
                where=self._trace.path,
                hint="iolab record counters keeps them",
            )
        if question.y == "queue":
            raise UsageError(
                "a trace does not tell the time in the queue",
                where=self._trace.path,
                hint="recordings of the block layer do",
            )
        if question.y is not None:
            # another source is refused before anything is read
            source_name(self._trace, question.entry, question.source)
        return Frame(question, None)

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        return [frame.full_span]

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        return Cost(1, 0)

    def read(self, frame: Frame, spans: Sequence[Span]) -> TraceReading:
        return TraceReading(self._trace, frame.question)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """As `Tier.parts`. Of a pipe not even the size is known."""
        path = Path(self._trace.path)
        return [
            Part(self.name, None, None, 1, None, path.stat().st_size if path.is_file() else None)
        ]


class TraceReading(Reading):
    """A trace while it is read: a map by the native readers where these know all conditions."""

    def __init__(self, trace: Trace, question: Question) -> None:
        self._trace, self._question = trace, question

    def bounds(self) -> Sequence[Bounds]:
        question = self._question
        if self._is_native or None not in (question.low, question.high):
            return []
        source, core, request = self._scan
        ends, _ = stream_events(self._trace, source, core, lambda engine: ends_of(engine, request))
        return [Bounds(ends)]

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        trace, question = self._trace, self._question
        if question.y is None:
            return [_numbers(trace, question)]
        assert grid is not None
        conditional = bool(trace.where or question.filters)
        if self._is_native:
            counts = replace(trace, where=self._conditions[0]).counts(
                question.y,
                interval_ns=question.interval_ns,
                columns=question.columns,
                low=question.low,
                high=question.high,
                buckets=question.buckets,
                weight=question.weight,
            )
            window = _window(counts, question.span)
            return [replace(counts, conditional=conditional, window=window)]
        source, core, request = self._scan
        request = replace(request, grid=grid)
        counts, stream = stream_events(trace, source, core, lambda engine: count(engine, request))
        counted = counts.events + counts.without_y + counts.outside
        return [
            replace(
                counts,
                filtered=stream.events + stream.skipped - counted,
                damaged=stream.damaged,
                lost=stream.losses,
                unpaired=stream.unpaired,
                conditional=conditional,
                averaged=stream.averaged,
                assumptions=stream.assumptions,
                window=_window(counts, question.span),
            )
        ]

    @cached_property
    def _conditions(self) -> tuple[dict[str, list[str]], list[Filter]]:
        """(what the native readers carry out, the others)."""
        question = self._question
        if question.weight == "bytes":
            # the native readers add up no sizes, and count what they leave out no further than the
            # last event that they give
            trace_filters = filters_of(self._trace.where)
            return {}, [*trace_filters, *question.filters, *_time(question.span)]
        return conditions(self._trace, question.filters, question.span)

    @property
    def _is_native(self) -> bool:
        return self._question.weight != "bytes" and not self._conditions[1]

    @cached_property
    def _scan(self) -> tuple[str, dict[str, list[str]], Asked]:
        """(source, what the native readers carry out, the map without its grid)."""
        question = self._question
        assert question.y is not None
        source = source_name(self._trace, question.entry, question.source)
        core, rest = self._conditions
        first, last = _span(self._trace, question.span)
        interval = question.interval_ns or round_interval(first, last, question.columns)
        columns_of(first, last, interval)
        texts, bound = sql_of(rest)
        base_ns, ends = first // interval * interval, (question.low, question.high)
        grid, weight = Linear(0, 1), question.weight
        request = Asked(question.y, base_ns, interval, tuple(texts), bound, *ends, grid, weight)
        return source, core, request


def _numbers(trace: Trace, question: Question) -> Numbers:
    """Sums by column of time and key."""
    statistic, ends, interval_ns = question.statistic, question.span, question.interval_ns
    assert statistic is not None
    name = source_name(trace, statistic.entry, question.source)
    core, rest = conditions(trace, statistic.filters, ends)
    texts, bound = sql_of(rest)
    once = trace.path == STDIN
    span = None if once else _span(trace, ends)
    interval = (
        interval_ns
        if interval_ns is not None
        else SECOND
        if span is None
        else round_interval(*span, question.columns)
    )
    base, many = (
        (0, question.columns)
        if span is None
        else (span[0] // interval * interval, columns_of(*span, interval))
    )
    rows, stream = stream_events(
        trace,
        name,
        core,
        lambda engine: sums(engine, statistic, tuple(texts), bound, base, interval, many),
    )
    if span is None:
        # what a pipe holds is known when it has been read
        columns_seen = int64s(rows["c"])
        first, last = (
            (int(columns_seen.min()), int(columns_seen.max())) if len(columns_seen) else (0, 0)
        )
        span, many = (
            (first * interval, (last + 1) * interval - 1),
            columns_of(first * interval, last * interval, interval),
        )
        rows["c"], base = np.ma.asarray(columns_seen - first), first * interval
    notes = [
        f"{count} {words}"
        for count, words in (
            (stream.damaged, "damaged lines or records left out"),
            (stream.losses, "records lost by the tracer"),
            (stream.unpaired, "unmatched issue or completion events"),
        )
        if count
    ]
    notes += stream.assumptions
    fields = [
        condition
        for condition in (
            statistic.breakdown,
            *(condition.field for condition in statistic.filters),
        )
        if condition in FIELDS
    ]
    notes += missing_fields(statistic.entry, fields, name, told_by(trace, (name,))).values()
    axis = Axis(name, base, interval, many, (span[0], span[1] + 1))
    return Numbers(rows, tuple(notes), axis)


def _window(counts: HeatCounts, ends: Ends) -> tuple[int, int] | None:
    """Columns of the question's time; None where it is all of the trace."""
    if ends == (None, None) or not len(counts.count):
        return None
    low, high = ends
    first = 0 if low is None else (low - counts.t0_ns) // counts.interval_ns
    return first, counts.columns if high is None else -(
        -(high - counts.t0_ns) // counts.interval_ns
    )


def refuse_stdin(trace: Trace) -> None:
    """UsageError for standard input, where a trace is read more than once."""
    if trace.path == STDIN:
        raise UsageError(
            "standard input can be read only once", hint="save the trace into a file first"
        )


def bounds(trace: Trace) -> Time:
    """(first, last) time of a trace's events, by a pass over it. UsageError for standard input,
    which can be read once."""
    refuse_stdin(trace)
    facts = trace.summary().facts
    return (0, 0) if facts["first_ns"] is None else (facts["first_ns"], facts["last_ns"])


def _span(trace: Trace, ends: Ends) -> Time:
    """The span of the question; open ends are the trace's own."""
    first, last = bounds(trace) if None in ends else (0, 0)
    low, high = (
        ends[0] if ends[0] is not None else first,
        ends[1] - 1 if ends[1] is not None else last,
    )
    if high < low:
        raise UsageError(
            "the span of time is empty",
            where=trace.path,
            hint="it must begin before it ends, and meet the trace",
        )
    return low, high


def conditions(
    trace: Trace, filters: Sequence[Filter], ends: Ends
) -> tuple[dict[str, list[str]], list[Filter]]:
    """All that must hold: (what the native readers carry out, the others)."""
    return for_core([*filters_of(trace.where), *filters, *_time(ends)])


def _time(ends: Ends) -> list[Filter]:
    return [] if ends == (None, None) else [Filter("time", "=", (Between(*ends),))]


def source_name(trace: Trace, entry: Entry | None, source: str | None) -> str:
    """What a trace's events are of. UsageError where the statistic or the caller wants another
    source."""
    format_name = trace.format or ("csv" if trace.columns else None)
    if format_name is None and trace.path == STDIN:
        # it can't be looked at beforehand: let it be what is asked for
        return source or (entry.sources[0] if entry is not None and entry.only else "trace")
    format_name = format_name or trace.detect()
    if format_name is None:
        # its own words on what is wrong are better than any here
        trace.summary()
        return source or "trace"
    return choose([source_of(format_name)], entry, source, trace.path)[0]


def stream_events(
    trace: Trace, name: str, core: dict[str, list[str]], ask: Callable[[Engine], _T]
) -> tuple[_T, Stream]:
    """An answer from the events of a trace, with what was left out of them."""
    stream = Stream(trace, name, core)
    with Engine(trace.path) as engine:
        engine.register("events", stream.reader())
        try:
            return ask(engine), stream
        except IolabError as error:
            raise stream.error() or error from None
