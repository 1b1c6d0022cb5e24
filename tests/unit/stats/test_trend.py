# SPDX-License-Identifier: Apache-2.0
"""Trends: found in drifts, not in steps and noise, with their size."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.base.stats.series.changepoints import find_changes
from iolab.base.stats.series.trend import fit_trend, slope_of
from support.narrow import present
from support.simulated_histories import series, shares


@pytest.mark.parametrize("entries", [20, 40, 60])
@pytest.mark.parametrize(("drift", "least"), [(3.0, 0.75), (5.0, 0.95), (10.0, 1.0), (20.0, 1.0)])
def test_drifts_are_found_the_steeper_the_more_often(
    entries: int, drift: float, least: float
) -> None:
    """Steps alone found 74 % at 10 and 12 % at 20 standard deviations over 20 entries."""
    _, found, trends = shares("normal", entries, 60, drift=drift)
    assert found >= least
    if drift >= 10:
        assert trends >= 0.95


@pytest.mark.parametrize("noise", ["normal", "t(4)", "0.4", "0.6"])
@pytest.mark.parametrize("entries", [20, 60])
def test_noise_has_no_more_changes_than_by_steps_alone(noise: str, entries: int) -> None:
    before, now, trends = shares(noise, entries, 300)
    assert now <= before + 0.015
    assert trends <= 0.06


def test_the_interval_of_a_trend_covers_the_truth() -> None:
    for noise, least in (("normal", 0.92), ("0.4", 0.90)):
        fits = [fit_trend(values, []) for values in series(noise, 40, 400, drift=6.0)]
        assert np.mean([fit.low <= 6.0 <= fit.high for fit in fits]) >= least


def test_a_step_is_a_step() -> None:
    for step in (5.0, 8.0):
        found = [find_changes(values) for values in series("normal", 40, 50, step=step)]
        assert np.mean([each.trend is None for each in found]) >= 0.95
        assert np.mean([len(each.means) == 1 for each in found]) >= 0.9


def test_a_step_beside_a_trend_is_found_with_it() -> None:
    [values] = series("normal", 60, 1, drift=-20.0)
    values[35:] += 12.0
    changes = find_changes(values)
    trend = present(changes.trend)
    assert trend.low <= -20.0 <= trend.high
    [change] = changes.means
    assert change.earliest <= 35 <= change.latest
    assert change.after - change.before == pytest.approx(12, abs=2)


def test_a_trend_without_noise_is_exact() -> None:
    changes = find_changes(np.arange(20.0))
    trend = present(changes.trend)
    assert trend.change == pytest.approx(19.0)
    assert trend.p < 1e-12
    assert changes.means == ()


@pytest.mark.parametrize("values", [[], [1.0] * 7, [1.0] * 30, list(range(7))])
def test_short_and_constant_series_have_none(values: list[float]) -> None:
    assert find_changes(values).trend is None


def test_one_outlier_makes_no_slope() -> None:
    [values] = series("normal", 30, 1)
    values[-1] += 60
    assert find_changes(values).trend is None
    assert abs(slope_of(values)) < 0.1
    assert slope_of(np.arange(1000.0)) == pytest.approx(1.0)
