# SPDX-License-Identifier: Apache-2.0
"""Hosts ranked by how much they differ from the others."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.recordings.ask.outliers import rank_hosts
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear


def counts(cells: dict[int, int], bits: int = 6) -> HeatCounts:
    """A map of one column."""
    index = np.array(sorted(cells), dtype=np.int64)
    amount = np.array([cells[place] for place in sorted(cells)], dtype=np.int64)
    return HeatCounts(
        "latency",
        0,
        10**9,
        LogLinear(bits),
        np.zeros(len(index), dtype=np.int64),
        index,
        amount,
        events=int(amount.sum()),
    )


def test_the_host_that_differs_is_first() -> None:
    usual = {100: 700, 200: 290, 300: 10}
    maps = {f"db{number}": counts(usual) for number in range(9)} | {"odd": counts({300: 1000})}
    ranked = rank_hosts(maps)
    assert ranked[0].host == "odd"
    assert ranked[0].distance == pytest.approx(0.99)
    assert {item.ios for item in ranked} == {1000}
    # the usual ones differ by the odd one among the others alone: 110 of 1000
    assert ranked[1].distance == pytest.approx(0.11)
    p50, p99 = ranked[0].quantiles
    assert p50 == p99
    assert ranked[0].others[0] < p50  # type: ignore[operator]


def test_equal_hosts_have_no_distance() -> None:
    ranked = rank_hosts({"a": counts({5: 3, 9: 1}), "b": counts({5: 300, 9: 100})})
    assert [(item.host, item.distance) for item in ranked] == [("a", 0.0), ("b", 0.0)]


def test_hosts_without_a_common_value_have_distance_one() -> None:
    ranked = rank_hosts({"a": counts({5: 3}), "b": counts({9: 100})})
    assert [item.distance for item in ranked] == [1.0, 1.0]


@pytest.mark.parametrize(
    "maps", [{}, {"a": counts({5: 1})}, {"a": counts({5: 1}), "b": counts({})}]
)
def test_fewer_than_two_hosts_can_not_be_ranked(maps: dict[str, HeatCounts]) -> None:
    with pytest.raises(UsageError):
        rank_hosts(maps)
