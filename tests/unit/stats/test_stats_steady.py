# SPDX-License-Identifier: Apache-2.0
"""Steady state and stalls, on samples per second."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.stats.series.steady import steady
from support.narrow import present


def test_a_constant_rate_is_steady() -> None:
    found = steady([100.0] * 60)
    assert found is not None
    assert (found.ok, found.range_share, found.halves_ratio, found.n) == (True, 0.0, 1.0, 60)
    assert found.slope_share == pytest.approx(0, abs=1e-12)


def test_bursts_every_five_seconds_are_steady_though_their_seconds_are_not() -> None:
    seconds = [180.0, 95, 80, 75, 70] * 24
    assert np.ptp(seconds) / np.mean(seconds) > 1
    assert present(steady(seconds)).ok


def test_a_rate_that_rises_is_not() -> None:
    found = present(steady(np.linspace(50, 150, 60)))
    assert not found.ok
    assert found.slope_share == pytest.approx(0.8, abs=0.02)
    assert found.halves_ratio > 1.5


def test_a_single_slow_fifth_breaks_the_range_alone() -> None:
    values = np.full(50, 100.0)
    values[20:30] = 70
    found = present(steady(values))
    assert not found.ok
    assert found.range_share == pytest.approx(30 / 94)
    assert found.slope_share < 0.1


@pytest.mark.parametrize(
    ("drift", "ok"), [(0.09, True), (0.11, False), (-0.09, True), (-0.11, False)]
)
def test_the_slope_limit_is_ten_per_cent_over_the_rounds(drift: float, ok: bool) -> None:
    seconds = np.arange(60)
    found = present(steady(100 * (1 + drift * (seconds - seconds.mean()) / 48)))
    assert found.ok is ok


def test_seconds_of_which_nothing_is_known_are_left_out() -> None:
    values = np.linspace(8, 12, 40)
    whole = present(steady(values))
    values[[5, 14, 22, 31, 38]] = math.nan
    found = present(steady(values))
    assert found.n == 35
    assert found.slope_share == pytest.approx(whole.slope_share, rel=0.02)


@pytest.mark.parametrize(
    "values", [[], [1.0] * 9, [math.nan] * 60, [0.0] * 60, [1.0] * 9 + [math.nan] * 50]
)
def test_too_little_to_say_anything(values: list[float]) -> None:
    assert steady(values) is None


def test_a_dead_first_half() -> None:
    found = present(steady([0.0] * 30 + [10.0] * 30))
    assert not found.ok
    assert found.halves_ratio == math.inf


@given(st.lists(st.floats(0.1, 1000), min_size=10, max_size=100), st.floats(0.01, 100))
def test_the_unit_does_not_matter(values: list[float], scale: float) -> None:
    one, other = steady(values), steady([value * scale for value in values])
    assert one is not None
    assert other is not None
    assert (one.range_share, one.slope_share, one.halves_ratio) == pytest.approx(
        (other.range_share, other.slope_share, other.halves_ratio), rel=1e-6, abs=1e-9
    )
