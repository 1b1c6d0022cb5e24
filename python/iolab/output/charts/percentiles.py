# SPDX-License-Identifier: Apache-2.0
"""The latency's distribution up to its far tail: pooled over repetitions, with what repetitions say
about its certainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iolab.base.units import format_quantity
from iolab.studies.compare.axes import level_text
from iolab.studies.results.evidence.model import Histogram

from .base import words
from .base.axes import value_axis
from .base.drawing import Spec, channel
from .base.model import Chart, Row, slug, specify
from .base.panels import panels
from .lines import Drawn, Spot, layers, rows_of

STANDARD = (
    1.0,
    5.0,
    10.0,
    25.0,
    50.0,
    75.0,
    90.0,
    95.0,
    99.0,
    99.5,
    99.9,
    99.95,
    99.99,
    99.995,
    99.999,
    99.9995,
    99.9999,
)
"""Per cents that every curve holds as far as its count allows: those that fio prints, and the tail
beyond."""

BEYOND = 10
"""I/Os that must lie beyond a percentile for it to be drawn; with fewer it is an anecdote."""

_STEPS = 8
"""Points per decade of the tail between the standard ones, so that the curve shows its steps."""


@dataclass(frozen=True)
class Tail:
    """One variant's latencies at one place, read at some per cents.

    Attributes:
        percents: ascending, below 100; values, lows, highs: seconds, None where there is none (lows
        and highs: a single
            repetition); all of shape (n,).
        count: I/Os pooled; repetitions: runs they came from.
    """

    variant: str
    percents: tuple[float, ...]
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    count: int
    repetitions: int


def tail(variant: str, histograms: Sequence[Histogram], *, confidence: float = 0.95) -> Tail:
    """Pool one variant's histograms (one per repetition, same grid) and read them at every per cent
    their count allows.

    Raises ValueError for histograms of different grids.
    """
    from iolab.base.stats.tails import (
        pooled_quantiles,  # the native core, which other charts do without
    )

    bits = {histogram.bits for histogram in histograms}
    if len(bits) > 1:
        raise ValueError(f"histograms of different grids can't be pooled: {sorted(bits)} bits")
    count = sum(int(histogram.counts.sum()) for histogram in histograms)
    percents = percents_for(count)
    read = (
        pooled_quantiles(
            [(histogram.indices, histogram.counts) for histogram in histograms],
            bits.pop() if bits else 6,
            [percent / 100 for percent in percents],
            confidence=confidence,
        )
        if percents
        else []
    )
    values, lows, highs = (
        tuple(None if (value := three[part]) is None else value / 1e9 for three in read)
        for part in range(3)
    )
    return Tail(
        variant,
        tuple(percents),
        values,
        lows,
        highs,
        count,
        sum(bool(histogram.counts.sum()) for histogram in histograms),
    )


def percents_for(count: int) -> list[float]:
    """Per cents that `count` I/Os can answer, ascending: at least `BEYOND` of them lie beyond each,
    or it is the median."""
    if count < 1:
        return []
    between = [100 * (1 - 10 ** (-step / _STEPS)) for step in range(1, 7 * _STEPS)]
    every = sorted({*STANDARD, *(round(percent, 7) for percent in between)})
    return [
        percent
        for percent in every
        if percent <= 50 or count * (1 - percent / 100) >= BEYOND * (1 - 1e-9)
    ]


def percentiles(
    tails: Sequence[Tail],
    *,
    title: str = "Latency percentiles",
    cell: Mapping[str, object] | None = None,
    confidence: float = 0.95,
    name: str = "",
) -> Chart:
    """Latency against percentile, a line per variant; the axis gives every decade of the tail the
    same room.

    Args:
        tails: of one place of the sweep, the baseline's first (see `tail`).
        cell: factor levels of that place, for the heading.
        name: begins the chart's name; the title by default.
    """
    values = [
        value
        for tail_of_variant in tails
        for part in (tail_of_variant.values, tail_of_variant.lows, tail_of_variant.highs)
        for value in part
    ]
    y = value_axis("latency", "s", values)
    drawn_lines: list[Drawn] = []
    rows: list[Row] = []
    place = dict(cell or {})
    for tail_of_variant in tails:
        spots = []
        points = zip(
            tail_of_variant.percents,
            tail_of_variant.values,
            tail_of_variant.lows,
            tail_of_variant.highs,
            strict=True,
        )
        for i, (percent, value, low, high) in enumerate(points):
            if value is None:
                continue
            label = format_quantity(value, "s")
            rows.append(
                {
                    **place,
                    "variant": tail_of_variant.variant,
                    "percent": percent,
                    "value": value,
                    "low": low,
                    "high": high,
                    "unit": "s",
                    "ios": tail_of_variant.count,
                    "repetitions": tail_of_variant.repetitions,
                    "label": label,
                }
            )
            if (height := y.place(value)) is not None:
                spots.append(
                    Spot(
                        i,
                        float(f"{100 / (100 - percent):.9g}"),
                        height,
                        y.place(low),
                        y.place(high),
                        tip=f"{tail_of_variant.variant}: {percent:.7g} % of I/Os within {label}",
                    )
                )
        lines = rows_of(spots, {"group": tail_of_variant.variant})
        # Points would bury the line: only the percentiles that people name get one.
        named = {
            spot.i
            for spot in spots
            if tail_of_variant.percents[spot.i] >= 50
            and tail_of_variant.percents[spot.i] in STANDARD
        }
        drawn_lines += [row for row in lines if row["kind"] != "point" or row["i"] in named]
    division = panels([""])
    groups = list(dict.fromkeys(tail_of_variant.variant for tail_of_variant in tails))
    picture = division.draw(
        layers(_axis(drawn_lines), y.encode_y(division.height), groups, drawn_lines)
    )
    marks = [
        *(
            [", ".join(f"{name} = {level_text(level)}" for name, level in place.items())]
            if place
            else []
        ),
        *_marks(tails, confidence),
        *y.notes,
    ]
    return Chart(
        slug(name or title, *place.values()),
        title,
        specify(picture, {"rows": drawn_lines}, title=title, marks=marks),
        (
            *place,
            "variant",
            "percent",
            "value",
            "low",
            "high",
            "unit",
            "ios",
            "repetitions",
            "label",
        ),
        tuple(rows),
        words.sentences(marks),
    )


def _axis(drawn: Sequence[Drawn]) -> Spec:
    """One over the share above, on a log axis, with per cent as labels."""
    most = max((float(row["x"]) for row in drawn), default=100.0)
    decades = max(2, math.ceil(math.log10(most) - 1e-9))
    ticks = [1.0, 2.0, *(float(10**decade) for decade in range(1, decades + 1))]
    label = "format(100 - 100 / datum.value, '.10~r') + ' %'"
    return channel(
        "x:Q",
        title="share of I/Os at or below",
        scale=Spec(type="log", domain=[1, max(most * 1.05, 20)], nice=False),
        axis=Spec(values=[tick for tick in ticks if tick <= max(most * 1.05, 20)], labelExpr=label),
    )


def _marks(tails: Sequence[Tail], confidence: float) -> list[str]:
    if not any(item.count for item in tails):
        return ["no latency histogram here"]
    texts = [
        f"{item.variant}: {item.count:,} I/Os of {item.repetitions} "
        f"{'run' if item.repetitions == 1 else 'runs'}".replace(",", " ")
        for item in tails
    ]
    if any(low is not None for item in tails for low in item.lows):
        texts.append(f"band: {confidence * 100:g} % interval over repetitions")
    texts.append(f"drawn while at least {BEYOND} I/Os lie beyond")
    return texts
