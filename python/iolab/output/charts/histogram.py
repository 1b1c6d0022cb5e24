# SPDX-License-Identifier: Apache-2.0
"""The latency's histogram: shares of I/Os, four bins to each doubling.

fio's json+ has counts, which are added on the one grid. Plain JSON has percentiles alone. A known
share of the I/Os is between two of them; it is spread evenly over the logarithm of latency.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from iolab.base.units import format_quantity
from iolab.studies.compare.axes import level_text
from iolab.studies.results.evidence.model import Histogram

from .base import words
from .base.axes import value_axis
from .base.drawing import Spec, channel, layer
from .base.model import Chart, Row, slug, specify
from .base.panels import panels
from .lines import colours

BITS = 2
"""Of the grid of the bins: four to each doubling."""

LEAST_PERCENTILES = 4
"""Percentiles below which no histogram is made of them."""


@dataclass(frozen=True)
class Shares:
    """One variant's latencies at one place, as shares of its I/Os.

    Attributes:
        shares: grid index (of `BITS` bits, nanoseconds) to share; together 1.
        repetitions: runs they came from; of_percentiles: made of percentiles, not of counts.
    """

    variant: str
    shares: Mapping[int, float]
    repetitions: int
    of_percentiles: bool


def shares_of_counts(variant: str, histograms: Sequence[Histogram]) -> Shares:
    """Counts of all repetitions added. Raises ValueError for a grid coarser than that of the
    bins."""
    from iolab import _core  # other charts do without the native core

    counts: dict[int, int] = {}
    for histogram in histograms:
        coarse = _core.coarsen(
            histogram.indices.tolist(), histogram.counts.tolist(), histogram.bits, BITS
        )
        for index, count in zip(*coarse, strict=True):
            counts[index] = counts.get(index, 0) + count
    total = sum(counts.values())
    shares = {index: count / total for index, count in sorted(counts.items()) if count}
    return Shares(variant, shares, len(histograms), of_percentiles=False)


def shares_of_percentiles(
    variant: str, repetitions: Sequence[tuple[float, Mapping[float, float], float]]
) -> Shares:
    """The mean of the repetitions' shares.

    Args:
        repetitions: of each the smallest latency, percentiles (per cent to latency) and the largest
        latency, in seconds. Values that fall where they must rise are raised to the one before.
    """
    shares: dict[int, float] = {}
    for smallest, percentiles, largest in repetitions:
        points = [(0.0, smallest), *sorted(percentiles.items()), (100.0, largest)]
        ends = [(points[0][0], max(round(1e9 * points[0][1]), 1))]
        for percent, seconds in points[1:]:
            ends.append((percent, max(round(1e9 * seconds), ends[-1][1])))
        for (before, low), (after, high) in pairwise(ends):
            share = (after - before) / 100 / len(repetitions)
            for index, part in _spread(low, high):
                shares[index] = shares.get(index, 0.0) + share * part
    in_order = {index: share for index, share in sorted(shares.items()) if share > 0}
    return Shares(variant, in_order, len(repetitions), of_percentiles=True)


def _spread(low: int, high: int) -> list[tuple[int, float]]:
    """Bins between two latencies (nanoseconds), each with its part of the logarithm between
    them."""
    from iolab import _core

    first, last = _core.grid_index(low, BITS), _core.grid_index(high, BITS)
    if first == last:
        return [(first, 1.0)]
    width = math.log(high / low)
    parts = []
    for index in range(first, last + 1):
        start, end = _core.grid_bounds(index, BITS)
        overlap = math.log(min(end + 1, high) / max(start, low)) / width
        if overlap > 0:
            parts.append((index, overlap))
    return parts


def histogram(
    shares: Sequence[Shares],
    *,
    title: str = "Latency histogram",
    cell: Mapping[str, object] | None = None,
    name: str = "",
) -> Chart:
    """Shares of I/Os over latency, an outline per variant.

    Args:
        shares: of one place of the sweep, the baseline's first.
        cell: factor levels of that place, for the heading.
        name: begins the chart's name; the title by default.
    """
    edges = [edge for item in shares for index in item.shares for edge in _edges(index)]
    x = value_axis("latency", "s", edges, wide=1.5)
    y = value_axis(
        "share of I/Os", "1", [0.0, *(part for item in shares for part in item.shares.values())]
    )
    place = dict(cell or {})
    outline: list[dict[str, object]] = []
    rows: list[Row] = []
    for item in shares:
        previous = None
        for index, share in item.shares.items():
            low, high = _edges(index)
            label = (
                f"{100 * share:.3g} % from {format_quantity(low, 's', 3)} to "
                f"{format_quantity(high, 's', 3)}"
            )
            rows.append(
                {
                    **place,
                    "variant": item.variant,
                    "low": low,
                    "high": high,
                    "share": share,
                    "unit": "s",
                    "source": "percentiles" if item.of_percentiles else "counts",
                    "repetitions": item.repetitions,
                    "label": label,
                }
            )
            common = {"group": item.variant, "tip": f"{item.variant}: {label}"}
            if previous != low:
                if previous is not None:
                    outline.append({**common, "x": x.place(previous), "y": 0.0})
                outline.append({**common, "x": x.place(low), "y": 0.0})
            outline.append({**common, "x": x.place(low), "y": y.place(share)})
            outline.append({**common, "x": x.place(high), "y": y.place(share)})
            previous = high
        if previous is not None:
            outline.append({"group": item.variant, "tip": "", "x": x.place(previous), "y": 0.0})
    for number, point in enumerate(outline):
        point["i"] = number
    groups = list(dict.fromkeys(item.variant for item in shares))
    division = panels([""])
    picture = division.draw(
        _layers(x.encode_x(division.width), y.encode_y(division.height), groups)
    )
    heading = ", ".join(f"{key} = {level_text(level)}" for key, level in place.items())
    marks = [*([heading] if heading else []), *_marks(shares)]
    return Chart(
        slug(name or title, *place.values()),
        title,
        specify(picture, {"rows": outline}, title=title, marks=marks),
        (*place, "variant", "low", "high", "share", "unit", "source", "repetitions", "label"),
        tuple(rows),
        words.sentences(marks),
    )


def _edges(index: int) -> tuple[float, float]:
    """Seconds from which to which a bin reaches. The first nanosecond begins at half of one, as an
    axis of logarithms has no zero."""
    from iolab import _core

    low, high = _core.grid_bounds(index, BITS)
    return max(low, 0.5) / 1e9, (high + 1) / 1e9


def _layers(x: Spec, y: Spec, groups: Sequence[str]) -> list[Spec]:
    colour, stroke, _, _ = colours(groups, None)
    order = channel("i:Q")
    y2 = Spec(datum=0)
    # corners are in the data: areas of steps would shift them by half a bin
    return [
        layer(Spec(type="area", opacity=0.18), x=x, y=y, y2=y2, fill=colour),
        layer(Spec(type="line", strokeWidth=1.6), x=x, y=y, stroke=stroke, order=order),
        layer(Spec(type="point", opacity=0, size=60), x=x, y=y, tooltip=channel("tip:N")),
    ]


def _marks(shares: Sequence[Shares]) -> list[str]:
    if not any(item.shares for item in shares):
        return ["no latency here"]
    texts = ["four bins to each doubling"]
    for of_percentiles, source in (
        (False, "counts of fio (json+), all repetitions added"),
        (
            True,
            "made of fio's percentiles, smallest and largest latency, as no counts were kept: "
            "between two of them I/Os are spread evenly; mean over repetitions",
        ),
    ):
        names = [item.variant for item in shares if item.of_percentiles is of_percentiles]
        if names:
            texts.append(source if len(names) == len(shares) else f"{source} ({', '.join(names)})")
    return texts
