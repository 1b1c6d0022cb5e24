# SPDX-License-Identifier: Apache-2.0
"""An exact test in addition to the t test: it assumes only that the pairs are symmetric about
zero."""

from __future__ import annotations

import numpy as np

from .arrays import Values, finite

LEAST_PAIRS = 6
"""Below six pairs the smallest p value that the test can give is 0.0625: it could never decide at 5
%."""

ALL_SIGNS_UP_TO = 16
"""Up to here all 2^n assignments of signs are counted; above, a sample of them."""

DRAWS = 100_000
_CHUNK = 10_000
_SEED = 4045


def sign_flip_p(values: Values) -> float | None:
    """Two-sided p value of "the mean of the pairs is zero" by exchanging the arms within pairs.

    Under the null hypothesis the arms of a pair are exchangeable, so that every assignment of signs
    to the differences is equally likely; p is the share of assignments with a sum at least as
    far from zero as the one observed. All 2^n are counted up to n = 16; above, 100 000 are drawn
    with a fixed seed and p is (hits + 1) / (draws + 1), which keeps the level (Phipson & Smyth
    2010, "Permutation p-values should never be zero").

    Args:
        values: paired differences (of logarithms, for a ratio), shape (pairs,).

    Returns:
        None below six pairs.

    Raises:
        ValueError: a value is nan or infinite.

    Source: Fisher (1935), "The Design of Experiments", section 21.
    """
    pairs = finite(values, "pairs")
    n = len(pairs)
    if n < LEAST_PAIRS:
        return None
    size = np.abs(pairs)
    # Sums that differ by rounding alone are ties, and ties count.
    far = abs(float(pairs.sum())) - 1e-12 * float(size.sum())
    if n <= ALL_SIGNS_UP_TO:
        # The first sign may stay: the mirror image of an assignment lies as far from zero.
        sums = np.array([size[0]])
        for value in size[1:]:
            sums = np.concatenate([sums - value, sums + value])
        return float(np.mean(np.abs(sums) >= far))
    random = np.random.default_rng(_SEED)
    hits = 0
    for _ in range(DRAWS // _CHUNK):
        signs = random.integers(0, 2, (_CHUNK, n)) * 2 - 1
        hits += int(np.sum(np.abs(signs @ size) >= far))
    return (hits + 1) / (DRAWS + 1)
