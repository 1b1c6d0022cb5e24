# SPDX-License-Identifier: Apache-2.0
"""An exact test in addition to the t test: it assumes only that the pairs are symmetric about
zero."""

from __future__ import annotations

import numpy as np

from .arrays import Floats, Values, finite

LEAST_PAIRS = 6
"""Below six pairs the smallest p value that the test can give is 0.0625: it could never decide at 5
%."""

ALL_SIGNS_UP_TO = 16
"""Up to here all 2^n assignments of signs are counted; above, a sample of them."""

DRAWS = 100_000
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
    if len(pairs) < LEAST_PAIRS:
        return None
    size = np.abs(pairs)
    sums = signed_sums(size)
    # Sums that differ by rounding alone are ties, and ties count.
    far = abs(float(pairs.sum())) - 1e-12 * float(size.sum())
    hits = int(np.count_nonzero(np.abs(sums) >= far))
    if len(pairs) <= ALL_SIGNS_UP_TO:
        return hits / len(sums)
    return (hits + 1) / (len(sums) + 1)


def signed_sums(values: Floats) -> Floats:
    """Sums of the values with assignments of signs: all 2^n of them up to n = 16; above, 100 000
    drawn with a fixed seed. Shape (sums,)."""
    if len(values) <= ALL_SIGNS_UP_TO:
        return _every_sum(values)
    random = np.random.default_rng(_SEED)
    sums = np.zeros(DRAWS)
    for start in range(0, len(values), 8):
        # a random byte has the signs of eight values: a look-up instead of eight products
        choices = _every_sum(values[start : start + 8])
        sums += choices[random.integers(0, len(choices), DRAWS, np.uint8)]
    return sums


def _every_sum(values: Floats) -> Floats:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums
