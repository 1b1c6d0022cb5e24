# SPDX-License-Identifier: Apache-2.0
"""From a count to a level of colour: by rank, logarithm or proportion. A scale is a value: once
made it stays, so that two maps share one and a moving map does not flicker.

The page makes its own scale for what is visible; the same rules are in `web/src/canvas/scale.ts`,
and both are held to `tests/vectors/heatmap.json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Kind: TypeAlias = Literal["rank", "log", "linear"]
Floats: TypeAlias = "npt.NDArray[np.float64]"


@dataclass(frozen=True)
class Scale:
    """Levels between 0 (fewest) and 1 (most) at the counts that the scale was made of; interpolated
    between them."""

    kind: Kind
    counts: Floats
    levels: Floats

    def level(self, counts: npt.ArrayLike) -> Floats:
        """The level of each count; of its magnitude where it is signed. Zero has none (nan): it is
        background, never a colour."""
        size = np.abs(np.asarray(counts, dtype=float))
        if not len(self.counts):
            return np.full(size.shape, np.nan)
        levels = np.interp(size, self.counts, self.levels)
        return np.where(size == 0, np.nan, levels)

    def count_at(self, level: float) -> float:
        """The count that has this level, for a legend; nan where the scale is empty."""
        if not len(self.counts):
            return float("nan")
        return float(np.interp(level, self.levels, self.counts))


def scale_of(maps: Iterable[npt.ArrayLike], kind: Kind) -> Scale:
    """The scale of what all these cells show together; empty cells do not count.

    rank: the share of cells with fewer, those with as many counted half, stretched to 0..1
    (histogram equalisation, as in datashader's eq_hist); log: between the logarithms of the fewest
    and the most; linear: proportional to the most.
    """
    cells = np.concatenate(
        [np.zeros(0), *(np.abs(np.asarray(sizes, dtype=float)).ravel() for sizes in maps)]
    )
    counts, times = np.unique(cells[cells > 0], return_counts=True)
    if len(counts) <= 1:
        return Scale(kind, counts, np.ones(len(counts)))
    if kind == "rank":
        rank = np.cumsum(times) - times / 2
        levels = (rank - rank[0]) / (rank[-1] - rank[0])
    elif kind == "log":
        logs = np.log(counts)
        levels = (logs - logs[0]) / (logs[-1] - logs[0])
    else:
        levels = counts / counts[-1]
    return Scale(kind, counts, levels)
