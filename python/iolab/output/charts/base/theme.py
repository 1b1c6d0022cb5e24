# SPDX-License-Identifier: Apache-2.0
"""How charts look, apart from what they say: two Vega configurations, for light paper and for dark
screens.

A chart's specification holds no colour for text, grid or background and no palette; all of that
comes from here, so whoever shows a chart switches its appearance by handing over the other
configuration.

The categorical palette starts from Okabe and Ito, "Color Universal Design" (2008), with hues that
are distinguishable with any common colour vision. Their brightness is adjusted so that each differs
from the background by at least 3:1 (WCAG
2.1, success criterion 1.4.11). A variant has a shape of its own as well; a dash always means an
offered rate not reached.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
"""Point shapes in order of the variants; seven of them against eight colours, so that 56 pairs
differ."""

_LIGHT_PALETTE = (
    "#0072B2",
    "#D55E00",
    "#00866A",
    "#B5588A",
    "#8A6D00",
    "#5B6470",
    "#2E86C1",
    "#7A2E4D",
)
_DARK_PALETTE = (
    "#5AB0EE",
    "#F58A4B",
    "#2CC39A",
    "#E39AC4",
    "#E3C23C",
    "#AEB6C2",
    "#A5DBFA",
    "#E0768F",
)


def _config(
    *,
    background: str,
    text: str,
    faint: str,
    grid: str,
    palette: tuple[str, ...],
    diverging: tuple[str, ...],
    ramp: tuple[str, ...],
) -> Config:
    """A Vega-Lite configuration from its few colours."""
    return {
        "background": background,
        "font": FONT,
        "padding": 8,
        "view": {"stroke": grid, "continuousWidth": 640, "continuousHeight": 360},
        "range": {
            "category": list(palette),
            "symbol": list(SHAPES),
            "diverging": list(diverging),
            "ramp": list(ramp),
            "heatmap": list(ramp),
            "ordinal": list(ramp),
        },
        "title": {
            "color": text,
            "subtitleColor": faint,
            "fontSize": 14,
            "fontWeight": 600,
            "subtitleFontSize": 11,
            "subtitlePadding": 4,
            "subtitleLineHeight": 14,
            "anchor": "start",
            "offset": 10,
        },
        "axis": {
            "labelColor": text,
            "titleColor": text,
            "gridColor": grid,
            "domainColor": faint,
            "tickColor": faint,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": 500,
            "titlePadding": 8,
            "tickSize": 4,
            "labelPadding": 3,
        },
        "header": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 12,
            "labelFontWeight": 600,
            "labelPadding": 4,
        },
        "legend": {
            "orient": "top",
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": 500,
            "symbolSize": 70,
            "labelLimit": 260,
            "columnPadding": 16,
        },
        "text": {"color": text, "fontSize": 11},
        "rule": {"color": faint},
        "line": {"strokeWidth": 2},
        "point": {"size": 44},
        "style": {
            "faint": {"color": faint, "stroke": faint, "fill": faint},
            "cell": {"stroke": background, "strokeWidth": 1},
            "hollow": {"color": background},
            "marker": {"color": text, "stroke": background, "opacity": 1},
            "reach": {"color": text},
            "gap": {"color": faint, "stroke": faint, "opacity": 0.55, "strokeWidth": 0.8},
            "stall": {"color": palette[1], "fill": palette[1], "opacity": 0.18},
        },
    }


LIGHT: Config = _config(
    background="#ffffff",
    text="#1d232b",
    faint="#5c6672",
    grid="#e4e7eb",
    palette=_LIGHT_PALETTE,
    diverging=("#f0a35e", "#ffffff", "#7fb8e0"),
    ramp=("#f3f8fc", "#8fc1e3"),
)
"""For white paper; exported pictures use it."""

DARK: Config = _config(
    background="#14181d",
    text="#e6eaf0",
    faint="#98a3b1",
    grid="#2b323b",
    palette=_DARK_PALETTE,
    diverging=("#8f4a12", "#14181d", "#17588c"),
    ramp=("#18212a", "#1f5f92"),
)
"""For dark screens."""
