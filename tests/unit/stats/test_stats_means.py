# SPDX-License-Identifier: Apache-2.0
"""Means of one arm with intervals of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.base.stats.means import geometric_mean, log_mean_interval, mean_interval

POSITIVE = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=20)


@given(POSITIVE)
def test_the_geometric_mean_is_scipys_and_lies_within(values: list[float]) -> None:
    found = geometric_mean(values)
    assert found == pytest.approx(stats.gmean(values), rel=1e-9)
    assert min(values) * (1 - 1e-9) <= found <= max(values) * (1 + 1e-9)


@given(POSITIVE, st.floats(1e-3, 1e3))
def test_a_change_of_unit_changes_nothing_else(values: list[float], scale: float) -> None:
    assert geometric_mean([value * scale for value in values]) == pytest.approx(
        geometric_mean(values) * scale, rel=1e-9
    )


def test_a_single_value_is_itself_to_the_last_digit_and_has_no_interval() -> None:
    assert log_mean_interval([0.1 + 0.2]) == (0.1 + 0.2, None, None)
    assert mean_interval([0.1 + 0.2]) == (0.1 + 0.2, None, None)


def test_without_values_there_is_nothing() -> None:
    for found in (log_mean_interval([]), mean_interval([])):
        assert math.isnan(found[0])
        assert found[1:] == (None, None)
    assert math.isnan(geometric_mean([]))


def test_intervals_are_the_t_interval() -> None:
    values = [10.0, 12.0, 11.0, 9.5]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, 0.9) == pytest.approx((10.625, low, high))
    low, high = stats.ttest_1samp(np.log(values), 0).confidence_interval(0.9)
    assert log_mean_interval(values, 0.9) == pytest.approx(
        (stats.gmean(values), math.exp(low), math.exp(high))
    )


def test_two_values_worlds_apart_say_that_nothing_is_known() -> None:
    mean, low, high = log_mean_interval([1e-100, 1e100])
    assert mean == pytest.approx(1)
    assert low == 0
    assert high == math.inf


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_logarithm_is_refused(bad: float) -> None:
    for function in (geometric_mean, log_mean_interval):
        with pytest.raises(ValueError):
            function([1.0, bad])


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_interval([1.0, math.nan])
    with pytest.raises(ValueError, match="one-dimensional"):
        mean_interval([[1.0, 2.0]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="confidence"):
        mean_interval([1.0, 2.0], 1.0)
