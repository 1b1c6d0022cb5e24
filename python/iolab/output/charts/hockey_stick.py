# SPDX-License-Identifier: Apache-2.0
"""Throughput against latency: up to the knee more load buys throughput, beyond it only waiting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from iolab.base.metrics import joint_title
from iolab.base.stats.curves.knee import KneeEstimate
from iolab.base.units import format_quantity
from iolab.base.verdict import Level
from iolab.studies.compare.axes import level_text
from iolab.studies.compare.load.curve_model import Curve, Curves
from iolab.studies.compare.model import Key

from .base import words
from .base.axes import ValueAxis, value_axis
from .base.drawing import Spec, channel, layer
from .base.loads import named_text
from .base.model import Chart, Row, slug, specify
from .base.panels import Panels, panels
from .lines import Drawn, Spot, at, colours, layers, rows_of
from .reference import Reference, fitting, reference_layers

WIDE = 64.0
"""Range from which the latency's axis is logarithmic: a hockey stick shows its bend best on linear
axes, while it fits."""

TOLD = 3
"""Most curves with their knees in the caption; others are in the table only."""

UNLIKE = 4.0
"""Ratio of the best throughputs of two panels from which both axes are logarithmic, so that each
panel can be read."""


def hockey_stick(curves: Curves, references: Sequence[Reference] = ()) -> Chart:
    """Latency over throughput, a line per variant in order of load, points labelled by load.

    Repetitions are dots. A ring marks the knee, with bars from the lowest to the highest knee of
    the repetitions; a curve without a clear knee has none; the caption says why, or from four
    curves on the table. References (a link's rate, a rated disk) widen the axes to be seen. Panels
    by the other factors.
    """
    labels = {
        table: named_text(curves.tables, table)
        for table in curves.table_levels
        if any(curve.table == table for curve in curves.curves)
    } or {(): ""}
    division = panels(list(labels.values()), columns=_columns(list(labels)))
    unlike = _unlike(curves)
    references = fitting(references, curves.throughput.unit, curves.latency.unit)
    x = value_axis(
        curves.throughput.title,
        curves.throughput.unit,
        [
            *_reach(curves, "throughput"),
            *(reference.value for reference in references if reference.axis == "x"),
        ],
        log=unlike,
    )
    y = value_axis(
        curves.latency_title,
        curves.latency.unit,
        [
            *_reach(curves, "latency"),
            *(reference.value for reference in references if reference.axis == "y"),
        ],
        wide=WIDE / 8 if unlike else WIDE,
    )
    drawn_lines: list[Drawn] = []
    for curve in curves.curves:
        drawn_lines += _curve(
            curves, curve, x, y, {"group": curve.variant, "panel": labels[curve.table]}
        )
    for panel in labels.values():
        drawn_lines += _load_labels(
            [row for row in drawn_lines if row["panel"] == panel], x, y, division, references
        )
    horizontal, vertical = x.encode_x(division.width), y.encode_y(division.height)
    marked = [
        *reference_layers(references, x, y, horizontal, vertical),
        *layers(horizontal, vertical, curves.variants, drawn_lines),
        *_knee_layers(horizontal, vertical, curves, drawn_lines),
    ]
    title = words.capital(joint_title(curves.throughput.title, curves.latency_title, "against"))
    fixed = ", ".join(f"{name} = {level_text(level)}" for name, level in curves.fixed.items())
    marks = [
        *([fixed] if fixed else []),
        *_marks(curves, drawn_lines),
        *x.notes,
        *(note for note in y.notes if note not in x.notes),
    ]
    knees = [f"in {_name(curve, labels)}: {_knee_text(curve, curves)}" for curve in curves.curves]
    if len(knees) > TOLD:
        knees = ["knees: see the table"]
    columns, rows = _table(curves)
    return Chart(
        slug(curves.throughput.name, "hockey-stick"),
        title,
        specify(division.draw(marked), {"rows": drawn_lines}, title=title, marks=marks),
        columns,
        rows,
        words.sentences([*marks, *knees]),
    )


def _columns(tables: Sequence[Key]) -> int | None:
    """Panels abreast, as other charts have them: the levels of the last factor, where they make a
    whole grid with the others."""
    across, down = ({table[part] for table in tables} for part in (slice(-1, None), slice(0, -1)))
    return len(across) if len(down) > 1 and len(tables) == len(across) * len(down) else None


def _reach(curves: Curves, which: str) -> Iterable[float | None]:
    """Everything that decides an axis: estimates, repetitions, and the knee's range."""
    for curve in curves.curves:
        for point in curve.points:
            estimate = point.throughput if which == "throughput" else point.latency
            yield from (estimate.value, *estimate.values)
        if isinstance(curve.knee, KneeEstimate):
            spread = (
                curve.knee.throughput_range if which == "throughput" else curve.knee.latency_range
            )
            yield from spread or ()


def _unlike(curves: Curves) -> bool:
    """Whether panels reach throughputs so different that on one linear axis the slower ones would
    vanish in a corner."""
    tops: dict[Key, float] = {}
    for curve in curves.curves:
        reached = [point.throughput.value for point in curve.points if point.throughput.value]
        tops[curve.table] = max([tops.get(curve.table, 0.0), *reached])
    best = [top for top in tops.values() if top > 0]
    return bool(best) and max(best) >= UNLIKE * min(best)


def _curve(
    curves: Curves, curve: Curve, x: ValueAxis, y: ValueAxis, common: Drawn
) -> Iterable[Drawn]:
    spots = []
    for i, point in enumerate(curve.points):
        load = level_text(point.load)
        name = f"{curve.variant}, {curves.load} {load}"
        if point.n > 1:
            for rate, delay, run in zip(
                point.throughput.values, point.latency.values, point.throughput.runs, strict=False
            ):
                if (across := x.place(rate)) is not None and (up := y.place(delay)) is not None:
                    yield {**common, "kind": "dot", "x": across, "y": up, "tip": f"{name} ({run})"}
        middle_x, middle_y = x.place(point.throughput.value), y.place(point.latency.value)
        if middle_x is None or middle_y is None:
            continue
        tip = (
            f"{name}: {words.quantity(point.throughput, curves.throughput.unit)} @ "
            f"{words.quantity(point.latency, curves.latency.unit)}"
        )
        spots.append(
            Spot(
                i,
                middle_x,
                middle_y,
                hollow=point.level is Level.SUSPECT,
                dashed=point.saturated,
                tip=tip,
                extra={"load": load},
            )
        )
    yield from rows_of(spots, common)
    knee = curve.knee
    if isinstance(knee, KneeEstimate):
        knee_x, knee_y = x.place(knee.throughput), y.place(knee.latency)
        if knee_x is not None and knee_y is not None:
            yield {
                **common,
                "kind": "knee",
                "x": knee_x,
                "y": knee_y,
                "tip": f"{curve.variant}: {_knee_text(curve, curves)}",
            }
            if knee.throughput_range:
                yield {
                    **common,
                    "kind": "knee-x",
                    "y": knee_y,
                    "lo": x.place(knee.throughput_range[0]),
                    "hi": x.place(knee.throughput_range[1]),
                }
            if knee.latency_range:
                yield {
                    **common,
                    "kind": "knee-y",
                    "x": knee_x,
                    "lo": y.place(knee.latency_range[0]),
                    "hi": y.place(knee.latency_range[1]),
                }


def _load_labels(
    rows: Sequence[Drawn],
    x: ValueAxis,
    y: ValueAxis,
    division: Panels,
    references: Sequence[Reference],
) -> Iterable[Drawn]:
    """Labels of the loads next to their points, as far as there is room; positions are pixels of
    the panel."""

    def pixels(row: Drawn) -> tuple[float, float]:
        return x.pixel(row["x"], division.width), division.height - y.pixel(
            row["y"], division.height
        )

    points = [row for row in rows if row["kind"] == "point"]
    lines = [
        [pixels(row) for row in points if row["group"] == group]
        for group in {row["group"] for row in points}
    ]
    knee_boxes = [Box.around(*pixels(row), 11, 11) for row in rows if row["kind"] == "knee"]
    for reference in references:
        if reference.axis == "x" and (value := x.place(reference.value)) is not None:
            edge = x.pixel(value, division.width)
            knee_boxes += [
                Box(edge - 18, 0, edge, 6.5 * len(reference.label)),
                Box(edge - 1, 0, edge + 1, division.height),
            ]
    spots = [(*pixels(row), str(row["load"])) for row in points]
    for row, middle in zip(
        points, place(spots, lines, division.width, division.height, knee_boxes), strict=True
    ):
        if middle is not None:
            yield {
                "kind": "load",
                "group": row["group"],
                "panel": row["panel"],
                "load": row["load"],
                "px": round(middle[0], 1),
                "py": round(middle[1], 1),
            }


def _knee_layers(x: Spec, y: Spec, curves: Curves, drawn: Sequence[Drawn]) -> list[Spec]:
    kinds = {row["kind"] for row in drawn}
    colour = colours(curves.variants, None, {row["group"] for row in drawn})[0]
    knee_layer_list: list[Spec] = []

    def add(kind: str, look: dict[str, Any], **channels: Any) -> None:
        if kind in kinds:
            knee_layer_list.append(
                layer(look, where=f"datum.kind === '{kind}'", color=colour, **channels)
            )

    bar = {"type": "rule", "strokeWidth": 5, "opacity": 0.35}
    add("knee-x", bar, x=at(x, "lo"), x2=channel("hi"), y=y)
    add("knee-y", bar, x=x, y=at(y, "lo"), y2=channel("hi"))
    ring = {
        "type": "point",
        "shape": "circle",
        "filled": False,
        "size": 260,
        "strokeWidth": 2.2,
        "opacity": 1,
    }
    add("knee", ring, x=x, y=y, tooltip=channel("tip:N"))
    add(
        "load",
        {"type": "text", "fontSize": 10, "baseline": "middle"},
        x=channel("px:Q", scale=None, axis=None),
        y=channel("py:Q", scale=None, axis=None),
        text=channel("load:N"),
    )
    return knee_layer_list


def _knee_text(curve: Curve, curves: Curves) -> str:
    knee = curve.knee
    if not isinstance(knee, KneeEstimate):
        return f"no clear knee ({knee.reason})"
    text = (
        f"knee at {curves.load} {level_text(knee.load)}, {format_quantity(knee.throughput, curves.throughput.unit)} @ "
        f"{format_quantity(knee.latency, curves.latency.unit)}"
    )
    if knee.load_range is None:
        return f"{text}, from a single repetition"
    low, high = (level_text(end) for end in knee.load_range)
    spread = f"{curves.load} {low} in all" if low == high else f"{curves.load} {low} to {high} over"
    return f"{text} ({spread} repetitions, found in {knee.with_knee} of {knee.repetitions})"


def _name(curve: Curve, labels: dict[tuple[object, ...], str]) -> str:
    return ", ".join(part for part in (curve.variant, labels[curve.table]) if part)


def _marks(curves: Curves, drawn: Sequence[Drawn]) -> list[str]:
    points = [point for curve in curves.curves for point in curve.points]
    if not points:
        return ["nothing was measured on both axes"]
    said = [f"labels: {curves.load}"]
    kinds = {row["kind"] for row in drawn}
    if "dot" in kinds:
        said.append("dots: single repetitions")
    if "knee-x" in kinds:
        said.append("ring: knee, bars: its range over repetitions")
    elif "knee" in kinds:
        said.append("ring: knee")
    else:
        said.append("no clear knee")
    if any(point.level is Level.SUSPECT for point in points):
        said.append("hollow: suspect")
    if any(point.saturated for point in points):
        said.append("dashed: offered rate not reached")
    lost = sum(len(curve.left_out) for curve in curves.curves)
    if lost:
        said.append(f"{lost} {'run' if lost == 1 else 'runs'} left out")
    return said


def _table(curves: Curves) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    rate, delay = curves.throughput.name, curves.latency.name
    rows: list[Row] = []
    for curve in curves.curves:
        common = {**dict(zip(curves.tables, curve.table, strict=True)), "variant": curve.variant}
        for point in curve.points:
            label = (
                f"{words.quantity(point.throughput, curves.throughput.unit)} @ "
                f"{words.quantity(point.latency, curves.latency.unit)}"
            )
            rows.append(
                {
                    **common,
                    "kind": "estimate",
                    curves.load: point.load,
                    rate: point.throughput.value,
                    f"{rate} low": point.throughput.low,
                    f"{rate} high": point.throughput.high,
                    delay: point.latency.value,
                    f"{delay} low": point.latency.low,
                    f"{delay} high": point.latency.high,
                    "repetitions": point.n,
                    "verdict": point.level.value,
                    "saturated": point.saturated,
                    "label": label,
                }
            )
            rows += [
                {
                    **common,
                    "kind": "run",
                    curves.load: point.load,
                    rate: rate_value,
                    delay: other,
                    "run": run,
                }
                for rate_value, other, run in zip(
                    point.throughput.values,
                    point.latency.values,
                    point.throughput.runs,
                    strict=False,
                )
            ]
        knee = curve.knee
        if isinstance(knee, KneeEstimate):
            across, up = knee.throughput_range or (None, None), knee.latency_range or (None, None)
            rows.append(
                {
                    **common,
                    "kind": "knee",
                    curves.load: knee.load,
                    rate: knee.throughput,
                    f"{rate} low": across[0],
                    f"{rate} high": across[1],
                    delay: knee.latency,
                    f"{delay} low": up[0],
                    f"{delay} high": up[1],
                    "repetitions": knee.repetitions,
                    "label": _knee_text(curve, curves),
                }
            )
        else:
            rows.append({**common, "kind": "no knee", "label": _knee_text(curve, curves)})
    sides = [f"{name}{end}" for name in (rate, delay) for end in ("", " low", " high")]
    return (
        *curves.tables,
        "variant",
        "kind",
        curves.load,
        *sides,
        "run",
        "repetitions",
        "verdict",
        "saturated",
        "label",
    ), tuple(rows)


Point = tuple[float, float]
"""Pixels from the panel's upper left corner, y downwards."""

_LETTER, _HEIGHT = 6.0, 11.0
_STEP = 5.0


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    @classmethod
    def around(cls, x: float, y: float, half_width: float, half_height: float) -> Box:
        """The rectangle about a middle."""
        return cls(x - half_width, y - half_height, x + half_width, y + half_height)


def place(
    points: Sequence[tuple[float, float, str]],
    lines: Iterable[Sequence[Point]],
    width: float,
    height: float,
    obstacles: Sequence[Box] = (),
) -> list[Point | None]:
    """For each point (x, y, text) the middle of its label, or None where there is no room.

    A place off the lines is taken before one on a line. Points at the end come first: at the
    end of a hockey stick loads differ most in what they cost, so those labels are the ones to keep.
    """
    strokes = [Box.around(x, y, 1.5, 1.5) for line in lines for x, y in _along(line)]
    solid = [*(Box.around(x, y, 5, 5) for x, y, _ in points), *obstacles]
    positions: list[Point | None] = [None] * len(points)
    for avoid in (strokes, []):
        for index in range(len(points) - 1, -1, -1):
            if positions[index] is not None:
                continue
            x, y, text = points[index]
            half = _LETTER * len(text) / 2
            for middle in _places(x, y, half):
                box = Box.around(*middle, half, _HEIGHT / 2)
                inside = (
                    box.left >= 0 and box.right <= width and box.top >= 0 and box.bottom <= height
                )
                if inside and not any(box.meets(other) for other in (*solid, *avoid)):
                    positions[index] = middle
                    solid.append(box)
                    break
    return positions


def _places(x: float, y: float, half: float) -> Iterable[Point]:
    """Middles of a label about its point, in order of preference."""
    for dx, dy in (
        (0, -12),
        (half + 8, 0),
        (-half - 8, 0),
        (0, 12),
        (half + 5, -9),
        (-half - 5, -9),
        (half + 5, 9),
        (-half - 5, 9),
        (half + 14, 0),
        (-half - 14, 0),
        (0, -18),
        (0, 18),
    ):
        yield x + dx, y + dy


def _along(line: Sequence[Point]) -> Iterable[Point]:
    """Points on a line, a few pixels apart."""
    for (x1, y1), (x2, y2) in pairwise(line):
        steps = max(1, math.ceil(math.hypot(x2 - x1, y2 - y1) / _STEP))
        for step in range(steps):
            yield x1 + (x2 - x1) * step / steps, y1 + (y2 - y1) * step / steps
