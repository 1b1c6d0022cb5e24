# SPDX-License-Identifier: Apache-2.0
"""Two ranges of time of one statistic: of a heat map their difference cell by cell, of numbers how
they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import UsageError
from ...heatmap.figure import Named
from ...heatmap.wire import HeatMapGroup, SparseCounts, group_of
from ...recording.base.counts import HeatCounts, Integers, moved
from ...statistics.language.fields import MAPPED, UTILIZATION
from ..base.compared import Changes, Difference, SignedCells
from ..base.json_answer import check_size
from ..base.store import Store
from .compare_series import changes
from .heatmap_response import view_of
from .query_params import Request, Words, request_of
from .ranges import Ranges, Span, ranges_of

Spans = Sequence[tuple[int, int]]


def compared(store: Store, words: Words) -> Difference | Changes:
    """Two ranges of a heat map, or of numbers."""
    asked = request_of(store, words).statistic
    return difference(store, words) if asked.breakdown in MAPPED else changes(store, words)


def difference(store: Store, words: Words) -> Difference:
    """A range of a heat map less another one: ranges are widened to whole columns, and are then of
    equal length.

    A column of which nothing was recorded in one of the ranges has no difference; it is in `gaps`.
    """
    ranges = ranges_of(store, words)
    asked, interval, columns = ranges.request.statistic, ranges.interval_ns, ranges.columns
    if asked.breakdown not in MAPPED:
        raise UsageError(
            "the difference is that of two maps", where="statistic", hint="such as io.ops[latency]"
        )
    one, other = (_read(each, ranges) for each in ranges.requests())
    here, there = (_within(each, ranges) for each in ranges.requests())
    check_size(6 * (len(one.count) + len(other.count)))
    gaps = _joined([*one.gaps, *other.gaps], columns)
    group = None
    cells = SignedCells(starts=[0] * (columns + 1), rows=[], values=[])
    if len(one.count) or len(other.count):
        group = group_of(
            view_of(one), [Named("other", other), Named("this", one)], percentiles=False, joined=0
        )
        cells = _less(group, columns, interval, gaps)
    return Difference(
        statistic=str(asked),
        interval_ns=interval,
        columns=columns,
        from_ns=ranges.from_ns,
        until_ns=ranges.from_ns + ranges.length_ns,
        other_from_ns=ranges.other_from_ns,
        other_until_ns=ranges.other_from_ns + ranges.length_ns,
        covered_ns=_covered(one, ranges, here),
        other_covered_ns=_covered(other, ranges, there),
        group=group,
        cells=cells,
        gaps=gaps,
        notes=list(dict.fromkeys([*one.assumptions, *other.assumptions])),
    )


def _read(request: Request, ranges: Ranges) -> HeatCounts:
    """The map of a range, whose column 0 is the first of the range."""
    counts, first, within = request.answer(), request.from_ns, _within(request, ranges)
    assert isinstance(counts, HeatCounts)
    assert first is not None
    at = (counts.t0_ns - first) // ranges.interval_ns
    beyond = ranges.beyond(within, request) if within is not None else []
    return replace(
        counts,
        t0_ns=first,
        column=counts.column + at,
        gaps=(*((start + at, past + at) for start, past in counts.gaps), *beyond),
        lost_at=moved(counts.lost_at, at),
    )


def _within(request: Request, ranges: Ranges) -> Span | None:
    """What lies between the ends of the recording; None where it or its counters tell when
    something was recorded."""
    return None if request.statistic.breakdown == UTILIZATION.name else ranges.within(request)


def _joined(spans: Spans, columns: int) -> list[tuple[int, int]]:
    """Runs of columns that lie in any of the spans."""
    held = np.zeros(columns + 2, dtype=bool)
    for first, past in spans:
        held[max(0, first) + 1 : max(0, min(past, columns)) + 1] = True
    edges = np.flatnonzero(held[1:] != held[:-1])
    return [(int(first), int(past)) for first, past in edges.reshape(-1, 2)]


def _covered(counts: HeatCounts, ranges: Ranges, within: Span | None) -> int:
    """Time that was recorded, in whole columns; `within`: as the ranges tell it."""
    if within is not None:
        return within[1] - within[0]
    return (
        ranges.columns - sum(past - first for first, past in _joined(counts.gaps, ranges.columns))
    ) * counts.interval_ns


def _less(group: HeatMapGroup, columns: int, interval: int, gaps: Spans) -> SignedCells:
    """The second map's counts less the first one's, per second, without the columns in gaps."""
    rows = len(group.bounds) - 1
    compared = np.ones(columns, dtype=bool)
    for first, past in gaps:
        compared[first:past] = False
    keys, counts = [], []
    for counted, sign in zip(group.maps, (-1, 1), strict=True):
        column = _columns(counted.cells)
        held = compared[column]
        keys.append((column * rows + np.array(counted.cells.rows, dtype=np.int64))[held])
        counts.append(sign * np.array(counted.cells.counts, dtype=np.int64)[held])
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
    found: Integers = np.repeat(np.arange(len(cells.starts) - 1), np.diff(cells.starts))
    return found
