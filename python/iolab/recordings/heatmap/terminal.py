# SPDX-License-Identifier: Apache-2.0
"""Maps as characters: two cells to a character where there are colours, one of growing density
where there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from iolab.base.untrusted_text import visible

from . import ticks
from .figure import Layout, Panel
from .legend import legend_text
from .raster import Pixels, colours, row_of_pixel
from .theme import DARK, GREY, LIGHT, Theme, rgb
from .words import SIGNS, TITLES, kind_of

Mode: TypeAlias = Literal["truecolor", "256", "grey", "text"]

_DENSITY = ".:-=+*#%@"
_FEWER, _MORE = "-=", "+#"
_LINES = {"p50": "─", "p90": "═", "p99": "━", "mean": "·"}
_SIGNS = {"shaded": "░", "hatched": "╱"}
_BARS = "▁▂▃▄▅▆▇█"
_GUTTER = 10
_CUBE = np.array([0, 95, 135, 175, 215, 255])


def mode_of(environment: Mapping[str, str], tty: bool) -> Mode:
    """What the terminal can show: NO_COLOR (no-color.org), a pipe and dumb terminals get
    characters."""
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or not tty or term in ("", "dumb"):
        return "text"
    if environment.get("COLORTERM", "") in ("truecolor", "24bit") or term.endswith("-direct"):
        return "truecolor"
    if "256" in term:
        return "256"
    return "text"


def theme_of(environment: Mapping[str, str]) -> Theme:
    """Light or dark, from COLORFGBG where the terminal sets it; dark otherwise."""
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if ground in ("7", "15") else DARK


def layout_of(width: int, height: int, count: int, mode: Mode) -> Layout:
    """Room for each of `count` maps on a screen of so many characters, axes and words being taken
    off."""
    lines = max(4, height // max(1, count) - 5)
    return Layout(max(10, width - _GUTTER - 1), lines if mode == "text" else 2 * lines, 1)


def draw(panel: Panel, layout: Layout, mode: Mode, theme: Theme) -> list[str]:
    """The lines of one map: heading, map with axes, scale of colour, notes."""
    name, colon, facts = visible(panel.heading).partition(":")
    lines = [f"{TITLES[panel.y]} · {_bold(name, mode)}{colon}{facts}"]  # type: ignore[index]
    rows = _characters(panel, layout) if mode == "text" else _blocks(panel, layout, mode, theme)
    labels = _labels(panel, layout, len(rows))
    lines += [
        f"{labels.get(number, ''):>{_GUTTER - 2}} {'┤' if number in labels else '│'}{row}"
        for number, row in enumerate(rows)
    ]
    lines += [*_strip(panel, mode, theme), *_time_axis(panel)]
    lines.append(f"{'':{_GUTTER - 2}}  {_legend(panel, mode, theme)}")
    marks = set(_marks(panel).values())
    signs = [f"{mark} {SIGNS[sign]}" for sign, mark in _SIGNS.items() if mark in marks]
    strip = [f"{'!' if mode == 'text' else '█'} {panel.lost.words()}"] if panel.lost else []
    lines += [f"{'':{_GUTTER - 2}}  {visible(note)}" for note in [*panel.notes, *strip, *signs]]
    return lines


def _strip(panel: Panel, mode: Mode, theme: Theme) -> list[str]:
    """The line of columns in which records were lost: the taller, the more; no line where none
    were."""
    if not panel.lost:
        return []
    levels = panel.lost.levels()
    bars = (
        _BARS[min(len(_BARS) - 1, int(levels[column] * len(_BARS)))] if column in levels else " "
        for column in range(panel.columns)
    )
    if mode == "text":
        return [
            f"{'lost':>{_GUTTER - 2}} │{''.join('!' if bar != ' ' else bar for bar in bars).rstrip()}"
        ]
    colour = _code(
        np.array(rgb((GREY if mode == "grey" else theme).lost), dtype=np.uint8), mode, "38"
    )
    return [f"{'lost':>{_GUTTER - 2}} │\033[{colour}m{''.join(bars).rstrip()}\033[0m"]


def _bold(text: str, mode: Mode) -> str:
    return text if mode == "text" else f"\033[1m{text}\033[0m"


def _marks(panel: Panel) -> dict[int, str]:
    """Column to the letter of its span without I/O, where it is completely in such a span."""
    return {
        column: _SIGNS[sign]
        for sign, spans in panel.signs.items()
        for start, end in spans
        for column in range(int(np.ceil(start)), int(end))
    }


def _line_rows(panel: Panel, height: int) -> dict[tuple[int, int], str]:
    """Where overlays pass: (row of characters, column) to a letter."""
    letters: dict[tuple[int, int], str] = {}
    for name, values in panel.lines.items():
        place = np.clip(panel.frame.position(values), 0, 0.9999)
        for column in np.flatnonzero(~np.isnan(values)):
            letters[height - 1 - int(place[column] * height), int(column)] = _LINES.get(name, "•")
    return letters


def _characters(panel: Panel, layout: Layout) -> list[str]:
    """One character a cell: the denser, the more."""
    rows = row_of_pixel(panel, layout.height)[::-1]
    levels, fewer = panel.levels[rows], panel.cells.counts[rows] < 0
    marks, over = _marks(panel), _line_rows(panel, layout.height)
    lines = []
    for number, row in enumerate(levels):
        line = ""
        for column, level in enumerate(row):
            if (number, column) in over:
                line += over[number, column]
            elif np.isnan(level):
                line += marks.get(column, " ")
            elif panel.signed:
                line += (_FEWER if fewer[number, column] else _MORE)[int(abs(level) > 0.5)]
            else:
                line += _DENSITY[min(len(_DENSITY) - 1, int(level * len(_DENSITY)))]
        lines.append(line.rstrip())
    return lines


def _blocks(panel: Panel, layout: Layout, mode: Mode, theme: Theme) -> list[str]:
    """Half blocks: the upper cell in the foreground, the lower one in the background."""
    palette = GREY if mode == "grey" else theme
    pixels = colours(panel, palette)[row_of_pixel(panel, layout.height)[::-1]]
    empty = np.isnan(panel.levels)[row_of_pixel(panel, layout.height)[::-1]]
    marks, over = _marks(panel), _line_rows(panel, layout.height // 2)
    quiet = f"{_code(np.array(rgb(palette.faint), dtype=np.uint8), mode, '38')};49"
    lines = []
    for number in range(layout.height // 2):
        upper, lower = pixels[2 * number], pixels[2 * number + 1]
        bare = empty[2 * number], empty[2 * number + 1]
        line, state = "", ""
        for column in range(panel.columns):
            above, below = not bare[0][column], not bare[1][column]
            front, back = _code(upper[column], mode, "38"), _code(lower[column], mode, "48")
            if (number, column) in over:
                ground = (
                    _code(upper[column] if above else lower[column], mode, "48")
                    if above or below
                    else "49"
                )
                style, letter = (
                    f"1;{_code(np.array(rgb(palette.text), dtype=np.uint8), mode, '38')};{ground}",
                    over[number, column],
                )
            elif above and below:
                style, letter = f"{front};{back}", "▀"
            elif above:
                style, letter = f"{front};49", "▀"
            elif below:
                # the terminal's own ground shows above, so that zero is no colour at all
                style, letter = f"{_code(lower[column], mode, '38')};49", "▄"
            else:
                style, letter = (quiet, marks[column]) if column in marks else ("0", " ")
            if style != state:
                line += f"\033[0m\033[{style}m" if style != "0" else "\033[0m"
                state = style
            line += letter
        lines.append(line + ("" if state == "0" else "\033[0m"))
    return lines


def _code(colour: Pixels, mode: Mode, place: str) -> str:
    """The escape code of a colour; "38" is the foreground, "48" the background."""
    red, green, blue = (int(part) for part in colour)
    if mode == "truecolor":
        return f"{place};2;{red};{green};{blue}"
    if red == green == blue and 4 < red < 247:
        return f"{place};5;{232 + min(23, max(0, round((red - 8) / 10)))}"
    cube = [int(np.abs(_CUBE - part).argmin()) for part in (red, green, blue)]
    return f"{place};5;{16 + 36 * cube[0] + 6 * cube[1] + cube[2]}"


def _labels(panel: Panel, layout: Layout, rows: int) -> dict[int, str]:
    """Line to its label."""
    labels: dict[int, str] = {}
    for tick in panel.value_ticks(max(2, rows // 2)):
        place = float(panel.frame.position(np.array([tick.value]))[0])
        labels.setdefault(min(rows - 1, max(0, rows - 1 - int(place * rows))), tick.label)
    return labels


def _time_axis(panel: Panel) -> list[str]:
    """The line below the map with its marks, and their words."""
    ruler, text = ["─"] * panel.columns, [" "] * (panel.columns + _GUTTER)
    last = -2
    for tick in ticks.linear_ticks(0, panel.span_ns, max(2, panel.columns // 12), "ns"):
        place = min(panel.columns - 1, int(tick.value / panel.span_ns * panel.columns))
        start = max(0, place - len(tick.label) // 2)
        if start <= last + 1:
            continue
        ruler[place] = "┴"
        text[start : start + len(tick.label)] = tick.label
        last = start + len(tick.label)
    return [
        f"{'':{_GUTTER - 2}} └{''.join(ruler)}",
        f"{'':{_GUTTER - 2}}  {''.join(text).rstrip()}",
    ]


def _legend(panel: Panel, mode: Mode, theme: Theme) -> str:
    """The scale: counts at both ends and the colours between."""
    low, high = (legend_text(panel, level) for level in (0.0, 1.0))
    what = f"{kind_of(panel.y, panel.weight)} in a cell"
    if panel.signed:
        scale = (
            "- = fewer, + # more"
            if mode == "text"
            else _ramp(theme.signed if mode != "grey" else GREY.signed, mode)
        )
        return f"{what}: {'-' + high.lstrip('+')} {scale} {high}, by {panel.scale.kind}"
    scale = _DENSITY if mode == "text" else _ramp((GREY if mode == "grey" else theme).palette, mode)
    lines = "".join(f"  {_LINES.get(name, '•')} {name}" for name in panel.lines)
    return f"{what}: {low} {scale} {high}, by {panel.scale.kind}{lines}"


def _ramp(table: Pixels, mode: Mode, width: int = 16) -> str:
    steps: Sequence[Pixels] = list(table[np.linspace(0, len(table) - 1, width).astype(int)])
    return "".join(f"\033[{_code(colour, mode, '48')}m " for colour in steps) + "\033[0m"
