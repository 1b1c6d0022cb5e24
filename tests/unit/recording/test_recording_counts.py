# SPDX-License-Identifier: Apache-2.0
"""Counts merge by addition and coarsen exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab import _core
from iolab.base.errors import FormatError, UsageError
from iolab.recordings.store.base.counts import MOST_BUCKETS, HeatCounts, alike, merge
from iolab.recordings.store.base.grids import Grid, Linear, LogLinear

events = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 2**40)), max_size=100)


def counted(made: list[tuple[int, int]], grid: Grid, first: int = 0) -> HeatCounts:
    """Counts of (column, value), the columns beginning at `first`."""
    found = Counter((column - first, index_of(value, grid)) for column, value in made)
    cells = sorted(found)
    columns, indices, numbers = (
        np.array(part, dtype=np.int64)
        for part in ([c for c, _ in cells], [i for _, i in cells], [found[cell] for cell in cells])
    )
    return HeatCounts(
        "latency", 1000 * first, 1000, grid, columns, indices, numbers, events=len(made)
    )


def index_of(value: int, grid: Grid) -> int:
    return (
        _core.grid_index(value, grid.bits)
        if isinstance(grid, LogLinear)
        else (value - grid.low) // grid.width
    )


def cells(counts: HeatCounts) -> dict[tuple[int, int], int]:
    """(start of the column in ns, bucket) to count."""
    return {
        (counts.t0_ns + column * counts.interval_ns, index): count
        for column, index, count in zip(
            counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True
        )
    }


@given(events, events)
def test_parts_merge_to_the_whole(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    whole, merged = (
        counted(one + two, LogLinear(6)),
        merge([counted(one, LogLinear(6)), counted(two, LogLinear(6))]),
    )
    assert cells(merged) == cells(whole)
    assert merged.events == whole.events


@given(events, events, st.integers(0, 20))
def test_parts_that_begin_later_keep_their_place(
    one: list[tuple[int, int]], two: list[tuple[int, int]], first: int
) -> None:
    later = [(column + first, value) for column, value in two]
    assert cells(merge([counted(one, LogLinear(6)), counted(later, LogLinear(6), first)])) == cells(
        counted(one + later, LogLinear(6))
    )


@given(events, st.integers(0, 6), st.integers(1, 7))
def test_coarsening_is_exact(made: list[tuple[int, int]], steps: int, columns: int) -> None:
    coarse = counted(made, LogLinear(6)).coarser(columns=columns, steps=steps)
    assert cells(coarse) == Counter(
        (1000 * columns * (column // columns), _core.grid_index(value, 6 - steps))
        for column, value in made
    )


@given(events.filter(bool), events.filter(bool), st.integers(20, 34), st.integers(20, 34))
def test_equal_buckets_of_different_traces_are_made_alike(
    one: list[tuple[int, int]], two: list[tuple[int, int]], a: int, b: int
) -> None:
    def of(made: list[tuple[int, int]], shift: int) -> HeatCounts:
        return counted(made, Linear(min(value for _, value in made) >> shift << shift, 1 << shift))

    first, second = alike([of(one, a), of(two, b)])
    assert first.grid == second.grid
    assert cells(merge([first, second])) == cells(counted(one + two, first.grid))
    width, highest = first.grid.width, max(value for _, value in one + two)  # type: ignore[union-attr]
    buckets = highest // width - first.grid.low // width + 1  # type: ignore[union-attr]
    assert width >= 1 << max(a, b)
    assert buckets <= MOST_BUCKETS
    assert width == 1 << max(a, b) or 2 * buckets >= MOST_BUCKETS


@given(events, events)
def test_taking_a_part_away_leaves_the_rest(
    one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:
    rest = counted(one + two, LogLinear(4)).minus([counted(two, LogLinear(4))])
    assert cells(rest) == cells(counted(one, LogLinear(4)))


@given(events, events, st.integers(0, 20), st.integers(0, 20))
def test_a_part_that_begins_at_another_time_is_taken_away_there(
    one: list[tuple[int, int]], two: list[tuple[int, int]], a: int, b: int
) -> None:
    made = [(column + max(a, b), value) for column, value in one + two]
    part = counted(made[len(one) :], LogLinear(6), a)
    rest = counted(made, LogLinear(6), b).minus([part])
    assert cells(rest) == cells(counted(made[: len(one)], LogLinear(6)))
    assert rest.events == len(one)


def test_a_part_that_is_larger_than_the_whole_is_refused() -> None:
    whole, part = (
        counted([(3, 7)], LogLinear(6)),
        counted([(3, 7), (2, 7), (9, 7)], LogLinear(6), 1),
    )
    with pytest.raises(FormatError, match="hold more than the map"):
        whole.minus([part])
    with pytest.raises(UsageError, match="different columns or buckets"):
        whole.minus([part.coarser(columns=2)])
    assert whole.minus([part], overlapping=True).total == 0
    assert cells(part.within(whole)) == cells(whole)


@given(events, events, st.integers(0, 20), st.integers(0, 20))
def test_within_a_map_no_cell_has_more(
    one: list[tuple[int, int]], two: list[tuple[int, int]], a: int, b: int
) -> None:
    whole = counted([(column + a, value) for column, value in one], LogLinear(4), a)
    part = counted([(column + b, value) for column, value in two], LogLinear(6), b)
    assert cells(part.within(whole)) == Counter(cells(whole)) & Counter(
        cells(part.coarser(steps=2))
    )


@given(events, st.integers(0, 20), st.integers(0, 20), st.integers(1, 7))
def test_a_still_picture_has_all_columns_that_were_asked_about(
    made: list[tuple[int, int]], before: int, after: int, joined: int
) -> None:
    counts = counted(made, LogLinear(6), 0)
    gaps = ((-before, 0),) if before else ()
    asked = replace(
        counts,
        window=(-before, counts.columns + after),
        gaps=gaps,
        lost_at=((-before, "lost", 1), (-before, "damaged", 2)),
    )
    framed = asked.with_all_columns()
    assert cells(framed) == cells(counts)
    assert framed.columns == counts.columns + before + after
    assert framed.t0_ns == counts.t0_ns - 1000 * before
    assert framed.gaps == (((0, before),) if before else ())
    assert framed.lost_at == ((0, "lost", 1), (0, "damaged", 2))
    assert framed.lost_by_column == ((0, 3),)
    again = framed.with_all_columns()
    assert (again.t0_ns, again.columns, cells(again)) == (
        framed.t0_ns,
        framed.columns,
        cells(framed),
    )
    assert framed.coarser(columns=joined).columns == -(-framed.columns // joined)
    assert counts.with_all_columns() is counts


@given(events.filter(bool), events.filter(bool), st.integers(0, 20))
def test_windows_of_parts_are_joined(
    one: list[tuple[int, int]], two: list[tuple[int, int]], first: int
) -> None:
    parts = [
        counted(one, LogLinear(6)),
        counted([(column + first, value) for column, value in two], LogLinear(6), first),
    ]
    known = replace(parts[0], window=(-5, 60))
    merged = merge([known, parts[1]])
    past = max(60, *(part.t0_ns // 1000 + part.columns for part in parts))
    assert (
        merged.with_all_columns().t0_ns,
        merged.with_all_columns().t0_ns + merged.with_all_columns().span_ns,
    ) == (
        -5000,
        1000 * past,
    )
    # beside one that counts nothing it keeps its own
    assert merge([known, counted([], LogLinear(6))]).window == (-5, 60)


def test_different_buckets_are_refused() -> None:
    with pytest.raises(UsageError, match="different columns or buckets"):
        merge([counted([(0, 5)], LogLinear(6)), counted([(0, 5)], LogLinear(5))])
    with pytest.raises(UsageError, match="logarithmic grid"):
        alike([counted([(0, 5)], LogLinear(6)), counted([(0, 5)], Linear(0, 8))])
    with pytest.raises(ValueError, match="multiples"):
        Linear(3, 8)


def test_what_is_empty_has_no_place_in_time() -> None:
    empty, full = counted([], Linear(0, 1)), counted([(7, 900)], Linear(512, 256))
    assert cells(merge(alike([empty, full]))) == {(7000, 1): 1}


def test_parts_in_which_nothing_is_left_are_nothing_together() -> None:
    nothing = counted([], LogLinear(6))
    asked = replace(nothing, window=(0, 3))
    assert merge([nothing, replace(asked, interval_ns=20)]).window is None
    assert merge([nothing, asked]).window == merge([asked, nothing]).window == (0, 3)
    assert merge([nothing, replace(asked, interval_ns=20)]).total == 0
