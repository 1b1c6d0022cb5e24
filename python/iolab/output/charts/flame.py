# SPDX-License-Identifier: Apache-2.0
"""Flame graphs as pictures: one of each profile, and one of what differs from the baseline's, as
SVG or PNG with their numbers as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from iolab.base.untrusted_text import html, visible
from iolab.recordings.heatmap.theme import FONT
from iolab.studies.compare.profile_words import percent, points, sampling_text, spent
from iolab.studies.compare.profiles import CellProfiles, Part, change

from .base.model import slug

WIDTH, ROW, MARGIN, HEAD = 1200, 16, 12, 62
_LETTER = 6.2
"""Width of a letter of 11 px, about."""
PROCESS, USER, KERNEL_COLOUR = (
    ("#dfe3e8", "#e8ebef"),
    ("#a9cdea", "#bcd9f0"),
    ("#f6c48f", "#f9d3aa"),
)
"""Fills by who runs, each in two tones for neighbouring rows; blue and orange are distinguishable
with any colour vision."""
LESS = ("#d6e6f4", "#a6cae6", "#6fa9d6", "#3f86c0", "#1f66a5")
MORE = ("#fbe3c8", "#f7c48f", "#ee9f55", "#d97a26", "#b55a0c")
SAME = "#eceff2"
STRONG = {LESS[-1], MORE[-1]}
"""Fills on which letters are white."""


@dataclass(frozen=True)
class FlameChart:
    """A flame graph that does not depend on who draws it.

    Attributes:
        name, title, caption: as of `charts.model.Chart`.
        parts: of the cell's tree; widths: share of the whole width of each; fills, tips: of each
        part. rows: numbers drawn; legend: (fill, words).
    """

    name: str
    title: str
    caption: str
    parts: tuple[Part, ...] = field(repr=False)
    widths: tuple[float, ...] = field(repr=False)
    fills: tuple[str, ...] = field(repr=False)
    tips: tuple[str, ...] = field(repr=False)
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...] = field(repr=False)
    legend: tuple[tuple[str, str], ...] = ()

    def svg(self) -> str:
        """An SVG document with title, description and a tip on every part."""
        placed = list(_place(self.parts, self.widths))
        deepest = max((frame.depth for frame in placed), default=0)
        height = HEAD + (deepest + 1) * ROW + 34
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="{html(self.title)}" font-family="{html(FONT)}" font-size="11" fill="#1d232b">',
            f"<title>{html(self.title)}</title><desc>{html(self.caption)}</desc>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            f'<text x="{MARGIN}" y="22" font-size="15" font-weight="600">{html(self.title)}</text>',
            f'<text x="{MARGIN}" y="42" fill="#5c6672">{html(self.caption)}</text>',
        ]
        for frame in placed:
            y = HEAD + (deepest - frame.depth) * ROW
            x, width = (
                MARGIN + frame.start * (WIDTH - 2 * MARGIN),
                frame.width * (WIDTH - 2 * MARGIN),
            )
            label = _label(
                visible(self.parts[frame.place].name), x, y, width, self.fills[frame.place]
            )
            lines.append(
                f'<g><title>{html(self.tips[frame.place])}</title><rect x="{x:.2f}" y="{y}" width="{max(width - 0.4, 0.2):.2f}" '
                f'height="{ROW - 1}" rx="1.5" fill="{self.fills[frame.place]}"/>{label}</g>'
            )
        x = float(MARGIN)
        for fill, words in self.legend:
            lines.append(
                f'<rect x="{x:.1f}" y="{height - 22}" width="14" height="12" fill="{fill}"/>'
                f'<text x="{x + 19:.1f}" y="{height - 12}">{html(words)}</text>'
            )
            x += 38 + _LETTER * len(visible(words))
        return "\n".join([*lines, "</svg>", ""])

    def png(self, scale: float = 2) -> bytes:
        """As PNG of `scale` pixels per unit."""
        import vl_convert

        return bytes(vl_convert.svg_to_png(self.svg(), scale=scale))

    def to_csv(self) -> str:
        """A line for each part: the way to it, its samples and shares."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


def flame_charts(cells: Sequence[CellProfiles]) -> Iterator[FlameChart]:
    """A graph of every profile, and one of each difference from the baseline's."""
    for cell in cells:
        for place in range(len(cell.profiles)):
            yield flame(cell, place)
        for place in range(1, len(cell.profiles)):
            if cell.profiles[place].variant != cell.profiles[0].variant:
                yield difference(cell, 0, place)


def flame(cell: CellProfiles, place: int) -> FlameChart:
    """One profile of a cell."""
    profile, ways = cell.profiles[place], _ways(cell.parts)
    depths = _depths(cell.parts)
    fills = tuple(
        (PROCESS if part.parent is None else KERNEL_COLOUR if part.kernel else USER)[depth % 2]
        for part, depth in zip(cell.parts, depths, strict=True)
    )
    tips = tuple(
        f"{part.name}{_who(part)}: {part.samples[place]} samples, {percent(part.shares[place])}"
        for part in cell.parts
    )
    rows = tuple(
        (way, int(part.kernel), part.samples[place], part.shares[place])
        for way, part in zip(ways, cell.parts, strict=True)
        if part.samples[place]
    )
    title = " ".join(part for part in (f"Profile of {profile.variant}", cell.title) if part)
    return FlameChart(
        slug("profile", profile.variant, cell.title),
        title,
        f"{sampling_text(profile)}; {spent(profile)}. Idle is not drawn.",
        cell.parts,
        tuple(part.shares[place] for part in cell.parts),
        fills,
        tips,
        ("stack", "kernel", "samples", "share"),
        rows,
        ((PROCESS[0], "process"), (USER[0], "user program"), (KERNEL_COLOUR[0], "kernel")),
    )


def difference(cell: CellProfiles, before: int, after: int) -> FlameChart:
    """What takes more or less of the busy time in one profile than in another; widths are the mean
    of both shares."""
    old, new = cell.profiles[before], cell.profiles[after]
    changes = [change(part, before, after) for part in cell.parts]
    most = max((abs(value) for value in changes), default=0.0) or 1.0
    fills = tuple(_shade(value / most) for value in changes)
    tips = tuple(
        f"{part.name}{_who(part)}: {percent(part.shares[before])} became {percent(part.shares[after])}, {points(value)}"
        for part, value in zip(cell.parts, changes, strict=True)
    )
    rows = tuple(
        (way, int(part.kernel), part.shares[before], part.shares[after], value)
        for way, part, value in zip(_ways(cell.parts), cell.parts, changes, strict=True)
    )
    title = " ".join(
        part for part in (f"Profile of {new.variant} against {old.variant}", cell.title) if part
    )
    caption = (
        f"Shares of the busy samples: {new.busy_samples} of {new.variant}, {old.busy_samples} of {old.variant}. Widths are the mean "
        "of both. One capture each: nothing is tested."
    )
    return FlameChart(
        slug("profile", new.variant, "against", old.variant, cell.title),
        title,
        caption,
        cell.parts,
        tuple((part.shares[before] + part.shares[after]) / 2 for part in cell.parts),
        fills,
        tips,
        ("stack", "kernel", f"share.{old.variant}", f"share.{new.variant}", "change"),
        rows,
        (
            (LESS[-1], f"less in {new.variant}, {points(-most)}"),
            (SAME, "the same"),
            (MORE[-1], f"more in {new.variant}, {points(most)}"),
        ),
    )


def _shade(change: float) -> str:
    """The fill of a change, -1 to 1."""
    level = round(len(MORE) * abs(change))
    return SAME if level == 0 else (MORE if change > 0 else LESS)[level - 1]


class _Placed(NamedTuple):
    place: int
    start: float
    width: float
    depth: int


def _place(parts: Sequence[Part], widths: Sequence[float]) -> Iterator[_Placed]:
    """Position of each part that is wide enough to be seen; a parent comes before its children."""
    ends: dict[int | None, float] = {None: 0.0}
    for place, (part, width, depth) in enumerate(zip(parts, widths, _depths(parts), strict=True)):
        start = ends[part.parent]
        ends[part.parent], ends[place] = start + width, start
        if width * WIDTH >= 0.5:
            yield _Placed(place, start, width, depth)


def _depths(parts: Sequence[Part]) -> list[int]:
    depths: list[int] = []
    for part in parts:
        depths.append(0 if part.parent is None else depths[part.parent] + 1)
    return depths


def _ways(parts: Sequence[Part]) -> list[str]:
    """The way to each part, folded."""
    ways: list[str] = []
    for part in parts:
        ways.append(part.name if part.parent is None else f"{ways[part.parent]};{part.name}")
    return ways


def _who(part: Part) -> str:
    return "" if part.parent is None else " (kernel)" if part.kernel else " (user)"


def _label(name: str, x: float, y: float, width: float, fill: str) -> str:
    room = int((width - 6) / _LETTER)
    if room < 3:
        return ""
    text = name if len(name) <= room else f"{name[: room - 1]}…"
    colour = ' fill="#ffffff"' if fill in STRONG else ""
    return f'<text x="{x + 3:.2f}" y="{y + ROW - 4.5}"{colour}>{html(text)}</text>'
