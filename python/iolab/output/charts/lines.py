# SPDX-License-Identifier: Apache-2.0
"""Lines with their evidence: every repetition a dot, the estimate a point, its interval a band.

Rows of the data have `kind` (`band`, `bar`, `line`, `dot`, `point`, `cross`), `x`, `y` (`lo`, `hi`
for intervals), the `group` that colour and shape tell apart, its place `i` along the line, and
`panel` in small multiples.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .base.drawing import Spec, channel, layer

CROSS = "M-1,-1L1,1M-1,1L1,-1"
"""Path of the cross that marks what was refused."""

Drawn = dict[str, Any]


@dataclass(frozen=True)
class Spot:
    """One estimate of a line.

    Attributes:
        i: place along the line; x, y: drawn position; low, high: drawn interval or None.
        hollow: SUSPECT or undecided; dashed: an offered rate was not reached there.
        tip: what hovering over it shows.
    """

    i: int
    x: float | str
    y: float
    low: float | None = None
    high: float | None = None
    hollow: bool = False
    dashed: bool = False
    tip: str = ""
    extra: Drawn = field(default_factory=dict)


def rows_of(spots: Sequence[Spot], common: Drawn) -> list[Drawn]:
    """Rows of one line: its pieces (a piece is solid or dashed throughout), its band, its
    points."""
    return [
        *_line(spots, common),
        *_band(spots, common),
        *(
            {
                **common,
                "kind": "point",
                "i": spot.i,
                "x": spot.x,
                "y": spot.y,
                "hollow": spot.hollow,
                "tip": spot.tip,
                **spot.extra,
            }
            for spot in spots
        ),
    ]


def _line(spots: Sequence[Spot], common: Drawn) -> Iterable[Drawn]:
    """A segment is dashed when an end of it is; a new piece starts where that changes."""
    piece, before = 0, None
    for previous, other in pairwise(spots):
        dashed = previous.dashed or other.dashed
        if before != dashed:
            piece += 1
            yield {
                **common,
                "kind": "line",
                "i": previous.i,
                "x": previous.x,
                "y": previous.y,
                "piece": piece,
                "dashed": dashed,
            }
        yield {
            **common,
            "kind": "line",
            "i": other.i,
            "x": other.x,
            "y": other.y,
            "piece": piece,
            "dashed": dashed,
        }
        before = dashed


def _band(spots: Sequence[Spot], common: Drawn) -> Iterable[Drawn]:
    """A band over neighbours that have an interval. A single interval becomes a bar, and so does
    each at a place with a name: there is nothing between names."""
    stretch: list[Spot] = []
    piece = 0
    for spot in [*spots, None]:
        if spot is not None and spot.low is not None and spot.high is not None:
            stretch.append(spot)
            continue
        piece += 1
        kind = "band" if len(stretch) > 1 and not isinstance(stretch[0].x, str) else "bar"
        for place in stretch:
            yield {
                **common,
                "kind": kind,
                "i": place.i,
                "x": place.x,
                "lo": place.low,
                "hi": place.high,
                "piece": piece,
            }
        stretch = []


def colours(
    groups: Sequence[str],
    title: str | None,
    present: Collection[str] | None = None,
    colour_by_group: Mapping[str, str] | None = None,
) -> tuple[Spec, Spec, Spec, Spec]:
    """Channels that tell groups apart, with the same order everywhere; one legend, none for a
    single group.

    `present` are those that occur where not all do: a variant keeps its colour in every chart.
    `colour_by_group`: colours of names; without it groups have those of the theme in order.
    """
    present_groups = [group for group in groups if present is None or group in present]
    legend = (
        Spec(symbolStrokeWidth=1.6, symbolOpacity=1, values=present_groups)
        if len(groups) > 1
        else None
    )
    scale = Spec(domain=list(groups))
    hues = (
        scale
        if colour_by_group is None
        else Spec(domain=list(groups), range=[colour_by_group[group] for group in groups])
    )
    return (
        channel("group:N", title=title, scale=hues, legend=legend),
        channel("group:N", title=title, scale=hues, legend=legend),
        channel("group:N", title=title, scale=hues, legend=legend),
        channel("group:N", title=title, scale=scale, legend=legend),
    )


def layers(
    x: Spec,
    y: Spec,
    groups: Sequence[str],
    data: Sequence[Drawn],
    *,
    title: str | None = None,
    ordinal: bool = False,
) -> list[Spec]:
    """Layers for the kinds of rows that occur, back to front; `ordinal` sets groups side
    by side."""
    kinds = {row["kind"] for row in data}
    colour, stroke, fill, shape = colours(groups, title, {row["group"] for row in data})
    place: dict[str, Any] = {"x": x, "y": y}
    if ordinal and len(groups) > 1:
        groups_with_data = [group for group in groups if any(row["group"] == group for row in data)]
        place["xOffset"] = channel("group:N", scale=Spec(domain=groups_with_data, paddingOuter=0.9))
    interval = {**place, "y": at(y, "lo"), "y2": channel("hi")}
    tip, piece = channel("tip:N"), channel("piece:N")
    layer_list: list[Spec] = []

    def add(kind: str, look: dict[str, Any], **channels: Any) -> None:
        if kind in kinds:
            layer_list.append(layer(look, where=f"datum.kind === '{kind}'", **channels))

    # No order channel here: an area would take it for stacking and fall into single points. It runs
    # along x anyway.
    add(
        "band",
        {"type": "area", "opacity": 0.2, "clip": True},
        **interval,
        color=colour,
        detail=piece,
    )
    add("bar", {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7}, **interval, color=colour)
    dash = Spec(value=[1, 0], condition={"test": "datum.dashed", "value": [5, 4]})
    add(
        "line",
        {"type": "line"},
        **place,
        color=colour,
        detail=piece,
        order=channel("i:Q"),
        strokeDash=dash,
    )
    add("dot", {"type": "circle", "size": 10, "opacity": 0.55}, **place, color=colour, tooltip=tip)
    cross = {
        "type": "point",
        "shape": CROSS,
        "size": 36,
        "strokeWidth": 1.8,
        "filled": False,
        "opacity": 1,
    }
    add("cross", cross, **place, color=colour, tooltip=tip)
    kinds.add("point")  # even without any, for axes and legend
    point: dict[str, Any] = {"type": "point", "filled": False, "strokeWidth": 1.6, "opacity": 1}
    add("point", point, **place, stroke=stroke, fill=fill, shape=shape, tooltip=tip)
    if any(row.get("hollow") for row in data):
        # over the filled one in the paper's colour: what only lacks a fill lets lines shine through
        # and looks filled
        paper = {**point, "filled": True, "style": "hollow"}
        layer_list.append(
            layer(
                paper,
                where="datum.kind === 'point' && datum.hollow",
                **place,
                stroke=stroke,
                shape=shape,
                tooltip=tip,
            )
        )
    return layer_list


def at(axis: Spec, field: str) -> Spec:
    """The same axis and scale, reading another field."""
    return {**axis, "field": field}
