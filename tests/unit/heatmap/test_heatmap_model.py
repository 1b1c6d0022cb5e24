# SPDX-License-Identifier: Apache-2.0
"""Every I/O is in one cell, above or below; percentiles come from the buckets; gaps are not zeros."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab import _core
from iolab.base.errors import FormatError, UsageError
from iolab.recordings.heatmap.figure import Layout, Named, panels
from iolab.recordings.heatmap.legend import legend_text
from iolab.recordings.heatmap.model import View, cells_of, frame_of, gaps
from iolab.recordings.heatmap.overlays import lines, names
from iolab.recordings.heatmap.raster import colours
from iolab.recordings.heatmap.theme import LIGHT
from iolab.recordings.heatmap.words import kind_of
from support.heatmap_data import counts

events = st.lists(
    st.tuples(st.integers(0, 60_000), st.integers(0, 10**9)), min_size=1, max_size=200
)
LAYOUT = Layout(columns=20, height=60, least=3)


@given(
    events,
    st.sampled_from(["log", "linear"]),
    st.sampled_from([0, 0.0001, 0.01, 0.05, 0.5]),
    st.integers(1, 8),
    st.integers(1, 9),
)
def test_no_event_is_lost_or_counted_twice(made, scale, crop, factor, least) -> None:  # type: ignore[no-untyped-def]
    found = counts(made)
    frame = frame_of([found], View(scale, crop))
    cells = cells_of(
        found, frame, columns=-(-found.columns // factor), factor=factor, height=100, least=least
    )
    assert cells.counts.sum() + cells.above + cells.below == len(made)
    assert cells.above <= crop * len(made)
    assert np.all(np.diff(cells.edges) > 0)


@given(events, st.integers(0, 10**9), st.integers(1, 10**9), st.sampled_from(["log", "linear"]))
def test_a_range_counts_what_lies_outside(made, low, length, scale) -> None:  # type: ignore[no-untyped-def]
    found = counts(made)
    grid, view = found.grid, View(scale, 0, low, low + length)
    if not min(found.index) <= grid.index(low + length - 1) or not grid.index(low) <= max(
        found.index
    ):
        with pytest.raises(FormatError, match="range of y"):
            frame_of([found], view)
        return
    frame = frame_of([found], view)
    cells = cells_of(found, frame, columns=found.columns, factor=1, height=100, least=1)
    assert cells.counts.sum() + cells.above + cells.below == len(made)
    # the frame is what was asked for, grown to whole buckets
    assert frame.low <= max(low, 0.5)
    assert frame.high >= low + length
    assert cells.below == sum(
        value < frame.low for _, value in made if not (frame.low == 0.5 and value == 0)
    )


def test_cells_stand_where_their_events_are() -> None:
    found = counts([(0, 8192)] * 70 + [(1500, 131072)] * 30, y="size")
    (panel,) = panels([Named("mix", found)], View("log"), LAYOUT)
    where = np.argwhere(panel.cells.counts)
    placed = {
        (int(column), round(panel.cells.edges[row]), round(panel.cells.edges[row + 1])): int(
            panel.cells.counts[row, column]
        )
        for row, column in where
    }
    assert [
        (column, count) for (column, low, high), count in placed.items() if low <= 8192 < high
    ] == [(0, 70)]
    assert [
        (column, count) for (column, low, high), count in placed.items() if low <= 131072 < high
    ] == [(1, 30)]


@given(events)
def test_percentiles_are_those_of_the_native_core(made) -> None:  # type: ignore[no-untyped-def]
    found = counts(made)
    drawn = lines(found, found.columns, (0.5, 0.9, 0.99))
    for column in range(found.columns):
        here = found.column == column
        expected = _core.quantiles(
            found.index[here].tolist(), found.count[here].tolist(), [0.5, 0.9, 0.99], 6
        )
        if expected[0] is None:
            assert np.isnan(drawn[:, column]).all()
            continue
        assert drawn[:3, column].tolist() == expected
        values = [value for time, value in made if time // 1000 == column]
        assert drawn[3, column] == pytest.approx(np.mean(values), rel=1 / 64, abs=0.5)
    assert names() == ["p50", "p90", "p99", "mean"]


def test_joined_columns_have_percentiles_of_their_own() -> None:
    # 9 fast and 1 slow, then 1 fast and 9 slow: the mean of two medians is no median
    found = counts([(0, 10)] * 9 + [(0, 1000)] + [(1000, 10)] + [(1000, 1000)] * 90)
    one, two = (lines(found.coarser(columns=columns), 2 // columns)[0] for columns in (1, 2))
    assert one[0] == 10
    assert one[1] == two[0]


def test_a_crop_is_stated_and_reversible() -> None:
    found = counts([(0, 100)] * 990 + [(0, 10**8)] * 10)
    (panel,) = panels([Named("a", found)], View("linear", 0.01), LAYOUT)
    assert panel.cells.above == 10
    assert any("10 I/Os (1 %) above the crop" in note for note in panel.notes)
    (whole,) = panels([Named("a", found)], View("linear", 0), LAYOUT)
    assert whole.cells.above == 0


def test_a_gap_is_where_io_was_due() -> None:
    busy = [(time * 100, 50) for time in range(100)] + [
        (20_000 + time * 100, 50) for time in range(100)
    ]
    assert gaps(counts(busy)) == [(10, 20)]
    assert gaps(counts(busy, conditional=True)) == []
    assert gaps(counts([(0, 5), (9000, 5)])) == []
    # a slow phase beside a fast one: its pauses are its own pace
    slow = [(time * 9000, 50) for time in range(20)]
    fast = [(200_000 + time * 10, 50) for time in range(20_000)]
    assert gaps(counts(slow + fast)) == []
    assert gaps(counts(slow + fast + [(500_000 + time * 10, 50) for time in range(2000)])) == [
        (400, 500)
    ]


def test_two_maps_share_axes_and_scale_and_differ() -> None:
    one, two = (
        counts([(0, 100)] * 5 + [(1000, 100)] * 5),
        counts([(0, 100)] * 2 + [(1000, 400)] * 9),
    )
    first, second, change = panels(
        [Named("a", one), Named("b", two)], View("log"), LAYOUT, difference=True
    )
    assert first.frame == second.frame == change.frame
    assert first.scale is second.scale
    assert np.array_equal(change.cells.counts, second.cells.counts - first.cells.counts)
    assert change.cells.counts.sum() == 11 - 10
    assert change.cells.counts.min() == -5
    assert np.nanmin(change.levels) < 0 < np.nanmax(change.levels)
    blue, orange = (
        colours(change, LIGHT)[change.cells.counts == value][0].astype(int) for value in (-3, 9)
    )
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]
    assert np.isnan(change.levels[change.cells.counts == 0]).all()


def test_a_single_size_does_not_fill_the_map() -> None:
    (panel,) = panels([Named("a", counts([(0, 65536)] * 9, y="size"))], View("log"), LAYOUT)
    assert np.count_nonzero(panel.cells.counts) == 1
    assert panel.frame.high >= 2 * panel.frame.low


@pytest.mark.parametrize(("weight", "words"), [("time", "time spent"), ("bytes", "bytes")])
def test_what_is_no_count_has_no_percentiles(weight: str, words: str) -> None:
    found = counts([(0, 100)], weight=weight)
    with pytest.raises(UsageError, match=f"percentiles are of I/Os, not of {words}"):
        panels([Named("a", found)], View("log"), LAYOUT, percentiles=True)


def test_nothing_left_says_why() -> None:
    with pytest.raises(FormatError, match="12 I/Os do not meet --where, 3 lines are damaged"):
        frame_of([counts([], filtered=12, damaged=3)], View("log"))


def test_bytes_are_said_as_such() -> None:
    found = replace(
        counts([(0, 8192)] * 3, y="latency", weight="bytes", without_y=2),
        count=np.array([3 * 2**20]),
    )
    (panel,) = panels([Named("a", found)], View("log"), LAYOUT)
    assert "3 I/Os over" in panel.heading
    assert "3 MiB moved by them" in panel.heading
    assert any("2 I/Os without latency or size" in note for note in panel.notes)
    assert legend_text(panel, 1) == "3 MiB"
    assert kind_of(panel.y, panel.weight) == "bytes"


def test_the_legend_writes_counts_as_the_heading_does() -> None:
    (panel,) = panels([Named("a", counts([(0, 100)] * 12_345))], View("log"), LAYOUT)
    assert legend_text(panel, 1) == "12 345"
    assert "12 345 I/Os" in panel.heading


def test_a_column_without_bytes_is_no_gap() -> None:
    busy = [(time * 100, 50) for time in range(100)] + [
        (20_000 + time * 100, 50) for time in range(100)
    ]
    assert gaps(counts(busy, weight="time"))
    assert gaps(counts(busy, weight="bytes")) == []


def test_what_moved_nothing_is_told() -> None:
    none = np.zeros(0, dtype=np.int64)
    empty = replace(counts([(0, 8192)] * 3, weight="bytes"), column=none, index=none, count=none)
    with pytest.raises(FormatError, match="3 I/Os moved no bytes"):
        panels([Named("a", empty)], View("log"), LAYOUT)


TINY = counts([(time % 900, 8192) for time in range(13_600)] + [(500, 3)] * 5, y="size")


def test_a_handful_of_tiny_sizes_does_not_stretch_the_map_and_is_told() -> None:
    (panel,) = panels([Named("reads", TINY)], View("log"), LAYOUT)
    assert panel.frame.low > 3
    assert (panel.cells.below, panel.cells.above) == (5, 0)
    assert any(note.startswith("5 I/Os below ") for note in panel.notes)
    (whole,) = panels([Named("reads", TINY)], View("log", tail=0), LAYOUT)
    assert whole.frame.low <= 3
    assert whole.cells.below == 0
    # of a thousand sizes more than one is tiny: they are shown
    (more,) = panels(
        [Named("reads", counts([(0, 8192)] * 998 + [(0, 3)] * 2, y="size"))], View("log"), LAYOUT
    )
    assert more.cells.below == 0
    # neither a linear axis nor another quantity has a tail
    (linear,) = panels([Named("reads", TINY)], View("linear"), LAYOUT)
    (latency,) = panels([Named("reads", replace(TINY, y="latency"))], View("log"), LAYOUT)
    assert (linear.cells.below, latency.cells.below) == (0, 0)


@given(events, st.sampled_from([0, 0.001, 0.1, 0.999]), st.sampled_from([0, 0.01, 0.999]))
def test_a_tail_is_never_more_than_its_share(made, tail, crop) -> None:  # type: ignore[no-untyped-def]
    found = counts(made, y="size")
    frame = frame_of([found], View("log", crop, tail=tail))
    cells = cells_of(found, frame, columns=found.columns, factor=1, height=100, least=3)
    assert cells.counts.sum() + cells.above + cells.below == len(made)
    assert cells.below <= tail * len(made)


@pytest.mark.parametrize("sizes", [(8192,), (3, 8192), (512, 4096, 65536, 2**20)], ids=str)
def test_sizes_stand_clear_of_the_frame_and_the_most_frequent_has_a_mark(
    sizes: tuple[int, ...],
) -> None:
    found = counts(
        [event for size in sizes for event in [(0, size)] * (90 if size == sizes[-1] else 10)],
        y="size",
    )
    (panel,) = panels([Named("a", found)], View("log"), Layout(columns=20, height=260, least=3))
    rows = np.flatnonzero(panel.cells.counts.sum(axis=1))
    places = panel.frame.position(panel.cells.edges)
    half = np.log(2) / 2 / np.log(panel.frame.high / panel.frame.low)
    assert places[rows[0]] > 0.9 * half
    assert places[rows[-1] + 1] < 1 - 0.9 * half
    assert sizes[-1] in [tick.value for tick in panel.value_ticks(9)]
    assert sizes[-1] in [tick.value for tick in panel.value_ticks(3)] or len(sizes) == 1


def test_maps_that_are_compared_have_the_same_marks() -> None:
    one, two = (
        counts([(0, 4096)] * 5 + [(0, 2**20)], y="size"),
        counts([(0, 8192)] * 9 + [(0, 512)], y="size"),
    )
    made = panels([Named("a", one), Named("b", two)], View("log"), LAYOUT, difference=True)
    marks = [panel.value_ticks(4) for panel in made]
    assert marks[0] == marks[1] == marks[2]
    assert 8192 in [tick.value for tick in marks[0]]
