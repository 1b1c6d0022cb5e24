"""A heat map made ready for the page's canvas."""

from __future__ import annotations

from collections.abc import Sequence

from ..heatmap.figure import Named
from ..heatmap.model import View
from ..recording.breakdown import Dimension
from ..recording.counts import HeatCounts
from ..report.heatmap_page import group_of
from ..report.heatmap_payload import HeatMapGroup, SparseCounts
from ..statistics.names import Statistic
from .models import DrawnMap
from .plain import check_size

_LINEAR = ("offset", "utilization")


def view_of(counts: HeatCounts) -> View:
    """How such a map is seen at first."""
    return View("linear" if counts.y in _LINEAR else "log", 0.001 if counts.y == "latency" else 0.0)


def drawn(asked: Statistic, counts: HeatCounts, label: str, dimensions: Sequence[Dimension] = ()) -> DrawnMap:
    """The map on its axes, with the parts of it that were told apart."""
    named = Named(label, counts, tuple(dimensions))
    group = group_of(view_of(counts), [named], percentiles=False) if len(counts.count) else None
    if group is not None:
        check_size(2 * sum(len(cells.counts) for cells in cells_in(group)))
    return DrawnMap(statistic=str(asked), t0_ns=counts.t0_ns, interval_ns=counts.interval_ns, events=counts.events,
                    notes=list(counts.assumptions), group=group)


def cells_in(group: HeatMapGroup) -> list[SparseCounts]:
    """The cells of each map, followed by those of its parts."""
    return [cells for each in group.maps
            for cells in (each.cells, *(part.cells for dimension in each.dimensions for part in dimension.parts))]
