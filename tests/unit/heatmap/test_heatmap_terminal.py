# SPDX-License-Identifier: Apache-2.0
"""Maps as characters: what the terminal can show, and that what it shows is right."""

from __future__ import annotations

import re

import pytest

from iolab.recordings.heatmap.figure import Named, panels
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.terminal import Mode, draw, layout_of, mode_of, theme_of
from iolab.recordings.heatmap.theme import DARK, LIGHT
from support.heatmap_data import counts

ESCAPE = re.compile(r"\033\[[0-9;]*m")


def drawn(
    mode: Mode,
    width: int = 80,
    height: int = 24,
    *,
    percentiles: bool = False,
    difference: bool = False,
) -> list[str]:
    rising = counts([(time * 30, 100 + 10 * time) for time in range(2000)])
    maps = [Named("a.log", rising)] * (2 if difference else 1)
    layout = layout_of(width, height, 1, mode)
    found = panels(maps, View("log"), layout, percentiles=percentiles, difference=difference)
    return draw(found[-1], layout, mode, DARK)


@pytest.mark.parametrize(
    ("environment", "tty", "mode"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "truecolor"),
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, True, "text"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False, "text"),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, True, "text"),
        ({"TERM": "linux"}, True, "text"),
        ({}, True, "text"),
    ],
)
def test_the_terminal_gets_what_it_can_show(
    environment: dict[str, str], tty: bool, mode: str
) -> None:
    assert mode_of(environment, tty) == mode


def test_the_background_is_asked_for() -> None:
    assert theme_of({"COLORFGBG": "0;15"}) is LIGHT
    assert theme_of({"COLORFGBG": "15;0"}) is DARK
    assert theme_of({}) is DARK


@pytest.mark.parametrize("mode", ["truecolor", "256", "grey", "text"])
@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 24), (200, 60)])
def test_it_fits_the_screen(mode: Mode, width: int, height: int) -> None:
    lines = [ESCAPE.sub("", line) for line in drawn(mode, width, height)]
    assert len(lines) <= height
    assert max(len(line) for line in lines if "│" in line or "┤" in line) <= width


@pytest.mark.parametrize("mode", ["truecolor", "256", "grey"])
def test_colours_end_with_their_line(mode: Mode) -> None:
    for line in drawn(mode):
        if "\033" in line:
            assert ESCAPE.findall(line)[-1] == "\033[0m"


def test_without_colours_there_is_no_escape_and_density_tells() -> None:
    lines = drawn("text")
    assert not any("\033" in line for line in lines)
    body = [line[10:] for line in lines if "│" in line or "┤" in line]
    filled = [
        (row, column)
        for row, line in enumerate(body)
        for column, letter in enumerate(line)
        if letter in ".:-=+*#%@"
    ]
    # latency rises over time: the first columns are at the bottom, the last at the top
    assert max(row for row, column in filled if column < 3) == len(body) - 1
    assert min(row for row, column in filled if column > 55) == 0
    assert any("I/Os in a cell" in line and "by rank" in line for line in lines)


def test_axes_have_units() -> None:
    text = "\n".join(drawn("text"))
    assert "µs ┤" in text
    assert re.search(r"0 µs +20 µs +40 µs", text)


def test_percentiles_and_differences_without_colours() -> None:
    assert "─ p50  ═ p90  ━ p99  · mean" in "\n".join(drawn("text", percentiles=True))
    same = drawn("text", difference=True)
    assert not any(
        letter in line[10:] for line in same if "│" in line or "┤" in line for letter in "-=+#"
    )


def test_the_same_cells_in_colour_and_without() -> None:
    half = drawn("256", 80, 24)
    coloured = sum(line.count("▀") + line.count("▄") for line in half)
    assert coloured > 60
