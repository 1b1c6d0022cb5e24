# SPDX-License-Identifier: Apache-2.0
"""A change from the interval of its unit of repetition: blocks, or sessions."""

from __future__ import annotations

from ..metrics import Metric
from ..stats.blocks import MeanInterval
from ..stats.sessions import SessionInterval
from .cells import scale_of
from .model import CONFOUNDED, NOT_ALTERNATING, Change


def change_of(
    interval: MeanInterval | SessionInterval,
    metric: Metric,
    *,
    dropped: int = 0,
    without: int = 0,
    is_alternating: bool = True,
) -> Change:
    """The change behind an interval of differences, with the counts that `Change` has.

    An interval within sessions excludes nothing, nor does one of sessions that do not alternate;
    neither has a test.
    """
    back = scale_of(metric)
    value = back(interval.mean)
    low = None if interval.low is None else back(interval.low)
    high = None if interval.high is None else back(interval.high)
    sessions = interval.sessions if isinstance(interval, SessionInterval) else None
    reason = None
    if isinstance(interval, SessionInterval):
        reason = CONFOUNDED if interval.is_within else None if is_alternating else NOT_ALTERNATING
    return Change(
        value=value,
        low=low,
        high=high,
        pairs=min(interval.sessions) if isinstance(interval, SessionInterval) else interval.n,
        dropped=dropped,
        without=without,
        df=interval.df,
        pooled=isinstance(interval, MeanInterval) and interval.pooled,
        p=interval.p if reason is None else None,
        improves=None
        if metric.better is None or value == 0
        else (value > 0) == (metric.better == "higher"),
        excluded=None
        if reason is not None or low is None or high is None
        else max(abs(low), abs(high)),
        sessions=sessions,
        reason=reason,
    )
