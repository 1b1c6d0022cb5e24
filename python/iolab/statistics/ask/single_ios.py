# SPDX-License-Identifier: Apache-2.0
"""Single I/Os of a statistic inside a rectangle of time and value: sorted, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import FormatError, UsageError
from ...recording.base.schema import EVENTS
from ...recording.read.recording import Recording
from ...recording.read.trace import STDIN, Trace
from ..engine.cells import where
from ..engine.engine import Engine, single
from ..language.conditions import field_of, sql_of
from ..language.fields import QUANTIZED, near
from ..language.host_names import host_names
from ..language.names import Statistic
from ..plan import Frame, plan
from ..question import Question
from ..tiers import trace_tier
from .attribution import Rectangle
from .notes import again, trouble
from .query import events_of

PAGE = 100
"""I/Os of a page unless filters otherwise."""
LARGEST_PAGE = 500

ORDERS = {
    "time": "time_ns",
    "latency": "latency_ns",
    "queue": "queue_ns",
    "offset": "offset_bytes",
    "size": "size_bytes",
    "op": "op",
    "process": "process",
    "file": "file",
    "device": "device",
}
"""What a list can be sorted by, with the column of each."""

COLUMNS = tuple(name for name in EVENTS.names if name not in ("source", "latency_bucket"))
"""Columns of an I/O."""
_KEY = ("time_ns", "latency_ns", "thread", "offset_bytes", "size_bytes", "op")
"""Columns that tell the I/Os of a source apart. I/Os that are equal in all of them are
interchangeable."""
_NUMBERS = frozenset(name for name in COLUMNS if name.endswith(("_ns", "_bytes"))) | {
    "pid",
    "thread",
    "count",
}


@dataclass(frozen=True)
class SingleIo:
    """One row of a source. Times are ns, offset and size bytes; None where it is not known.

    Attributes:
        source: the layer that recorded it. values: the columns of the schema of events, by name.
    """

    source: str
    values: dict[str, Any]

    @property
    def end_ns(self) -> int:
        """When it was complete."""
        return int(self.values["time_ns"])

    @property
    def start_ns(self) -> int:
        """When it was issued; its completion where the latency is not known."""
        return self.end_ns - int(self.values["latency_ns"] or 0)

    @property
    def id(self) -> str:
        """Text that `find_io` finds it by."""
        words = [self.source, *("" if (v := self.values[k]) is None else str(v) for k in _KEY)]
        return "|".join(words)


@dataclass(frozen=True)
class SingleIos:
    """A page of the I/Os inside a rectangle.

    Attributes:
        source: of the events. total: I/Os inside; rows: rows of events inside, of which `ios` are
        those from `skip` on. notes: what is missing.
    """

    source: str
    total: int
    rows: int
    skip: int
    ios: tuple[SingleIo, ...]
    notes: tuple[str, ...]


def list_ios(
    events: Trace | Recording,
    statistic: Statistic,
    rectangle: Rectangle,
    *,
    source: str | None = None,
    order: str = "time",
    descending: bool = False,
    skip: int = 0,
    limit: int = PAGE,
) -> SingleIos:
    """The I/Os of a statistic inside a rectangle.

    Args:
        rectangle: low and high bound the values of the statistic's map. order: a key of `ORDERS`;
        I/Os without the value come last. Equal ones are in order of time. limit: I/Os of a page.
    UsageError for what can't be filters, FormatError for what can't be read.
    """
    if not statistic.entry.sources:
        raise UsageError(
            f"{statistic.entry.name} comes of counters, which have no single I/Os",
            hint="ask for io.ops, file.ops or app.ops",
        )
    if order not in ORDERS:
        raise UsageError(f"a list can't be sorted by '{order}'", hint=near(order, ORDERS))
    y = statistic.breakdown
    if y not in QUANTIZED and (rectangle.low, rectangle.high) != (None, None):
        raise UsageError(
            "a range of values needs a map", hint=f"such as {statistic.entry.name}[latency]"
        )
    filters = host_names().filters(statistic.filters)
    texts, bound = _rectangle(y if y in QUANTIZED else None, rectangle)
    page = _Page(order, descending, skip, limit)
    if isinstance(events, Trace):
        if events.path == STDIN:
            raise UsageError(
                "standard input can be read only once", hint="save the trace into a file first"
            )
        name = trace_tier.source_name(events, statistic.entry, source)
        ends = rectangle.from_ns, rectangle.until_ns
        core, rest = trace_tier.conditions(events, filters, ends)
        more, values = sql_of(rest)
        conditions, bound = [*more, *texts], {**values, **bound}
        # a stream is read once: first to count, then for the page
        sums, _ = trace_tier.streamed(
            events, name, core, lambda e: count_rows(e, conditions, bound)
        )
        ios, _ = trace_tier.streamed(
            events, name, core, lambda e: page.read(e, name, conditions, bound)
        )
        return SingleIos(name, *sums, skip, ios, ())

    question = Question.of(statistic, (rectangle.from_ns, rectangle.until_ns), None, 1, source)

    def read_page() -> SingleIos:
        with open_events(events, question) as (engine, frame):
            window = frame.window
            own, values = window.conditions(filters)
            conditions = [*own, *texts]
            both = {**values, **bound}
            sums = count_rows(engine, conditions, both)
            ios = page.read(engine, window.source, conditions, both)
        return SingleIos(window.source, *sums, skip, ios, (*frame.notes, *trouble(events)))

    return again(read_page)


def read_rows(
    engine: Engine,
    source: str,
    conditions: Sequence[str],
    bound: dict[str, Any],
    tail: str = "",
) -> tuple[SingleIo, ...]:
    """Rows of `events` that meet the conditions. tail: clauses of order and limit."""
    columns = ", ".join(
        name if name in _NUMBERS else f"CAST({name} AS VARCHAR) AS {name}" for name in COLUMNS
    )
    rows = engine.ask(f"SELECT {columns} FROM events {where(list(conditions))} {tail}", bound)
    return tuple(
        SingleIo(source, {name: _plain(name, rows[name], place) for name in COLUMNS})
        for place in range(len(rows["time_ns"]))
    )


def find_io(events: Recording, key: str) -> SingleIo:
    """The I/O of an `id`. UsageError for text that is no id, FormatError where the I/O is no longer
    recorded."""
    source, *words = key.split("|")
    if len(words) != len(_KEY) or not all(_is_key(*pair) for pair in zip(_KEY, words, strict=True)):
        raise UsageError(f"'{key[:80]}' is no I/O", hint="lists of I/Os have the id of each")
    values = {
        name: word if name == "op" else int(word)
        for name, word in zip(_KEY, words, strict=True)
        if word
    }
    texts = [f"{name} = $k_{name}" if name in values else f"{name} IS NULL" for name in _KEY]
    end = int(values["time_ns"])

    def read() -> tuple[SingleIo, ...]:
        with open_events(events, events_between(source, end, end + 1)) as (engine, frame):
            own, bound = frame.window.conditions(())
            bound |= {f"k_{name}": value for name, value in values.items()}
            return read_rows(engine, source, [*own, *texts], bound, "LIMIT 1")

    rows = again(read)
    if not rows:
        raise FormatError("the I/O is not recorded, or no longer", where=events.path)
    return rows[0]


def events_between(source: str, from_ns: int, until_ns: int) -> Question:
    """The question for the events of a source that were complete in a span of time."""
    return Question(None, (from_ns, until_ns), None, 1, source, "latency")


@contextmanager
def open_events(recording: Recording, question: Question) -> Iterator[tuple[Engine, Frame]]:
    """An engine to which the events of a question are `events`, and the question's frame."""
    frozen = recording.frozen()
    tier = events_of(frozen)
    frame = plan(question, [tier]).frame
    with Engine(frozen.path) as engine:
        tier.read(frame, []).attach(engine, frame.window)
        yield engine, frame


def _is_key(name: str, word: str) -> bool:
    if name == "op":
        return 0 < len(word) <= 16 and word.isascii()
    if not word:
        return name != "time_ns"
    return (
        word.isascii() and word.isdecimal() and int(word) < 2 ** (63 if name == "time_ns" else 64)
    )


def _rectangle(y: str | None, box: Rectangle) -> tuple[list[str], dict[str, Any]]:
    ends: dict[str, tuple[str, int | None]] = {
        "r0": ("time_ns >=", box.from_ns),
        "r1": ("time_ns <", box.until_ns),
    }
    texts = []
    if y is not None:
        column = field_of(y).column
        texts = [f"{column} IS NOT NULL"]
        ends |= {"r2": (f"{column} >=", box.low), "r3": (f"{column} <", box.high)}
    texts += [f"{text} ${name}" for name, (text, end) in ends.items() if end is not None]
    return texts, {name: end for name, (_, end) in ends.items() if end is not None}


def count_rows(engine: Engine, conditions: Sequence[str], bound: dict[str, Any]) -> tuple[int, int]:
    """How many I/Os meet the conditions, and in how many rows."""
    sums = engine.ask(
        "SELECT CAST(sum(count) AS BIGINT) AS ios, count(*) AS n "
        f"FROM events {where(list(conditions))}",
        bound,
    )
    return single(sums["ios"]) or 0, single(sums["n"]) or 0


@dataclass(frozen=True)
class _Page:
    order: str
    descending: bool
    skip: int
    limit: int

    def read(
        self, engine: Engine, source: str, conditions: Sequence[str], bound: dict[str, Any]
    ) -> tuple[SingleIo, ...]:
        column = ORDERS[self.order]
        first = f"{column} {'DESC' if self.descending else 'ASC'} NULLS LAST"
        # all columns, so that pages neither repeat an I/O nor leave one out
        rest = ", ".join(name for name in COLUMNS if name != column)
        tail = f"ORDER BY {first}, {rest} LIMIT {self.limit:d} OFFSET {self.skip:d}"
        return read_rows(engine, source, conditions, bound, tail)


def _plain(name: str, column: Any, place: int) -> Any:
    if np.ma.getmaskarray(column)[place]:
        return None
    value = np.ma.getdata(column)[place]
    if name in _NUMBERS:
        return int(value)
    return None if value is None else str(value)


def as_data(page: SingleIos) -> dict[str, Any]:
    """For JSON."""
    return {
        "source": page.source,
        "total": page.total,
        "rows": page.rows,
        "skip": page.skip,
        "notes": list(page.notes),
        "ios": [io_data(io) for io in page.ios],
    }


def io_data(io: SingleIo) -> dict[str, Any]:
    """One I/O for JSON: its columns, with source and id."""
    return {"id": io.id, "source": io.source, **io.values}
