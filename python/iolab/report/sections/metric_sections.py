# SPDX-License-Identifier: Apache-2.0
"""What the page shows of each metric: tables, charts, notes and footnotes, made from its
comparison."""

from __future__ import annotations

from collections.abc import Mapping

from ...charts.book import metric_charts
from ...compare.model import Comparison
from ..model.datasets import Datasets
from ..model.payload import Section
from ..words.credibility import STATED_HERE
from ..words.summary import lead
from .tables import metric_unit_words, tables


def metric_section(
    comparison: Comparison,
    run_places: Mapping[str, int],
    datasets: Datasets,
    *,
    charts: bool,
    lines: str | None = None,
) -> Section:
    """One metric. `charts=False` leaves only its tables (metrics that do not lead); `lines` as in
    `charts.over_load`."""
    metric = comparison.metric
    tables_of_metric, footnotes, unit = tables(comparison, run_places)
    return Section(
        name=metric.name,
        title=comparison.title,
        kind="metric",
        headline=metric.headline,
        unit=metric_unit_words(metric, unit),
        better=metric.better,
        lead=lead(comparison),
        notes=[warning.text for warning in comparison.warnings if warning.code not in STATED_HERE],
        footnotes=footnotes,
        tables=tables_of_metric,
        charts=[datasets.chart(chart) for chart in metric_charts(comparison, lines)]
        if charts
        else [],
    )
