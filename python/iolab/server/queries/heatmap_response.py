# SPDX-License-Identifier: Apache-2.0
"""A heat map made ready for the page's canvas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...heatmap.figure import Named
from ...heatmap.model import View
from ...heatmap.wire import SparseArrays, SparseCounts, group_of, lists
from ...recording.base.counts import HeatCounts
from ...recording.read.breakdown import Dimension
from ...statistics.language.names import Statistic
from ..base.json_answer import check_size
from ..base.models import DrawnMap

_LINEAR = ("offset", "utilization")


def view_of(counts: HeatCounts) -> View:
    """How such a map is seen at first."""
    return View("linear" if counts.y in _LINEAR else "log", 0.001 if counts.y == "latency" else 0.0)


def drawn(
    asked: Statistic,
    counts: HeatCounts,
    label: str,
    dimensions: Sequence[Dimension] = (),
    *,
    lines: bool = True,
) -> DrawnMap:
    """The map on its axes, with the parts of it that were told apart. `lines`: whether with
    percentiles and mean."""
    return _drawn(asked, counts, Named(label, counts, tuple(dimensions)), lines, lists)


def apart(
    asked: Statistic,
    counts: HeatCounts,
    label: str,
    dimensions: Sequence[Dimension] = (),
    *,
    lines: bool = True,
) -> tuple[DrawnMap, list[SparseArrays]]:
    """(the same without its cells, those of the map followed by those of its parts)."""
    cells: list[SparseArrays] = []

    def taken(found: SparseArrays) -> SparseCounts:
        cells.append(found)
        return SparseCounts(starts=[], rows=[], counts=[])

    return _drawn(asked, counts, Named(label, counts, tuple(dimensions)), lines, taken), cells


def _drawn(
    asked: Statistic,
    counts: HeatCounts,
    named: Named,
    lines: bool,
    written: Callable[[SparseArrays], SparseCounts],
) -> DrawnMap:
    sizes: list[int] = []

    def measured(found: SparseArrays) -> SparseCounts:
        sizes.append(len(found.counts))
        check_size(2 * sum(sizes))
        return written(found)

    group = (
        group_of(view_of(counts), [named], percentiles=False, joined=int(lines), written=measured)
        if len(counts.count)
        else None
    )
    return DrawnMap(
        statistic=str(asked),
        t0_ns=counts.t0_ns,
        interval_ns=counts.interval_ns,
        events=counts.events,
        notes=list(counts.assumptions),
        gaps=list(counts.gaps),
        window=counts.window,
        group=group,
    )
