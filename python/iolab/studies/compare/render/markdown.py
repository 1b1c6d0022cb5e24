# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown tables, ready for an issue or a mail."""

from __future__ import annotations

from iolab.base.untrusted_text import markdown

from ..axes import axis_text
from ..model import Comparison, Key
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
)


class MarkdownRenderer:
    """A table per table level and variant, a row per cell, so that it stays readable in narrow
    places."""

    name = "markdown"

    def render(self, comparison: Comparison, *, precision: int | None = None) -> str:
        """Heading, tables, notes."""
        scale = scale_for(comparison, precision)
        opening = [f"{markdown(line)}  " for line in opening_lines(comparison)]
        lines = [
            *([*opening, ""] if opening else []),
            f"### {markdown(title_text(comparison, scale))}",
        ]
        for table in comparison.table_levels:
            for variant in comparison.variants[1:] or comparison.variants:
                heading = axis_text(comparison.tables, table)
                lines += [
                    "",
                    *([f"#### {markdown(heading)}", ""] if heading else []),
                    *_table(comparison, table, variant, precision),
                ]
        closing = closing_lines(comparison)
        if closing:
            lines += ["", *(f"{markdown(line)}  " for line in closing)]
        return "\n".join(lines) + "\n"


def _table(comparison: Comparison, table: Key, variant: str, precision: int | None) -> list[str]:
    scale, signs = scale_for(comparison, precision), marks(comparison)
    single = variant == comparison.baseline
    names = [*comparison.rows, *comparison.cols]
    heads = (
        [*names, variant]
        if single
        else [*names, comparison.baseline, variant, "change", "interval", "test"]
    )
    lines = [f"| {' | '.join(map(markdown, heads))} |", f"|{'|'.join(['---:'] * len(heads))}|"]
    for col in comparison.col_levels:
        for row in comparison.row_levels:
            base = comparison.cell(table, row, col, comparison.baseline)
            arm = comparison.cell(table, row, col, variant)
            if base is None and arm is None:
                continue
            values = [
                "" if cell is None else scale.value(cell.estimate.value) + mark(cell, signs)
                for cell in (base, arm)
            ]
            change = None if arm is None else arm.change
            rest = (
                values[:1]
                if single
                else [
                    *values,
                    change_text(change, comparison, precision),
                    interval_text(change, comparison, precision),
                    test_text(change),
                ]
            )
            fields = [*(key_text((level,)) for level in (*row, *col)), *rest]
            lines.append(f"| {' | '.join(map(markdown, fields))} |")
    for summary in comparison.summaries:
        if summary.table == table and summary.variant == variant and not single:
            place = axis_text(comparison.cols, summary.col)
            kind = "geometric mean" if comparison.metric.change == "ratio" else "mean"
            over = (
                f"{kind} over {summary.cells} of {summary.of} cells{f', {place}' if place else ''}"
            )
            fields = [
                over,
                *[""] * (len(names) - 1),
                "",
                "",
                change_text(summary.change, comparison, precision),
                interval_text(summary.change, comparison, precision),
                "",
            ]
            lines.append(f"| {' | '.join(map(markdown, fields))} |")
    return lines
