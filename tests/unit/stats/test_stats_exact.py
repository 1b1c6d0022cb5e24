# SPDX-License-Identifier: Apache-2.0
"""The exact test next to the t test, against scipy's permutation test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iolab.base.stats import exact
from iolab.base.stats.exact import sign_flip_p, signed_sums


def total(sample: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.asarray(np.sum(sample, axis=axis))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=6, max_size=9))
def test_it_is_the_permutation_test(pairs: list[float]) -> None:
    expected = stats.permutation_test(
        (np.array(pairs),), total, permutation_type="samples", n_resamples=10**6
    )
    assert sign_flip_p(pairs) == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize("n", range(6))
def test_below_six_pairs_it_can_not_decide_and_says_nothing(n: int) -> None:
    assert sign_flip_p([1.0] * n) is None


def test_the_smallest_p_value_is_two_in_two_to_the_n() -> None:
    assert sign_flip_p([0.1, 0.2, 0.3, 0.1, 0.5, 0.7]) == 2 / 2**6


def test_no_difference_at_all_is_p_one() -> None:
    assert sign_flip_p([0.0] * 8) == 1.0


def test_sixteen_are_counted_and_seventeen_drawn_alike() -> None:
    pairs = np.random.default_rng(3).normal(0.4, 1, 16)
    counted = sign_flip_p(pairs)
    assert counted is not None
    assert counted * 2**16 == pytest.approx(round(counted * 2**16), abs=1e-6)
    drawn = sign_flip_p(np.append(pairs, 0.0))
    # a pair without a difference changes no sum, and so no p value
    assert drawn == pytest.approx(counted, abs=4 * np.sqrt(counted / exact.DRAWS))
    assert drawn == sign_flip_p(np.append(pairs, 0.0))


def test_many_pairs_far_from_zero_have_a_small_p_value_but_never_zero() -> None:
    assert sign_flip_p([1.0] * 40) == pytest.approx(1 / (exact.DRAWS + 1))


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p([1.0, float("nan")] * 4)


def test_drawn_signs_are_even_and_independent() -> None:
    # a sum of powers of two states the sign of each of them
    sums = signed_sums(np.array([2.0**power for power in range(21)]))
    totals = ((sums + 2.0**21 - 1) / 2).astype(np.int64)
    signs = (totals[:, np.newaxis] >> np.arange(21) & 1) * 2 - 1
    correlations = signs.T @ signs / exact.DRAWS
    assert np.array_equal(np.diag(correlations), np.ones(21))
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(exact.DRAWS)
    assert np.abs(correlations - np.eye(21)).max() < 5 / np.sqrt(exact.DRAWS)
