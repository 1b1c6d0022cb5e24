# SPDX-License-Identifier: Apache-2.0
"""The grid's vectors through the Python binding (the Rust crate runs the same file)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab import _core


def test_vectors(root: Path) -> None:
    cases = json.loads((root / "tests/vectors/grid.json").read_text())["cases"]
    assert len(cases) > 50
    for case in cases:
        bits, value = int(case["bits"]), int(case["value"])
        index = _core.grid_index(value, bits)
        assert index == int(case["index"]), case
        assert _core.grid_bounds(index, bits) == (int(case["lower"]), int(case["upper"])), case


@given(st.dictionaries(st.integers(0, 2**62), st.integers(1, 10**9), max_size=60))
def test_no_count_is_lost_in_taking_over(bins: dict[int, int]) -> None:
    indices, counts = _core.take_over_fio_bins(list(bins.items()))
    assert sum(counts) == sum(bins.values())
    assert indices == sorted(set(indices))


def test_quantiles_of_known_counts() -> None:
    index = [_core.grid_index(value, 6) for value in (10, 20, 30)]
    assert _core.quantiles(index, [50, 49, 1], [0.0, 0.5, 0.51, 0.99, 1.0], 6) == [
        10,
        10,
        20,
        20,
        30,
    ]
    assert _core.quantiles([], [], [0.5], 6) == [None]


@pytest.mark.parametrize(
    ("indices", "counts", "q"), [([1], [1, 2], 0.5), ([2, 1], [1, 1], 0.5), ([1], [1], 1.5)]
)
def test_bad_arguments_are_refused(indices: list[int], counts: list[int], q: float) -> None:
    with pytest.raises(ValueError):
        _core.quantiles(indices, counts, [q], 6)
