# SPDX-License-Identifier: Apache-2.0
"""A trace file, opened read-only: what is in it, and counts for heat maps, straight from the native
readers. Counts of each value of a dimension (operation, device, process, file, job) attribute a part
of a map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from iolab import _core
from iolab.base.errors import FormatError, IolabError, UsageError

from ..base.conditions import NAMES, Where
from ..base.counts import HeatCounts, Integers, Weight, Y, alike, merge
from ..base.grids import Grid, Linear, LogLinear

BITS = 6
"""Resolution at which counts are taken from a trace: 1.6 % of the value; pictures coarsen from
there."""

STDIN = Path("-")

_T = TypeVar("_T")


@dataclass(frozen=True)
class Summary:
    """What a trace holds; `facts` has every field of the native core's summary (see
    `_core.trace_summary`)."""

    path: Path
    facts: Mapping[str, Any]

    @property
    def format(self) -> str:
        """Name of the format."""
        return str(self.facts["format"])

    @property
    def events(self) -> int:
        """I/Os read, after conditions."""
        return int(self.facts["events"])

    @property
    def has(self) -> list[str]:
        """Fields that some event has, of time, latency, offset, size, op, device, process, file,
        job, client."""
        return list(self.facts["has"])

    def names(self, dimension: str) -> list[tuple[str, int]]:
        """Values of op, device, process, file, job or client with their I/Os, largest first; at
        most 20 are known."""
        pairs = (
            self.facts["ops"].items()
            if dimension == "op"
            else self.facts["keys"].get(dimension, ())
        )
        return sorted(
            ((str(name), int(count)) for name, count in pairs if count),
            key=lambda pair: (-pair[1], pair[0]),
        )


@dataclass(frozen=True)
class Trace:
    """A trace of a known format.

    Attributes:
        path: the file, or `-` for standard input, which can be read once.
        format: its format; None finds it by content. columns: of CSV lines, such as
        `time:us,latency:ns,op`. where: conditions, as `conditions.parse_where` gives them.
    """

    path: Path
    format: str | None = None
    columns: str | None = None
    where: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path != STDIN and not self.path.exists():
            raise UsageError("no such file", where=self.path)
        if self.path.is_dir():
            raise FormatError(
                "is a directory, not a trace",
                where=self.path,
                hint="name the file, or each of its files",
            )
        if self.format is not None and self.format not in _core.trace_formats():
            raise UsageError(
                f"there is no trace format '{self.format}'",
                hint=f"there are {', '.join(_core.trace_formats())}",
            )

    def detect(self) -> str | None:
        """The format, found by content; None where none is recognised."""
        return self.format or self._ask_core(lambda: _core.trace_detect(str(self.path)))

    def check(self) -> None:
        """Read up to the first events. FormatError where it is empty, of no known format, or
        nothing in it can be read."""
        self._ask_core(
            lambda: next(
                iter(_core.trace_events(str(self.path), self.format, self.columns, None, 1)), None
            )
        )

    def summary(self) -> Summary:
        """What is in it, in one pass. FormatError where it is empty or of no known format."""
        return Summary(
            self.path,
            self._ask_core(
                lambda: _core.trace_summary(
                    str(self.path), self.format, self.columns, self._where()
                )
            ),
        )

    def counts(
        self,
        y: Y,
        *,
        interval_ns: int | None = None,
        columns: int = 400,
        low: int | None = None,
        high: int | None = None,
        buckets: int | None = None,
        weight: Weight = "count",
        more: Where | None = None,
    ) -> HeatCounts:
        """Counts by time and `y`, in one pass.

        Args:
            interval_ns: length of a column; left open, one of 1, 2, 5 times a power of ten that
            gives about `columns`. low, high: bounds of y in ns or bytes; I/Os outside are counted
            apart. buckets: equal buckets of an offset map.
            more: conditions in addition to the trace's own.
        FormatError where the file can't be read as a trace.
        """
        linear = {"linear_buckets": buckets} if buckets is not None else {}
        where = self._where(more)
        answer = self._ask_core(
            lambda: _core.trace_heatmap(
                str(self.path),
                y,
                format=self.format,
                columns=self.columns,
                where=where,
                bits=BITS,
                interval_ns=interval_ns,
                columns_wanted=columns,
                y_low=low,
                y_high=high,
                weight=weight,
                **linear,
            )
        )
        grid: Grid = (
            LogLinear(answer["bits"])
            if answer["grid"] == "log"
            else Linear(answer["low"], answer["width"])
        )
        return HeatCounts(
            y,
            answer["t0_ns"],
            answer["interval_ns"],
            grid,
            _integers(answer["column"], "<u4"),
            _integers(answer["index"], "<u4"),
            _integers(answer["count"], "<u8"),
            weight,
            events=answer["events"],
            damaged=answer["damaged"],
            without_y=answer["without_y"],
            filtered=answer["skipped_by_filter"],
            outside=answer["outside"],
            lost=answer["losses"],
            unpaired=answer["unpaired"],
            averaged=answer["averaged"],
            conditional=bool(where),
            assumptions=tuple(answer["assumptions"]),
        )

    def _where(self, more: Where | None = None) -> dict[str, list[str]] | None:
        both = {name: list(values) for name, values in {**self.where, **(more or {})}.items()}
        return both or None

    def _ask_core(self, ask: Callable[[], _T]) -> _T:
        """The core's answer; its words about the file become an error with its place."""
        try:
            return ask()
        except ValueError as error:
            words, place = str(error), "standard input" if self.path == STDIN else str(self.path)
            if any(f"{start}{place}" in words for start in ("", "-")):
                place = ""
            # what is wrong with the columns that were asked for begins so; everything else is wrong
            # with the file
            kind: type[IolabError] = (
                UsageError if self.columns and ": columns" in f": {words}" else FormatError
            )
            raise kind(words.removeprefix("-: "), where=place or None) from None
        except OSError as error:
            raise FormatError(
                f"can't be read: {error.strerror or error}", where=self.path
            ) from None


def counts_alike(
    traces: Sequence[_T], read: Callable[[_T, int | None], HeatCounts]
) -> list[HeatCounts]:
    """Counts of several traces (or recordings) on the same columns and buckets, so that they can be
    added or compared.

    `read` takes a trace and the length of a column, None leaving that to the trace. Where traces
    choose differently, those with shorter columns are read again with the longest.
    """
    counts_of_traces = [read(trace, None) for trace in traces]
    longest = max(
        (counts.interval_ns for counts in counts_of_traces if len(counts.count)), default=0
    )
    return alike(
        [
            counts
            if counts.interval_ns == longest or not len(counts.count)
            else read(trace, longest)
            for trace, counts in zip(traces, counts_of_traces, strict=True)
        ]
    )


def _integers(data: bytes, kind: str) -> Integers:
    return np.frombuffer(data, dtype=kind).astype(np.int64)


_Events = TypeVar("_Events")

MOST = 8
"""Values of a dimension that are separate; the rest are one part, `other`."""

BUDGET = 2**30
"""Bytes of traces to read again for this; beyond, fewer dimensions are split."""


@dataclass(frozen=True)
class Dimension:
    """Values of a dimension with their counts, most frequent first; they add up to the whole map."""

    name: str
    parts: tuple[tuple[str, HeatCounts], ...]


def dimensions(
    traces: Sequence[Trace],
    whole: HeatCounts,
    read: Callable[[Trace, Where], HeatCounts],
    where: Where | None = None,
) -> tuple[list[Dimension], list[str]]:
    """Dimensions in which the traces have more than one value, and the names of those left out for
    the traces' size.

    `read` counts a trace under further conditions, on the whole's columns. One pass is made for
    each value. `where`: conditions of the whole; other values are no part of it.
    """
    budget, size = BUDGET, sum(trace.path.stat().st_size for trace in traces)
    summaries = [trace.summary() for trace in traces]
    dimensions_found, left_out = [], []
    for name in NAMES:
        ios: dict[str, int] = {}
        for summary in summaries:
            for value, count in summary.names(name):
                ios[value] = ios.get(value, 0) + count
        ios = select(ios, name, where)
        values = sorted(ios, key=lambda value: (-ios[value], value))[:MOST]
        if not values or (
            len(values) == 1 and ios[values[0]] >= sum(summary.events for summary in summaries)
        ):
            continue
        if len(values) * size > budget:
            left_out.append(name)
            continue
        budget -= len(values) * size
        dimensions_found.append(dimension(name, values, traces, whole, read))
    return dimensions_found, left_out


def select(counts: dict[str, int], name: str, where: Where | None) -> dict[str, int]:
    """Counts of the values of a dimension that conditions name; all where they name none."""
    values = (where or {}).get(name)
    return {value: count for value, count in counts.items() if values is None or value in values}


def dimension(
    name: str,
    values: Sequence[str],
    held: Sequence[_Events],
    whole: HeatCounts,
    read: Callable[[_Events, Where], HeatCounts],
    *,
    growing: bool = False,
) -> Dimension:
    """The parts of a map that are of these values, those with a count, and `other` for the rest;
    `read` as for `dimensions`.

    `growing` says that events came after the whole was counted: they are left out of the parts.
    """
    rest, *parts = alike(
        [
            whole,
            *(merge(alike([read(events, {name: [value]}) for events in held])) for value in values),
        ]
    )
    named = []
    for value, part in zip(values, parts, strict=True):
        mine = part.within(rest) if growing else part
        if len(mine.count):
            named.append((value, mine))
            rest = rest.minus([mine])
    if len(rest.count):
        named.append(("other", rest))
    return Dimension(name, tuple(named))
