# SPDX-License-Identifier: Apache-2.0
"""Percentiles over repetitions: exact pooling, intervals from resampling repetitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab import _core
from iolab.base.stats.tails import pooled_quantiles
from support.narrow import present

pytestmark = pytest.mark.figures

BITS = 6
VALUES = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


def histogram(values: list[int]) -> tuple[np.ndarray, np.ndarray]:
    indices, counts = np.unique(
        [_core.grid_index(int(value), BITS) for value in values], return_counts=True
    )
    return indices.astype(np.uint32), counts.astype(np.uint64)


@given(st.lists(VALUES, min_size=1, max_size=5), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_pooling_is_the_quantile_of_all_values_together(
    repetitions: list[list[int]], quantiles: list[float]
) -> None:
    found = pooled_quantiles(
        [histogram(values) for values in repetitions], BITS, quantiles, resamples=20
    )
    every = sorted(value for values in repetitions for value in values)
    for q, (value, low, high) in zip(quantiles, found, strict=True):
        rank = min(max(math.ceil(q * len(every)), 1), len(every))
        index = _core.grid_index(every[rank - 1], BITS)
        assert value == _core.grid_bounds(index, BITS)[1]
        assert (low is None) == (high is None)
        if q == 0.5:
            assert (low is None) == (sum(map(bool, repetitions)) < 2)
        if low is not None:
            assert low <= value <= present(high)


def test_a_single_repetition_has_no_interval_however_many_ios_it_had() -> None:
    indices, counts = histogram(list(range(1000, 2000)))
    assert pooled_quantiles([(indices, counts * 1_000_000)], BITS, [0.5])[0][1:] == (None, None)


def test_repetitions_that_agree_have_no_width() -> None:
    ((value, low, high),) = pooled_quantiles([histogram([100, 200, 300])] * 5, BITS, [0.5])
    assert (low, high) == pytest.approx((value, value))


def test_the_interval_stands_on_repetitions_not_on_ios() -> None:
    random = np.random.default_rng(1)
    runs = [
        histogram((center * random.lognormal(0, 0.3, 2000)).astype(int).tolist())
        for center in (8e5, 9e5, 1e6, 1.1e6, 1.2e6)
    ]
    ((value, low, high),) = pooled_quantiles(runs, BITS, [0.99])
    assert present(low) < present(value) < present(high)
    many = [(indices, counts * 1000) for indices, counts in runs]
    assert pooled_quantiles(many, BITS, [0.99]) == [(value, low, high)]


def test_the_same_data_give_the_same_interval() -> None:
    runs = [histogram([n, 2 * n, 3 * n]) for n in (1000, 1100, 1300)]
    assert pooled_quantiles(runs, BITS, [0.5, 0.9]) == pooled_quantiles(runs, BITS, [0.5, 0.9])


def test_nothing_counted_is_nothing_known() -> None:
    empty = np.array([], dtype=np.uint32), np.array([], dtype=np.uint64)
    zero = np.array([5], dtype=np.uint32), np.array([0], dtype=np.uint64)
    for runs in ([], [empty], [empty, zero]):
        assert pooled_quantiles(runs, BITS, [0.5, 0.9]) == [(None, None, None)] * 2
    assert pooled_quantiles([empty, histogram([7])], BITS, [0.5]) == [(7.0, None, None)]


@pytest.mark.parametrize(
    ("indices", "counts"),
    [([2, 1], [1, 1]), ([1, 1], [1, 1]), ([1], [1, 2]), ([1], [-1]), ([-1], [1])],
)
def test_damaged_histograms_are_refused(indices: list[int], counts: list[int]) -> None:
    with pytest.raises(ValueError):
        pooled_quantiles([(indices, counts)], BITS, [0.5])


@pytest.mark.parametrize("runs", [[], [([3], [4])]])
def test_what_is_no_quantile_is_refused(runs: list[tuple[list[int], list[int]]]) -> None:
    with pytest.raises(ValueError):
        pooled_quantiles(runs, BITS, [99.0])
    with pytest.raises(ValueError, match="confidence"):
        pooled_quantiles(runs, BITS, [0.5], confidence=95)


@pytest.mark.parametrize("repetitions", [2, 3, 5])
def test_intervals_cover_as_stated_however_few_repetitions(repetitions: int) -> None:
    """Runs whose level scatters by 10 %: the truth is the centre of the levels."""
    random = np.random.default_rng(2)
    shape = np.exp(np.linspace(-0.5, 0.5, 41))
    held = 0
    for _ in range(200):
        centers = 1e6 * np.exp(random.normal(0, 0.1, repetitions))
        runs = [histogram((center * shape).astype(int).tolist()) for center in centers]
        ((_, low, high),) = pooled_quantiles(runs, BITS, [0.5], resamples=200)
        held += low * (1 - 2**-BITS) <= 1e6 <= high * (1 + 2**-BITS)
    print(
        f"95 % interval of a median over {repetitions} repetitions holds the truth in {held / 200:.1%}"
    )
    # 200 draws of a true 95 % stay above this in 999 of 1000 cases
    assert held / 200 >= 0.90


def test_a_latency_of_nothing_has_an_interval_too() -> None:
    ((value, low, high),) = pooled_quantiles(
        [histogram([0, 0, 0]), histogram([0, 0, 50])], BITS, [0.5]
    )
    assert (value, low, high) == (0.0, 0.0, 0.0)


def test_a_tail_has_an_interval_only_where_most_repetitions_show_it() -> None:
    random = np.random.default_rng(2)
    runs = [(100_000 * random.lognormal(0, 0.5, 2000)).astype(int) for _ in range(5)]
    quantiles = [0.5, 0.99, 0.999]
    found = pooled_quantiles([histogram(run.tolist()) for run in runs], BITS, quantiles)
    assert [low is not None for _, low, _ in found] == [True, True, False]
    # one of the repetitions stalls: its I/Os are nearly all that is beyond p99
    runs[0][:200] *= 100
    found = pooled_quantiles([histogram(run.tolist()) for run in runs], BITS, quantiles)
    assert [low is not None for _, low, _ in found] == [True, False, False]
    assert all(value is not None for value, _, _ in found)
