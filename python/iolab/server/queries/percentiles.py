# SPDX-License-Identifier: Apache-2.0
"""A heat map as lines over time: percentiles, the largest value and the mean of each column."""

from __future__ import annotations

import numpy as np

from ...errors import UsageError
from ...heatmap import overlays
from ...heatmap.wire import LossesOfKind
from ...recording.base.counts import UNITS, HeatCounts
from ...statistics.answers.json_form import losses_of, number, numbers
from ...statistics.language.names import Statistic
from ..base.json_answer import check_size
from ..base.models import Line, PercentilesAnswer

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
NAMES = ("p50", "p90", "p99", "p99.9", "max", "mean")
"""What the lines are called, the mean last. Values are those of the grid: a percentile is the
largest of its bucket."""


def percentiles(asked: Statistic, counts: HeatCounts) -> PercentilesAnswer:
    """The lines of a map. UsageError for offsets, which are addresses, and for bytes."""
    if counts.y == "offset":
        raise UsageError(
            "offsets are addresses, and have no percentiles",
            where="drawn",
            hint="drawn=true is the map itself",
        )
    if counts.weight != "count":
        raise UsageError(
            f"percentiles are of I/Os, not of {asked.entry.measure}",
            where="drawn",
            hint=f"ask for {asked.group}.ops, or drawn=true",
        )
    check_size(len(NAMES) * counts.columns)
    lines = overlays.lines(counts, counts.columns, SHARES)
    over = overlays.lines(counts.coarser(columns=max(1, counts.columns)), 1, SHARES)
    return PercentilesAnswer(
        statistic=str(asked),
        t0_ns=counts.t0_ns,
        interval_ns=counts.interval_ns,
        y=counts.y,
        unit=UNITS[counts.y],
        events=counts.events,
        keys=[
            Line(key=name, mean=number(float(all_[0])), values=numbers(values))
            for name, all_, values in zip(NAMES, over, lines, strict=True)
        ],
        notes=[*counts.assumptions, *_few(counts)],
        lost_by_column=list(counts.lost_by_column),
        losses=[LossesOfKind(**loss) for loss in losses_of(counts)],
        gaps=list(counts.gaps),
        window=counts.window,
    )


def _few(counts: HeatCounts) -> list[str]:
    """Notes on percentiles that most columns are too short for: of fewer I/Os than 1 / (1 - q), the
    percentile q is the maximum."""
    _, starts = np.unique(counts.column, return_index=True)
    totals = np.add.reduceat(counts.count, starts) if len(starts) else counts.count
    notes = []
    for name, share in zip(NAMES, SHARES, strict=False):
        if not 0.9 < share < 1:
            continue
        needed = round(1 / (1 - share))
        few = int((totals < needed).sum())
        if few:
            notes.append(
                f"{name} is the maximum in {few} of {len(totals)} columns: they have fewer than "
                f"{needed} I/Os"
            )
    return notes
