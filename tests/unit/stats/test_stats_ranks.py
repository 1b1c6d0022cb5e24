# SPDX-License-Identifier: Apache-2.0
"""Rank correlation against scipy, and where it means nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.base.stats.ranks import LEAST_PAIRS, rank_correlation

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=LEAST_PAIRS, max_size=40)


@given(PAIRS)
def test_it_is_scipys_ties_included(pairs: list[tuple[int, int]]) -> None:
    one, other = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = rank_correlation(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)


def test_only_the_order_counts() -> None:
    load = np.array([1.0, 2, 4, 8, 16])
    assert rank_correlation(load, np.exp(load)) == pytest.approx(1)
    assert rank_correlation(load, -(load**3)) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("one", "other"), [([1.0, 2, 3], [1.0, 2, 3]), ([1.0, 1, 1, 1], [1.0, 2, 3, 4]), ([], [])]
)
def test_few_or_equal_values_have_none(one: list[float], other: list[float]) -> None:
    assert rank_correlation(one, other) is None


def test_values_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="can't be paired"):
        rank_correlation([1.0, 2, 3, 4], [1.0, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="finite"):
        rank_correlation([1.0, 2, 3, float("nan")], [1.0, 2, 3, 4])
