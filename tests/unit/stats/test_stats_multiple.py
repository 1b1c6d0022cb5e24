# SPDX-License-Identifier: Apache-2.0
"""Benjamini-Hochberg against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.base.stats.multiple import benjamini_hochberg

P_VALUES = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=60)


@given(P_VALUES)
def test_it_is_scipys_and_none_does_not_count(p_values: list[float | None]) -> None:
    found = benjamini_hochberg(p_values)
    made = [p for p in p_values if p is not None]
    assert [q is None for q in found] == [p is None for p in p_values]
    if made:
        expected = stats.false_discovery_control(made)
        np.testing.assert_allclose(
            [q for q in found if q is not None], expected, rtol=1e-12, atol=1e-300
        )


@given(P_VALUES)
def test_q_is_never_below_p_and_keeps_its_order(p_values: list[float | None]) -> None:
    pairs = [
        (p, q)
        for p, q in zip(p_values, benjamini_hochberg(p_values), strict=True)
        if p is not None and q is not None
    ]
    assert all(q >= p or q == pytest.approx(p) for p, q in pairs)
    ordered = [q for _, q in sorted(pairs)]
    assert ordered == sorted(ordered)


def test_by_hand() -> None:
    assert benjamini_hochberg([0.01, None, 0.04, 0.03]) == [
        pytest.approx(0.03),
        None,
        pytest.approx(0.04),
        pytest.approx(0.04),
    ]
    assert benjamini_hochberg([]) == []


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([0.5, bad])
