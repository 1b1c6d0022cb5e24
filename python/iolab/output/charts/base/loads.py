# SPDX-License-Identifier: Apache-2.0
"""The axis of what was swept: a log2 axis for loads, ticked exactly where they were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from iolab.studies.compare.axes import level_text
from iolab.studies.compare.model import Key

from .axes import NUMBER, WIDE
from .drawing import Spec, channel


def key_text(key: Key) -> str:
    """Levels of an axis as one label."""
    return " · ".join(level_text(level) for level in key)


def named_text(names: Sequence[str], key: Key) -> str:
    """Levels with their factors, as a panel's heading: `disks = 4, media = hdd`."""
    return ", ".join(
        f"{name} = {level_text(level)}" for name, level in zip(names, key, strict=True)
    )


@dataclass(frozen=True)
class LoadAxis:
    """The axis of what was swept.

    Attributes:
        kind: `log2` for positive numbers over at least three doublings, `linear` for other numbers,
        `ordinal` for the
            rest and for a single level.
        levels: in order; each is a tick.
    """

    title: str
    kind: Literal["log2", "linear", "ordinal"]
    levels: tuple[Key, ...]

    def place(self, key: Key) -> float | str:
        """Position of a level: a number, or the label of an ordinal axis."""
        level = key[0] if self.kind != "ordinal" else None
        return level if isinstance(level, int | float) else key_text(key)

    def encode(self, width: int, field: str = "x") -> Spec:
        """The channel; labels that would collide at this width are turned, or left out where
        turning is not enough."""
        labels = [key_text(key) for key in self.levels]
        angle, overlap = _fit(self._positions(width), labels)
        if self.kind == "ordinal":
            limit = 160 if angle else 0
            return channel(
                f"{field}:N",
                title=self.title,
                sort=labels,
                scale=Spec(domain=labels),
                axis=Spec(labelAngle=angle, grid=False, labelLimit=limit),
            )
        ticks = [float(self.place(key)) for key in self.levels]
        axis = Spec(
            values=ticks, labelExpr=NUMBER, labelAngle=angle, labelOverlap=overlap, grid=True
        )
        low, high = self._domain()
        if self.kind == "log2":
            return channel(
                f"{field}:Q",
                title=self.title,
                axis=axis,
                scale=Spec(type="log", base=2, domain=[low, high], nice=False),
            )
        return channel(
            f"{field}:Q",
            title=self.title,
            axis=axis,
            scale=Spec(domain=[low, high], nice=False, zero=False),
        )

    def _domain(self) -> tuple[float, float]:
        numbers = [float(self.place(key)) for key in self.levels]
        low, high = min(numbers), max(numbers)
        if self.kind == "log2":
            margin = (high / low) ** 0.03
            return low / margin, high * margin
        margin = (high - low) * 0.03
        return low - margin, high + margin

    def _positions(self, width: int) -> list[float]:
        """Pixels from the axis's start to each level."""
        count = len(self.levels)
        if self.kind == "ordinal":
            return [width * (place + 0.5) / count for place in range(count)]
        shape = math.log if self.kind == "log2" else float
        low, high = (shape(end) for end in self._domain())
        return [width * (shape(float(self.place(key))) - low) / (high - low) for key in self.levels]


def load_axis(names: Sequence[str], levels: Sequence[Key]) -> LoadAxis:
    """The axis of one or several factors; several, words or a single level make an ordinal one."""
    title = ", ".join(names)
    plain = [key[0] for key in levels if len(key) == 1]
    numbers = [
        float(level)
        for level in plain
        if isinstance(level, int | float) and not isinstance(level, bool)
    ]
    numeric = len(numbers) == len(levels) and all(math.isfinite(number) for number in numbers)
    if not numeric or len(set(numbers)) < 2:
        return LoadAxis(title, "ordinal", tuple(levels))
    log = min(numbers) > 0 and max(numbers) / min(numbers) >= WIDE
    return LoadAxis(title, "log2" if log else "linear", tuple(levels))


def _fit(positions: Sequence[float], labels: Sequence[str]) -> tuple[int, Literal["greedy", False]]:
    """Angle of labels, and what to do with those that still collide."""
    gaps = [after - before for before, after in pairwise(positions)]
    if not gaps:
        return 0, False
    widths = [6.4 * len(label) + 4 for label in labels]
    pairs = zip(gaps, widths, widths[1:], strict=False)
    if all(gap >= (first + other) / 2 for gap, first, other in pairs):
        return 0, False
    return -45, False if min(gaps) >= 12 else "greedy"
