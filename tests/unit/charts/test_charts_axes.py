# SPDX-License-Identifier: Apache-2.0
"""Axes: ticks where loads were measured, units that read well, domains that hold everything, zeros
said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.output.charts.base.axes import log_ticks, ratio_axis, round_domain, value_axis
from iolab.output.charts.base.loads import key_text, load_axis, named_text
from iolab.output.charts.hockey_stick import Box, place

sizes = st.floats(1e-9, 1e12)


def keys(*levels: object) -> list[tuple[object, ...]]:
    return [(level,) for level in levels]


@pytest.mark.parametrize(
    ("levels", "kind"),
    [
        ((1, 2, 4, 8), "log2"),
        ((1, 2, 4, 1024), "log2"),
        ((1, 2, 7), "linear"),
        ((0, 1, 16), "linear"),
        ((-1, 8), "linear"),
        ((16,), "ordinal"),
        (("128k", "1m"), "ordinal"),
        ((True, False), "ordinal"),
        ((1, "all"), "ordinal"),
        ((math.nan, 2.0), "ordinal"),
        ((), "ordinal"),
        ((3, 3), "ordinal"),
    ],
)
def test_a_load_axis_is_as_its_levels_are(levels: tuple[object, ...], kind: str) -> None:
    assert load_axis(["numjobs"], keys(*levels)).kind == kind


def test_several_factors_make_one_ordinal_axis() -> None:
    axis = load_axis(["rw", "numjobs"], [("read", 1), ("write", 16)])
    assert (axis.kind, axis.place(("write", 16))) == ("ordinal", "write · 16")
    assert axis.encode(400)["scale"]["domain"] == ["read · 1", "write · 16"]


def test_every_measured_load_is_a_tick_and_no_other() -> None:
    loads = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    channel = load_axis(["numjobs"], keys(*loads)).encode(640)
    assert channel["axis"]["values"] == list(loads)
    assert channel["scale"] == {
        "type": "log",
        "base": 2,
        "domain": channel["scale"]["domain"],
        "nice": False,
    }
    assert channel["scale"]["domain"][0] < 1 < 1024 < channel["scale"]["domain"][1]
    assert channel["axis"]["labelAngle"] == 0
    assert channel["axis"]["labelOverlap"] is False


def test_labels_that_would_collide_are_turned_and_then_thinned() -> None:
    crowded = load_axis(["numjobs"], keys(*range(1, 31))).encode(300)["axis"]
    assert (crowded["labelAngle"], crowded["labelOverlap"]) == (-45, "greedy")
    assert len(crowded["values"]) == 30
    long = load_axis(["layout"], keys("a" * 30, "b" * 30, "c" * 30)).encode(200)["axis"]
    assert long["labelAngle"] == -45


def test_headings_name_their_factors() -> None:
    assert (
        named_text(("disks", "compression", "sync"), (4, 0.5, True))
        == "disks = 4, compression = 0.5, sync = true"
    )
    assert key_text(()) == ""


def test_a_wide_range_is_logarithmic_and_a_narrow_one_stands_on_zero() -> None:
    wide = value_axis("throughput", "B/s", [2**20, 100 * 2**20])
    assert (wide.kind, wide.title) == ("log", "throughput (MiB/s)")
    narrow = value_axis("throughput", "B/s", [50 * 2**20, 60 * 2**20])
    assert (narrow.kind, narrow.low) == ("linear", 0.0)
    assert narrow.high >= 60


def test_zeros_are_not_drawn_on_a_log_axis_and_the_axis_says_so() -> None:
    axis = value_axis("time", "s", [0.0, 0.5, 400.0])
    assert (axis.kind, axis.low) == ("symlog", 0.0)
    assert "zeros have no place" in axis.notes[0]
    ticks = axis.encode_y(300)["axis"]["values"]
    assert ticks[0] == 0
    assert len(ticks) > 2
    assert value_axis("time", "s", [0.0, 3.0, 4.0]).kind == "linear"


def test_shares_run_to_100_per_cent_once_they_pass_half() -> None:
    busy = value_axis("device utilization", "1", [0.01, 0.99])
    assert (busy.kind, busy.low, busy.high, busy.symbol) == ("linear", 0, 100, "%")
    assert value_axis("device utilization", "1", [0.2, 1.004]).high == pytest.approx(100.4)
    assert value_axis("user CPU", "1", [0.001, 0.03]).high < 10


@pytest.mark.parametrize("values", [[], [None], [math.nan], [math.inf, None]])
def test_nothing_to_draw_still_makes_an_axis(values: list[float | None]) -> None:
    axis = value_axis("latency", "s", values)
    assert (axis.low, axis.high, axis.notes) == (0.0, 1.0, ("nothing to draw",))
    assert axis.place(math.nan) is None


def test_all_zero_values_make_an_axis() -> None:
    axis = value_axis("stall", "s", [0.0, 0.0])
    assert (axis.kind, axis.low, axis.high) == ("linear", 0.0, 1.0)


@given(
    st.lists(sizes, min_size=1, max_size=20),
    st.sampled_from(["s", "B", "B/s", "1/s", "1", ""]),
    st.booleans(),
)
def test_everything_drawn_lies_within_the_domain(values: list[float], base: str, log: bool) -> None:
    axis = value_axis("quantity", base, values, log=log)
    assert axis.low < axis.high
    for value in values:
        drawn = axis.place(value)
        assert drawn is not None
        slack = 1e-5 * max(abs(axis.low), abs(axis.high))
        assert axis.low - slack <= drawn <= axis.high + slack
        assert -0.1 <= axis.pixel(drawn, 100) <= 100.1


@given(st.lists(sizes, min_size=2, max_size=9), st.floats(-1e15, 1e15))
def test_what_lies_beyond_is_moved_inside(values: list[float], far: float) -> None:
    axis = value_axis("quantity", "1/s", values)
    assert axis.within(None) is None
    assert axis.within(math.nan) is None
    for value in (far, math.inf, -math.inf):
        within = axis.within(value)
        assert within is not None
        assert axis.low <= within <= axis.high


@given(sizes, st.floats(1.01, 1e15), st.integers(3, 12))
def test_log_ticks_are_round_few_and_inside(low: float, ratio: float, most: int) -> None:
    high = low * ratio
    ticks = log_ticks(low, high, most)
    assert len(ticks) <= most
    assert ticks == sorted(set(ticks))
    for tick in ticks:
        assert low * 0.999 <= tick <= high * 1.001
        assert f"{tick:.0e}"[0] in "1235"
    if ratio >= 8 and most >= 4:
        assert ticks


def test_log_ticks_of_no_range() -> None:
    assert log_ticks(0, 10, 5) == []
    assert log_ticks(5, 5, 5) == []


@given(st.floats(-1e9, 1e9, allow_subnormal=False), st.floats(0, 1e9, allow_subnormal=False))
def test_round_domains_hold_their_ends(low: float, span: float) -> None:
    bottom, top = round_domain(low, low + span)
    slack = 1e-6 * max(1.0, abs(low), span)
    assert bottom <= low + slack
    assert top >= low + span - slack
    assert bottom < top


def test_huge_changes_get_a_ratio_axis_labelled_in_per_cent() -> None:
    axis = ratio_axis("change", [-0.5, 14.0])
    assert (axis.kind, axis.zero, axis.place(1.0), axis.place(-1.0)) == ("log", 1.0, 2.0, None)
    assert "100" in axis.encode_y(300)["axis"]["labelExpr"]
    assert any("−100 %" in note for note in ratio_axis("change", [-1.0, 20.0]).notes)


def test_long_titles_break_into_lines_on_short_axes() -> None:
    axis = value_axis(
        "standard deviation of completion latency, all operations", "s", [0.001, 0.002]
    )
    title = axis.encode_y(190)["title"]
    assert isinstance(title, list)
    assert " ".join(title) == axis.title


points = st.lists(
    st.tuples(st.floats(0, 300), st.floats(0, 200), st.sampled_from(["1", "64", "1024"])),
    max_size=25,
)


@given(points)
def test_labels_cover_neither_points_nor_each_other(spots: list[tuple[float, float, str]]) -> None:
    line = [(x, y) for x, y, _ in spots]
    found = place(spots, [line], 300, 200)
    boxes = [
        Box.around(*middle, 3 * len(text), 5.5)
        for middle, (_, _, text) in zip(found, spots, strict=True)
        if middle is not None
    ]
    dots = [Box.around(x, y, 5, 5) for x, y, _ in spots]
    for number, box in enumerate(boxes):
        assert box.left >= 0
        assert box.right <= 300
        assert not any(box.meets(other) for other in boxes[number + 1 :])
        assert not any(box.meets(dot) for dot in dots)


def test_a_lone_point_gets_its_label_above() -> None:
    assert place([(100, 100, "64")], [], 300, 200) == [(100, 88)]
