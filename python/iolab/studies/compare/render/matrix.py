# SPDX-License-Identifier: Apache-2.0
"""Two metrics in one cell, as `1623 MiB/s @ 45 us`: how compressibility and load sweeps are often
printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from iolab.base.errors import UsageError
from iolab.base.metrics import joint_title
from iolab.base.untrusted_text import json_text, markdown

from ..axes import axis_text
from ..model import Cell, Comparison, Key
from .grids import grid, join_blocks
from .json import as_json
from .words import cell_scale, closing_lines, key_text, mark, marks, opening_lines

FORMATS = ("text", "markdown", "csv", "json")


def render_matrix(
    first: Comparison, second: Comparison, style: str, *, precision: int | None = None
) -> str:
    """The matrix of two comparisons over the same runs and axes, a table per variant.

    Raises UsageError for a format that has no such shape.
    """
    if style == "json":
        data = {
            "schema": 1,
            "kind": "matrix",
            "first": as_json(first, precision),
            "second": as_json(second, precision),
        }
        return json_text(data, indent=1) + "\n"
    if style not in FORMATS:
        raise UsageError(
            f"a matrix of two metrics can't be written as {style}",
            where="--format",
            hint=f"one of {', '.join(FORMATS)}",
        )
    draw = {"text": _text, "markdown": _markdown, "csv": _csv}[style]
    return draw(first, second, _field(first, second, precision))


Field = Callable[[Key, Key, Key, str], str]


def _field(first: Comparison, second: Comparison, precision: int | None) -> Field:
    scales = {id(comparison): cell_scale(comparison, precision) for comparison in (first, second)}

    def side(comparison: Comparison, cell: Cell | None) -> str:
        if cell is None or cell.estimate.value is None:
            return "—"
        scale = scales[id(comparison)]
        return f"{scale.brief(cell.estimate.value)} {scale.symbol}{mark(cell, marks(comparison))}".rstrip()

    def text(table: Key, row: Key, col: Key, variant: str) -> str:
        pair = first.cell(table, row, col, variant), second.cell(table, row, col, variant)
        return "" if pair == (None, None) else f"{side(first, pair[0])} @ {side(second, pair[1])}"

    return text


def _heads(first: Comparison, second: Comparison) -> list[str]:
    rows = " ".join(first.rows)
    if not first.cols:
        return [rows, f"{first.metric.name} @ {second.metric.name}"]
    return [f"{rows} \\ {' '.join(first.cols)}", *(key_text(col) for col in first.col_levels)]


def _body(comparison: Comparison, table: Key, variant: str, field: Field) -> list[list[str]]:
    return [
        [key_text(row), *(field(table, row, col, variant) for col in comparison.col_levels)]
        for row in comparison.row_levels
    ]


def _title(first: Comparison, second: Comparison) -> str:
    fixed = axis_text(first.fixed.keys(), tuple(first.fixed.values()))
    return f"{joint_title(first.title, second.title, '@')}{f', {fixed}' if fixed else ''}"


def _text(first: Comparison, second: Comparison, field: Field) -> str:
    opening = opening_lines(first)
    lines = [*([*opening, ""] if opening else []), _title(first, second)]
    for table in first.table_levels:
        heading = axis_text(first.tables, table)
        lines += ["", *([heading] if heading else [])]
        blocks = [
            [variant, *grid([_heads(first, second), *_body(first, table, variant, field)])]
            for variant in first.variants
        ]
        lines += join_blocks(blocks)
    notes = _notes(first, second)
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _notes(first: Comparison, second: Comparison) -> list[str]:
    """The lines below: what holds for both once, what holds for one under its metric's name."""
    of = {
        comparison.metric.name: [
            line
            for line in closing_lines(comparison)
            if not line.startswith(("note: one run", f"{100 * first.confidence:.0f} %"))
        ]
        for comparison in (first, second)
    }
    common = set.intersection(*(set(lines) for lines in of.values()))
    return list(
        dict.fromkeys(
            line if line in common or name in line else f"{name}: {line}"
            for name, lines in of.items()
            for line in lines
        )
    )


def _markdown(first: Comparison, second: Comparison, field: Field) -> str:
    opening = [f"{markdown(line)}  " for line in opening_lines(first)]
    lines = [*([*opening, ""] if opening else []), f"### {markdown(_title(first, second))}"]
    for table in first.table_levels:
        for variant in first.variants:
            heading = " ".join(part for part in (axis_text(first.tables, table), variant) if part)
            lines += [
                "",
                f"#### {markdown(heading)}",
                "",
                f"| {' | '.join(map(markdown, _heads(first, second)))} |",
                f"|{'|'.join(['---:'] * (1 + len(first.col_levels)))}|",
            ]
            lines += [
                f"| {' | '.join(map(markdown, row))} |"
                for row in _body(first, table, variant, field)
            ]
    notes = _notes(first, second)
    return (
        "\n".join([*lines, *([""] if notes else []), *(f"{markdown(note)}  " for note in notes)])
        + "\n"
    )


def _csv(first: Comparison, second: Comparison, field: Field) -> str:
    """Unlike the other formats, a line per cell with both values in base units, unrounded, each
    with its verdict and its footnotes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    sides = (first, second)
    names = [f"{side.metric.name} ({side.metric.unit})" for side in sides]
    said = [f"{side.metric.name} {what}" for side in sides for what in ("verdict", "footnotes")]
    writer.writerow([*first.tables, *first.rows, *first.cols, "variant", *names, *said])
    for cell in first.cells:
        pair = cell, second.cell(cell.table, cell.row, cell.col, cell.variant)
        values = [
            "" if side is None or side.estimate.value is None else repr(side.estimate.value)
            for side in pair
        ]
        verdicts = [
            word
            for side in pair
            for word in (
                ("", "") if side is None else (side.estimate.level.value, " ".join(side.footnotes))
            )
        ]
        writer.writerow([*cell.table, *cell.row, *cell.col, cell.variant, *values, *verdicts])
    return out.getvalue()
