# SPDX-License-Identifier: Apache-2.0
"""A span of time of a recording: which source answers, in which columns, under which
conditions.

Conditions become SQL with bound values for the executor, and ranges in words for the native
readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from iolab.base.errors import UsageError

from ...store.base.conditions import NAMES, Where
from ...store.base.intervals import join, without
from ...store.base.layout import Kind
from ..language.fields import FIELDS, STORED, TIME, Field, near
from ..question import Between, Filter, columns_of, round_interval
from .engine import Engine
from .snapshot import Losses, Snapshot, Span, begun_ns, clip, covered_spans, losses_of, sessions_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ...store.read.recording import Segment

_CORE_RANGES = ("time", "latency", "offset", "size")
_CORE_MOST = 2**63 - 1


def field_of(name: str) -> Field:
    """A field of events, or the time. UsageError for any other name."""
    if name == TIME.name:
        return TIME
    if name not in STORED:
        raise UsageError(f"there is no dimension '{name}'", hint=near(name, [*FIELDS, TIME.name]))
    return STORED[name]


def filters_of(where: Where) -> tuple[Filter, ...]:
    """Conditions as `recording.conditions.parse_where` makes them. UsageError where one can't be
    asked."""
    filters = []
    for name, words in where.items():
        field = field_of(name)
        if words:
            values = (
                tuple(words)
                if field.kind == "name"
                else tuple(_between(name, word) for word in words)
            )
            filters.append(Filter(name, "=", values))
    return tuple(filters)


def _between(name: str, word: str) -> Between:
    low, dots, high = word.partition("..")
    try:
        if not dots:
            return Between(int(low), int(low) + 1)
        return Between(int(low) if low else None, int(high) if high else None)
    except ValueError:
        raise UsageError(f"{name}={word}: a range is LOW..HIGH in plain whole numbers") from None


def for_core(filters: Iterable[Filter]) -> tuple[dict[str, list[str]], list[Filter]]:
    """(conditions that the native readers carry out, the others)."""
    core: dict[str, list[str]] = {}
    rest = []
    for condition in filters:
        words = None if condition.sign == "!=" else _core_words(condition)
        if words is not None and condition.field in core:
            # all must hold: of names those that both allow; where none is left it takes more than
            # the readers know
            words = (
                [word for word in core[condition.field] if word in words]
                if condition.field in NAMES
                else None
            )
        if not words:
            rest.append(condition)
        else:
            core[condition.field] = words
    return core, rest


def _core_words(condition: Filter) -> list[str] | None:
    if condition.field in NAMES:
        names = [value for value in condition.values if isinstance(value, str)]
        # the readers know no word for what is missing
        return None if field_of(condition.field).missing in names else names
    if condition.field not in _CORE_RANGES:
        return None
    ranges = _ranges(condition)
    if any(
        abs(end or 0) > _CORE_MOST for interval in ranges for end in (interval.low, interval.high)
    ):
        return None
    return [
        f"{'' if interval.low is None else interval.low}..{'' if interval.high is None else interval.high}"
        for interval in ranges
    ]


def _ranges(condition: Filter) -> list[Between]:
    """The ranges that meet a condition on a number, its sign being taken in (but for `!=`)."""
    ranges = []
    for value in condition.values:
        assert isinstance(value, Between)
        low, past = value.low, value.high
        ranges.append(
            {
                ">=": Between(low, None),
                ">": Between(past, None),
                "<": Between(None, low),
                "<=": Between(None, past),
            }.get(condition.sign, value)
        )
    return ranges


def sql_of(filters: Sequence[Filter]) -> tuple[list[str], dict[str, Any]]:
    """(conditions that must all hold, what is bound in them). Column names come from the fields
    alone, values are bound."""
    texts: list[str] = []
    bound: dict[str, Any] = {}

    def bind(value: Any) -> str:
        name = f"v{len(bound)}"
        bound[name] = value
        return f"${name}"

    for condition in filters:
        field = field_of(condition.field)
        column = field.column
        if field.kind == "name":
            choices = [f"{column} IN ({', '.join(bind(value) for value in condition.values)})"]
            if field.missing in condition.values:
                choices.append(f"{column} IS NULL")
        else:
            ends = [
                [None if end is None else bind(end) for end in (interval.low, interval.high)]
                for interval in _ranges(condition)
            ]
            choices = [_within(column, low, high) for low, high in ends]
        text = f"({' OR '.join(choices)})"
        # unknown is no answer in SQL; here an event that lacks the field meets `!=`
        texts.append(f"NOT coalesce({text}, false)" if condition.sign == "!=" else text)
    return texts, bound


def _within(column: str, low: str | None, high: str | None) -> str:
    ends = [f"{column} >= {low}" if low else "", f"{column} < {high}" if high else ""]
    return f"({' AND '.join(end for end in ends if end) or f'{column} IS NOT NULL'})"


@dataclass(frozen=True)
class Window:
    """The events of one source, in one span of time, in columns.

    Attributes:
        snap: of the recording. source: of the events.
        first_ns, until_ns: the span. cuts_first, cuts_until: whether the question sets that end, so that
        events before or after it exist or may exist. base_ns: start of the column with first_ns. interval_ns: length of a column;
        columns: how many. earlier: whether it holds time of which only default maps remain.
        recorded: when it recorded the source within the span, None where that is unknown. losses: what
        was lost within it.
    """

    snap: Snapshot
    source: str
    first_ns: int
    until_ns: int
    cuts_first: bool
    cuts_until: bool
    interval_ns: int
    earlier: bool
    recorded: tuple[Span, ...] | None
    losses: Losses

    @property
    def cut(self) -> bool:
        """Whether events beyond the span exist or may exist."""
        return self.cuts_first or self.cuts_until

    @property
    def base_ns(self) -> int:
        """Start of column 0."""
        return self.first_ns // self.interval_ns * self.interval_ns

    @property
    def columns(self) -> int:
        """Columns from the first to the last of the span."""
        return columns_of(self.first_ns, self.until_ns - 1, self.interval_ns)

    @property
    def span(self) -> Span:
        """From, until."""
        return self.first_ns, self.until_ns

    def between(self, from_ns: int, until_ns: int) -> Window:
        """The window with other ends, which lie within."""
        return replace(
            self,
            first_ns=from_ns,
            until_ns=until_ns,
            cuts_first=self.cuts_first or from_ns > self.first_ns,
            cuts_until=self.cuts_until or until_ns < self.until_ns,
        )

    def segments(self) -> list[Segment]:
        """Sealed segments with events in the span."""
        return self.snap.segments(self.source, self.span)

    @property
    def is_empty(self) -> bool:
        """Whether there are no events in the span."""
        return not self.segments() and self.unsealed_rows() is None

    def unsealed_rows(self) -> pa.Table | None:
        """Events that are not sealed, in batches that meet the span; None without any."""
        return self.snap.hot_of(self.source, self.span)

    def conditions(self, filters: Sequence[Filter]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Conditions in SQL, with what is bound: the source, the span where it cuts, and the
        filters."""
        texts, bound = sql_of(filters)
        cut: list[str] = []
        if self.cuts_first:
            cut.append("time_ns >= $from_ns")
            bound["from_ns"] = self.first_ns
        if self.cuts_until:
            cut.append("time_ns < $until_ns")
            bound["until_ns"] = self.until_ns
        return ("source = $source", *cut, *texts), {**bound, "source": self.source}


def whole_window(snap: Snapshot, source: str, span: Span, interval_ns: int) -> Window:
    """The window of all events of a snapshot, which are in a span, without losses."""
    no_losses = Losses(0, 0, 0, ())
    return Window(snap, source, *span, False, False, interval_ns, False, None, no_losses)


def window_of(
    snap: Snapshot,
    source: str,
    from_ns: int | None,
    until_ns: int | None,
    interval_ns: int | None,
    columns: int,
    *,
    earlier: Span | None = None,
) -> Window:
    """The window, from `from_ns` to `until_ns`, where these are open all that was recorded.

    `earlier` is what default maps hold of segments that retention removed. UsageError where the
    window is empty.
    """
    ends = [end for end in (snap.bounds(source), earlier) if end is not None]
    lost = [
        (segment["from_ns"], segment["until_ns"] - 1)
        for segment in snap.lost
        if segment["source"] in (source, "")
        and None not in (segment["from_ns"], segment["until_ns"])
    ]
    ends += lost
    begun = begun_ns(snap.recording) or 0
    first, last = (
        min((end[0] for end in ends), default=begun),
        max((end[1] for end in ends), default=begun),
    )
    spans = covered_spans(snap, last)
    if spans is not None and earlier is not None:
        # a lost first map ends before the first map that exists: what lies between was recorded
        begin = min([earlier[0], *(loss[0] for loss in lost)])
        spans = join([*clip(sessions_of(snap, last) or (), (begin, last + 1)), *spans])
    # columns divide what was recorded: maps of the same span under different conditions are alike
    low = (
        from_ns
        if from_ns is not None
        else min([*(end[0] for end in ends), *(span[0] for span in spans or ())], default=begun)
    )
    high = until_ns if until_ns is not None else _after(last, spans)
    if low >= high:
        dropped = snap.recording.facts.dropped
        is_deleted = dropped is not None and high <= dropped["until_ns"]
        raise UsageError(
            "the span of time is empty",
            where=snap.place,
            hint="events of this time were deleted"
            if is_deleted
            else "it must begin before it ends, and meet what was recorded",
        )
    interval = interval_ns if interval_ns is not None else round_interval(low, high - 1, columns)
    own = None if spans is None else without(spans, snap.recording.holes(snap.kind, source))
    recorded = None if own is None else tuple(clip(own, (low, high)))
    return Window(
        snap,
        source,
        low,
        high,
        from_ns is not None and from_ns > first,
        until_ns is not None and until_ns <= last,
        interval,
        earlier is not None,
        recorded,
        losses_of(snap, source, (low, high), from_ns is not None or until_ns is not None, interval),
    )


def end_of(snap: Snapshot, source: str) -> int:
    """Where an answer to all that was recorded of a source ends."""
    bounds = snap.bounds(source)
    last = 0 if bounds is None else bounds[1]
    return _after(last, covered_spans(snap, last))


def _after(last_ns: int, spans: Sequence[Span] | None) -> int:
    """Where what was recorded is over: after the last event, and after the last of the spans in
    which it recorded."""
    return max([last_ns + 1, *(span[1] for span in spans or ())])


def attach(engine: Engine, window: Window, *, kind: Kind = "events") -> None:
    """Make the events (or samples) of a window `events` to the engine: sealed ones and hot ones."""
    from ...store.base.schema import schema_of

    files = [segment.part for segment in window.segments()]
    hot = window.unsealed_rows()
    parts = ["SELECT * FROM sealed"] if files else []
    if files:
        engine.files("sealed", files)
    if hot is not None or not files:
        engine.register("hot", hot if hot is not None else schema_of(kind).empty_table())
        parts.append("SELECT * FROM hot")
    engine.run(f"CREATE TEMP VIEW events AS {' UNION ALL BY NAME '.join(parts)}")
