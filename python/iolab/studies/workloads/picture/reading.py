# SPDX-License-Identifier: Apache-2.0
"""Reading a picture back from what was recorded: how well counts by time and value match what was
to be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from iolab.base.errors import FormatError, UsageError
from iolab.base.untrusted_text import parse_json
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear

from .plan import PICTURE_FILE, Canvas, canvas_of

Pixels: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.floating[Any]]"


@dataclass(frozen=True)
class ReadBack:
    """A picture as it was recorded.

    Attributes:
        counts: I/Os of each pixel, shape (rows, columns), row 0 being the lowest. lit: which of
        them were to be lit, alike. total: I/Os in all; those beyond the picture count as missed.
        origin_ns: where the picture's first column begins, on the clock of the counts.
    """

    counts: Pixels
    lit: npt.NDArray[np.bool_]
    total: int
    origin_ns: int

    @property
    def share(self) -> float:
        """Share of all I/Os that lie in lit pixels; chance would give `area`. nan without I/O."""
        return float(self.counts[self.lit].sum() / self.total) if self.total else math.nan

    @property
    def area(self) -> float:
        """Share of the pixels that is lit."""
        return float(self.lit.mean())

    @property
    def contrast(self) -> float:
        """I/Os of a lit pixel against those of a dark one, means; infinite where no dark pixel has
        any, nan where none has."""
        lit, dark = self.counts[self.lit], self.counts[~self.lit]
        if not lit.sum() and not dark.sum():
            return math.nan
        return float(lit.mean() / dark.mean()) if dark.size and dark.sum() else math.inf

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the pixels' counts with the picture, -1 to 1; nan where either
        is of one value alone."""
        if self.counts.min() == self.counts.max() or self.lit.all():
            return math.nan
        return float(np.corrcoef(self.counts.ravel(), self.lit.ravel())[0, 1])

    def rows(self) -> tuple[str, ...]:
        """What a reader sees, as a bitmap's rows: pixels with more than half as many I/Os as lit
        ones have on average."""
        is_visible = self.counts > self.counts[self.lit].mean() / 2
        return tuple("".join("#" if pixel else "." for pixel in row) for row in is_visible[::-1])

    def words(self) -> str:
        """One line for a user."""
        return (
            f"{100 * self.share:.1f} % of {self.total} I/Os lie in the {100 * self.area:.0f} % of the picture that is lit; "
            f"contrast {self.contrast:.3g}, correlation {self.correlation:.3f}"
        )


def drawn_in(run_dir: Path) -> Canvas:
    """What a run drew. FormatError where its file is absent or damaged."""
    path = run_dir / PICTURE_FILE
    try:
        bitmap = parse_json(path.read_bytes())
        return canvas_of(bitmap if isinstance(bitmap, dict) else {})
    except OSError as error:
        raise FormatError(f"can't be read: {error.strerror or error}", where=path) from None
    except ValueError as error:
        raise FormatError(f"is damaged: {error}", where=path) from None


def read_back(counts: HeatCounts, canvas: Canvas, *, origin_ns: int | None = None) -> ReadBack:
    """Sort counts into the picture's pixels.

    Args:
        counts: of the picture's kind of value; columns a tenth of its slot or shorter keep its
        edges sharp. origin_ns: when its first column begins; left open, the time, in steps of the
        counts' columns, at which lit pixels
            have most more I/Os than dark ones on average. Such a search over a few thousand steps
            finds little in noise.
    UsageError where the counts are of another value.
    """
    if counts.y != canvas.map:
        raise UsageError(
            f"these are counts by {counts.y}, and the picture is in the {canvas.map} map"
        )
    shape = (canvas.bitmap.height, canvas.bitmap.width)
    lit = np.zeros(shape, dtype=bool)
    for column, row in canvas.bitmap.lit:
        lit[row, column] = True
    if not len(counts.count):
        return ReadBack(np.zeros(shape, dtype=np.int64), lit, counts.total, origin_ns or 0)
    over_time = _rows_over_time(counts, canvas)
    slot = canvas.slot * 1e9 / counts.interval_ns
    if origin_ns is None:
        span = slot * shape[1]
        steps = np.arange(-math.ceil(span / 2), counts.columns)
        scores, dark = np.zeros(len(steps), dtype=np.int64), max(1, int((~lit).sum()))
        for column in range(shape[1]):
            part = _between(over_time, steps + column * slot, steps + (column + 1) * slot)
            scores += np.where(lit[:, column, None], dark * part, -lit.sum() * part).sum(axis=0)
        best = np.flatnonzero(scores == scores.max())
        step = float(steps[best[len(best) // 2]])
    else:
        step = (origin_ns - counts.t0_ns) / counts.interval_ns
    begins = step + slot * np.arange(shape[1])
    return ReadBack(
        _between(over_time, begins, begins + slot),
        lit,
        counts.total,
        round(counts.t0_ns + step * counts.interval_ns),
    )


def _rows_over_time(counts: HeatCounts, canvas: Canvas) -> Pixels:
    """I/Os of each of the picture's rows before each column of the counts, shape (rows, columns +
    1)."""
    used, place = np.unique(counts.index, return_inverse=True)
    bounds = np.array([counts.grid.bounds(int(index), int(index)) for index in used])
    middle = (
        np.sqrt(np.maximum(bounds[:, 0], 0.5) * bounds[:, 1])
        if isinstance(counts.grid, LogLinear)
        else bounds.mean(axis=1)
    )
    rows = (np.searchsorted(np.array(canvas.edges), middle, side="right") - 1)[place]
    inside = (rows >= 0) & (rows < canvas.bitmap.height)
    rows_of_time = np.zeros((canvas.bitmap.height, counts.columns + 1), dtype=np.int64)
    np.add.at(rows_of_time, (rows[inside], counts.column[inside] + 1), counts.count[inside])
    return np.cumsum(rows_of_time, axis=1)


def _between(over_time: Pixels, first: Floats, last: Floats) -> Pixels:
    """I/Os of each row in spans of time, in columns of the counts; a column belongs to the span
    that contains its middle."""
    most = over_time.shape[1] - 1
    begin, end = (
        np.clip(np.ceil(corner - 0.5), 0, most).astype(np.int64) for corner in (first, last)
    )
    pixels: Pixels = over_time[:, end] - over_time[:, begin]
    return pixels
