# SPDX-License-Identifier: Apache-2.0
"""The place of a counted value: buckets of the log-linear grid, or of equal width for offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from iolab import _core

Bounds: TypeAlias = "npt.NDArray[np.float64]"

WITHOUT = 2**32 - 1
"""The bucket of I/Os that lack the value."""


@dataclass(frozen=True)
class LogLinear:
    """The one log-linear grid: `2**bits` buckets an octave (the native core has its geometry)."""

    bits: int

    def index(self, value: float) -> int:
        """Bucket of a value; below zero is the first."""
        return _core.grid_index(max(0, min(int(value), 2**64 - 1)), self.bits)

    def bounds(self, first: int, last: int) -> Bounds:
        """Bounds of the buckets `first` to `last`: each begins where the one before ends, so there
        is one more than buckets."""
        lower = [_core.grid_bounds(index, self.bits)[0] for index in range(first, last + 1)]
        return np.array([*lower, _core.grid_bounds(last, self.bits)[1] + 1], dtype=float)

    def coarser(self, steps: int) -> LogLinear:
        """The grid with `steps` bits fewer, not below one bucket an octave."""
        return LogLinear(max(0, self.bits - steps))

    def coarse_indices(self, indices: Iterable[int], steps: int) -> list[int]:
        """Buckets of `coarser(steps)` that contain these: exact, because a coarse bucket is a union
        of fine ones."""
        coarse = self.coarser(steps)
        return [
            _core.grid_index(_core.grid_bounds(index, self.bits)[0], coarse.bits)
            for index in indices
        ]


@dataclass(frozen=True)
class Linear:
    """Buckets of equal width from `low` on; `low` is a multiple of the width, so that wider buckets
    contain whole ones."""

    low: int
    width: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.low % self.width:
            raise ValueError(f"buckets of {self.width} begin at its multiples, not at {self.low}")

    def index(self, value: float) -> int:
        """Bucket of a value; below `low` is the first."""
        return max(0, (int(value) - self.low) // self.width)

    def bounds(self, first: int, last: int) -> Bounds:
        """Bounds of the buckets `first` to `last`, one more than buckets."""
        return self.low + self.width * np.arange(first, last + 2, dtype=float)

    def coarser(self, steps: int) -> Linear:
        """Buckets `2**steps` times as wide."""
        width = self.width << steps
        return Linear(self.low // width * width, width)

    def coarse_indices(self, indices: Iterable[int], steps: int) -> list[int]:
        """Buckets of `coarser(steps)` that contain these."""
        first, coarse = self.low // self.width, self.coarser(steps)
        return [((first + index) >> steps) - coarse.low // coarse.width for index in indices]


Grid: TypeAlias = "LogLinear | Linear"
