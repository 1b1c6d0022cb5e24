# SPDX-License-Identifier: Apache-2.0
"""Two ranges of time of one statistic and of the same length: of a heat map their difference cell by
cell, of numbers how they changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from iolab.base.documents import Model
from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Answer, Floats, Series, Stack
from iolab.recordings.ask.answers.json_form import Row, is_averaged, largest, number, numbers
from iolab.recordings.ask.kept.coverage import is_counted
from iolab.recordings.ask.language.fields import MAPPED, UTILIZATION
from iolab.recordings.ask.question import check_interval, columns_of, round_interval
from iolab.recordings.heatmap.figure import Named
from iolab.recordings.heatmap.wire import HeatMapGroup, SparseCounts, group_of
from iolab.recordings.store.base.counts import HeatCounts, Integers, move_losses
from iolab.recordings.store.read.folder import Folder
from iolab.recordings.store.read.trace import Trace

from ..base.models import Value, VersionedModel
from ..base.store import Store
from .answers import cell_writer, check_size, view_of
from .parameters import Request, Words, moment, request_of, require, require_columns


class SignedCells(Model):
    """Values by column: those of column c are `rows[k]`, `values[k]` for k from `starts[c]` to
    `starts[c + 1]`."""

    starts: list[int]
    rows: list[int]
    values: list[float]


class TwoRanges(VersionedModel):
    """What every comparison of two ranges of time says: both of equal length, widened to whole
    columns; covered_ns, other_covered_ns: how much of each was recorded."""

    statistic: str
    interval_ns: int
    columns: int
    from_ns: int
    until_ns: int
    other_from_ns: int
    other_until_ns: int
    covered_ns: int
    other_covered_ns: int


class Difference(TwoRanges):
    """Two ranges of time of one heat map on one grid, of equal length, both widened to whole
    columns.

    `group` has two maps, the other range first; column 0 of one begins at other_from_ns, of the
    other at from_ns; null where neither holds anything. `cells`: the range's counts less the
    other's, per second recorded, in the group's rows; columns of which one was not recorded at all
    are in `gaps` instead: (first, one past the last).
    """

    kind: Literal["difference"] = "difference"
    group: HeatMapGroup | None
    cells: SignedCells
    gaps: list[tuple[int, int]]
    notes: list[str]


class Change(Model):
    """A value over one range of time and over another one: mean and other_mean over what was
    recorded of them; change: the first less the second; ratio: the first by the second, null where
    that is 0. values, other_values: by column from the begin of each range."""

    key: str
    mean: Value
    other_mean: Value
    change: Value
    ratio: Value
    values: list[Value]
    other_values: list[Value]


class Changes(TwoRanges):
    """Two ranges of time of a number, or of a number for each key, of equal length and both widened
    to whole columns.

    `whole`: of all keys together, its key is empty; `keys`: those that changed most first, `left`
    how many more there are. Values are per second (levels and shares: on average), null where
    nothing was recorded, or where a key is among those that are not separate.
    """

    kind: Literal["changes"] = "changes"
    unit: str
    adds_up: bool
    whole: Change
    keys: list[Change]
    left: int
    notes: list[str]


Span = tuple[int, int]
"""From (ns) up to, not including, until (ns)."""


@dataclass(frozen=True)
class Ranges:
    """Two ranges, widened to whole columns and of equal length then.

    Attributes:
        request: the question to both. ends: (first, last) ns of the recording. from_ns,
        other_from_ns: where they begin, multiples of interval_ns. columns: of each.
    """

    request: Request
    ends: tuple[int, int]
    interval_ns: int
    columns: int
    from_ns: int
    other_from_ns: int

    @property
    def length_ns(self) -> int:
        """Of each range."""
        return self.columns * self.interval_ns

    def facts(self) -> dict[str, Any]:
        """The fields of `TwoRanges` without those of the recorded time."""
        return {
            "statistic": str(self.request.statistic),
            "interval_ns": self.interval_ns,
            "columns": self.columns,
            "from_ns": self.from_ns,
            "until_ns": self.from_ns + self.length_ns,
            "other_from_ns": self.other_from_ns,
            "other_until_ns": self.other_from_ns + self.length_ns,
        }

    def within(self, request: Request, *, is_counted: bool) -> Span | None:
        """The part of a request's range between the ends of the recording; empty where they do not
        meet. None where sessions or counters say when it was recorded: traces and imports of events
        do not."""
        opened, first = request.opened, request.from_ns
        assert first is not None
        recordings = opened.recordings if isinstance(opened, Folder) else (opened,)
        if is_counted or any(
            not isinstance(item, Trace) and item.facts.sessions for item in recordings
        ):
            return None
        begin = max(first, self.ends[0])
        return begin, max(begin, min(first + self.length_ns, self.ends[1] + 1))

    def beyond(self, span: Span | None, request: Request) -> list[Span]:
        """Runs of columns of a request's range, (first, one past the last), that lie outside of a
        span as `within` gives it."""
        assert request.from_ns is not None
        if span is None:
            return []
        if span[0] == span[1]:
            return [(0, self.columns)]
        first, past = (
            (span[0] - request.from_ns) // self.interval_ns,
            -(-(span[1] - request.from_ns) // self.interval_ns),
        )
        return [run for run in ((0, first), (past, self.columns)) if run[0] < run[1]]

    def requests(self) -> tuple[Request, Request]:
        """The request of the range, and of the other one."""
        own, other = (
            self.request.with_parts(
                span=(first, first + self.length_ns), interval_ns=self.interval_ns
            )
            for first in (self.from_ns, self.other_from_ns)
        )
        return own, other


def ranges_of(store: Store, words: Words) -> Ranges:
    """The ranges of a request. UsageError where one is empty, or they differ in length."""
    request = require_columns(request_of(store, words))
    ends = store.ends(request.recording)
    spans = [
        [moment(require(words, f"{which}{end}"), *ends) for end in ("from", "to")]
        for which in ("", "other_")
    ]
    for (first, until), name in zip(spans, ("from", "other_from"), strict=True):
        if first >= until:
            raise UsageError(
                "the span of time is empty", where=name, hint="it must begin before it ends"
            )
    if spans[0][1] - spans[0][0] != spans[1][1] - spans[1][0]:
        raise UsageError(
            "the two ranges differ in length",
            where="other_to",
            hint="take the same length of time for both",
        )
    check_interval(request.question.interval_ns)
    interval = request.question.interval_ns or round_interval(
        spans[0][0], spans[0][1] - 1, request.question.columns
    )
    columns = max(columns_of(first, until - 1, interval) for first, until in spans)
    starts = [first // interval * interval for first, _ in spans]
    return Ranges(request, ends, interval, columns, starts[0], starts[1])


Spans = Sequence[tuple[int, int]]


def compare(store: Store, words: Words) -> Difference | Changes:
    """Two ranges of a heat map, or of numbers."""
    statistic = request_of(store, words).statistic
    return difference(store, words) if statistic.breakdown in MAPPED else changes(store, words)


def difference(store: Store, words: Words) -> Difference:
    """A range of a heat map less another one: ranges are widened to whole columns, and are then of
    equal length.

    A column of which nothing was recorded in one of the ranges has no difference; it is in `gaps`.
    """
    ranges = ranges_of(store, words)
    interval, columns = ranges.interval_ns, ranges.columns
    (own, covered), (other, other_covered) = (
        _read(request, ranges) for request in ranges.requests()
    )
    gaps = _join_runs([*own.gaps, *other.gaps], columns)
    group = None
    cells = SignedCells(starts=[0] * (columns + 1), rows=[], values=[])
    if len(own.count) or len(other.count):
        # a cell of the maps, and of their difference
        write = cell_writer(2 + 2)
        maps = [Named("other", other), Named("this", own)]
        group = group_of(view_of(own), maps, percentiles=False, joined=0, written=write)
        cells = _less(group, columns, interval, gaps)
    return Difference(
        **ranges.facts(),
        covered_ns=covered,
        other_covered_ns=other_covered,
        group=group,
        cells=cells,
        gaps=gaps,
        notes=list(dict.fromkeys([*own.assumptions, *other.assumptions])),
    )


def _read(request: Request, ranges: Ranges) -> tuple[HeatCounts, int]:
    """(the map of a range, with column 0 as the first of the range; ns of it that were recorded, in
    whole columns)."""
    counts, first = request.answer(), request.from_ns
    assert isinstance(counts, HeatCounts)
    assert first is not None
    within = ranges.within(request, is_counted=request.statistic.breakdown == UTILIZATION.name)
    at = (counts.t0_ns - first) // ranges.interval_ns
    counts = replace(
        counts,
        t0_ns=first,
        column=counts.column + at,
        gaps=(
            *((start + at, past + at) for start, past in counts.gaps),
            *ranges.beyond(within, request),
        ),
        lost_at=move_losses(counts.lost_at, at),
    )
    if within is not None:
        return counts, within[1] - within[0]
    missing = sum(past - first for first, past in _join_runs(counts.gaps, ranges.columns))
    return counts, (ranges.columns - missing) * counts.interval_ns


def _join_runs(spans: Spans, columns: int) -> list[tuple[int, int]]:
    """Runs of columns that lie in any of the spans."""
    is_covered = np.zeros(columns + 2, dtype=bool)
    for first, past in spans:
        is_covered[max(0, first) + 1 : max(0, min(past, columns)) + 1] = True
    edges = np.flatnonzero(is_covered[1:] != is_covered[:-1])
    return [(int(first), int(past)) for first, past in edges.reshape(-1, 2)]


def _less(group: HeatMapGroup, columns: int, interval: int, gaps: Spans) -> SignedCells:
    """The second map's counts less the first one's, per second, without the columns in gaps."""
    rows = len(group.bounds) - 1
    compared = np.ones(columns, dtype=bool)
    for first, past in gaps:
        compared[first:past] = False
    keys, counts = [], []
    for counted, sign in zip(group.maps, (-1, 1), strict=True):
        column = _columns(counted.cells)
        is_kept = compared[column]
        keys.append((column * rows + np.array(counted.cells.rows, dtype=np.int64))[is_kept])
        counts.append(sign * np.array(counted.cells.counts, dtype=np.int64)[is_kept])
    cell, place = np.unique(np.concatenate(keys), return_inverse=True)
    change = np.zeros(len(cell), dtype=np.int64)
    np.add.at(change, place, np.concatenate(counts))
    cell, change = cell[change != 0], change[change != 0]
    return SignedCells(
        starts=np.searchsorted(cell // rows, np.arange(columns + 1)).tolist(),
        rows=(cell % rows).tolist(),
        values=(change / (interval / 1e9)).tolist(),
    )


def _columns(cells: SparseCounts) -> Integers:
    """The column of each count."""
    columns: Integers = np.repeat(np.arange(len(cells.starts) - 1), np.diff(cells.starts))
    return columns


@dataclass(frozen=True)
class _Side:
    """One of the ranges: the values and the mean of all together and of each key, in the columns of
    the range.

    `complete`: whether every key is listed, so that a key that is missing did nothing.
    """

    whole: Row
    rows: dict[str, Row]
    complete: bool
    adds_up: bool
    covered_ns: int
    unit: str
    notes: tuple[str, ...]

    def row(self, key: str) -> Row:
        """The key's; of a missing key 0 where something was recorded, unknown where it may be
        among the others."""
        row = self.rows.get(key)
        if row is not None:
            return row
        values = (
            np.where(np.isnan(self.whole.values), math.nan, 0.0)
            if self.complete
            else np.full_like(self.whole.values, math.nan)
        )
        return Row(key, values, 0, self.mean(key))

    def mean(self, key: str) -> float:
        """Of the same row."""
        row = self.rows.get(key)
        return (
            row.mean if row is not None else 0.0 if self.complete and self.covered_ns else math.nan
        )


def changes(store: Store, words: Words) -> Changes:
    """A range of numbers next to another range: ranges are widened to whole columns, and are then of
    equal length."""
    ranges = ranges_of(store, words)
    own, other = (_side(request, ranges) for request in ranges.requests())
    all_keys = sorted(
        dict.fromkeys([*own.rows, *other.rows]),
        key=lambda key: (-_size(own.mean(key) - other.mean(key)), key),
    )
    keys = all_keys[: ranges.request.top]
    check_size(2 * (1 + len(keys)) * ranges.columns)
    return Changes(
        **ranges.facts(),
        unit=own.unit,
        covered_ns=own.covered_ns,
        other_covered_ns=other.covered_ns,
        adds_up=own.adds_up and other.adds_up,
        whole=_change("", own.whole, other.whole),
        keys=[_change(key, own.row(key), other.row(key)) for key in keys],
        left=len(all_keys) - len(keys),
        notes=list(dict.fromkeys([*own.notes, *other.notes])),
    )


def _side(request: Request, ranges: Ranges) -> _Side:
    answer = _limit_cover(request.answer(), request, ranges)
    rows: dict[str, Row] = {}
    complete, adds_up = True, True
    total = answer
    if isinstance(answer, Stack):
        rows = {
            row.key: replace(row, values=_place_values(row.values, answer, request, ranges))
            for row in largest(answer, None)[0]
        }
        # of things of which a mean is taken, one that was not there was not idle
        complete, adds_up = not answer.rest_keys and not is_averaged(answer), answer.adds_up
        total = _limit_cover(
            request.answer(replace(request.statistic, breakdown=None)), request, ranges
        )
    values = _place_values(total.values, total, request, ranges)
    return _Side(
        Row("", values, total.total, total.mean),
        rows,
        complete,
        adds_up,
        answer.covered_ns,
        answer.unit,
        tuple(dict.fromkeys([*total.notes, *answer.notes])),
    )


def _limit_cover(answer: Answer, request: Request, ranges: Ranges) -> Series | Stack:
    """The answer, of which nothing is covered beyond the ends of a recording of unknown length: its
    means are over the rest. Counters report that themselves."""
    assert isinstance(answer, Series | Stack)
    within = _within(answer, request, ranges)
    return answer if within is None else replace(answer, covered_ns=within[1] - within[0])


def _within(answer: Series | Stack, request: Request, ranges: Ranges) -> Span | None:
    return ranges.within(request, is_counted=is_counted(answer.statistic, answer.source))


def _place_values(
    values: Floats, answer: Series | Stack, request: Request, ranges: Ranges
) -> Floats:
    """Values in the columns of the range; those beyond what was answered, or beyond the ends that
    `_limit_cover` knows, are unknown."""
    assert request.from_ns is not None
    placed = np.full(ranges.columns, math.nan)
    shift = (answer.t0_ns - request.from_ns) // ranges.interval_ns
    first, past = max(0, shift), min(ranges.columns, shift + len(values))
    if first < past:
        placed[first:past] = values[first - shift : past - shift]
    for first, past in ranges.beyond(_within(answer, request, ranges), request):
        placed[first:past] = math.nan
    return placed


def _size(change: float) -> float:
    """By which keys are ordered."""
    return 0.0 if math.isnan(change) else abs(change)


def _change(key: str, one: Row, other: Row) -> Change:
    ratio = one.mean / other.mean if other.mean else math.nan
    return Change(
        key=key,
        mean=number(one.mean),
        other_mean=number(other.mean),
        change=number(one.mean - other.mean),
        ratio=number(ratio),
        values=numbers(one.values),
        other_values=numbers(other.values),
    )
