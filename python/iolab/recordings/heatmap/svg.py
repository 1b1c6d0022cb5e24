# SPDX-License-Identifier: Apache-2.0
"""Maps as an SVG document, and that as a PNG: axes, legend and words as vectors, the cells as one
picture without smoothing."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from iolab.base.untrusted_text import html

from . import ticks, words
from .figure import Layout, Panel
from .legend import legend_text
from .raster import draw, png, repack
from .scale import Floats
from .theme import FONT, Theme

WIDTH, HEIGHT = 900, 260
"""Of a map; around it are its axes."""

LAYOUT = Layout(columns=450, height=HEIGHT, least=3)
"""What fits: a cell is at least two pixels wide and three high."""

_LEFT, _RIGHT, _TOP, _GAP, _LINE = 84, 96, 40, 46, 16
_STRIP = 10
"""Pixels of the strip of losses under a map."""
_PIXELS = 2


def svg(panels: Sequence[Panel], title: str, theme: Theme) -> str:
    """The document; `panels` below each other, each with its scale of colour."""
    body: list[str] = []
    top = _TOP
    for panel in panels:
        body.append(_panel(panel, theme, top))
        top += HEIGHT + _strip_height(panel) + _GAP + 20 + _LINE * len(_lines(panel))
    width, height = _LEFT + WIDTH + _RIGHT, top - 10
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'font-family="{html(FONT)}" font-size="11" fill="{theme.text}">',
            f"<title>{html(title)}</title><desc>{html('; '.join(panel.heading for panel in panels))}</desc>",
            f'<rect width="100%" height="100%" fill="{theme.background}"/>',
            *body,
            "</svg>\n",
        ]
    )


def svg_png(document: str, title: str, scale: float = 2) -> bytes:
    """The SVG document as a PNG file with its title inside. Needs no browser and no network."""
    import vl_convert

    return repack(
        vl_convert.svg_to_png(document, scale=scale), {"Title": title, "Software": "iolab"}
    )


def _panel(panel: Panel, theme: Theme, top: int) -> str:
    data = base64.b64encode(png(draw(panel, theme, WIDTH * _PIXELS, HEIGHT * _PIXELS))).decode()
    parts = [
        f'<text x="{_LEFT}" y="{top - 12}" font-size="13" font-weight="600">{html(_title(panel))}</text>',
        f'<image x="{_LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" preserveAspectRatio="none" image-rendering="optimizeSpeed" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>',
        f'<rect x="{_LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{theme.faint}"/>',
        _strip(panel, theme, top + HEIGHT),
        _axes(panel, theme, top),
        _overlays(panel, theme, top),
        _legend(panel, theme, top),
    ]
    for number, line in enumerate(_lines(panel)):
        y = top + HEIGHT + _strip_height(panel) + _GAP - 8 + _LINE * number
        parts.append(f'<text x="{_LEFT}" y="{y}" fill="{theme.faint}">{html(line)}</text>')
    return "".join(parts)


def _strip_height(panel: Panel) -> int:
    return _STRIP if panel.lost else 0


def _strip(panel: Panel, theme: Theme, top: int) -> str:
    """A bar for each column in which records were lost, with its label; nothing where
    none were."""
    if not panel.lost:
        return ""
    wide = WIDTH / panel.columns
    bars = "".join(
        f"M{_LEFT + column * wide:.1f} {top + _STRIP}v{-(_STRIP - 2) * level:.1f}h{max(wide, 2.5):.1f}V{top + _STRIP}z"
        for column, level in panel.lost.levels().items()
    )
    return (
        f'<path d="{bars}" fill="{theme.lost}"/><rect x="{_LEFT}" y="{top}" width="{WIDTH}" height="{_STRIP}" fill="none" '
        f'stroke="{theme.faint}"/><text x="{_LEFT + WIDTH + 8}" y="{top + _STRIP}" fill="{theme.lost}">lost</text>'
    )


def _title(panel: Panel) -> str:
    return f"{words.TITLES[panel.y]} · {panel.heading}"  # type: ignore[index]


def _lines(panel: Panel) -> list[str]:
    """Notes in lines that fit below the map."""
    lines: list[str] = []
    pixel = panel.columns / WIDTH
    signs = [
        f"{sign}: {words.SIGNS[sign]}"
        for sign, spans in panel.signs.items()
        if any(end - start >= pixel for start, end in spans)
    ]
    strip = [panel.lost.words()] if panel.lost else []
    for note in [*panel.notes, *strip, *signs]:
        if lines and len(lines[-1]) + len(note) < 150:
            lines[-1] += f" · {note}"
        else:
            lines.append(note)
    return lines


def _axes(panel: Panel, theme: Theme, top: int) -> str:
    frame, foot = panel.frame, top + HEIGHT + _strip_height(panel)
    marks = []
    for tick in panel.value_ticks(9):
        y = top + HEIGHT * (1 - float(frame.position(np.array([tick.value]))[0]))
        marks.append(
            f'<path d="M{_LEFT - 5} {y:.1f}h5" stroke="{theme.faint}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{html(tick.label)}</text>'
        )
    for tick in ticks.linear_ticks(0, panel.span_ns, 11, "ns"):
        x = _LEFT + WIDTH * tick.value / panel.span_ns
        marks.append(
            f'<path d="M{x:.1f} {foot}v5" stroke="{theme.faint}"/>'
            f'<text x="{x:.1f}" y="{foot + 17}" text-anchor="middle">{html(tick.label)}</text>'
        )
    return "".join(marks)


def _overlays(panel: Panel, theme: Theme, top: int) -> str:
    parts = []
    for number, (name, values) in enumerate(panel.lines.items()):
        colour = theme.lines[number % len(theme.lines)]
        dash = ' stroke-dasharray="5 3"' if name == "mean" else ""
        path = _steps(panel, values, top)
        x, y = _LEFT + WIDTH + 40, top + 8 + 14 * number
        parts += [
            f'<path d="{path}" fill="none" stroke="{theme.background}" stroke-width="3.4" stroke-opacity="0.7"/>',
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>',
            f'<path d="M{x - 22} {y}h18" stroke="{colour}" stroke-width="2"{dash}/>'
            f'<text x="{x}" y="{y + 4}">{html(name)}</text>',
        ]
    return "".join(parts)


def _steps(panel: Panel, values: Floats, top: int) -> str:
    """A level line through each column, interrupted where there is no value."""
    wide = WIDTH / panel.columns
    height = np.clip(panel.frame.position(np.nan_to_num(values, nan=panel.frame.low)), 0, 1)
    path, before = [], False
    for column, value in enumerate(values):
        if np.isnan(value):
            before = False
            continue
        y = float(top + HEIGHT * (1 - height[column]))
        path.append(
            f"{'L' if before else 'M'}{_LEFT + column * wide:.1f} {y:.1f}H{_LEFT + (column + 1) * wide:.1f}"
        )
        before = True
    return "".join(path)


def _legend(panel: Panel, theme: Theme, top: int) -> str:
    """The scale of colour with counts, at the right."""
    x, tall = _LEFT + WIDTH + 40, 110
    table = theme.signed if panel.signed else theme.palette
    strip = table[np.linspace(0, len(table) - 1, tall).astype(int)][::-1][:, None, :]
    data = base64.b64encode(png(strip)).decode()
    levels = (-1.0, 0.0, 1.0) if panel.signed else (0.0, 0.5, 1.0)
    foot = top + HEIGHT - 14
    parts = [
        f'<image x="{x}" y="{foot - tall}" width="12" height="{tall}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{data}"/>',
        f'<text x="{x}" y="{foot + 14}" fill="{theme.faint}">{panel.scale.kind}</text>',
    ]
    for place, level in zip((0.0, 0.5, 1.0), levels, strict=True):
        y = foot - tall * place + 4 - (4 if place == 0 else 0)
        parts.append(f'<text x="{x + 16}" y="{y:.1f}">{html(legend_text(panel, level))}</text>')
    return "".join(parts)
