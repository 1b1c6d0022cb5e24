# SPDX-License-Identifier: Apache-2.0
"""Power of the paired t test: against a simulation, against itself, at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.base.stats.power import blocks_needed, detectable, power_of


@pytest.mark.parametrize(("effect", "n"), [(0.5, 10), (1.0, 5), (2.0, 4), (0.0, 6), (-1.0, 5)])
def test_it_is_the_share_that_simulated_tests_find(effect: float, n: int) -> None:
    pairs = np.random.default_rng(1).normal(effect, 1, (40_000, n))
    found = np.mean(stats.ttest_1samp(pairs, 0, axis=1).pvalue <= 0.05)
    assert power_of(effect, 1, n) == pytest.approx(found, abs=0.01)


def test_textbook() -> None:
    """Cohen's d of 0.5 takes 34 pairs for 80 % power at 5 %."""
    assert blocks_needed(0.5, 1.0) == 34
    assert power_of(0.5, 1.0, 34) == pytest.approx(0.8078, abs=1e-4)


@given(
    st.floats(0.05, 60), st.sampled_from([0.05, 0.01, 0.00125]), st.sampled_from([0.5, 0.8, 0.95])
)
def test_blocks_needed_is_the_first_number_that_suffices(
    effect: float, alpha: float, power: float
) -> None:
    needed = blocks_needed(effect, 1.0, alpha=alpha, power=power)
    if needed is None:
        assert power_of(effect, 1.0, 1000, alpha) < power
        return
    assert power_of(effect, 1.0, needed, alpha) >= power
    assert needed == 2 or power_of(effect, 1.0, needed - 1, alpha) < power


@given(st.floats(1e-4, 10), st.integers(2, 200), st.sampled_from([0.05, 0.001]))
def test_what_is_detectable_is_found_with_the_asked_power(sd: float, n: int, alpha: float) -> None:
    effect = detectable(sd, n, alpha)
    assert effect is not None
    assert power_of(effect, sd, n, alpha) == pytest.approx(0.8, abs=1e-4)


@given(st.floats(0, 2000), st.integers(2, 1000))
def test_power_is_a_share_for_any_effect(effect: float, n: int) -> None:
    power = power_of(effect, 1.0, n)
    assert 0.05 - 1e-6 <= power <= 1
    assert effect * math.sqrt(n) < 60 or n < 4 or power == pytest.approx(1)


def test_edges() -> None:
    assert blocks_needed(0, 1) is None
    assert blocks_needed(math.nan, 1) is None
    assert blocks_needed(0.001, 1) is None
    assert blocks_needed(0.001, 1, most=10_000_000) is not None
    assert blocks_needed(0.1, 0) == 2
    assert math.isnan(power_of(1, 1, 1))
    assert power_of(0, 0, 5) == 0.05
    assert power_of(1, 0, 5) == 1
    assert detectable(1, 1) is None
    assert detectable(0, 5) == 0


@pytest.mark.parametrize(("sd", "alpha"), [(-1, 0.05), (math.nan, 0.05), (1, 0), (1, 1)])
def test_nonsense_is_refused(sd: float, alpha: float) -> None:
    for call in (
        lambda: power_of(1, sd, 5, alpha),
        lambda: blocks_needed(1, sd, alpha=alpha),
        lambda: detectable(sd, 5, alpha),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError, match="power"):
        blocks_needed(1, 1, power=1.0)
