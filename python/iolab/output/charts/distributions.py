# SPDX-License-Identifier: Apache-2.0
"""Which latency distributions are drawn, and their counts or percentiles gathered from the runs of
a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from iolab.base.metrics import PLURALS, WITHOUT_SYNCS
from iolab.studies.compare.model import Cell, Comparison, Key
from iolab.studies.results.evidence.model import Histogram, Run

from .base.model import Chart
from .histogram import LEAST_PERCENTILES, Shares, histogram, shares_of_counts, shares_of_percentiles
from .percentiles import percentiles, tail

MOST = 12
"""Places that are drawn each; beyond it only the highest load of each column."""

KINDS = ("clat", "lat")
"""Latencies with a histogram to draw, in order of preference (fio keeps bins of `clat` unless
asked)."""


class Histograms(Protocol):
    """Whatever has runs and can give their histograms: results, opened."""

    @property
    def runs(self) -> Sequence[Run]: ...

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        """Latency histograms of a run; empty unless its evidence holds counts."""


def distributions(results: Histograms, operation: str, rate: Comparison) -> Iterator[Chart]:
    """For each place of a comparison: percentiles where counts were kept, all repetitions added,
    and a histogram of counts or, without them, of percentiles."""
    runs = {run.id: run for run in results.runs}
    of = operations_text(results.runs, operation)
    for table, row, col in places(rate):
        cells = [
            cell
            for variant in rate.variants
            if (cell := rate.cell(table, row, col, variant)) is not None
        ]
        counts = [(cell, _counts(results, operation, cell)) for cell in cells]
        levels = dict(
            zip((*rate.tables, *rate.cols, *rate.rows), (*table, *col, *row), strict=True)
        )
        shares = [
            shares_of_counts(cell.variant, histograms)
            if histograms
            else _shares_of_percentiles(runs, operation, cell)
            for cell, histograms in counts
        ]
        if shares := [item for item in shares if item is not None]:
            yield histogram(
                shares,
                title=f"latency histogram, {of}",
                cell=levels,
                name=f"{operation} latency histogram",
            )
        tails = [tail(cell.variant, histograms) for cell, histograms in counts if histograms]
        if tails:
            yield percentiles(
                tails,
                title=f"latency percentiles, {of}",
                cell=levels,
                confidence=rate.confidence,
                name=f"{operation} latency percentiles",
            )


def operations_text(runs: Sequence[Run], operation: str) -> str:
    """`reads`; `writes (without syncs)` where fio timed syncs apart from them."""
    has_syncs = operation == "write" and any(run.value("sync.lat.mean") is not None for run in runs)
    return f"{PLURALS[operation]}{WITHOUT_SYNCS if has_syncs else ''}"


def places(comparison: Comparison) -> list[tuple[Key, Key, Key]]:
    """Every place (table, row, column) of a comparison, or where they are many, each column's
    highest load."""
    every = list(dict.fromkeys((cell.table, cell.row, cell.col) for cell in comparison.cells))
    if len(every) <= MOST:
        return every
    last = {(table, col): (table, row, col) for table, row, col in every}
    return list(last.values())[:MOST]


def _counts(results: Histograms, operation: str, cell: Cell) -> list[Histogram]:
    """Histograms of the runs of a cell, all on one grid; empty where there are none."""
    for kind in KINDS:
        name = f"{operation}.{kind}"
        histograms = [
            histogram
            for run in cell.estimate.runs
            for histogram in results.histograms(run)
            if histogram.name == name and histogram.counts.sum()
        ]
        if histograms and len({histogram.bits for histogram in histograms}) == 1:
            return histograms
    return []


def _shares_of_percentiles(runs: Mapping[str, Run], operation: str, cell: Cell) -> Shares | None:
    """The histogram that the percentiles of a cell's runs give; None where they are too few."""
    for kind in KINDS:
        repetitions = []
        for name in cell.estimate.runs:
            run = runs.get(name)
            values = {} if run is None else _percentiles(run, f"{operation}.{kind}")
            smallest, largest = (
                None if run is None else run.value(f"{operation}.{kind}.{end}")
                for end in ("min", "max")
            )
            if len(values) >= LEAST_PERCENTILES and smallest is not None and largest is not None:
                repetitions.append((smallest, values, largest))
        if repetitions:
            return shares_of_percentiles(cell.variant, repetitions)
    return None


def _percentiles(run: Run, latency: str) -> dict[float, float]:
    """Per cent to seconds of the percentiles that a run has of a latency."""
    pattern = re.compile(rf"{re.escape(latency)}\.p(\d+(?:\.\d+)?)")
    return {
        float(match[1]): observation.value
        for name, observation in run.observations.items()
        if (match := pattern.fullmatch(name))
    }
