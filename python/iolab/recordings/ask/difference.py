# SPDX-License-Identifier: Apache-2.0
"""How two recordings, or traces, differ: rates, throughput and percentiles of latency of each
operation, and shares of devices, processes and files.

Each recording is one observation of a load, so nothing is tested. The range of a number over equal
parts of its recording shows how much the number varies within one recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from iolab import _core
from iolab.base.errors import UsageError

from ..store.base.counts import HeatCounts
from ..store.base.grids import LogLinear
from ..store.read.recording import Recording
from ..store.read.trace import Trace
from .answers.answers import Stack
from .attribution import Dimension, Rectangle, joined_shares, who
from .engine.snapshot import snapshot
from .language.catalogue import CATALOGUE, preference
from .language.fields import FIELDS
from .query import query
from .question import Filter, Statistic

PARTS = 20
"""Parts of a recording, at most. Their length is 1, 2 or 5 times a power of ten."""

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
LEAST_BEYOND = 10
"""I/Os above a percentile that a part needs, or the percentile is not known of that part."""

NUMBERED = ("pid", "thread")
"""Fields with numbers that each boot gives again."""

ALL_OPS = ""
"""The operation of a measure of all operations together."""


@dataclass(frozen=True)
class Value:
    """A number of one recording: over all of it, and the least and the largest of its parts (None
    where fewer than two parts have it)."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Measure:
    """A number of both recordings, None where one lacks it.

    Attributes:
        op: the operation, `ALL_OPS` for all. name: "rate", "throughput", or a percentile of latency.
        unit: "1/s", "B/s" or "ns".
    """

    op: str
    name: str
    unit: str
    first: Value | None
    second: Value | None

    @property
    def change(self) -> float | None:
        """Of the second against the first: 0.1 is 10 % more. None where that is not known."""
        if self.first is None or self.second is None or not self.first.value:
            return None
        return self.second.value / self.first.value - 1

    @property
    def is_apart(self) -> bool:
        """Whether the ranges of the parts do not overlap."""
        ranges = [
            (value.low, value.high)
            for value in (self.first, self.second)
            if value is not None and value.low is not None and value.high is not None
        ]
        if len(ranges) < 2:
            return False
        (low, high), (other_low, other_high) = ranges
        return high < other_low or other_high < low


@dataclass(frozen=True)
class Difference:
    """Of one source of events, or of two that are compared with each other.

    Attributes:
        sources: of the events of each. covered_ns: recorded time of each. events: I/Os of each.
        measures: of all operations, then of each. dimensions: shares of the first (`inside`) and the
        second recording (`outside`), the largest difference first. notes: of each recording.
    """

    sources: tuple[str, str]
    covered_ns: tuple[int, int]
    events: tuple[int, int]
    measures: tuple[Measure, ...]
    dimensions: tuple[Dimension, ...]
    notes: tuple[tuple[str, ...], tuple[str, ...]]


def differences(
    first: Trace | Recording,
    second: Trace | Recording,
    *,
    source: str | None = None,
    filters: Sequence[Filter] = (),
    top: int = 50,
) -> list[Difference]:
    """Differences of each source that both have; of two that have none in common, of the preferred
    source of each (a recording and an imported trace).

    Args:
        source: that source alone. filters: conditions on the I/Os of both. top: values of a
        dimension.
    UsageError where a recording lacks the source, or has no events.
    """
    sources = [_sources_of(events) for events in (first, second)]
    for events, names in zip((first, second), sources, strict=True):
        if not names or (source is not None and source not in names):
            raise UsageError(
                f"holds no events of '{source}'" if source is not None and names else "has no I/Os",
                where=events.path,
                hint=f"there are {', '.join(names)}" if names else "record block or syscall",
            )
    common = [name for name in sources[0] if name in sources[1]]
    if source is not None:
        common = [source]
    pairs = [(name, name) for name in common] or [(sources[0][0], sources[1][0])]
    return [_difference((first, second), pair, tuple(filters), top) for pair in pairs]


def _sources_of(events: Trace | Recording) -> list[str]:
    if isinstance(events, Recording):
        return preference(list(snapshot(events).sources))
    from ..store.write.ingest import source_of

    return [source_of(events.summary().format)]


def _group_of(source: str) -> str:
    """The group of statistics that a source answers first."""
    groups = (
        name.partition(".")[0] for name, entry in CATALOGUE.items() if source in entry.sources
    )
    return next(groups, "io")


def _difference(
    both: tuple[Trace | Recording, Trace | Recording],
    sources: tuple[str, str],
    filters: tuple[Filter, ...],
    top: int,
) -> Difference:
    first, second = (
        _Numbers(events, source, filters) for events, source in zip(both, sources, strict=True)
    )
    for events, numbers in zip(both, (first, second), strict=True):
        if not numbers.events:
            raise UsageError(
                "has no I/Os that meet the conditions" if filters else "has no I/Os",
                where=events.path,
                hint=f"'iolab show {events.path}' lists what it has",
            )
    ops = list(dict.fromkeys([*first.ops, *second.ops]))
    measures = [
        Measure(op, name, unit, first.value(op, name), second.value(op, name))
        for op in ([ALL_OPS, *ops] if len(ops) > 1 else ops)
        for name, unit in _NAMES.items()
    ]
    shares = [
        who(
            events,
            "latency",
            Rectangle(),
            filters=filters,
            entry=f"{_group_of(source)}.ops",
            source=source if isinstance(events, Recording) else None,
            top=2**31,
        )
        for events, source in zip(both, sources, strict=True)
    ]
    return Difference(
        sources,
        (first.covered_ns, second.covered_ns),
        (first.events, second.events),
        tuple(measure for measure in measures if measure.first or measure.second),
        tuple(
            dimension
            for dimension in joined_shares(shares[0], shares[1], top)
            if dimension.field not in NUMBERED and not _is_unknown(dimension)
        ),
        (first.notes, second.notes),
    )


def _is_unknown(dimension: Dimension) -> bool:
    """Whether neither recording knows the field of any I/O."""
    field = FIELDS.get(dimension.field)
    return field is not None and {share.value for share in dimension.values} <= {field.missing}


_NAMES = {"rate": "1/s", "throughput": "B/s", **dict.fromkeys(PERCENTILES, "ns")}
"""Measures with their units, in the order of an answer."""


class _Numbers:
    """The numbers of one recording."""

    def __init__(self, events: Trace | Recording, source: str, filters: tuple[Filter, ...]) -> None:
        self._events, self._filters = events, filters
        self._group = _group_of(source)
        self._source = source if isinstance(events, Recording) else None
        self._rates, self._bytes = self._stack("ops"), self._stack("bytes")
        self._maps: dict[str, HeatCounts] = {}
        self.ops = list(self._rates.keys)
        self.covered_ns, self.events = self._rates.covered_ns, sum(self._rates.totals)
        self.notes = tuple(dict.fromkeys((*self._rates.notes, *self._bytes.notes)))

    def value(self, op: str, name: str) -> Value | None:
        """A measure of an operation; None where nothing has it."""
        if name in PERCENTILES:
            return self._percentile(op, PERCENTILES[name])
        return _rate(self._rates if name == "rate" else self._bytes, op)

    def _stack(self, measure: str) -> Stack:
        answer = self._ask(Statistic(self._group, measure, self._filters, "op"))
        assert isinstance(answer, Stack)
        return answer

    def _ask(self, statistic: Statistic) -> Any:
        return query(self._events, statistic, columns=PARTS, source=self._source)

    def _percentile(self, op: str, share: float) -> Value | None:
        if op not in self._maps:
            by_op = () if op == ALL_OPS else (Filter("op", "=", (op,)),)
            counts = self._ask(Statistic(self._group, "ops", (*self._filters, *by_op), "latency"))
            assert isinstance(counts, HeatCounts)
            self._maps[op] = counts
        counts = self._maps[op]
        quantile = _quantile(counts, np.ones(len(counts.count), dtype=bool), share)
        if quantile is None:
            return None
        parts = [
            value
            for column in np.unique(counts.column)
            if (value := _quantile(counts, counts.column == column, share, least=LEAST_BEYOND))
            is not None
        ]
        return _with_range(quantile, parts)


def _rate(stack: Stack, op: str) -> Value | None:
    places = [place for place, key in enumerate(stack.keys) if op in (ALL_OPS, key)]
    total = sum(stack.totals[place] for place in places)
    if not total or not stack.covered_ns:
        return None
    parts = stack.values[places].sum(axis=0)
    # the first and the last part are as long as the recording has them
    return _with_range(total / (stack.covered_ns / 1e9), parts[np.isfinite(parts)].tolist())


def _quantile(counts: HeatCounts, chosen: Any, share: float, least: int = 0) -> float | None:
    """A quantile of the chosen cells; None where too few I/Os are above it."""
    assert isinstance(counts.grid, LogLinear)
    indices, places = np.unique(counts.index[chosen], return_inverse=True)
    totals = np.bincount(places, weights=counts.count[chosen]).astype(np.int64)
    if not len(indices) or totals.sum() * (1 - share) < least:
        return None
    (value,) = _core.quantiles(indices.tolist(), totals.tolist(), [share], counts.grid.bits)
    return None if value is None else float(value)


def _with_range(value: float, parts: Sequence[float]) -> Value:
    if len(parts) < 2:
        return Value(value)
    return Value(value, min(parts), max(parts))


def as_data(difference: Difference) -> dict[str, Any]:
    """For JSON: rates in 1/s and B/s, latency in ns, shares from 0 to 1 (null of nothing)."""
    return {
        "sources": list(difference.sources),
        "covered_ns": list(difference.covered_ns),
        "events": list(difference.events),
        "measures": [
            {**asdict(measure), "change": measure.change, "apart": measure.is_apart}
            for measure in difference.measures
        ],
        "dimensions": [
            {
                "field": dimension.field,
                "apart": dimension.telling,
                "values": [
                    {
                        "value": share.value,
                        "first": share.inside,
                        "second": share.outside,
                        "share_first": _share_or_none(share.share_inside),
                        "share_second": _share_or_none(share.share_outside),
                    }
                    for share in dimension.values
                ],
                "more": dimension.left,
            }
            for dimension in difference.dimensions
        ],
        "notes": [list(notes) for notes in difference.notes],
    }


def _share_or_none(share: float) -> float | None:
    return None if share != share else share
