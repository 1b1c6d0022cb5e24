# SPDX-License-Identifier: Apache-2.0
"""A comparison as CSV: a line per cell, base units, unrounded."""

from __future__ import annotations

import csv
import io

from ..model import Cell, Comparison
from .words import change_number, change_unit

_CHANGE = ("value", "low", "high")


class CsvRenderer:
    """Columns: factors, variant, metric, unit, value, its interval, n, verdict, change with
    interval, tests, footnotes.

    Changes are in per cent for metrics compared by ratio, in percentage points for shares, else in
    the metric's unit (`change_unit`). `precision` rounds values and changes; without it every digit
    is there.
    """

    name = "csv"

    def render(self, comparison: Comparison, *, precision: int | None = None) -> str:
        """A header and a line per cell and variant."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        factors = [*comparison.tables, *comparison.rows, *comparison.cols]
        writer.writerow(
            [
                *factors,
                *comparison.fixed,
                "variant",
                "baseline",
                "metric",
                "unit",
                "value",
                "low",
                "high",
                "n",
                "verdict",
                "change",
                "change_low",
                "change_high",
                "change_unit",
                "pairs",
                "dropped",
                "p",
                "p_exact",
                "q",
                "decided",
                "footnotes",
                "sessions_baseline",
                "sessions_variant",
                "reason",
            ]
        )
        for cell in comparison.cells:
            writer.writerow(
                [
                    *cell.table,
                    *cell.row,
                    *cell.col,
                    *comparison.fixed.values(),
                    *_fields(cell, comparison, precision),
                ]
            )
        return out.getvalue()


def _fields(cell: Cell, comparison: Comparison, precision: int | None) -> list[object]:
    def number(value: float | None) -> object:
        if value is None:
            return ""
        return repr(value) if precision is None else f"{value:.{precision}f}"

    def exact(value: float | None) -> object:
        return "" if value is None else repr(value)

    estimate, change = cell.estimate, cell.change
    fields: list[object] = [
        cell.variant,
        comparison.baseline,
        comparison.metric.name,
        comparison.metric.unit,
        *(number(getattr(estimate, name)) for name in _CHANGE),
        len(estimate.values),
        estimate.level.value,
    ]
    if change is None:
        return [*fields, *[""] * 10, " ".join(cell.footnotes), "", "", ""]
    ends = [getattr(change, name) for name in _CHANGE]
    return [
        *fields,
        *(number(None if end is None else change_number(end, comparison)) for end in ends),
        change_unit(comparison),
        change.pairs,
        change.dropped,
        exact(change.p),
        exact(change.p_exact),
        exact(change.q),
        str(change.decided).lower(),
        " ".join(cell.footnotes),
        *(change.sessions or ("", "")),
        change.reason or "",
    ]
