# SPDX-License-Identifier: Apache-2.0
"""A sustained change of a series after a quiet beginning: the part that differs most from what came
before it, judged against the variation of the quiet values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ..arrays import Floats

Counts = NDArray[np.int64]

LEAST_QUIET = 8
"""Quiet values at least: fewer do not show how much values vary by themselves."""

_MOST_RHO = 0.9
"""Autocorrelation up to which the noise is widened."""


@dataclass(frozen=True)
class SustainedChange:
    """The part of a series that differs most.

    Attributes:
        first, past: indices of its first value and of the one after its last.
        before, after: mean of the quiet values and of the part.
        p: p value of "no part differs from the quiet values", corrected for the search. parts: how
        many parts were compared.
    """

    first: int
    past: int
    before: float
    after: float
    p: float
    parts: int

    @property
    def effect(self) -> float:
        """Mean of the part minus mean of the quiet values."""
        return self.after - self.before


def sustained_change(
    values: Floats, quiet: int | None, *, resolution: float, rises: bool = False
) -> SustainedChange | None:
    """The part of a series that differs most from its quiet values; None where too few are there.

    The t statistic of each part [i, j) against the quiet values before it is computed. Its variance
    is that of the quiet values, widened by their autocorrelation. The largest one counts; its p
    value is multiplied by the number of parts. A part that does not exceed every quiet stretch of
    the same length has p = 1: the t distribution alone would trust rare bursts too little. A stretch
    has at most a third of the quiet values.

    Args:
        values: the series; nan where a value is missing.
        quiet: so many values at the beginning are quiet; the part is among the others. None: all
        before the part are quiet, at least `LEAST_QUIET` or an eighth of the series.
        resolution: least standard deviation of a value, in its unit.
        rises: whether only larger values than before count.
    """
    count = len(values)
    valid = ~np.isnan(values)
    starts = (
        np.arange(max(LEAST_QUIET, count // 8), count) if quiet is None else np.arange(quiet, count)
    )
    if not len(starts):
        return None
    shift = float(np.median(values[valid])) if valid.any() else 0.0
    plain = np.where(valid, values - shift, 0.0)
    number = np.concatenate([[0], np.cumsum(valid)])
    sums = np.concatenate([[0.0], np.cumsum(plain)])
    until = starts if quiet is None else np.full(len(starts), quiet)
    mean, deviation, effective = _noise(values[valid] - shift, number[until], resolution)
    # t of each part [start, end); rows are starts, columns are ends
    ends = np.arange(1, count + 1)
    length = number[ends][None, :] - number[starts][:, None]
    total = sums[ends][None, :] - sums[starts][:, None]
    enough = (length > 0) & (number[until][:, None] >= LEAST_QUIET)
    if not enough.any():
        return None
    shrink = effective / np.maximum(number[until], 1)
    independent = np.maximum(1.0, length * shrink[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = total / length - mean[:, None]
        t = difference / (deviation[:, None] * np.sqrt(1 / independent + 1 / effective[:, None]))
    score = np.where(enough, t if rises else np.abs(t), -np.inf)
    row, column = np.unravel_index(int(np.argmax(score)), score.shape)
    first, past = int(starts[row]), int(ends[column])
    freedom = max(2.0, effective[row] - 1)
    p = (
        float(scipy.special.stdtr(freedom, -score[row, column]))
        * (1 if rises else 2)
        * int(enough.sum())
    )
    before = float(mean[row])
    after = float(total[row, column] / length[row, column])
    if not _exceeds(plain[: until[row]][valid[: until[row]]], after, int(length[row, column])):
        p = 1.0
    return SustainedChange(
        first, past, before + shift, after + shift, min(1.0, p), int(enough.sum())
    )


def _noise(values: Floats, counts: Counts, resolution: float) -> tuple[Floats, Floats, Floats]:
    """(mean, standard deviation, how many independent values they are worth) of the first so many
    values, for each of the counts."""
    sums = np.concatenate([[0.0], np.cumsum(values)])[counts]
    squares = np.concatenate([[0.0], np.cumsum(values**2)])[counts]
    products = np.concatenate([[0.0, 0.0], np.cumsum(values[1:] * values[:-1])])[counts]
    size = np.maximum(counts, 2)
    mean = sums / np.maximum(counts, 1)
    around = np.maximum(0.0, squares - counts * mean**2)
    last = values[np.maximum(counts, 1) - 1] if len(values) else np.zeros(len(counts))
    first = values[0] if len(values) else 0.0
    lagged = products - mean * (2 * sums - first - last) + (size - 1) * mean**2
    rho = np.where(around > 0, lagged / np.where(around > 0, around, 1.0), 0.0)
    rho = np.clip(rho + (1 + 3 * rho) / size, 0.0, _MOST_RHO)
    effective = np.maximum(2.0, counts * (1 - rho) / (1 + rho))
    return mean, np.hypot(np.sqrt(around / (size - 1)), resolution), effective


def _exceeds(quiet: Floats, after: float, length: int) -> bool:
    """Whether a mean is beyond all means of quiet stretches of the length."""
    size = max(1, min(length, len(quiet) // 3))
    means = np.convolve(quiet, np.full(size, 1 / size), "valid")
    return bool(after > means.max() or after < means.min())
