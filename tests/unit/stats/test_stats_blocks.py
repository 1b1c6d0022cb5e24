# SPDX-License-Identifier: Apache-2.0
"""Means over blocks: one cell, pooled cells, and what has no spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.base.stats.blocks import (
    SHARED_LUCK_LEVEL,
    homogeneity_p,
    pooled_cells,
    shared_luck_p,
    t_intervals,
)
from support.narrow import present

PAIRS = st.lists(st.floats(-1, 1).map(lambda value: round(value, 6)), min_size=2, max_size=12)


@given(PAIRS)
def test_a_single_cell_is_the_t_test(pairs: list[float]) -> None:
    (found,) = t_intervals([pairs])
    assert found.n == len(pairs)
    assert not found.pooled
    if np.ptp(pairs) == 0:
        return
    expected = stats.ttest_1samp(pairs, 0)
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert found.low is not None
    assert found.high is not None
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6, abs=1e-9)
    assert found.df == len(pairs) - 1


def test_a_wider_confidence_is_a_wider_interval() -> None:
    (narrow,), (wide,) = (
        t_intervals([[0.1, 0.2, 0.15]], confidence=0.9),
        t_intervals([[0.1, 0.2, 0.15]], confidence=0.99),
    )
    assert (
        present(wide.low)
        < present(narrow.low)
        < narrow.mean
        < present(narrow.high)
        < present(wide.high)
    )


def test_one_pair_has_no_interval_even_where_others_pool() -> None:
    random = np.random.default_rng(1)
    found = t_intervals([*random.normal(0, 1, (10, 6)), np.array([0.5])])
    assert any(each.pooled for each in found[:-1])
    last = found[-1]
    assert (last.mean, last.low, last.high, last.p, last.df, last.sd, last.n) == (
        0.5,
        None,
        None,
        None,
        None,
        None,
        1,
    )


def test_no_pair_is_nan() -> None:
    (found,) = t_intervals([[]])
    assert math.isnan(found.mean)
    assert (found.low, found.high, found.p, found.n) == (None, None, None, 0)
    assert t_intervals([]) == []


def test_equal_pairs_of_zero_are_no_difference() -> None:
    (found,) = t_intervals([[0.0, 0.0, 0.0]])
    assert (found.low, found.high, found.p) == (0.0, 0.0, 1.0)


def test_equal_pairs_that_differ_have_the_p_value_of_the_sign_test() -> None:
    found = t_intervals([[math.log(1.1)] * 6, [0.3, 0.3]])
    assert [each.p for each in found] == [2**-5, 0.5]
    assert found[0].low == found[0].high == pytest.approx(math.log(1.1))


def test_pairs_that_differ_by_rounding_alone_are_equal() -> None:
    pairs = [math.log(1.1 * base) - math.log(base) for base in (3.0, 7e3, 1.7e9, 5e-6)]
    assert len(set(pairs)) > 1
    (found,) = t_intervals([pairs])
    assert found.p == 2**-3


def test_a_cell_without_spread_does_not_stop_others_from_pooling() -> None:
    random = np.random.default_rng(5)
    found = t_intervals([*random.normal(0, 1, (12, 5)), np.zeros(5)])
    assert sum(each.pooled for each in found) >= 6
    assert not found[-1].pooled


def test_pooled_cells_share_one_standard_deviation_and_its_degrees_of_freedom() -> None:
    data = np.random.default_rng(2).normal(0, 1, (20, 5))
    found = [each for each in t_intervals(list(data)) if each.pooled]
    assert len(found) >= 10
    assert {each.df for each in found} == {80}
    assert [each.sd for each in found] == [
        pytest.approx(math.sqrt(data.var(axis=1, ddof=1).mean()))
    ] * len(found)


def test_a_cell_much_noisier_than_the_rest_keeps_its_own_variance() -> None:
    data = np.random.default_rng(2).normal(0, 1, (20, 5))
    data[0] *= 3
    assert not t_intervals(list(data))[0].pooled


def test_unequal_noise_is_not_pooled() -> None:
    data = np.random.default_rng(3).normal(0, 1, (20, 5))
    data[:10] *= 20
    assert not any(each.pooled for each in t_intervals(list(data)))


def test_unequal_numbers_of_pairs_weigh_by_their_degrees_of_freedom() -> None:
    random = np.random.default_rng(4)
    cells = [random.normal(0, 1, n) for n in (3, 4, 5, 6, 12, 12, 12, 3)]
    found = [each for each in t_intervals(cells) if each.pooled]
    expected = sum(((cell - cell.mean()) ** 2).sum() for cell in cells) / sum(
        len(cell) - 1 for cell in cells
    )
    assert found
    assert [each.sd for each in found] == [pytest.approx(math.sqrt(expected))] * len(found)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        t_intervals([[0.1, bad]])


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_intervals([[0.1, 0.2]], confidence=confidence)


@pytest.mark.slow
@given(st.lists(PAIRS, min_size=1, max_size=8), st.randoms())
def test_the_order_of_cells_and_of_pairs_does_not_matter(cells: list[list[float]], random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(cells)))
    random.shuffle(order)
    shuffled = [random.sample(cells[place], len(cells[place])) for place in order]
    straight, found = t_intervals(cells), t_intervals(shuffled)
    for place, each in zip(order, found, strict=True):
        assert each.pooled == straight[place].pooled
        assert each.p == pytest.approx(straight[place].p, rel=1e-6, abs=1e-12)
        assert each.mean == pytest.approx(straight[place].mean, abs=1e-12)


def test_the_homogeneity_test_keeps_its_level_where_cells_are_equal() -> None:
    random = np.random.default_rng(7)
    for df in (2, 4, 9):
        p_values = [
            homogeneity_p(random.chisquare(df, 20) / df, np.full(20, df)) for _ in range(1000)
        ]
        assert np.mean(np.array(p_values) <= 0.1) == pytest.approx(0.1, abs=0.03)


def test_a_single_cell_or_two_pairs_do_not_pool() -> None:
    for variances, df in (([1.0], [4]), ([1.0, 1.1], [1, 1]), ([1.0, 0.0], [4, 4]), ([], [])):
        mask, variance, total = pooled_cells(
            np.array(variances, dtype=float), np.array(df, dtype=np.int64)
        )
        assert not mask.any()
        assert math.isnan(variance)
        assert total == 0


def test_blocks_that_share_their_luck_are_seen_and_keep_variances_apart() -> None:
    random = np.random.default_rng(5)
    blocks = [range(5)] * 20
    noise = random.normal(0, 1, (20, 5))
    shared = noise + 3 * random.normal(0, 1, 5)
    alone, together = (shared_luck_p(list(cells), blocks) for cells in (noise, shared))
    assert alone is not None
    assert together is not None
    assert alone > SHARED_LUCK_LEVEL
    assert together < 0.001
    assert any(interval.pooled for interval in t_intervals(list(shared)))
    apart = t_intervals(list(shared), blocks=blocks)
    assert {(interval.pooled, interval.df) for interval in apart} == {(False, 4)}
    assert any(interval.pooled for interval in t_intervals(list(noise), blocks=blocks))


def test_shared_luck_has_its_level_whatever_the_noise_of_each_cell() -> None:
    random = np.random.default_rng(6)
    scale = np.geomspace(0.01, 100, 12)[:, None]
    p_values = [
        shared_luck_p(list(scale * random.normal(0, 1, (12, 4))), [range(4)] * 12)
        for _ in range(1000)
    ]
    share = np.mean([p is not None and p <= SHARED_LUCK_LEVEL for p in p_values])
    assert 0.07 <= share <= 0.13


def test_shared_luck_needs_two_cells_of_the_same_three_blocks() -> None:
    assert shared_luck_p([[1.0, 2.0, 4.0]], ["abc"]) is None
    assert shared_luck_p([[1.0, 2.0], [2.0, 1.0]], ["ab", "ab"]) is None
    assert shared_luck_p([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]], ["abc", "abc"]) is None
    assert shared_luck_p([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]], ["abc", "abd"]) is None
    orders = shared_luck_p([[1.0, 2.0, 4.0]] * 9, ["abc"] * 9)
    assert orders == shared_luck_p([*[[1.0, 2.0, 4.0]] * 8, [4.0, 1.0, 2.0]], [*["abc"] * 8, "cab"])
    assert orders is not None
    assert orders < 0.01
