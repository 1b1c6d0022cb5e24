# SPDX-License-Identifier: Apache-2.0
"""Views over more than one metric: throughput against latency with its knees, and the latency's
whole distribution."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.errors import UsageError
from iolab.base.metrics import PLURALS, joint_title
from iolab.studies.compare.load.curve_model import Curves
from iolab.studies.compare.load.curves import curves
from iolab.studies.compare.model import Comparison

from ...charts.bars import bars
from ...charts.base.model import Chart
from ...charts.book import throughput_for
from ...charts.distributions import distributions, operations_text, places
from ...charts.hockey_stick import hockey_stick
from ...charts.matrix import matrix
from ...charts.reference import Reference
from ..model.datasets import Datasets
from ..model.payload import Section
from ..model.source import Source
from ..words.phrases import place_text
from .curve_tables import equal_tables, knee_table

OPERATIONS = ("write", "read", "mixed", "trim")


def view_sections(
    results: Source,
    comparisons: Sequence[Comparison],
    datasets: Datasets,
    references: Sequence[Reference] = (),
) -> list[Section]:
    """The views that these results allow; none where nothing rises in load or no histogram was
    kept."""
    by_name = {comparison.metric.name: comparison for comparison in comparisons}
    sections = []
    for operation in OPERATIONS:
        latency = by_name.get(f"{operation}.lat.mean")
        rate = by_name.get(f"{operation}.iops") or by_name.get(f"{operation}.bw")
        if latency is not None and rate is not None:
            throughput = by_name.get(f"{operation}.bw") or rate
            sections.append(
                _against_latency(
                    results, operation, rate, latency, throughput, datasets, references
                )
            )
            sections.append(_distribution(results, operation, rate, datasets))
    return [section for section in sections if section is not None]


def _against_latency(
    results: Source,
    operation: str,
    rate: Comparison,
    latency: Comparison,
    throughput: Comparison,
    datasets: Datasets,
    references: Sequence[Reference],
) -> Section | None:
    """Hockey stick, knees and equal-load tables, with the matrix."""
    try:
        axis = throughput_for(references, {rate.metric.name, throughput.metric.name})
        curve_set = curves(
            results.runs, operation=operation, throughput=axis, baseline=rate.baseline
        )
    except UsageError:
        return _bars_alone(operation, rate, latency, datasets)
    charts: list[Chart] = []
    if _rises(curve_set):
        charts.append(hockey_stick(curve_set, references))
    charts.append(bars(rate, latency))
    charts.append(matrix(throughput, latency))
    tables = [knee_table(curve_set), *equal_tables(curve_set)] if _rises(curve_set) else []
    fixed = place_text(list(curve_set.fixed), tuple(curve_set.fixed.values()))
    return Section(
        name=f"{operation}.throughput-latency",
        title=f"throughput against latency, {PLURALS[operation]}",
        kind="view",
        headline=True,
        unit="",
        better=None,
        lead=f"{joint_title(curve_set.throughput.title, latency.title, 'and')} as {curve_set.load} rises"
        f"{f'; throughout: {fixed}' if fixed else ''}. Values between measured loads are interpolated, none is "
        "extrapolated.",
        notes=[],
        footnotes=[],
        tables=[table for table in tables if table.rows],
        charts=[datasets.chart(chart) for chart in charts],
    )


def _bars_alone(
    operation: str, rate: Comparison, latency: Comparison, datasets: Datasets
) -> Section | None:
    """Rate and latency of a study without a rising load; None where they were not measured over the
    same factors."""
    if (rate.rows, rate.cols, rate.tables) != (latency.rows, latency.cols, latency.tables):
        return None
    return Section(
        name=f"{operation}.throughput-latency",
        title=f"throughput and latency, {PLURALS[operation]}",
        kind="view",
        headline=True,
        unit="",
        better=None,
        lead=f"{joint_title(rate.title, latency.title, 'and')} of each cell.",
        notes=[],
        footnotes=[],
        tables=[],
        charts=[datasets.chart(bars(rate, latency))],
    )


def _rises(found: Curves) -> bool:
    return any(len(curve.points) > 1 for curve in found.curves)


def _distribution(
    results: Source, operation: str, rate: Comparison, datasets: Datasets
) -> Section | None:
    """Histograms and percentile curves of the places that are drawn, over all repetitions of each
    variant."""
    charts = list(distributions(results, operation, rate))
    if not charts:
        return None
    every = {(cell.table, cell.row, cell.col) for cell in rate.cells}
    which = (
        "every cell"
        if len(places(rate)) == len(every)
        else f"the highest {', '.join(rate.rows)} of each column"
    )
    return Section(
        name=f"{operation}.percentiles",
        title=f"latency distribution, {operations_text(results.runs, operation)}",
        kind="view",
        headline=True,
        unit="",
        better="lower",
        lead=f"All repetitions together, for {which}; intervals resample repetitions, not I/Os.",
        notes=[],
        footnotes=[],
        tables=[],
        charts=[datasets.chart(chart) for chart in charts],
    )
