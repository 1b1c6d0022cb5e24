# SPDX-License-Identifier: Apache-2.0
"""A comparison in Go's benchmark format, for benchstat and whatever else reads it: every run a
line."""

from __future__ import annotations

from ..axes import level_text
from ..model import Cell, Comparison

_UNITS = {"s": "sec/op", "1/s": "op/s", "B/s": "B/s", "B": "B", "1": "ratio", "": "count"}


class BenchstatRenderer:
    """`Benchmark<metric>/factor=level 1 <value> <unit>`, runs grouped by a `variant:` line
    (golang.org/design/14313).

    Compare with `benchstat -col variant FILE`. Values are unrounded; INVALID runs aren't there.
    """

    name = "benchstat"

    def render(self, comparison: Comparison, *, precision: int | None = None) -> str:
        """A configuration block per variant."""
        unit = _UNITS.get(comparison.metric.unit, comparison.metric.unit)
        better = comparison.metric.better
        lines = [f"Unit {unit} better={better}"] if better else []
        for variant in comparison.variants:
            lines.append(f"variant: {variant}")
            for cell in comparison.cells:
                if cell.variant == variant:
                    lines += [
                        f"{_name(cell, comparison)} 1 {_number(value, precision)} {unit}"
                        for value in cell.estimate.values
                    ]
        return "\n".join(lines) + "\n"


def _name(cell: Cell, comparison: Comparison) -> str:
    names = (*comparison.tables, *comparison.rows, *comparison.cols)
    levels = (*cell.table, *cell.row, *cell.col)
    title = "".join(part.capitalize() for part in comparison.metric.name.split("."))
    parts = [f"{name}={level_text(level)}" for name, level in zip(names, levels, strict=True)]
    return "/".join([f"Benchmark{title}", *parts]).replace(" ", "_")


def _number(value: float, precision: int | None) -> str:
    return repr(value) if precision is None else f"{value:.{precision}f}"
