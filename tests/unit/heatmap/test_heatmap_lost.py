# SPDX-License-Identifier: Apache-2.0
"""Losses and unrecorded time: by column of the drawing, under the map, hatched and apart from idle
time, in every renderer."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.recordings.heatmap import terminal
from iolab.recordings.heatmap.figure import Layout, Named, Panel, panels
from iolab.recordings.heatmap.lost import Lost, lost_of, unrecorded_spans, without
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.svg import svg
from iolab.recordings.heatmap.theme import DARK, LIGHT, rgb
from iolab.recordings.heatmap.wire import LossesOfKind, group_of
from iolab.recordings.store.base.counts import HeatCounts
from support.heatmap_data import counts

SVG = "{http://www.w3.org/2000/svg}"
STEADY = counts([(time * 100, 50 + time % 7) for time in range(1000)])
"""A hundred columns, ten I/Os in each."""


def panel(made: HeatCounts, columns: int = 100) -> Panel:
    return panels([Named("a", made)], View("log"), Layout(columns, 40, 1))[0]


def with_losses(*lost: tuple[int, int], gaps: tuple[tuple[int, int], ...] = ()) -> HeatCounts:
    return replace(
        STEADY, lost_at=tuple((column, "lost", count) for column, count in lost), gaps=gaps
    )


@given(
    st.lists(
        st.tuples(st.integers(-5, 120), st.integers(0, 10**6)), unique_by=lambda pair: pair[0]
    ),
    st.integers(1, 9),
)
def test_losses_add_up_by_column_of_the_drawing(lost: list[tuple[int, int]], factor: int) -> None:
    made = with_losses(*sorted(lost))
    across = -(-100 // factor)
    found = lost_of(made, across, factor)
    inside = [(column, count) for column, count in lost if 0 <= column < across * factor]
    assert sum(count for _, count in found.columns) == sum(count for _, count in inside)
    assert {column for column, _ in found.columns} == {column // factor for column, _ in inside}
    levels = found.levels()
    assert all(0 < level <= 1 for level in levels.values())
    heights = [levels[column] for column, _ in sorted(found.columns, key=lambda pair: pair[1])]
    assert heights == sorted(heights)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((), ""),
        (((3, 1),), "lost: 1 record in 1 column"),
        (((3, 1200), (4, 34)), "lost: 1 234 records in 2 columns, at most 1 200 in one"),
        (((3, 0),), "lost: an unknown number of records in 1 column"),
        (((3, 0), (9, 7)), "lost: 7 records in 2 columns, in 1 the number is unknown"),
    ],
)
def test_the_legend_says_how_many_and_how_many_in_one(
    columns: tuple[tuple[int, int], ...], words: str
) -> None:
    assert Lost(columns).words() == words


SPANS = st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 20)), max_size=4)


@given(SPANS, SPANS)
def test_spans_less_others_hold_what_is_in_the_first_alone(
    spans: list[tuple[float, float]], covers: list[tuple[float, float]]
) -> None:
    ends = [tuple((start, start + length) for start, length in each) for each in (spans, covers)]
    left = without(*ends)
    for point in np.linspace(0, 70, 211) + 1e-4:

        def inside(which: tuple[tuple[float, float], ...], at: float = float(point)) -> bool:
            return any(start <= at < end for start, end in which)

        assert inside(left) == (inside(ends[0]) and not inside(ends[1]))


def test_unrecorded_time_is_cut_at_the_maps_edges() -> None:
    assert unrecorded_spans(with_losses(gaps=((-7, 3), (40, 50), (95, 400))), 50, 2) == (
        (0.0, 1.5),
        (20.0, 25.0),
        (47.5, 50.0),
    )
    assert unrecorded_spans(with_losses(gaps=((100, 200),)), 100) == ()


def test_a_map_without_losses_has_no_strip() -> None:
    document = svg([panel(STEADY)], "t", LIGHT)
    assert "lost" not in document
    assert "lost" not in "\n".join(terminal.draw(panel(STEADY), Layout(100, 20, 1), "text", DARK))
    assert group_of(View("log"), [Named("a", STEADY)], percentiles=False).maps[0].lost == []


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_the_strip_stands_under_the_lost_columns(theme: object) -> None:
    assert theme in (LIGHT, DARK)
    used = LIGHT if theme is LIGHT else DARK
    plain, made = (
        svg([panel(STEADY)], "t", used),
        svg([panel(with_losses((10, 5), (50, 4000)))], "t", used),
    )
    tree = ElementTree.fromstring(made)
    (strip,) = [path for path in tree.iter(f"{SVG}path") if path.get("fill") == used.lost]
    bars = [
        (float(x), float(tall))
        for x, tall in re.findall(r"M([\d.]+) [\d.]+v-([\d.]+)", strip.get("d") or "")
    ]
    assert [x for x, _ in bars] == [
        pytest.approx(84 + 9 * 10, abs=0.1),
        pytest.approx(84 + 9 * 50, abs=0.1),
    ]
    assert bars[0][1] < bars[1][1]
    texts = [element.text for element in tree.iter(f"{SVG}text")]
    assert "lost" in texts
    assert any(
        "lost: 4 005 records in 2 columns, at most 4 000 in one" in (text or "") for text in texts
    )
    assert (
        float(tree.get("height") or 0)
        == float(ElementTree.fromstring(plain).get("height") or 0) + 10 + 16
    )


def test_the_terminal_marks_the_lost_columns() -> None:
    made = panel(with_losses((10, 5), (50, 4000)))
    lines = terminal.draw(made, Layout(100, 20, 1), "text", DARK)
    (strip,) = [line for line in lines if line.startswith("    lost │")]
    marks = strip.partition("│")[2]
    assert [place for place, letter in enumerate(marks) if letter == "!"] == [10, 50]
    assert any(line.strip().startswith("! lost: 4 005 records") for line in lines)
    coloured = terminal.draw(made, Layout(100, 20, 1), "truecolor", DARK)
    (bar,) = [line for line in coloured if "lost │" in line]
    assert "█" in bar
    assert f"38;2;{';'.join(str(part) for part in rgb(DARK.lost))}m" in bar


def test_unrecorded_time_is_hatched_and_said_apart_from_idle_time() -> None:
    broken = counts(
        [(time * 100, 50) for time in range(400)]
        + [(60_000 + time * 100, 50) for time in range(400)]
    )
    idle, blind = panel(broken), panel(replace(broken, gaps=((40, 60),)))
    assert idle.gaps == ((40.0, 60.0),)
    assert (blind.gaps, blind.unrecorded) == ((), ((40.0, 60.0),))
    both = panel(replace(broken, gaps=((40, 50),)))
    assert (both.gaps, both.unrecorded) == (((50.0, 60.0),), ((40.0, 50.0),))
    shaded, hatched = "shaded: no I/O, though some was expected", "hatched: not recorded"
    for each, absent in ((idle, hatched), (blind, shaded)):
        document = svg([each], "t", LIGHT)
        assert absent not in document
        assert (shaded in document) != (hatched in document)
    assert f"{shaded} · {hatched}" in svg([both], "t", LIGHT)


@pytest.mark.parametrize("mode", ["text", "256", "truecolor"])
def test_the_terminal_has_a_letter_for_idle_time_and_one_for_unrecorded_time(
    mode: terminal.Mode,
) -> None:
    broken = counts(
        [(time * 100, 50) for time in range(400)]
        + [(60_000 + time * 100, 50) for time in range(400)]
    )
    lines = [
        re.sub("\033\\[[0-9;]*m", "", line)
        for line in terminal.draw(
            panel(replace(broken, gaps=((40, 50),))), Layout(100, 20, 1), mode, DARK
        )
    ]
    body = [line.partition("│")[2] for line in lines if "│" in line]
    assert any(row[40:60] == 10 * "╱" + 10 * "░" for row in body)
    assert not any(letter in row[:40] + row[60:] for row in body for letter in "╱░")
    assert [line.strip() for line in lines if line.strip()[:2] in ("░ ", "╱ ")] == [
        "░ no I/O, though some was expected",
        "╱ not recorded",
    ]
    plain = "\n".join(terminal.draw(panel(STEADY), Layout(100, 20, 1), mode, DARK))
    assert not any(letter in plain for letter in "╱░")


def test_the_page_gets_losses_and_unrecorded_columns() -> None:
    made = group_of(
        View("log"),
        [Named("a", with_losses((-3, 4), (10, 5), (200, 9), gaps=((20, 25),)))],
        percentiles=False,
    ).maps[0]
    assert made.lost == [LossesOfKind(kind="lost", count=5, columns=[(10, 5)])]
    assert made.unrecorded == [(20, 25)]


def test_coarser_columns_keep_every_loss() -> None:
    assert panel(with_losses((10, 5), (11, 6), (50, 4000)), columns=50).lost.columns == (
        (5, 11),
        (25, 4000),
    )
