# SPDX-License-Identifier: Apache-2.0
"""What the page shows of each metric: tables, charts, notes and footnotes, made from its
comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.base.metrics import Metric
from iolab.studies.compare.model import Cell, Change, Comparison, Key, Summary
from iolab.studies.compare.render.words import REASONS, Scale, scale_for

from ...charts.book import metric_charts
from ..model.datasets import Datasets
from ..model.payload import Section, Table, TableCell, TableColumn, TableGroup, TableRow, Tone
from ..words.credibility import STATED_HERE
from ..words.phrases import (
    change_interval_text,
    change_text,
    key_text,
    place_text,
    probability_text,
    value_interval_text,
)
from ..words.summary import lead
from .shades import change_shade


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


def tables(
    comparison: Comparison, run_places: Mapping[str, int]
) -> tuple[list[Table], list[str], str]:
    """(tables, footnotes, unit): one table per level of the table factors, one unit for all of
    them.

    Args:
        run_places: run id to its place in the payload, which the cells refer to.
    """
    scale = scale_for(comparison, None)
    footnotes = list(comparison.footnotes)
    table_list = [
        _Maker(comparison, scale, footnotes, run_places).table(level)
        for level in comparison.table_levels
    ]
    return (
        [table for table in table_list if table.rows],
        [comparison.footnotes[code] for code in footnotes],
        scale.symbol,
    )


class _Maker:
    """One comparison's settings, shared by its tables."""

    def __init__(
        self,
        comparison: Comparison,
        scale: Scale,
        footnotes: Sequence[str],
        run_places: Mapping[str, int],
    ) -> None:
        self.comparison = comparison
        self.scale = scale
        self.footnotes = footnotes
        self.run_places = run_places
        self.others = [variant for variant in comparison.variants if variant != comparison.baseline]
        # one pair everywhere: the page says so once, and a column that repeats it says nothing
        self.tested = any(
            cell.change is not None
            and (cell.change.low is not None or cell.change.reason is not None)
            for cell in comparison.cells
        )

    def table(self, level: Key) -> Table:
        comparison = self.comparison
        present = {cell.col for cell in comparison.cells if cell.table == level}
        columns = [col for col in comparison.col_levels if col in present]
        rows = []
        for row in comparison.row_levels:
            cells = [cell for col in columns for cell in self.place(level, row, col)]
            if any(cell is not None for cell in cells):
                rows.append(TableRow(title=key_text(row) or "all", summary=False, cells=cells))
        if len(rows) > 1 and (last := self.summary_row(level, columns)):
            rows.append(last)
        groups = [
            TableGroup(title=place_text(comparison.cols, col), columns=self.columns())
            for col in columns
        ]
        return Table(
            title=place_text(comparison.tables, level),
            row_title=", ".join(comparison.rows),
            groups=groups,
            rows=rows,
        )

    def columns(self) -> list[TableColumn]:
        column_list = [TableColumn(title=self.comparison.baseline, kind="value")]
        for variant in self.others:
            column_list += [
                TableColumn(title=variant, kind="value"),
                TableColumn(title="change", kind="change"),
            ]
            if self.tested:
                column_list.append(TableColumn(title="test", kind="test"))
        return column_list

    def place(self, table: Key, row: Key, col: Key) -> list[TableCell | None]:
        base = self.comparison.cell(table, row, col, self.comparison.baseline)
        cells = [self.value(base)]
        for variant in self.others:
            cell = self.comparison.cell(table, row, col, variant)
            change = cell.change if cell else None
            cells += [self.value(cell), self.change(change)]
            if self.tested:
                cells.append(outcome_cell(change))
        return cells

    def value(self, cell: Cell | None) -> TableCell | None:
        if cell is None:
            return None
        estimate = cell.estimate
        return TableCell(
            text=self.scale.value(estimate.value),
            sub=value_interval_text(estimate.low, estimate.high, self.scale.scale),
            level=estimate.level.value,
            saturated=cell.saturated,
            marks=sorted(
                self.footnotes.index(code) + 1 for code in cell.footnotes if code in self.footnotes
            ),
            runs=[
                self.run_places[run]
                for run in (*estimate.runs, *estimate.left_out)
                if run in self.run_places
            ],
        )

    def change(self, change: Change | None) -> TableCell | None:
        if change is None:
            return None
        return TableCell(
            text=change_text(change.value, self.comparison),
            sub=change_interval_text(change, self.comparison),
            tone=change_tone(change),
            shade=change_shade(change, self.comparison),
            decided=None if change.q is None else change.decided,
        )

    def summary_row(self, table: Key, columns: Sequence[Key]) -> TableRow | None:
        by_place = {
            (summary.col, summary.variant): summary
            for summary in self.comparison.summaries
            if summary.table == table
        }
        cells: list[TableCell | None] = []
        for col in columns:
            cells.append(None)
            for variant in self.others:
                summary = by_place.get((col, variant))
                cells += [_stands_on(summary), self.change(summary.change if summary else None)]
                if self.tested:
                    cells.append(None)
        if not any(cells):
            return None
        return TableRow(
            title="geometric mean" if self.comparison.metric.change == "ratio" else "mean",
            summary=True,
            cells=cells,
        )


def _stands_on(summary: Summary | None) -> TableCell | None:
    return (
        None
        if summary is None or summary.change is None
        else TableCell(text=f"{summary.cells} of {summary.of} cells")
    )


def change_tone(change: Change) -> Tone:
    """Better or worse for decided changes of a metric with a direction; plain for all others."""
    if not change.decided or change.improves is None:
        return "plain"
    return "better" if change.improves else "worse"


def outcome_cell(change: Change | None) -> TableCell | None:
    """What the test says: the q value where decided, `~` where not, `no interval` for a single
    pair; pairs below.

    Undecided cells add how many blocks a change of this size would need.
    """
    if change is None:
        return None
    pairs = f"n = {change.pairs}" + (f", {change.dropped} left out" if change.dropped else "")
    if change.sessions is not None:
        counts = " against ".join(map(str, change.sessions))
        pairs = f"sessions: {counts}" + (f", {change.dropped} left out" if change.dropped else "")
    if change.reason is not None:
        return TableCell(text=f"~ {REASONS[change.reason]}", sub=pairs)
    if change.low is None:
        return TableCell(text="no interval", sub=pairs)
    if change.decided:
        return TableCell(
            text=f"q {probability_text(change.q if change.q is not None else change.p)}",
            sub=pairs,
            decided=True,
        )
    needed = f", needs {change.blocks_needed}" if change.blocks_needed else ""
    return TableCell(text="~", sub=f"{pairs}{needed}", decided=False)


def metric_unit_words(metric: Metric, unit: str) -> str:
    """The unit as a heading shows it; counts have none."""
    return unit or ("number" if metric.unit == "" else metric.unit)
