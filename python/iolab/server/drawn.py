"""A heat map made ready for the page's canvas."""

from __future__ import annotations

from typing import get_args

from ..errors import UsageError
from ..heatmap.figure import Named
from ..heatmap.model import View
from ..recording.counts import HeatCounts
from ..report.heatmap_page import group_of
from ..report.heatmap_payload import HeatMapGroup
from ..statistics.names import Statistic
from .models import DrawnMap

_KINDS = get_args(HeatMapGroup.model_fields["y"].annotation)


def drawn(asked: Statistic, counts: HeatCounts, label: str) -> DrawnMap:
    """The map on its axes; UsageError for a kind that the page doesn't draw."""
    if counts.y not in _KINDS:
        raise UsageError(f"the page draws no map of '{counts.y}'", hint=f"there are {', '.join(_KINDS)}; leave 'drawn' out for its counts")
    view = View("linear" if counts.y == "offset" else "log", 0.001 if counts.y == "latency" else 0.0)
    group = group_of(view, [Named(label, counts)], percentiles=False) if len(counts.count) else None
    return DrawnMap(statistic=str(asked), t0_ns=counts.t0_ns, interval_ns=counts.interval_ns, events=counts.events,
                    notes=list(counts.assumptions), group=group)
