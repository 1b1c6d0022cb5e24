# SPDX-License-Identifier: Apache-2.0
"""IOPS as bars with the latency that they cost as markers on a second axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from iolab.base.errors import UsageError
from iolab.base.metrics import joint_title
from iolab.base.verdict import Level
from iolab.studies.compare.model import Cell, Comparison

from .base import words
from .base.axes import ValueAxis, value_axis
from .base.drawing import Spec, channel, layer
from .base.loads import key_text, load_axis
from .base.model import Chart, Row, slug, specify
from .base.panels import panels
from .lines import at, colours
from .over_load import LinePlace, line_places

_HALVES = ("rate", "latency")


def bars(rate: Comparison, latency: Comparison, lines: str | None = None) -> Chart:
    """A bar of the rate and a marker of the latency at each level of the row factor, variants next
    to each other, in panels by column and table factors.

    Bars begin at zero (left axis); the latency has the right axis, which is logarithmic over a wide
    range. Lines are intervals, dotted for the latency. A pale bar is SUSPECT. Runs left out are counted, not drawn.
    `lines` is as for `over_load`: a factor with a bar for each level.

    Raises UsageError where the two comparisons have different axes, or `lines` splits no chart.
    """
    axes = [(item.rows, item.cols, item.tables) for item in (rate, latency)]
    if axes[0] != axes[1]:
        raise UsageError(
            "rate and latency are compared over different factors",
            hint="ask for the same rows, columns and tables in both comparisons",
        )
    places, groups, columns = line_places(rate, lines)
    y_of_half = {
        "rate": value_axis(rate.metric.title, rate.metric.unit, [0.0, *_values(rate)], log=False),
        "latency": value_axis(latency.title, latency.metric.unit, _values(latency)),
    }
    data: list[dict[str, object]] = []
    rows: list[Row] = []
    factors = (*rate.tables, *rate.cols, *rate.rows)
    for place in places:
        for row in rate.row_levels:
            for half, comparison in zip(_HALVES, (rate, latency), strict=True):
                cell = comparison.cell(place.table, row, place.col, place.variant)
                if cell is None:
                    continue
                data += _marks_of(cell, comparison, half, y_of_half[half], place)
                levels = dict(zip(factors, (*place.table, *place.col, *row), strict=True))
                rows.append(_row(cell, comparison, levels))
    x = load_axis(rate.rows, rate.row_levels)
    division = panels(list(dict.fromkeys(place.panel for place in places)), columns=columns)
    picture = division.draw(
        [
            Spec(layer=layers)
            for layers in _layers(
                _ordinal(x.title, rate, division.width), y_of_half, division.height, groups, data
            )
        ],
        has_two_scales=True,
    )
    title = words.capital(joint_title(rate.title, latency.title, "and"))
    marks = [*words.fixed_text(rate), *_marks(rate, latency, y_of_half["latency"])]
    return Chart(
        slug(rate.metric.name, "with", latency.metric.name),
        title,
        specify(picture, {"rows": data}, title=title, marks=marks),
        (
            *factors,
            "variant",
            "metric",
            "value",
            "low",
            "high",
            "unit",
            "repetitions",
            "verdict",
            "label",
        ),
        tuple(rows),
        words.sentences(marks),
    )


def _values(comparison: Comparison) -> Iterable[float | None]:
    for cell in comparison.cells:
        yield from (cell.estimate.value, cell.estimate.low, cell.estimate.high)


def _ordinal(title: str, rate: Comparison, width: int) -> Spec:
    """Levels as words at equal distances: bars need room of equal width."""
    labels = [key_text(level) for level in rate.row_levels]
    longest = max(map(len, labels), default=0)
    is_turned = longest * 6.4 + 4 > width / max(len(labels), 1)
    return channel(
        "x:N",
        title=title or None,
        sort=labels,
        scale=Spec(domain=labels, paddingInner=0.25, paddingOuter=0.15),
        axis=Spec(labelAngle=-45 if is_turned else 0, grid=False),
    )


def _marks_of(
    cell: Cell, comparison: Comparison, half: str, y: ValueAxis, place: LinePlace
) -> list[dict[str, object]]:
    height = y.place(cell.estimate.value)
    if height is None:
        return []
    at_level = f"{', '.join(comparison.rows)} {key_text(cell.row)}".strip()
    name = ", ".join(filter(None, [place.name, at_level]))
    return [
        {
            "kind": half,
            "group": place.group,
            "panel": place.panel,
            "x": key_text(cell.row),
            "y": height,
            "lo": y.place(cell.estimate.low),
            "hi": y.place(cell.estimate.high),
            "hollow": cell.estimate.level is Level.SUSPECT,
            "tip": f"{name}: {words.quantity(cell.estimate, comparison.metric.unit)}",
        }
    ]


def _row(cell: Cell, comparison: Comparison, levels: dict[str, object]) -> Row:
    estimate = cell.estimate
    return {
        **levels,
        "variant": cell.variant,
        "metric": comparison.metric.name,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "unit": comparison.metric.unit,
        "repetitions": len(estimate.values),
        "verdict": estimate.level.value,
        "label": words.quantity(estimate, comparison.metric.unit),
    }


def _layers(
    x: Spec,
    y_of_half: dict[str, ValueAxis],
    height: int,
    groups: list[str],
    data: list[dict[str, object]],
) -> tuple[list[Spec], list[Spec]]:
    """The layers of the bars and those of the markers."""
    _, _, fill, _ = colours(groups, None, {str(row["group"]) for row in data})
    with_data = [group for group in groups if any(row["group"] == group for row in data)]
    place: dict[str, Any] = {
        "x": x,
        "xOffset": channel("group:N", scale=Spec(domain=with_data, paddingInner=0.08)),
    }
    scales = (y_of_half[half].encode_y(height, is_right=half == "latency") for half in _HALVES)
    tip = channel("tip:N")
    parts = []
    for half, y in zip(_HALVES, scales, strict=True):
        is_bar = half == "rate"
        mark = (
            Spec(type="bar")
            if is_bar
            else Spec(type="point", shape="diamond", filled=True, size=90, style="marker")
        )
        channels = {**place, "y": y, "tooltip": tip}
        if is_bar:
            opacity = {"test": "datum.hollow", "value": 0.4}
            channels |= {"fill": fill, "opacity": Spec(value=0.9, condition=opacity)}
            channels["y2"] = Spec(datum=0)
        interval = {**place, "y": at(y, "lo"), "y2": channel("hi")}
        parts.append(
            [
                layer(mark, where=f"datum.kind === '{half}'", **channels),
                layer(
                    Spec(
                        type="rule",
                        strokeWidth=1.3,
                        style="reach",
                        strokeDash=[4, 0] if is_bar else [1, 2],
                    ),
                    where=f"datum.kind === '{half}' && isValid(datum.lo) && isValid(datum.hi)",
                    **interval,
                ),
            ]
        )
    return parts[0], parts[1]


def _marks(rate: Comparison, latency: Comparison, right: ValueAxis) -> list[str]:
    cells = (*rate.cells, *latency.cells)
    is_log = "" if right.kind == "linear" else ", logarithmic"
    texts = [
        f"bars: {rate.metric.title} (left axis, from zero)",
        f"diamonds: {latency.title} (right axis{is_log})",
    ]
    if any(cell.estimate.low is not None for cell in cells):
        texts.append(f"lines: {rate.confidence * 100:g} % intervals, dotted for latency")
    if any(cell.estimate.level is Level.SUSPECT for cell in cells):
        texts.append("pale: suspect")
    refused = sum(len(cell.estimate.left_out) for cell in rate.cells)
    if refused:
        texts.append(f"{refused} {'run' if refused == 1 else 'runs'} left out")
    return [*texts, *right.notes]
