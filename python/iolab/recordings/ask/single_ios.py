# SPDX-License-Identifier: Apache-2.0
"""Single I/Os of a statistic inside a rectangle of time and value: sorted, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from iolab.base.errors import FormatError, UsageError

from ..store.base.schema import EVENTS
from ..store.read.recording import Recording
from ..store.read.trace import Trace
from .aliases import DiskGroups, host_names
from .attribution import Rectangle
from .engine.cells import where
from .engine.engine import single
from .language.fields import QUANTIZED, near
from .query import OpenEvents, scan, trouble
from .question import Question, Statistic, places_asked
from .tiers import trace_tier

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
    span = (rectangle.from_ns, rectangle.until_ns)
    groups = DiskGroups.of(events, places_asked(statistic), span)
    by_device = groups.statistic(host_names().statistic(statistic))
    filters = by_device.filters
    inside = rectangle.sql(y if y in QUANTIZED else None)
    column = ORDERS[order]
    # all columns, so that pages neither repeat an I/O nor leave one out
    rest = ", ".join(name for name in COLUMNS if name != column)
    first = f"{column} {'DESC' if descending else 'ASC'} NULLS LAST"
    tail = f"ORDER BY {first}, {rest} LIMIT {limit:d} OFFSET {skip:d}"
    question = Question.of(by_device, span, None, 1, source)
    sums: tuple[int, int] | None = None
    if isinstance(events, Trace):
        trace_tier.refuse_stdin(events)
        # a stream is read once: first to count, then for the page
        sums = scan(events, question, filters, lambda opened: count_rows(opened, *inside))

    def read_page(opened: OpenEvents) -> SingleIos:
        counted = sums or count_rows(opened, *inside)
        ios = read_rows(opened, *inside, tail)
        notes = (*opened.notes, *groups.notes(statistic.filters), *trouble(opened.events))
        return SingleIos(opened.source, *counted, skip, ios, notes)

    return scan(events, question, filters, read_page)


def read_rows(
    events: OpenEvents, conditions: Sequence[str], bound: dict[str, Any], tail: str = ""
) -> tuple[SingleIo, ...]:
    """Rows of events that meet more conditions. tail: clauses of order and limit."""
    columns = ", ".join(
        name if name in _NUMBERS else f"CAST({name} AS VARCHAR) AS {name}" for name in COLUMNS
    )
    clause = where([*events.conditions, *conditions])
    rows = events.engine.ask(
        f"SELECT {columns} FROM events {clause} {tail}", {**events.bound, **bound}
    )
    return tuple(
        SingleIo(events.source, {name: _plain(name, rows[name], place) for name in COLUMNS})
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
    bound = {f"k_{name}": value for name, value in values.items()}
    end = int(values["time_ns"])
    question = events_between(source, end, end + 1)
    rows = scan(events, question, (), lambda opened: read_rows(opened, texts, bound, "LIMIT 1"))
    if not rows:
        raise FormatError("the I/O is not recorded, or no longer", where=events.path)
    return rows[0]


def events_between(source: str, from_ns: int, until_ns: int) -> Question:
    """The question for the events of a source that were complete in a span of time."""
    return Question(None, (from_ns, until_ns), None, 1, source, "latency")


def _is_key(name: str, word: str) -> bool:
    if name == "op":
        return 0 < len(word) <= 16 and word.isascii()
    if not word:
        return name != "time_ns"
    return (
        word.isascii() and word.isdecimal() and int(word) < 2 ** (63 if name == "time_ns" else 64)
    )


def count_rows(
    events: OpenEvents, conditions: Sequence[str], bound: dict[str, Any]
) -> tuple[int, int]:
    """How many I/Os meet more conditions, and in how many rows."""
    sums = events.engine.ask(
        "SELECT CAST(sum(count) AS BIGINT) AS ios, count(*) AS n "
        f"FROM events {where([*events.conditions, *conditions])}",
        {**events.bound, **bound},
    )
    return single(sums["ios"]) or 0, single(sums["n"]) or 0


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
