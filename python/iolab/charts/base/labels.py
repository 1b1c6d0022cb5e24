# SPDX-License-Identifier: Apache-2.0
"""Positions of short labels of points without covering each other, the points or the lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
