# SPDX-License-Identifier: Apache-2.0
"""Whether two measurements order the same cells alike: Spearman's rank correlation."""

from __future__ import annotations

import numpy as np

from .arrays import Floats, Values, finite

LEAST_PAIRS = 4
"""Fewer are ordered alike by chance too often: three in one case of six."""


def rank_correlation(one: Values, other: Values) -> float | None:
    """Spearman's rho: the correlation of the ranks, ties sharing their mean rank. 1: ordered alike,
    -1: the other way round.

    Args:
        one, other: values of the same cells in the same order, shape (cells,); units don't matter.

    Returns:
        None below four cells, or where either side is the same everywhere.

    Raises:
        ValueError: a value is nan or infinite, or the shapes differ.

    Source: Spearman (1904), "The proof and measurement of association between two things".
    """
    first, second = finite(one, "one"), finite(other, "other")
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} values can't be paired with {len(second)}")
    if len(first) < LEAST_PAIRS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.clip(np.corrcoef(_ranks(first), _ranks(second))[0, 1], -1.0, 1.0))


def _ranks(values: Floats) -> Floats:
    """From 1, ties at the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last: Floats = np.cumsum(count).astype(np.float64)
    ranks: Floats = (last - (count - 1) / 2)[place]
    return ranks
