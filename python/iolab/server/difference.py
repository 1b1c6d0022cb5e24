"""Two ranges of time of one heat map, and their difference cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import UsageError
from ..heatmap.figure import Named
from ..recording.counts import HeatCounts, Integers
from ..report.heatmap_page import group_of
from ..report.heatmap_payload import HeatMapGroup, SparseCounts
from ..statistics.fields import MAPPED
from ..statistics.intervals import check_interval, columns_of, round_interval
from .asking import Question, Words, columned, moment, needed, question_of
from .drawn import view_of
from .models import Difference, SignedCells
from .plain import check_size
from .store import Store

Spans = Sequence[tuple[int, int]]


def difference(store: Store, words: Words) -> Difference:
    """A range of a heat map less another one: ranges are widened to whole columns, and are then of equal length.

    A column of which nothing was recorded in one of the ranges has no difference; it is in `gaps`.
    """
    question = columned(question_of(store, words))
    asked = question.statistic
    if asked.breakdown not in MAPPED:
        raise UsageError("the difference is that of two maps", where="statistic", hint="such as io.ops[latency]")
    ends = store.ends(question.recording)
    spans = [[moment(needed(words, f"{which}{end}"), *ends) for end in ("from", "to")] for which in ("", "other_")]
    for (first, until), name in zip(spans, ("from", "other_from"), strict=True):
        if first >= until:
            raise UsageError("the span of time is empty", where=name, hint="it must begin before it ends")
    if spans[0][1] - spans[0][0] != spans[1][1] - spans[1][0]:
        raise UsageError("the two ranges differ in length", where="other_to", hint="take the same length of time for both")
    check_interval(question.interval_ns)
    interval = question.interval_ns or round_interval(spans[0][0], spans[0][1] - 1, question.columns)
    columns = max(columns_of(first, until - 1, interval) for first, until in spans)
    starts = [first // interval * interval for first, _ in spans]
    one, other = (_read(question, start, start + columns * interval, interval) for start in starts)
    check_size(6 * (len(one.count) + len(other.count)))
    gaps = _joined([*one.gaps, *other.gaps], columns)
    group = None
    cells = SignedCells(starts=[0] * (columns + 1), rows=[], values=[])
    if len(one.count) or len(other.count):
        group = group_of(view_of(one), [Named("other", other), Named("this", one)], percentiles=False)
        cells = _less(group, columns, interval, gaps)
    return Difference(
        statistic=str(asked), interval_ns=interval, columns=columns, from_ns=starts[0], until_ns=starts[0] + columns * interval,
        other_from_ns=starts[1], other_until_ns=starts[1] + columns * interval, covered_ns=_covered(one, columns),
        other_covered_ns=_covered(other, columns), group=group, cells=cells, gaps=gaps,
        notes=list(dict.fromkeys([*one.assumptions, *other.assumptions])))


def _read(question: Question, first: int, until: int, interval: int) -> HeatCounts:
    """The map of a range, whose column 0 is the first of the range."""
    counts = replace(question, from_ns=first, until_ns=until, interval_ns=interval).answer()
    assert isinstance(counts, HeatCounts)
    at = (counts.t0_ns - first) // interval
    return replace(counts, t0_ns=first, column=counts.column + at, gaps=tuple((start + at, past + at) for start, past in counts.gaps),
                   lost_by_column=tuple((column + at, lost) for column, lost in counts.lost_by_column))


def _joined(spans: Spans, columns: int) -> list[tuple[int, int]]:
    """Runs of columns that lie in any of the spans."""
    held = np.zeros(columns + 2, dtype=bool)
    for first, past in spans:
        held[max(0, first) + 1:max(0, min(past, columns)) + 1] = True
    edges = np.flatnonzero(held[1:] != held[:-1])
    return [(int(first), int(past)) for first, past in edges.reshape(-1, 2)]


def _covered(counts: HeatCounts, columns: int) -> int:
    """Time that was recorded, in whole columns."""
    return (columns - sum(past - first for first, past in _joined(counts.gaps, columns))) * counts.interval_ns


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
    return SignedCells(starts=np.searchsorted(cell // rows, np.arange(columns + 1)).tolist(), rows=(cell % rows).tolist(),
                       values=(change / (interval / 1e9)).tolist())


def _columns(cells: SparseCounts) -> Integers:
    """The column of each count."""
    found: Integers = np.repeat(np.arange(len(cells.starts) - 1), np.diff(cells.starts))
    return found
