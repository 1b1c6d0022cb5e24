# SPDX-License-Identifier: Apache-2.0
"""A comparison for the terminal: values side by side, the change with its interval and test, what
must be said below."""

from __future__ import annotations

from ..axes import axis_text
from ..model import Cell, Comparison, Key, Summary
from .grids import grid, join_blocks
from .words import (
    change_text,
    closing_lines,
    interval_text,
    key_text,
    mark,
    marks,
    opening_lines,
    scale_for,
    test_text,
    title_text,
    undecided_cells,
)


class TextRenderer:
    """Tables aligned for a fixed-width font, without colour, so that they can be read in a mail as
    well.

    A table with one column holds baseline, variant, change, interval and test side by side. One
    with several columns becomes a matrix for each variant and one of changes, in the shape in which
    such results are usually printed.
    """

    name = "text"

    def render(self, comparison: Comparison, *, precision: int | None = None) -> str:
        """One block per table and variant."""
        opening = opening_lines(comparison)
        lines = [
            *([*opening, ""] if opening else []),
            title_text(comparison, scale_for(comparison, precision)),
        ]
        for table in comparison.table_levels:
            cols = [
                col
                for col in comparison.col_levels
                if any(cell.table == table and cell.col == col for cell in comparison.cells)
            ]
            heading = axis_text(comparison.tables, table)
            lines += ["", *([heading] if heading else [])]
            if len(cols) == 1:
                lines += _columns(comparison, table, cols[0], precision)
            else:
                lines += _matrices(comparison, table, cols, precision)
        lines += _undecided_lines(comparison)
        closing = closing_lines(comparison)
        return "\n".join([*lines, *([""] if closing else []), *closing]) + "\n"


def _rows_of(comparison: Comparison, table: Key) -> list[Key]:
    measured = {cell.row for cell in comparison.cells if cell.table == table}
    return [row for row in comparison.row_levels if row in measured]


def _value(comparison: Comparison, cell: Cell | None, precision: int | None) -> str:
    return (
        ""
        if cell is None
        else scale_for(comparison, precision).value(cell.estimate.value)
        + mark(cell, marks(comparison))
    )


def _columns(comparison: Comparison, table: Key, col: Key, precision: int | None) -> list[str]:
    """A row per load: baseline, then for each other variant its value, change, interval and
    test."""
    variants = comparison.variants[1:]
    heads = [" ".join(comparison.rows), comparison.baseline]
    for variant in variants:
        heads += [variant, "change", "interval", "test"]
    body = [heads]
    for row in _rows_of(comparison, table):
        line = [
            key_text(row),
            _value(comparison, comparison.cell(table, row, col, comparison.baseline), precision),
        ]
        for variant in variants:
            cell = comparison.cell(table, row, col, variant)
            change = None if cell is None else cell.change
            line += [
                _value(comparison, cell, precision),
                change_text(change, comparison, precision) if cell else "",
                interval_text(change, comparison, precision),
                test_text(change),
            ]
        body.append(line)
    summary_of_variant = {
        summary.variant: summary
        for summary in comparison.summaries
        if summary.table == table and summary.col == col
    }
    if summary_of_variant:
        line = [_mean_name(comparison), ""]
        for variant in variants:
            change = summary_of_variant[variant].change if variant in summary_of_variant else None
            line += [
                _cells_text(summary_of_variant.get(variant)),
                change_text(change, comparison, precision) if variant in summary_of_variant else "",
                interval_text(change, comparison, precision),
                "",
            ]
        body.append(line)
    place = axis_text(comparison.cols, col)
    return [*([place] if place else []), *grid(body)]


def _matrices(
    comparison: Comparison, table: Key, cols: list[Key], precision: int | None
) -> list[str]:
    """A matrix of values per variant, side by side while they fit, then one of changes per
    variant."""
    heads = [
        f"{' '.join(comparison.rows)} \\ {' '.join(comparison.cols)}",
        *(key_text(col) for col in cols),
    ]
    rows = _rows_of(comparison, table)
    values = []
    for variant in comparison.variants:
        body = [
            [
                key_text(row),
                *(
                    _value(comparison, comparison.cell(table, row, col, variant), precision)
                    for col in cols
                ),
            ]
            for row in rows
        ]
        values.append([variant, *grid([heads, *body])])
    lines = join_blocks(values)
    for variant in comparison.variants[1:]:
        body = []
        for row in rows:
            cells = [comparison.cell(table, row, col, variant) for col in cols]
            body.append([key_text(row), *(_change(cell, comparison, precision) for cell in cells)])
        summary_of_col = {
            summary.col: summary
            for summary in comparison.summaries
            if summary.table == table and summary.variant == variant
        }
        if summary_of_col:
            body.append(
                [
                    _mean_name(comparison),
                    *(_summary(summary_of_col.get(col), comparison, precision) for col in cols),
                ]
            )
        lines += ["", f"change, {variant} against {comparison.baseline}", *grid([heads, *body])]
    return lines


def _change(cell: Cell | None, comparison: Comparison, precision: int | None) -> str:
    if cell is None:
        return ""
    change = cell.change
    if change is None or change.low is None:
        return change_text(change, comparison, precision)
    return " ".join(
        (
            change_text(change, comparison, precision),
            interval_text(change, comparison, precision),
            "~" if not change.decided else " ",
        )
    )


def _summary(summary: Summary | None, comparison: Comparison, precision: int | None) -> str:
    if summary is None:
        return ""
    text = change_text(summary.change, comparison, precision)
    if summary.change is not None and summary.change.low is not None:
        text += f" {interval_text(summary.change, comparison, precision)}  "
    return text if summary.cells == summary.of else f"{text} ({_cells_text(summary)})"


def _cells_text(summary: Summary | None) -> str:
    if summary is None:
        return ""
    return (
        f"{summary.cells} of {summary.of} cells"
        if summary.cells < summary.of
        else f"{summary.cells} cells"
    )


def _mean_name(comparison: Comparison) -> str:
    return "geomean" if comparison.metric.change == "ratio" else "mean"


def _undecided_lines(comparison: Comparison, most: int = 12) -> list[str]:
    """A line per undecided cell that has an interval: the change excluded, the blocks needed."""
    texts = undecided_cells(comparison)
    if not texts:
        return []
    lines = ["", "~ not significant:"]
    names = (*comparison.tables, *comparison.rows, *comparison.cols)
    for cell, words in texts[:most]:
        place = axis_text(names, (*cell.table, *cell.row, *cell.col))
        which = cell.variant if len(comparison.variants) > 2 or not place else ""
        lines.append(f"  {' '.join(part for part in (place, which) if part)}: {words}")
    if len(texts) > most:
        lines.append(f"  and {len(texts) - most} more (--format json has them all)")
    return lines
