# SPDX-License-Identifier: Apache-2.0
"""Change points: places, sizes and sets of the mean and of the noise against series with known truth,
and rates as stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from iolab.base.stats.series.changepoints import change_points, find_changes, searched_p


def step(
    n: int, place: int, size: float, seed: int = 1, rho: float = 0.0, tails: int | None = None
) -> NDArray[np.float64]:
    """Noise of standard deviation 1 with a step of `size` at `place`."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, 1, n + 20) if tails is None else random.standard_t(tails, n + 20)
    for i in range(1, n + 20):
        noise[i] += rho * noise[i - 1]
    values = noise[20:]
    values[place:] += size
    return values


def test_a_step_is_found_at_its_place() -> None:
    [change] = change_points(step(40, 20, 5.0))
    assert change.place == 20
    assert change.earliest <= 20 <= change.latest
    assert change.low < 5.0 < change.high
    assert change.p < 1e-6
    assert change.after - change.before == pytest.approx(5.0, abs=1)


def test_changes_that_cancel_are_both_found() -> None:
    values = step(120, 50, 4.0)
    values[70:] -= 4.0
    assert [change.place for change in change_points(values)] == [50, 70]


@pytest.mark.parametrize("values", [[], [1.0] * 5, [1.0] * 50, [1.0, 2.0, 1.0, 2.0]])
def test_series_without_a_change_have_none(values: list[float]) -> None:
    assert change_points(values) == []


def test_a_step_without_noise_is_found() -> None:
    [change] = change_points([1.0] * 10 + [2.0] * 10)
    assert (change.place, change.earliest, change.latest) == (10, 10, 10)
    assert (change.low, change.high) == (1.0, 1.0)


def test_one_bad_session_is_no_change() -> None:
    for place in (0, 10, 38, 39):
        values = step(40, 0, 0.0)
        values[place] += 50
        assert change_points(values) == []


def test_values_must_be_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        change_points([1.0] * 10 + [math.nan])


def test_the_p_value_knows_that_the_place_was_searched() -> None:
    """Of 4000 series of 50 values, the largest |t| over all places."""
    random = np.random.default_rng(4)
    n, series = 50, random.normal(0, 1, (4000, 50))
    largest = np.zeros(4000)
    for left in range(3, n - 2):
        t = stats.ttest_ind(series[:, :left], series[:, left:], axis=1).statistic
        largest = np.maximum(largest, np.abs(t))
    for level in (0.05, 0.01):
        p = np.array([searched_p(float(t), n - 2, n) for t in largest])
        assert np.mean(p <= level) == pytest.approx(level, abs=4 * math.sqrt(level / 4000))


def test_noise_that_grows_is_found_and_its_mean_has_not_changed() -> None:
    values = step(80, 0, 0.0, seed=6)
    values[40:] *= 3
    changes = find_changes(values)
    assert changes.means == ()
    [change] = changes.noise
    assert change.earliest <= 40 <= change.latest
    assert change.low < 3 < change.high
    assert change.p < 0.01


def test_a_step_is_no_change_of_the_noise() -> None:
    changes = find_changes(step(60, 30, 5.0))
    assert [change.place for change in changes.means] == [30]
    assert changes.noise == ()


def test_equal_values_have_no_noise_to_compare_with() -> None:
    values = np.full(60, 100.0)
    assert find_changes(values).noise == ()
    # two levels, each without noise, then noise around the second one
    values[20:] += 5
    values[40:] += np.random.default_rng(3).normal(0, 1, 20)
    assert all(math.isfinite(change.ratio) for change in find_changes(values).noise)


@pytest.mark.figures
@pytest.mark.slow
def test_noise_is_found_as_stated() -> None:
    """200 series of 60 values, of which the second half has more noise."""
    shown = []
    for ratio, least in ((1.0, 0.0), (2.0, 0.4), (3.0, 0.7), (4.0, 0.75)):
        hits = covered = means = 0
        for seed in range(200):
            values = step(60, 0, 0.0, seed=seed)
            values[30:] *= ratio
            changes = find_changes(values)
            near = [change for change in changes.noise if change.earliest <= 30 <= change.latest]
            hits += bool(near)
            covered += any(change.low <= ratio <= change.high for change in near)
            means += bool(changes.means)
        if ratio == 1:
            assert hits <= 15
        else:
            assert hits / 200 >= least
            assert covered / hits >= 0.9
        assert means / 200 <= 0.2
        shown.append(f"x {ratio:g}: {hits / 200:.1%} found, {means / 200:.1%} with a changed mean")
    print(f"noise of the second half of 60 values: {'; '.join(shown)}")


@pytest.mark.figures
@pytest.mark.slow
def test_series_without_changes_raise_false_alarms_as_stated() -> None:
    shown = []
    for name, more, limit in (
        ("normal", {}, 60),
        ("heavy tails t(4)", {"tails": 4}, 110),
        ("autocorrelation 0.2", {"rho": 0.2}, 180),
        ("autocorrelation 0.4", {"rho": 0.4}, 200),
    ):
        rates = []
        for n in (20, 40, 100):
            results = [find_changes(step(n, 0, 0.0, seed=seed, **more)) for seed in range(500)]
            alarms = 2 * sum(bool(changes.means) for changes in results)
            of_noise = 2 * sum(bool(changes.noise) for changes in results)
            rates.append(f"{alarms} and {of_noise} (n = {n})")
            assert alarms <= limit
            assert of_noise <= 110
        shown.append(f"{name} {', '.join(rates)}")
    print(f"false alarms of 1000 series at 5 %, of the mean and of the noise: {'; '.join(shown)}")


@pytest.mark.figures
@pytest.mark.slow
def test_steps_are_found_as_stated() -> None:
    shown = []
    for size, least in ((1.0, 0.3), (2.0, 0.9), (3.0, 0.95)):
        found = delays = 0
        for seed in range(200):
            values = step(60, 30, size, seed=seed)
            places = change_points(values)
            found += any(change.earliest <= 30 <= change.latest for change in places)
            delays += next((end - 30 for end in range(33, 61) if change_points(values[:end])), 31)
        assert found / 200 >= least
        shown.append(f"{size:g} sd: {found / 200:.0%} found, after {delays / 200:.1f} results")
    print(f"a step in the middle of 60 values: {'; '.join(shown)}")
