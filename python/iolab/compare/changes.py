"""A change from the interval of its unit of repetition: blocks, or sessions."""

from __future__ import annotations

from ..metrics import Metric
from ..stats.blocks import MeanInterval
from ..stats.sessions import SessionInterval
from .cells import scale_of
from .model import CONFOUNDED, Change


def change_of(interval: MeanInterval | SessionInterval, metric: Metric, **counts: int) -> Change:
    """The change behind an interval of differences, with the counts that `Change` has.

    An interval within sessions excludes nothing.
    """
    back = scale_of(metric)
    value = back(interval.mean)
    low = None if interval.low is None else back(interval.low)
    high = None if interval.high is None else back(interval.high)
    sessions = interval.sessions if isinstance(interval, SessionInterval) else None
    is_within = isinstance(interval, SessionInterval) and interval.is_within
    return Change(
        value=value,
        low=low,
        high=high,
        pairs=min(interval.sessions) if isinstance(interval, SessionInterval) else interval.n,
        dropped=counts.get("dropped", 0),
        without=counts.get("without", 0),
        df=interval.df,
        pooled=isinstance(interval, MeanInterval) and interval.pooled,
        p=interval.p,
        improves=None
        if metric.better is None or value == 0
        else (value > 0) == (metric.better == "higher"),
        excluded=None if is_within or low is None or high is None else max(abs(low), abs(high)),
        sessions=sessions,
        reason=CONFOUNDED if is_within else None,
    )
