# SPDX-License-Identifier: Apache-2.0
"""Which latency distributions are drawn, and their counts gathered from the runs of a
comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ..compare.model import Cell, Comparison, Key
from ..metrics import PLURALS
from ..results.evidence.model import Histogram
from .model import Chart
from .percentiles import Tail, percentiles, tail

MOST = 12
"""Places that are drawn each; beyond it only the highest load of each column."""

KINDS = ("clat", "lat")
"""Latencies with a histogram to draw, in order of preference (fio keeps bins of `clat` unless
asked)."""


class Histograms(Protocol):
    """Whatever can give a run's histograms: results, opened."""

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        """Latency histograms of a run; empty unless its evidence holds counts."""
        ...


def distributions(results: Histograms, operation: str, rate: Comparison) -> Iterator[Chart]:
    """A percentile chart for each place of a comparison that has histograms, counts of all
    repetitions added."""
    for table, row, col in places(rate):
        cells = [rate.cell(table, row, col, variant) for variant in rate.variants]
        tails = [
            tail_of_cell
            for cell in cells
            if cell is not None and (tail_of_cell := _tail(results, operation, cell)) is not None
        ]
        if tails:
            levels = dict(
                zip((*rate.tables, *rate.cols, *rate.rows), (*table, *col, *row), strict=True)
            )
            yield percentiles(
                tails,
                title=f"latency percentiles, {PLURALS[operation]}",
                cell=levels,
                confidence=rate.confidence,
                name=f"{operation} latency percentiles",
            )


def places(comparison: Comparison) -> list[tuple[Key, Key, Key]]:
    """Every place (table, row, column) of a comparison, or where they are many, each column's
    highest load."""
    every = list(dict.fromkeys((cell.table, cell.row, cell.col) for cell in comparison.cells))
    if len(every) <= MOST:
        return every
    last = {(table, col): (table, row, col) for table, row, col in every}
    return list(last.values())[:MOST]


def _tail(results: Histograms, operation: str, cell: Cell) -> Tail | None:
    for kind in KINDS:
        name = f"{operation}.{kind}"
        histograms = [
            histogram
            for run in cell.estimate.runs
            for histogram in results.histograms(run)
            if histogram.name == name and histogram.counts.sum()
        ]
        if histograms and len({histogram.bits for histogram in histograms}) == 1:
            return tail(cell.variant, histograms)
    return None
