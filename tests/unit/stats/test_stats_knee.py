# SPDX-License-Identifier: Apache-2.0
"""The knee: against kneed on clean curves, on curves that turn back, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kneed import KneeLocator

from iolab.base.stats.curves.knee import (
    Knee,
    KneeEstimate,
    NoKnee,
    bend_p,
    knee,
    knee_over_repetitions,
)
from support.narrow import present
from support.simulated_curves import WITH_KNEE, WITHOUT_KNEE, share_with_knee

LOADS = np.asarray(2.0 ** np.arange(11), dtype=np.float64)


def closed_loop(
    loads: np.ndarray, peak: float = 10_000, service: float = 0.001, kappa: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Throughput and latency of `loads` clients: bound by the service time, then by the peak; kappa
    turns it back."""
    throughput = 1 / ((service / loads) ** 4 + (1 / peak) ** 4) ** 0.25 / (1 + kappa * loads)
    return throughput, loads / throughput


@given(st.integers(8, 40), st.floats(0.6, 0.98))
def test_on_clean_curves_it_is_kneeds(levels: int, busiest: float) -> None:
    """An open queue: latency over utilisation is convex and rising."""
    throughput = np.linspace(0.02, busiest, levels)
    latency = 1 / (1 - throughput)
    if latency.max() / latency.min() < 2.5:
        return
    oracle = KneeLocator(throughput, latency, curve="convex", direction="increasing", S=1.0)
    found = knee(throughput, latency)
    if oracle.knee is None:
        assert isinstance(found, NoKnee)
    else:
        assert isinstance(found, Knee)
        assert found.throughput == pytest.approx(oracle.knee)


@pytest.mark.parametrize("kappa", [0.0, 1e-4, 3e-4, 1e-3])
def test_a_closed_loop_has_its_knee_where_the_peak_is_reached(kappa: float) -> None:
    """10 jobs of 1 ms would fill 10 000/s; 8 reach 92 % of that and 32 all of it, however far the
    curve turns back."""
    found = knee(*closed_loop(LOADS, kappa=kappa))
    assert isinstance(found, Knee)
    assert LOADS[found.index] in (8, 16, 32)


def test_a_curve_that_turns_back_is_not_sorted_by_throughput() -> None:
    throughput = [10, 20, 40, 70, 90, 100, 80, 60, 40]
    latency = [1.0, 1, 1, 1.1, 1.3, 2, 4, 7, 12]
    found = knee(throughput, latency)
    assert isinstance(found, Knee)
    assert found.index == 5


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_units_do_not_move_it(scale_x: float, scale_y: float) -> None:
    throughput, latency = closed_loop(LOADS, kappa=1e-4)
    one, other = knee(throughput, latency), knee(throughput * scale_x, latency * scale_y)
    assert isinstance(one, Knee)
    assert isinstance(other, Knee)
    assert one.index == other.index


@pytest.mark.parametrize(
    ("throughput", "latency", "reason"),
    [
        ([1, 2, 3], [1, 1, 5], "3 load levels"),
        ([], [], "0 load levels"),
        ([100, 101, 99, 100, 102], [1, 2, 4, 8, 16], "saturated throughout"),
        ([10, 20, 40, 80, 160], [1, 1.01, 1.02, 1.05, 1.1], "not saturated anywhere"),
        ([10, 20, 30, 40, 50, 60], [1, 2, 3, 4, 5, 6], "evenly"),
        ([100, 80, 60, 50, 40], [1, 2, 3, 5, 9], "lowest load"),
        ([10, 20, 30, 40, 50], [5, 4, 3, 2, 1], "highest loads"),
    ],
)
def test_no_clear_knee_says_why(throughput: list[float], latency: list[float], reason: str) -> None:
    found = knee(throughput, latency)
    assert isinstance(found, NoKnee)
    assert reason in found.reason


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_rate_or_latency_is_refused(bad: float) -> None:
    with pytest.raises(ValueError):
        knee([1, 2, 3, bad], [1, 2, 3, 4])
    with pytest.raises(ValueError):
        knee([1, 2, 3, 4], [1, 2, 3, bad])
    with pytest.raises(ValueError, match="as many"):
        knee([1, 2, 3, 4], [1, 2, 3])


def noisy_repetitions(count: int, noise: float) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(1)
    throughput, latency = closed_loop(LOADS, kappa=1e-4)
    factors = np.exp(random.normal(0, noise, (count, len(LOADS))))
    return [(throughput * factor, latency / factor) for factor in factors]


def test_repetitions_give_the_median_and_the_range() -> None:
    found = knee_over_repetitions(noisy_repetitions(5, 0.05), LOADS)
    assert isinstance(found, KneeEstimate)
    assert (found.repetitions, found.with_knee) == (5, 5)
    assert found.load in LOADS
    for value, limits in (
        (found.load, found.load_range),
        (found.throughput, found.throughput_range),
        (found.latency, found.latency_range),
    ):
        assert limits is not None
        assert limits[0] <= value <= limits[1]
    low, high = present(found.throughput_range)
    assert low < high


@pytest.mark.parametrize("reached", [5, 7, 10, 11, 13, 20, 24, 30])
@pytest.mark.parametrize("top", [7, 8, 11])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_range_holds_the_truth_that_lies_between_levels(
    reached: int, top: int, noise: float
) -> None:
    random = np.random.default_rng(2)
    loads = LOADS[:top]
    throughput, latency = closed_loop(loads, peak=1000.0 * reached)
    factors = np.exp(random.normal(0, noise, (5, top)))
    found = knee_over_repetitions(
        [(throughput * factor, latency / factor) for factor in factors], loads
    )
    assert isinstance(found, KneeEstimate)
    assert found.load_range is not None
    low, high = found.load_range
    assert low <= reached <= high
    assert low < found.load < high


@pytest.mark.parametrize(
    ("loads", "load", "interval"),
    [
        (np.arange(1.0, 65.0), 10, (9, 11)),
        (np.array([1.0, 2, 4, 8, 10, 16, 32, 64]), 10, (8, 16)),
        (2.0 ** np.arange(7), 16, (4, 32)),
    ],
)
def test_a_loop_saturated_at_10_has_its_knee_there_or_in_the_range(
    loads: np.ndarray, load: float, interval: tuple[float, float]
) -> None:
    throughput = np.minimum(1000 * loads, 10_000)
    estimate = knee_over_repetitions([(throughput, loads / throughput)] * 3, loads)
    assert isinstance(estimate, KneeEstimate)
    assert (estimate.load, estimate.load_range) == (load, interval)


def test_a_single_repetition_has_no_range() -> None:
    found = knee_over_repetitions(noisy_repetitions(1, 0.0), LOADS)
    assert isinstance(found, KneeEstimate)
    assert (found.load_range, found.throughput_range, found.latency_range) == (None, None, None)


def test_fewer_than_half_with_a_knee_is_no_clear_knee() -> None:
    flat = (np.full(11, 100.0), LOADS / 100)
    mostly = knee_over_repetitions([*noisy_repetitions(3, 0.02), flat, flat], LOADS)
    assert isinstance(mostly, KneeEstimate)
    assert (mostly.with_knee, mostly.repetitions) == (3, 5)
    rarely = knee_over_repetitions([*noisy_repetitions(1, 0.02), flat, flat], LOADS)
    assert isinstance(rarely, NoKnee)
    assert rarely.reason.startswith("1 of 3 repetitions")
    assert "saturated throughout" in rarely.reason


def test_without_repetitions_there_is_none() -> None:
    assert knee_over_repetitions([], LOADS) == NoKnee("no repetition covers all loads")


def test_curves_that_do_not_fit_the_loads_are_refused() -> None:
    with pytest.raises(ValueError, match="one point per load"):
        knee_over_repetitions([([1, 2, 3], [1, 2, 3])], [1, 2, 3, 4])
    with pytest.raises(ValueError, match="ascend"):
        knee_over_repetitions([([1, 2, 3], [1, 2, 3])], [1, 3, 2])


@pytest.mark.parametrize("name", WITHOUT_KNEE)
@pytest.mark.parametrize("repetitions", [1, 3, 5])
def test_noise_of_a_tenth_makes_no_knee(name: str, repetitions: int) -> None:
    """Saturated throughput had one in 76 to 91 %, N^0.9 in 2 to 15 %."""
    assert share_with_knee(WITHOUT_KNEE[name], 0.10, repetitions, 200) <= 0.06


@pytest.mark.parametrize("name", WITH_KNEE)
@pytest.mark.parametrize(("repetitions", "least"), [(1, 0.85), (3, 0.99)])
def test_true_knees_are_found_in_noise_of_a_tenth(
    name: str, repetitions: int, least: float
) -> None:
    assert share_with_knee(WITH_KNEE[name], 0.10, repetitions, 200) >= least


def test_the_bend_has_its_p_value() -> None:
    straight = (100 * LOADS**0.9, LOADS**0.1 / 100)
    assert bend_p([straight], LOADS) == 1.0
    assert bend_p([straight] * 3, LOADS) == 1.0
    saturated = np.minimum(1000 * LOADS, 8000)
    assert bend_p([(saturated, LOADS / saturated)], LOADS) < 0.001
    assert bend_p([(saturated, LOADS / saturated)] * 2, LOADS) == 0.0
    random = np.random.default_rng(3)
    noise = np.exp(random.normal(0, 0.1, (400, 2, 2, 7)))
    p_values = [bend_p([(rates, delays) for rates, delays in each], LOADS[:7]) for each in noise]
    assert 0.02 <= np.mean(np.array(p_values) <= 0.05) <= 0.08
    found = knee_over_repetitions([(rates, delays) for rates, delays in noise[0]], LOADS[:7])
    assert isinstance(found, NoKnee)
