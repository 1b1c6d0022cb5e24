# SPDX-License-Identifier: Apache-2.0
"""The position of a picture in its map, and the I/Os that draw it: columns are spans of time, rows
are ranges of the value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from .bitmap import Bitmap

Map: TypeAlias = Literal["offset", "size", "latency"]

PICTURE_FILE = "picture.json"
"""In a run's directory: what was drawn and where, for `picture_read`."""
LEAD, TAIL = 0.4, 0.1
"""Seconds kept free before the first column, in which fio starts its job, and after the last."""
MARGIN = 0.3
"""Share of a row's height, at its bottom and at its top, that is kept free where values come out a
little different."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, modulo 1, fill a range evenly however many there are."""


class Planned(NamedTuple):
    """One I/O: milliseconds after the load's start, and the value (bytes or nanoseconds) that it
    shall have."""

    at_ms: int
    value: float


@dataclass(frozen=True)
class Canvas:
    """A picture in its place.

    Attributes:
        map: what its rows are of. bitmap: its pixels.
        low, high: the values, bytes or nanoseconds, at the bottom of the lowest row and the top of
        the highest; rows are equally high on the scale that a heat map has for this value, linear
        for offsets and logarithmic for the others. start: seconds from the load's start to the
        first column; slot: seconds that a column lasts.
    """

    map: Map
    bitmap: Bitmap
    low: float
    high: float
    start: float
    slot: float

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """Bounds of the rows from the lowest on, one more than rows."""
        return tuple(self.value(row / self.bitmap.height) for row in range(self.bitmap.height + 1))

    def value(self, position: float) -> float:
        """The value at a height from 0, the bottom, to 1, the top."""
        if self.map == "offset":
            return self.low + position * (self.high - self.low)
        return float(self.low * (self.high / self.low) ** position)

    def plan(self, per_pixel: int) -> list[Planned]:
        """The I/Os in order of time: `per_pixel` in each lit pixel, spread evenly over its time and
        its range of values."""
        items = []
        margin = MARGIN if self.map == "latency" else 0.0
        for number, (column, row) in enumerate(self.bitmap.lit):
            for place in range(per_pixel):
                time = self.start + self.slot * (
                    column + (place + number * _GOLDEN % 1) / per_pixel
                )
                height = row + margin + (1 - 2 * margin) * ((place + number) * _GOLDEN % 1)
                items.append(Planned(int(time * 1000), self.value(height / self.bitmap.height)))
        return sorted(items)

    def busiest(self, per_pixel: int) -> float:
        """Of a latency picture: the largest share of a column's time that its I/Os take, one after
        the other."""
        columns = [0.0] * self.bitmap.width
        for column, row in self.bitmap.lit:
            columns[column] += per_pixel * math.sqrt(self.edges[row] * self.edges[row + 1]) / 1e9
        return max(columns) / self.slot

    def as_data(self) -> dict[str, Any]:
        """For a file of the run; `canvas_of` reads it."""
        return {
            "map": self.map,
            "low": self.low,
            "high": self.high,
            "start": self.start,
            "slot": self.slot,
            "rows": list(self.bitmap.rows),
        }


def canvas_of(data: Mapping[str, Any]) -> Canvas:
    """What `as_data` made. ValueError where it is something else."""
    try:
        numbers = [float(data[name]) for name in ("low", "high", "start", "slot")]
        rows = tuple(str(row) for row in data["rows"])
        kind = data["map"]
    except (KeyError, TypeError) as error:
        raise ValueError(f"is not a picture: {error}") from None
    if (
        kind not in ("offset", "size", "latency")
        or not 0 <= numbers[0] < numbers[1] < math.inf
        or not numbers[3] > 0
    ):
        raise ValueError("is not a picture: its place makes no sense")
    return Canvas(kind, Bitmap(rows), *numbers)
