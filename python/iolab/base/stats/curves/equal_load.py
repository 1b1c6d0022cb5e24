# SPDX-License-Identifier: Apache-2.0
"""Latency at equal throughput, and throughput at equal latency: two arms compared where they do the
same work.

At equal concurrency a faster arm also does more, so that neither number alone says which one serves
better. Both questions are answered on the curve's efficient part: the points that no other point
beats in throughput and latency at once. There latency rises strictly with throughput, whatever
noise or a turn beyond saturation did to the rest, and the two answers are each other's inverse.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, Values, positive


def efficient_part(throughput: Values, latency: Values) -> tuple[Floats, Floats]:
    """The points that no other beats: throughput and latency, both strictly ascending, shape (m,)
    with m <= n.

    Raises:
        ValueError: lengths differ, or a value is not finite or not above zero.
    """
    x, y = positive(throughput, "throughput"), positive(latency, "latency")
    if len(x) != len(y):
        raise ValueError("as many latencies as throughputs are needed")
    order = np.lexsort((y, -x))
    kept: list[int] = []
    for place in order.tolist():
        # From the largest throughput down, a point stays only if its latency is lower than all
        # before it.
        if not kept or y[place] < y[kept[-1]]:
            kept.append(place)
    kept.reverse()
    return x[kept], y[kept]


def latency_at(throughput: Values, latency: Values, at: float) -> float | None:
    """Lowest latency at which the throughput `at` is had, by interpolation of log latency between
    measured points.

    Args:
        throughput, latency: one per load level, shape (n,), in any order; above zero.

    Returns:
        None outside the range of the efficient part: nothing is extrapolated.

    Raises:
        ValueError: as `efficient_part`.
    """
    x, y = efficient_part(throughput, latency)
    if not len(x) or not x[0] <= at <= x[-1]:
        return None
    return float(np.exp(np.interp(at, x, np.log(y))))


def throughput_at(throughput: Values, latency: Values, at: float) -> float | None:
    """Highest throughput had with a latency of at most `at`; the inverse of `latency_at`.

    Beyond the latency of the largest throughput, up to the largest latency measured, that is the
    largest throughput: a curve that has turned back still kept the limit at its peak.

    Args:
        throughput, latency: one per load level, shape (n,), in any order; above zero.

    Returns:
        None outside the range of measured latencies: nothing is extrapolated.

    Raises:
        ValueError: as `efficient_part`.
    """
    x, y = efficient_part(throughput, latency)
    if not len(x) or not y[0] <= at <= max(float(value) for value in latency):
        return None
    return float(np.interp(np.log(at), np.log(y), x))
