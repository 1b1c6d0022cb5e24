"""What the page shows of each metric: tables, charts, notes and footnotes, made from its comparison."""

from __future__ import annotations

from collections.abc import Mapping

from ..charts.change import change
from ..charts.model import Chart
from ..charts.over_load import over_load
from ..compare.model import Comparison
from .datasets import Datasets
from .payload import Section
from .tables import metric_unit_words, tables
from .trust import SAID_HERE
from .words import lead


def metric_section(
    comparison: Comparison, run_places: Mapping[str, int], datasets: Datasets, *, charts: bool
) -> Section:
    """One metric. `charts=False` leaves only its tables (metrics that do not lead)."""
    metric = comparison.metric
    made, footnotes, unit = tables(comparison, run_places)
    return Section(
        name=metric.name,
        title=metric.title,
        kind="metric",
        headline=metric.headline,
        unit=metric_unit_words(metric, unit),
        better=metric.better,
        lead=lead(comparison),
        notes=[warning.text for warning in comparison.warnings if warning.code not in SAID_HERE],
        footnotes=footnotes,
        tables=made,
        charts=[datasets.chart(chart) for chart in metric_charts(comparison)] if charts else [],
    )


def metric_charts(comparison: Comparison) -> list[Chart]:
    """The charts of one metric: over the load, and the change where there is one."""
    if not any(cell.estimate.value is not None for cell in comparison.cells):
        return []
    found = [over_load(comparison)]
    if any(cell.change is not None for cell in comparison.cells):
        found.append(change(comparison))
    return found
