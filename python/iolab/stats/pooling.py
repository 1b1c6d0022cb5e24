# SPDX-License-Identifier: Apache-2.0
"""Which cells of a sweep may share one variance.

Pooling buys degrees of freedom where they are scarce (5 blocks leave 4 to a cell) and costs honesty
where the noise differs: a noisy cell judged by the quiet ones' variance raises false alarms. So it
is done under two conditions, both chosen by simulation (`docs/method/comparison.md` has the
figures):

1. The sweep passes a test of homogeneity: the score test against random variances, sum of df/2
   (s²/pooled - 1)². It looks at variances that are too large, because those are what makes pooling
   dangerous; Bartlett's test reacts as much to small ones, and the cells left to themselves after
   such a rejection are those with a variance that is too small by chance. Like Bartlett's it reacts
   to heavy tails, under which pooling is wrong too. Its null distribution is simulated with a fixed
   seed, since the chi-squared approximation is poor at few degrees of freedom.
2. The cell's own variance is not in the upper third of what it would be by chance (F test against
   the other cells). This guards against the noisy cell that the first test did not see, and against
   an outlier, which moves mean and variance of one cell together.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .arrays import Floats

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
    p_larger = special.fdtrc(weights, weights.sum() - weights, used_variances / variances_of_others)
    mask = np.zeros(len(variances), dtype=np.bool_)
    mask[giving] = p_larger >= OWN_VARIANCE_LEVEL
    return mask, float(total / weights.sum()), int(weights.sum())
