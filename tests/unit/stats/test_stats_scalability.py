# SPDX-License-Identifier: Apache-2.0
"""The Universal Scalability Law, fitted to curves made from it and to those at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from iolab.base.stats.curves.scalability import NoFit, UslFit, fit_usl

LEVELS = 2.0 ** np.arange(11)


def law(n: np.ndarray, lam: float, sigma: float, kappa: float) -> np.ndarray:
    return np.asarray(lam * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)))


def fitted(n: np.ndarray, x: np.ndarray) -> UslFit:
    found = fit_usl(n, x)
    assert isinstance(found, UslFit)
    return found


@settings(deadline=None)
@given(st.floats(1e-3, 1e9), st.floats(0.001, 0.9), st.floats(4e-6, 1e-2))
def test_what_follows_the_law_is_found_again(lam: float, sigma: float, kappa: float) -> None:
    found = fitted(LEVELS, law(LEVELS, lam, sigma, kappa))
    assert found.relative_error < 1e-5
    assert found.lam == pytest.approx(lam, rel=1e-3)
    assert found.sigma == pytest.approx(sigma, rel=1e-2, abs=1e-4)
    assert found.kappa == pytest.approx(kappa, rel=1e-2, abs=1e-7)
    assert found.peak_concurrency == pytest.approx(max(math.sqrt((1 - sigma) / kappa), 1), rel=1e-2)


@pytest.mark.slow
def test_standard_errors_are_those_that_repeated_studies_show() -> None:
    random = np.random.default_rng(1)
    truth = law(LEVELS, 1000, 0.05, 1e-4)
    fits = [fitted(LEVELS, truth * np.exp(random.normal(0, 0.03, len(LEVELS)))) for _ in range(200)]
    for name in ("lam", "sigma", "kappa"):
        scatter = np.std([getattr(fit, name) for fit in fits])
        claimed = [getattr(fit, f"{name}_error") for fit in fits]
        assert None not in claimed
        assert np.sqrt(np.mean(np.square(claimed))) == pytest.approx(scatter, rel=0.25), name
    assert np.mean([fit.relative_error for fit in fits]) == pytest.approx(
        0.03 * math.sqrt(8 / 11), rel=0.15
    )


def test_linear_growth_has_no_contention_no_peak_and_no_error_of_what_is_not_there() -> None:
    found = fitted(LEVELS, 50 * LEVELS)
    assert (found.sigma, found.kappa, found.sigma_error, found.kappa_error) == (0, 0, None, None)
    assert (found.peak_concurrency, found.peak_throughput) == (None, None)
    assert found.lam == pytest.approx(50)


def test_contention_alone_levels_out_and_has_a_limit_but_no_peak() -> None:
    found = fitted(LEVELS, law(LEVELS, 100, 0.1, 0))
    assert found.kappa == 0
    assert found.peak_concurrency is None
    assert found.peak_throughput == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize("reached", [5, 10])
@pytest.mark.parametrize("sharp", [2, 4, 50])
@pytest.mark.parametrize(("noise", "repetitions"), [(0.0, 1), (0.02, 1), (0.02, 5)])
def test_a_curve_that_levels_out_has_no_peak(
    reached: int, sharp: int, noise: float, repetitions: int
) -> None:
    """So many jobs reach all that there is, which stays: contention alone bends less than that."""
    random = np.random.default_rng(5)
    for top in (6, 8, 11):
        n = np.repeat(LEVELS[:top], repetitions)
        for _ in range(10):
            x = (
                1000
                / ((1 / n) ** sharp + (1 / reached) ** sharp) ** (1 / sharp)
                * np.exp(random.normal(0, noise, len(n)))
            )
            found = fitted(n, x)
            assert (found.kappa, found.kappa_error, found.peak_concurrency) == (0, None, None)


@pytest.mark.parametrize("loads", [LEVELS[:7], np.arange(1.0, 65.0)])
def test_a_throughput_that_is_constant_from_10_jobs_on_has_no_peak(loads: np.ndarray) -> None:
    fit = fitted(loads, np.minimum(1000 * loads, 10_000))
    assert (fit.kappa, fit.peak_concurrency) == (0, None)


@pytest.mark.parametrize("kappa", [1e-5, 1e-4, 1e-3])
def test_a_peak_that_is_there_is_told_in_spite_of_noise(kappa: float) -> None:
    random = np.random.default_rng(6)
    truth = law(LEVELS, 1000, 0.05, kappa)
    told = [
        fitted(LEVELS, truth * np.exp(random.normal(0, 0.02, len(LEVELS)))).peak_concurrency
        for _ in range(100)
    ]
    assert sum(peak is not None for peak in told) >= 95
    assert np.median([peak for peak in told if peak]) == pytest.approx(
        math.sqrt(0.95 / kappa), rel=0.1
    )


def test_noise_about_contention_alone_rarely_makes_a_peak() -> None:
    random = np.random.default_rng(7)
    truth = law(LEVELS, 1000, 0.1, 0)
    told = [
        fitted(LEVELS, truth * np.exp(random.normal(0, 0.03, len(LEVELS)))).peak_concurrency
        is not None
        for _ in range(200)
    ]
    assert np.mean(told) <= 0.05


def test_a_constant_throughput_is_contention_alone() -> None:
    found = fitted(LEVELS, np.full(len(LEVELS), 700.0))
    assert found.sigma == pytest.approx(1)
    assert found.throughput(300) == pytest.approx(700)


def test_better_than_linear_growth_ends_at_the_edge_with_an_error_that_tells() -> None:
    found = fitted(LEVELS, LEVELS**1.3)
    assert (found.sigma, found.kappa) == (0, 0)
    assert found.relative_error > 0.3


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.9])
@pytest.mark.parametrize("kappa", [0.0, 1e-4, 1.0])
def test_no_search_of_scipy_finds_a_nearer_law(sigma: float, kappa: float) -> None:
    random = np.random.default_rng(3)
    for noise in (0.01, 0.3):
        x = law(LEVELS, 1000, sigma, kappa) * np.exp(random.normal(0, noise, len(LEVELS)))
        found = fitted(LEVELS, x)

        def residuals(p: np.ndarray, x: np.ndarray = x) -> np.ndarray:
            return np.asarray(np.log(law(LEVELS, np.exp(p[0]), p[1], p[2] / 1e6) / x))

        near = [math.log(found.lam), found.sigma, found.kappa * 1e6]
        starts = [
            near,
            [math.log(1000), sigma, kappa * 1e6],
            [math.log(x[0]), 0.1, 0.1],
            [math.log(x[0]), 0.9, 1.0],
        ]
        inside = [
            np.clip(start, [-np.inf, 1e-9, 1e-9], [np.inf, 1 - 1e-9, np.inf]) for start in starts
        ]
        bounds = ([-np.inf, 0, 0], [np.inf, 1, np.inf])
        best = min(
            (
                optimize.least_squares(
                    residuals, start, bounds=bounds, xtol=1e-12, ftol=1e-12, gtol=1e-12
                )
                for start in inside
            ),
            key=lambda each: each.cost,
        )
        assert 0.5 * np.square(residuals(np.array(near))).sum() <= best.cost * (1 + 1e-6) + 1e-12
        assert found.lam == pytest.approx(math.exp(best.x[0]), rel=1e-4)
        assert found.throughput(300) == pytest.approx(
            law(np.array(300.0), math.exp(best.x[0]), best.x[1], best.x[2] / 1e6), rel=1e-4
        )


def test_repetitions_and_order_do_not_matter() -> None:
    random = np.random.default_rng(2)
    n = np.repeat(LEVELS, 3)
    x = law(n, 1000, 0.05, 1e-4) * np.exp(random.normal(0, 0.02, len(n)))
    order = random.permutation(len(n))
    one, other = fitted(n, x), fitted(n[order], x[order])
    assert one.levels == 11
    assert one.highest == 1024
    assert (one.lam, one.sigma, one.kappa) == pytest.approx(
        (other.lam, other.sigma, other.kappa), rel=1e-4
    )


@pytest.mark.parametrize(
    ("n", "reason"),
    [
        ([], "0 levels"),
        ([1, 2, 4], "3 levels"),
        ([1, 1, 2, 2, 4, 4], "3 levels"),
        ([0.5, 1, 2, 4], "below 1"),
    ],
)
def test_no_fit_says_why(n: list[float], reason: str) -> None:
    found = fit_usl(n, [10.0] * len(n))
    assert isinstance(found, NoFit)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("n", "x"),
    [
        ([1, 2, 4, 8], [1, 2, 3]),
        ([1, 2, 4, 8], [1, 2, 0, 4]),
        ([1, 2, 4, float("nan")], [1, 2, 3, 4]),
    ],
)
def test_nonsense_is_refused(n: list[float], x: list[float]) -> None:
    with pytest.raises(ValueError):
        fit_usl(n, x)
