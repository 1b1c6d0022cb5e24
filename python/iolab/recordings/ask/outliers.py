# SPDX-License-Identifier: Apache-2.0
"""Hosts ranked by how much their distribution differs from that of all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from iolab.base.errors import UsageError

from ..store.base.counts import HeatCounts, Integers, alike, sum_by_key
from .answers.json_form import bounds_of

QUANTILES = (0.5, 0.99)


@dataclass(frozen=True)
class HostDistance:
    """How a host differs from all others together.

    Attributes:
        host: its name. ios: I/Os that have the value.
        distance: the largest difference of the two cumulative shares, from 0 (equal) to 1 (no
        value in common): the statistic of Kolmogorov and Smirnov on the grid.
        quantiles, others: upper ends (ns or bytes) of the buckets with the quantiles of
        `QUANTILES`, of the host and of the others; None without I/Os.
    """

    host: str
    ios: int
    distance: float
    quantiles: tuple[int | None, ...]
    others: tuple[int | None, ...]


def rank_hosts(maps: Mapping[str, HeatCounts]) -> list[HostDistance]:
    """Hosts by their distance from the others, the largest first. UsageError with fewer than two
    that have I/Os."""
    hosts = [host for host, counts in maps.items() if len(counts.count)]
    if len(hosts) < 2:
        raise UsageError(
            "one host can't be compared with others", hint="ask for a time with two or more hosts"
        )
    same = alike([maps[host] for host in hosts])
    bounds: dict[int, tuple[int, int]] = {}
    for counts in same:
        bounds |= bounds_of(counts)
    index, _ = sum_by_key(
        np.concatenate([counts.index for counts in same]),
        np.concatenate([counts.count for counts in same]),
    )
    ends = [bounds[place][1] for place in index.tolist()]
    table = np.zeros((len(hosts), len(index)), dtype=np.int64)
    for row, counts in enumerate(same):
        np.add.at(table[row], np.searchsorted(index, counts.index), counts.count)
    totals = table.sum(axis=0)
    ranked = [
        HostDistance(
            host,
            int(own.sum()),
            _distance(own, totals - own),
            tuple(_quantile(own, ends, share) for share in QUANTILES),
            tuple(_quantile(totals - own, ends, share) for share in QUANTILES),
        )
        for host, own in zip(hosts, table, strict=True)
    ]
    return sorted(ranked, key=lambda item: (-item.distance, item.host))


def _distance(one: Integers, other: Integers) -> float:
    shares = [np.cumsum(counts) / counts.sum() for counts in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def _quantile(counts: Integers, ends: list[int], share: float) -> int | None:
    total = int(counts.sum())
    if not total:
        return None
    place = int(np.searchsorted(np.cumsum(counts), np.ceil(share * total)))
    return ends[place]
