# SPDX-License-Identifier: Apache-2.0
"""The part of a series that differs most: found where it is, and not where nothing differs."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.base.stats.series.sustained_change import LEAST_QUIET, sustained_change


def noise(seed: int, count: int = 120, rho: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.normal(0, 1, count)
    for place in range(1, count):
        values[place] = rho * values[place - 1] + np.sqrt(1 - rho**2) * values[place]
    return values


@pytest.mark.parametrize("quiet", [None, 60])
def test_a_step_has_its_place_and_its_size(quiet: int | None) -> None:
    values = noise(1)
    values[80:] += 6
    change = sustained_change(values, quiet, resolution=0.01)
    assert change is not None
    assert (change.first, change.past) == (80, 120)
    assert change.effect == pytest.approx(6, abs=0.5)
    assert change.p < 1e-6


def test_a_part_that_ends_has_its_end() -> None:
    values = noise(2)
    values[70:76] -= 9
    change = sustained_change(values, None, resolution=0.01)
    assert change is not None
    assert (change.first, change.past) == (70, 76)
    assert change.effect < -7
    # what falls is not odd where only larger values count
    rising = sustained_change(values, None, resolution=0.01, rises=True)
    assert rising is not None
    assert rising.effect > 0
    assert rising.p > 0.01


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_noise_has_few_false_changes(rho: float) -> None:
    changes = [sustained_change(noise(seed, rho=rho), None, resolution=0.01) for seed in range(60)]
    assert sum(change is not None and change.p < 0.01 for change in changes) <= 3


def test_ordinary_bursts_are_not_odd() -> None:
    values = noise(3)
    values[5::15] += 8
    change = sustained_change(values, None, resolution=0.01)
    assert change is not None
    assert change.p > 0.01


def test_missing_values_are_left_out() -> None:
    values = noise(4)
    values[90:] += 6
    values[[3, 40, 95]] = np.nan
    change = sustained_change(values, None, resolution=0.01)
    assert change is not None
    assert (change.first, change.past) == (90, 120)


def test_constant_quiet_values_need_a_change_beyond_the_resolution() -> None:
    values = np.zeros(60)
    values[40:] = 0.01
    small = sustained_change(values, None, resolution=0.1)
    values[40:] = 1.0
    large = sustained_change(values, None, resolution=0.1)
    assert small is not None
    assert small.p > 0.01
    assert large is not None
    assert large.p < 1e-6


@pytest.mark.parametrize("count", [0, 1, LEAST_QUIET])
def test_too_few_values_say_nothing(count: int) -> None:
    assert sustained_change(np.ones(count), None, resolution=0.1) is None


def test_values_that_are_all_missing_say_nothing() -> None:
    assert sustained_change(np.full(40, np.nan), None, resolution=0.1) is None
    assert sustained_change(np.full(40, np.nan), 20, resolution=0.1) is None
