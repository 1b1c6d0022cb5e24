# SPDX-License-Identifier: Apache-2.0
"""Timing of two things in turn, A B A B, so that a drifting machine hurts both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def paired(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    against: str,
    rounds: int = 7,
) -> float:
    """Print and return the median ratio of `ours` over `peer`, pair by pair, with its range."""
    ours(), peer()
    ratios, times = [], []
    for _ in range(rounds):
        first = _timed(ours)
        second = _timed(peer)
        ratios.append(first / second)
        times.append(first)
    middle = statistics.median(ratios)
    print(
        f"{name}: {middle:.2f} x {against} (range {min(ratios):.2f} to {max(ratios):.2f}, {rounds} pairs; "
        f"median {statistics.median(times):.3f} s)"
    )
    return middle


def _timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
