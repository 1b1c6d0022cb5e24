# SPDX-License-Identifier: Apache-2.0
"""Moments, columns of time, and losses and gaps that survive merging and coarsening."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iolab.base.errors import UsageError
from iolab.recordings.ask.engine.snapshot import gap_columns, lost_at
from iolab.recordings.ask.language.quantities import parse_duration, parse_moment
from iolab.recordings.ask.question import round_interval
from iolab.recordings.store.base.counts import HeatCounts, merge, of_columns
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.base.intervals import join, without

SECOND = 10**9
START = 1_700_000_000 * SECOND  # 2023-11-14 22:13:20 UTC
END = START + 3600 * SECOND - 1


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30s", START + 30 * SECOND),
        ("0", START),
        ("1.5min", START + 90 * SECOND),
        ("2m", START + 120 * SECOND),
        ("-10m", END + 1 - 600 * SECOND),
        ("-1h", START),
        ("1h30m", START + 5400 * SECOND),
        ("-1m30s", END + 1 - 90 * SECOND),
        ("-500ms", END + 1 - SECOND // 2),
        ("2023-11-14T22:20:00", START + 400 * SECOND),
        ("2023-11-14 23:20:00+01:00", START + 400 * SECOND),
        ("22:20:00", START + 400 * SECOND),
        ("22:20", START + 400 * SECOND),
        ("2023-11-14T22:13:20.000001Z", START + 1000),
    ],
)
def test_moments(text: str, moment: int) -> None:
    assert parse_moment(text, START, END) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "10", "-", "10x", "25:00", "2023-13-01", "-10", "1..2s", "30m1h", "-1h2h"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match="is not a moment"):
        parse_moment(text, START, END)


def test_a_trace_with_a_clock_of_its_own_has_no_days() -> None:
    with pytest.raises(UsageError, match="count from a start of their own"):
        parse_moment("22:20", 0, 10**9)
    assert parse_moment("-1s", 0, 5 * SECOND - 1) == 4 * SECOND


def test_durations() -> None:
    assert [
        parse_duration(text)
        for text in ("1s", "10 ms", "1d", "3m", "250us", "1h30m", "1m 500ms", "1d12h")
    ] == [
        SECOND,
        10**7,
        86400 * SECOND,
        180 * SECOND,
        250_000,
        5400 * SECOND,
        60 * SECOND + 5 * 10**8,
        36 * 3600 * SECOND,
    ]


@given(some.integers(-(10**18), 2 * 10**18), some.integers(0, 10**15), some.integers(1, 4000))
def test_a_chosen_interval_is_the_shortest_round_one(first: int, span: int, columns: int) -> None:
    interval = round_interval(first, first + span, columns)
    digits = str(interval)
    assert digits[0] in "125"
    assert set(digits[1:]) <= {"0"}
    assert (first + span) // interval - first // interval < max(2, columns)
    if interval > 1:
        shorter = interval // 2 if digits[0] in "12" else interval * 2 // 5
        assert (first + span) // shorter - first // shorter >= max(2, columns)


spans = some.lists(
    some.tuples(some.integers(0, 60), some.integers(1, 20)).map(
        lambda pair: (pair[0], pair[0] + pair[1])
    ),
    max_size=6,
)


@given(spans, spans)
def test_spans_without_holes_are_what_is_left(
    held: list[tuple[int, int]], holes: list[tuple[int, int]]
) -> None:
    inside = {at for first, until in held for at in range(first, until)} - {
        at for first, until in holes for at in range(first, until)
    }
    found = without(join(held), holes)
    assert {at for first, until in found for at in range(first, until)} == inside
    assert found == sorted(found)
    columns = gap_columns(found, 0, 3, 27)
    empty = {at for at in range(27) if not {3 * at, 3 * at + 1, 3 * at + 2} & inside}
    assert {at for first, past in columns for at in range(first, past)} == empty


@given(
    some.lists(
        some.tuples(
            some.integers(0, 100), some.integers(1, 50), some.none() | some.integers(0, 1000)
        ).map(lambda each: (each[0], each[0] + each[1], each[2])),
        max_size=5,
    ),
    some.integers(1, 20),
)
def test_losses_add_up_over_columns(
    timed: list[tuple[int, int, int | None]], interval: int
) -> None:
    found = of_columns(lost_at([("lost", *each) for each in timed], 0, interval))
    assert sum(count for _, count in found) == sum(count or 0 for _, _, count in timed)
    assert all(
        any(
            first < (column + 1) * interval and until > column * interval
            for first, until, _ in timed
        )
        for column, _ in found
    )


def counts(
    t0: int, lost: tuple[tuple[int, int], ...], gaps: tuple[tuple[int, int], ...]
) -> HeatCounts:
    import numpy as np

    ones = np.array([0, 30]), np.array([5, 5]), np.array([1, 1])
    return HeatCounts(
        "latency",
        t0,
        10,
        LogLinear(6),
        *ones,
        lost_at=tuple((column, "lost", count) for column, count in lost),
        gaps=gaps,
    )


def test_losses_and_gaps_are_coarsened_and_merged() -> None:
    one = counts(100, ((1, 5), (2, 7), (9, 0)), ((3, 9), (12, 13)))
    coarse = one.coarser(columns=4)
    assert coarse.lost_by_column == ((0, 12), (2, 0))
    assert coarse.gaps == ((1, 2),), "a column is a gap where all of it is"
    two = counts(80, ((4, 1),), ((0, 8),))
    both = merge([one, two])
    assert both.t0_ns == 80
    assert both.lost_by_column == ((3, 5), (4, 8), (11, 0))
    assert both.gaps == ((5, 8),), "where one of them recorded, something was"
    assert merge([one]) is one
