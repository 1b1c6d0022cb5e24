# SPDX-License-Identifier: Apache-2.0
"""The mean of paired differences over blocks, with its interval: the basis of a cell's change.

Within a block both arms meet the same hour of the same machine, so that the difference of the pair
(of logarithms, for a ratio) is free of what the blocks have between them. Student's t interval for
the mean of the pairs. The variance is shared over the sweep's cells where `pooling` allows it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from .arrays import Floats, Values, finite

_SAME = 1e-10
"""Pairs that differ by less than this share of themselves are all equal: it is the rounding of a
logarithm."""


@dataclass(frozen=True)
class MeanInterval:
    """The mean of one cell's pairs.

    Attributes:
        mean: estimate, nan without pairs.
        low, high: interval at the asked confidence; None below two pairs.
        p: two-sided p value of "the mean is zero"; None below two pairs.
        n: pairs; df: degrees of freedom of the variance in use (more than n - 1 where pooled); None
        below two pairs. sd: standard deviation of a pair that the interval is computed from; None
        below two pairs. pooled: whether that is the sweep's and not the cell's own.
        equal: whether all pairs are equal, so that p is that of the exact sign test.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    n: int
    df: float | None
    sd: float | None
    pooled: bool
    equal: bool = False


def t_intervals(
    samples: Sequence[Values],
    *,
    confidence: float = 0.95,
    blocks: Sequence[Sequence[Hashable]] | None = None,
) -> list[MeanInterval]:
    """Two-sided t intervals for the means of all cells of one sweep.

    Pairs that are all equal have no spread to build an interval from. Their interval has no width,
    and p is 1 for a mean of zero; for another mean it is that of the exact sign test, 2^(1-n),
    because equal pairs come from a coarse unit and not from the absence of noise, and no
    distribution can be assumed of them.

    Args:
        samples: one array per cell: differences of logarithms (or plain differences) of its pairs,
        shape (pairs,). confidence: of each interval, between 0 and 1. It holds cell by cell, not
        for all cells at once. blocks: of each cell the block of each pair. With them nothing is
        pooled where blocks share their luck over cells (`shared_luck_p`).

    Raises:
        ValueError: a value is nan or infinite, or the confidence is not between 0 and 1.

    Source: Student (1908), "The probable error of a mean"; pooling and its guards: `pooling`.
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence must be between 0 and 1")
    cells = [finite(sample, "pairs") for sample in samples]
    if not cells:
        return []
    count = np.array([len(cell) for cell in cells])
    mean, variance = _moments(cells, count)
    if count.max() < 2:
        # two single files need no distribution, and scipy.special takes 0.26 s to load
        return [
            MeanInterval(float(value), None, None, None, n, None, None, False)
            for value, n in zip(mean, count.tolist(), strict=True)
        ]
    pooled, pool_variance, pool_df = pooled_cells(variance, count - 1)
    if blocks is not None and pooled.any():
        luck_p = shared_luck_p(cells, blocks)
        if luck_p is not None and luck_p <= SHARED_LUCK_LEVEL:
            pooled[:] = False
    used_variance = np.where(pooled, pool_variance, variance)
    used_df = np.where(pooled, pool_df, count - 1).astype(np.float64)
    safe_df = np.maximum(used_df, 1.0)
    error = np.sqrt(used_variance / np.maximum(count, 1))
    half = scipy.special.stdtrit(safe_df, (1 + confidence) / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * scipy.special.stdtr(safe_df, -np.abs(mean) / error)
    intervals = []
    for i, n in enumerate(count.tolist()):
        value = float(mean[i])
        if n < 2:
            intervals.append(MeanInterval(value, None, None, None, n, None, None, False))
            continue
        if variance[i] > 0:
            p = float(p_values[i])
        else:
            p = 1.0 if value == 0 else 2.0 ** (1 - n)
        low, high, sd = (
            value - float(half[i]),
            value + float(half[i]),
            float(np.sqrt(used_variance[i])),
        )
        intervals.append(
            MeanInterval(
                value, low, high, p, n, float(used_df[i]), sd, bool(pooled[i]), not variance[i] > 0
            )
        )
    return intervals


SHARED_LUCK_LEVEL = 0.10
"""Below this p value blocks share their luck over cells: every cell keeps its own variance, which
has one degree of freedom less than blocks, whatever the number of cells."""

_MANY_CELLS = 50
"""From here on the null distribution of the resultant is that of its limit."""


def shared_luck_p(cells: Sequence[Values], blocks: Sequence[Sequence[Hashable]]) -> float | None:
    """p value of "the pairs of one block are independent over cells".

    What differs between the arms for a whole block (a cache that was warm, a device that was busy)
    moves all its cells together. The variance of one cell over its blocks contains it, but the
    variances of 40 cells are then one observation and not 40. Block means over the cells show it:
    they vary by more than the cells' own noise leaves to a mean of so many.

    The residuals of a cell, divided by their root sum of squares, are a direction in the space of
    its blocks, uniform for independent normal noise of any size. The statistic is the squared
    length of the sum of the directions of all cells (Rayleigh's test of uniformity). So a
    noisy cell has no more weight than a quiet one.

    Args:
        cells: pairs of each cell, shape (pairs,) each. blocks: of each pair its block.

    Returns:
        None where fewer than two cells with spread have the same three or more blocks. Of the sets
        of blocks that cells have, the most frequent one is used.

    Source: Mardia & Jupp (2000), "Directional Statistics", section 10.4.1.
    """
    members: dict[frozenset[Hashable], list[int]] = {}
    for place, keys in enumerate(blocks):
        members.setdefault(frozenset(keys), []).append(place)
    common, places = max(members.items(), key=lambda item: (len(item[1]), len(item[0])))
    if len(common) < 3 or len(places) < 2:
        return None
    order = {key: number for number, key in enumerate(blocks[places[0]])}
    table = np.empty((len(places), len(common)))
    for row, place in zip(table, places, strict=True):
        row[[order[key] for key in blocks[place]]] = finite(cells[place], "pairs")
    residuals = table - table.mean(axis=1, keepdims=True)
    lengths = np.sqrt((residuals**2).sum(axis=1))
    spread = lengths > _SAME * np.abs(table).max(axis=1)
    count, df = int(spread.sum()), len(common) - 1
    if count < 2:
        return None
    total = (residuals[spread] / lengths[spread, None]).sum(axis=0)
    statistic = df / count * float(total @ total)
    if count >= _MANY_CELLS:
        return float(scipy.special.chdtrc(df, statistic))
    null = _null_resultants(count, df)
    return float((len(null) - np.searchsorted(null, statistic) + 1) / (len(null) + 1))


@lru_cache(maxsize=256)
def _null_resultants(count: int, df: int) -> Floats:
    """Ascending statistics of so many uniform directions."""
    draws = int(np.clip(1e6 // (count * df), 1000, 10_000))
    directions = np.random.default_rng(_SEED).normal(size=(draws, count, df))
    directions /= np.sqrt((directions**2).sum(axis=2, keepdims=True))
    total = directions.sum(axis=1)
    return np.sort(df / count * (total**2).sum(axis=1))


def _moments(cells: list[Floats], count: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Means (nan without pairs) and sample variances (0 where all pairs are equal, nan below two)
    of all cells."""
    every = np.concatenate(cells)
    place = np.repeat(np.arange(len(cells)), count)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(place, every, len(cells)) / count
        variance = np.bincount(place, (every - mean[place]) ** 2, len(cells)) / (count - 1)
    variance[count < 2] = np.nan
    size = np.zeros(len(cells))
    np.maximum.at(size, place, np.abs(every))
    equal = variance <= (_SAME * size) ** 2
    variance[equal] = 0.0
    return mean, variance


# Which cells of a sweep may share one variance.
#
# Pooling buys degrees of freedom where they are scarce (5 blocks leave 4 to a cell) and costs
# honesty where the noise differs: a noisy cell judged by the quiet ones' variance raises false
# alarms. So it is done under two conditions, both chosen by simulation
# (`docs/method/comparison.md` has the figures):
#
# 1. The sweep passes a test of homogeneity: the score test against random variances, sum of df/2
# (s²/pooled - 1)². It looks at variances that are too large, because those are what makes pooling
# dangerous; Bartlett's test reacts as much to small ones, and the cells left to themselves after
# such a rejection are those with a variance that is too small by chance. Like Bartlett's it reacts
# to heavy tails, under which pooling is wrong too. Its null distribution is simulated with a fixed
# seed, since the chi-squared approximation is poor at few degrees of freedom. 2. The cell's own
# variance is not in the upper third of what it would be by chance (F test against the other
# cells). This guards against the noisy cell that the first test did not see, and against an
# outlier, which moves mean and variance of one cell together.

HOMOGENEITY_LEVEL = 0.10
"""Below this p value of the homogeneity test every cell keeps its own variance."""

OWN_VARIANCE_LEVEL = 1 / 3
"""Below this p value of its F test a cell keeps its own variance though the others pool."""

LEAST_DF = 2
"""Cells with fewer degrees of freedom neither give to the pool nor take: with one, no test sees
unequal noise."""

_SEED = 20131


def _score(ratios: Floats, df: NDArray[np.float64]) -> Floats:
    return np.asarray((df / 2 * (ratios - 1) ** 2).sum(axis=-1))


@lru_cache(maxsize=256)
def _null_scores(dfs: tuple[int, ...]) -> Floats:
    """Ascending scores of sweeps with the same variance in all cells."""
    df = np.array(dfs, dtype=np.float64)
    draws = int(np.clip(4e5 // len(dfs), 1000, 10_000))
    variances = np.random.default_rng(_SEED).chisquare(df, (draws, len(dfs))) / df
    pooled = (variances @ df)[:, None] / df.sum()
    return np.sort(_score(variances / pooled, df))


def homogeneity_p(variances: Floats, df: NDArray[np.int64]) -> float:
    """p value of the hypothesis that all cells have the same variance, from the score test against
    random variances.

    Args:
        variances: sample variances, above zero, shape (cells,).
        df: their degrees of freedom, shape (cells,).
    """
    weights = df.astype(np.float64)
    pooled = float(variances @ weights / weights.sum())
    score = float(_score(variances / pooled, weights))
    order = np.sort(df)
    null = _null_scores(tuple(int(number) for number in order))
    return float((len(null) - np.searchsorted(null, score) + 1) / (len(null) + 1))


def pooled_cells(variances: Floats, df: NDArray[np.int64]) -> tuple[NDArray[np.bool_], float, int]:
    """Which cells take the pooled variance, that variance, and its degrees of freedom.

    Args:
        variances: sample variances, shape (cells,); zero or nan where there is no spread to speak
        of. df: degrees of freedom, shape (cells,); zero or less where a cell has none.

    Returns:
        (mask, variance, df); a mask without any True where the sweep does not allow pooling. Every
        cell with spread gives to the pool, also those that keep their own variance, so that leaving
        them out cannot make it too small.
    """
    none = np.zeros(len(variances), dtype=np.bool_), float("nan"), 0
    giving = (df >= LEAST_DF) & (variances > 0)
    if giving.sum() < 2:
        return none
    used_variances, weights = variances[giving], df[giving].astype(np.float64)
    if homogeneity_p(used_variances, df[giving]) <= HOMOGENEITY_LEVEL:
        return none
    total = used_variances @ weights
    variances_of_others = (total - used_variances * weights) / (weights.sum() - weights)
    p_larger = scipy.special.fdtrc(
        weights, weights.sum() - weights, used_variances / variances_of_others
    )
    mask = np.zeros(len(variances), dtype=np.bool_)
    mask[giving] = p_larger >= OWN_VARIANCE_LEVEL
    return mask, float(total / weights.sum()), int(weights.sum())
