"""A heat map made ready for the page's canvas."""

from __future__ import annotations

from ..heatmap.figure import Named
from ..heatmap.model import View
from ..recording.counts import HeatCounts
from ..report.heatmap_page import group_of
from ..statistics.names import Statistic
from .models import DrawnMap

_LINEAR = ("offset", "utilization")


def drawn(asked: Statistic, counts: HeatCounts, label: str) -> DrawnMap:
    """The map on its axes."""
    view = View("linear" if counts.y in _LINEAR else "log", 0.001 if counts.y == "latency" else 0.0)
    group = group_of(view, [Named(label, counts)], percentiles=False) if len(counts.count) else None
    return DrawnMap(statistic=str(asked), t0_ns=counts.t0_ns, interval_ns=counts.interval_ns, events=counts.events,
                    notes=list(counts.assumptions), group=group)
