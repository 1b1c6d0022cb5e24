# SPDX-License-Identifier: Apache-2.0
"""Latency at equal throughput and throughput at equal latency."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iolab.base.stats.curves.equal_load import efficient_part, latency_at, throughput_at
from support.narrow import present

POINTS = st.lists(st.tuples(st.floats(1, 1e6), st.floats(1e-6, 1)), min_size=1, max_size=12)

THROUGHPUT = [100.0, 200, 400, 500, 450, 300]
LATENCY = [1.0, 1.1, 1.5, 3.0, 8.0, 20.0]


@given(POINTS)
def test_the_efficient_part_is_what_no_point_beats(points: list[tuple[float, float]]) -> None:
    kept = set(
        zip(*(part.tolist() for part in efficient_part(*zip(*points, strict=True))), strict=True)
    )
    for x, y in points:
        beaten = any((a >= x and b <= y) and (a, b) != (x, y) for a, b in points)
        assert ((x, y) in kept) == (not beaten)


@given(POINTS, st.floats(0, 1))
def test_each_is_the_others_inverse(points: list[tuple[float, float]], share: float) -> None:
    throughput, latency = zip(*points, strict=True)
    x, y = efficient_part(throughput, latency)
    steps = np.diff(np.log(y))
    assume(len(x) > 1 and np.diff(x).min() > 1e-3 * x.max() and steps.min() > 1e-3)
    at = float(x[0] + share * (x[-1] - x[0]))
    found = latency_at(throughput, latency, at)
    assert found is not None
    assert y[0] * (1 - 1e-9) <= found <= y[-1] * (1 + 1e-9)
    back = throughput_at(throughput, latency, min(max(found, y[0]), y[-1]))
    assert back == pytest.approx(at, rel=1e-6)


def test_measured_points_are_returned_as_they_are() -> None:
    assert latency_at(THROUGHPUT, LATENCY, 200) == pytest.approx(1.1)
    assert throughput_at(THROUGHPUT, LATENCY, 1.5) == pytest.approx(400)


def test_between_points_the_logarithm_of_latency_is_linear() -> None:
    assert latency_at(THROUGHPUT, LATENCY, 300) == pytest.approx((1.1 * 1.5) ** 0.5)


def test_the_part_that_turned_back_is_not_latency_at_that_throughput() -> None:
    assert present(latency_at(THROUGHPUT, LATENCY, 450)) < 3


def test_nothing_is_extrapolated() -> None:
    assert latency_at(THROUGHPUT, LATENCY, 99.9) is None
    assert latency_at(THROUGHPUT, LATENCY, 500.1) is None
    assert throughput_at(THROUGHPUT, LATENCY, 0.99) is None
    assert throughput_at(THROUGHPUT, LATENCY, 20.1) is None
    assert latency_at([], [], 1) is None
    assert throughput_at([], [], 1) is None


def test_a_latency_beyond_the_peak_keeps_the_peak() -> None:
    assert throughput_at(THROUGHPUT, LATENCY, 10) == 500


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        latency_at([1, 2], [1], 1)
    with pytest.raises(ValueError, match="above zero"):
        throughput_at([1, 0], [1, 2], 1)
