# SPDX-License-Identifier: Apache-2.0
"""What one run did second by second: rates, latencies and devices on one time axis, gaps and stalls
marked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iolab.base.metrics import find
from iolab.base.units import format_quantity
from iolab.studies.results.evidence.model import Series

from .base import words
from .base.axes import NUMBER, ValueAxis, value_axis
from .base.drawing import Spec, channel, inline, layer, pixel, stack
from .base.hues import REST, colours_of
from .base.model import Chart, Row, slug, specify
from .lines import Drawn, colours

MOST_POINTS = 2000
"""Readings of one line beyond which its lowest and highest per bucket are drawn."""

_WIDTH, _HEIGHT = 680, 150
Span = tuple[float, float]


def series(
    lines: Sequence[Series],
    *,
    title: str = "Per second",
    stalls: Sequence[Span] = (),
    marked: Sequence[tuple[float, str]] = (),
) -> Chart:
    """Series of one run, a panel for each unit, over seconds since the window's start.

    Args:
        lines: in order of drawing; nan means a second without data: the line
        breaks there and the gap
            is hatched where no line of the panel has a value.
        stalls: spans (start, end) in seconds in which no byte moved, shaded in every panel.
        marked: (second, label) of what was done meanwhile: a rule in every panel, its label in the
        uppermost.

    Panels share the time axis. More than `MOST_POINTS` readings are thinned to the lowest and
    highest of each bucket, and the chart says so; its CSV has them all.
    """
    units = list(dict.fromkeys(line.unit for line in lines))
    times = [float(time) for line in lines for time in line.time if math.isfinite(time)]
    start, end = min([0.0, *times]), max([1.0, *times])
    x, last = (
        channel(
            "x:Q",
            title=title,
            scale=Spec(domain=[start, end], nice=False, zero=False),
            axis=Spec(grid=False, labelExpr=NUMBER),
        )
        for title in (None, "seconds since the window began")
    )
    panels: list[Spec] = []
    colour_by_name = _colours(lines)
    data: dict[str, list[Drawn]] = {}
    thinned, gaps = 0, False
    notes: list[str] = []
    for unit in units:
        lines_of_unit = [line for line in lines if line.unit == unit]
        y = value_axis(
            _title(lines_of_unit),
            unit,
            [float(value) for line in lines_of_unit for value in line.values],
            log=unit == "s",
        )
        buckets = max(
            (math.ceil(2 * len(line.time) / MOST_POINTS) for line in lines_of_unit), default=1
        )
        thinned = max(thinned, buckets if buckets > 2 else 0)
        holes = _gaps(lines_of_unit)
        gaps = gaps or bool(holes)
        notes += [note for note in y.notes if note not in notes]
        data[f"panel{len(panels)}"] = [row for line in lines_of_unit for row in _line(line, y)]
        panels.append(
            _panel(
                lines_of_unit,
                f"panel{len(panels)}",
                y,
                last if unit == units[-1] else x,
                _Overlay(
                    holes,
                    stalls,
                    (start, end),
                    [
                        (second, "" if panels else label)
                        for second, label in marked
                        if start <= second <= end
                    ],
                ),
                colour_by_name,
            )
        )
    marks = []
    if stalls:
        marks.append("shaded: stalled, no byte moved")
    if gaps:
        marks.append("hatched: nothing known")
    if thinned:
        marks.append(f"thinned: lowest and highest of every {thinned} readings")
    marks += notes if lines else ["no per-second series here"]
    picture = Spec(
        vconcat=panels or [_empty(last)],
        spacing=14,
        resolve=Spec(scale=Spec(color="independent", x="shared")),
    )
    rows: tuple[Row, ...] = tuple(
        {
            "series": line.name,
            "seconds": float(time),
            "value": float(value) if math.isfinite(value) else None,
            "unit": line.unit,
            "label": format_quantity(float(value), line.unit),
        }
        for line in lines
        for time, value in zip(line.time, line.values, strict=True)
    )
    return Chart(
        slug(title),
        title,
        specify(picture, data, title=title, marks=marks),
        ("series", "seconds", "value", "unit", "label"),
        rows,
        words.sentences(marks),
    )


@dataclass(frozen=True)
class _Overlay:
    """What a panel shows besides its lines: spans without readings, stalls, and marked moments with
    their labels, all within a window."""

    holes: Sequence[Span]
    stalls: Sequence[Span]
    window: Span
    marked: Sequence[tuple[float, str]]


def _panel(
    lines: Sequence[Series],
    data: str,
    y: ValueAxis,
    x: Spec,
    overlay: _Overlay,
    colour_by_name: Mapping[str, str],
) -> Spec:
    names = [line.name for line in lines]
    vertical = y.encode_y(_HEIGHT)
    layers: list[Spec] = []
    if overlay.stalls:
        spans = inline(*({"x": first, "x2": last} for first, last in overlay.stalls))
        layers.append(
            layer(Spec(type="rect", style="stall", clip=True), data=spans, x=x, x2=channel("x2"))
        )
    if overlay.holes:
        layers.append(
            layer(
                Spec(type="rule", style="gap", clip=True),
                data=inline(*_hatching(overlay.holes, overlay.window)),
                x=x,
                x2=channel("x2"),
                y=pixel(_HEIGHT),
                y2=pixel(0),
            )
        )
    colour = colours(names, None, colour_by_group=colour_by_name)[0]
    base = {"x": x, "y": vertical, "color": colour}
    rows = Spec(name=data)
    layers.append(
        layer(
            Spec(type="line", strokeWidth=1.4, clip=True),
            data=rows,
            where="!datum.alone",
            **base,
            detail=channel("piece:N"),
        )
    )
    layers.append(
        layer(
            Spec(type="circle", size=14, opacity=1, clip=True),
            data=rows,
            where="datum.alone",
            **base,
        )
    )
    if overlay.marked:
        done = inline(*({"x": second, "label": label} for second, label in overlay.marked))
        layers.append(
            layer(
                Spec(type="rule", style="faint", strokeDash=[2, 3], strokeWidth=1.4),
                data=done,
                x=x,
            )
        )
        text = Spec(
            type="text", fontSize=10, align="right", baseline="bottom", angle=270, dx=-4, dy=-3
        )
        layers.append(layer(text, data=done, x=x, y=pixel(4), text=channel("label:N")))
    return stack(layers, _WIDTH, _HEIGHT)


_OPERATION = re.compile(r"(read|write|trim|sync)\.")
_VALUE = re.compile(r"\[([^\]]*)\]")


def _key(name: str) -> tuple[str, str]:
    """(field, value) that a series is of, such as (device, sda) or (op, read); ("", "") for the sum
    of all."""
    if value := _VALUE.search(name):
        return "device", value[1]
    if operation := _OPERATION.match(name):
        return "op", operation[1]
    return "", ""


def _colours(lines: Sequence[Series]) -> dict[str, str]:
    """The colour of each series by its name: that of its device or operation, in all panels the
    same. The devices with the largest share of any panel choose first, as on the report's page."""
    share: dict[tuple[str, str], float] = {}
    for unit in dict.fromkeys(line.unit for line in lines):
        sums = {
            _key(line.name): max(0.0, float(np.nansum(line.values)))
            for line in lines
            if line.unit == unit and _key(line.name)[0]
        }
        total = sum(sums.values()) or 1.0
        for key, part in sums.items():
            share[key] = max(share.get(key, 0.0), part / total)
    ordered = sorted(share, key=lambda key: (-share[key], key))
    colour_by_key = {
        (field, value): colour
        for field in dict.fromkeys(field for field, _ in ordered)
        for value, colour in colours_of(
            field, [value for other, value in ordered if other == field]
        ).items()
    }
    return {line.name: colour_by_key.get(_key(line.name), REST) for line in lines}


def _title(lines: Sequence[Series]) -> str:
    """What the panel's lines have in common: the metric's title for one, the names' last word for
    several."""
    if len(lines) == 1:
        metric = find(lines[0].name)
        return metric.title if metric else lines[0].name
    last = {line.name.partition("[")[0].rpartition(".")[2] for line in lines}
    titles = {"iops": "IOPS", "bw": "throughput", "util": "device utilization"}
    return (
        titles.get(word, word)
        if len(last) == 1 and (word := last.copy().pop())
        else "latency"
        if lines[0].unit == "s"
        else ""
    )


def _line(one: Series, y: ValueAxis) -> Iterable[Drawn]:
    """Drawn readings in pieces that end at gaps; `alone` marks a piece of one reading."""
    piece: list[Drawn] = []
    number = 0
    for time, value in [*_thin(one), (math.inf, math.nan)]:
        height = y.place(value)
        if height is not None and math.isfinite(time):
            piece.append(
                {
                    "group": one.name,
                    "x": round(time, 3),
                    "y": height,
                    "piece": number,
                    "alone": False,
                }
            )
            continue
        if len(piece) == 1:
            piece[0]["alone"] = True
        yield from piece
        piece, number = [], number + 1


def _thin(one: Series) -> list[tuple[float, float]]:
    """The readings, or the lowest and highest of each bucket where there are too many; a bucket of
    nan stays a gap."""
    times, values = np.asarray(one.time, float), np.asarray(one.values, float)
    size = math.ceil(2 * len(times) / MOST_POINTS)
    if size <= 2:
        return list(zip(times.tolist(), values.tolist(), strict=True))
    kept: list[tuple[float, float]] = []
    for first in range(0, len(times), size):
        bucket = values[first : first + size]
        finite_places = np.flatnonzero(np.isfinite(bucket))
        if not len(finite_places):
            kept.append((float(times[first]), math.nan))
            continue
        ends = sorted(
            {
                int(finite_places[bucket[finite_places].argmin()]),
                int(finite_places[bucket[finite_places].argmax()]),
            }
        )
        kept += [(float(times[first + end]), float(bucket[end])) for end in ends]
    return kept


def _gaps(lines: Sequence[Series]) -> list[Span]:
    """Spans in which no line of the panel has a value, as readings without one and as holes in
    time."""
    times = sorted(
        {
            float(time)
            for line in lines
            for time, value in zip(line.time, line.values, strict=True)
            if math.isfinite(value) and math.isfinite(time)
        }
    )
    every = sorted({float(time) for line in lines for time in line.time if math.isfinite(time)})
    if not every:
        return []
    steps = np.diff(every)
    step = float(np.median(steps)) if len(steps) else 1.0
    edges = [every[0] - step, *times, every[-1] + step]
    spans = [
        (before + step / 2, after - step / 2)
        for before, after in pairwise(edges)
        if after - before > 1.6 * step
    ]
    return [(max(first, 0.0), last) for first, last in spans if last > max(first, 0.0)]


def _hatching(holes: Sequence[Span], window: Span) -> Iterable[dict[str, float]]:
    """Slanted strokes over each hole, about eight pixels apart."""
    pixels = _WIDTH / max(window[1] - window[0], 1e-9)
    for first, last in holes:
        strokes = max(2, round((last - first) * pixels / 8))
        step = (last - first) / strokes
        for stroke in range(strokes):
            left_edge = first + stroke * step
            yield {"x": round(left_edge, 4), "x2": round(left_edge + step, 4)}


def _empty(x: Spec) -> Spec:
    return stack([layer(Spec(type="line"), data=inline(), x=x)], _WIDTH, _HEIGHT)
