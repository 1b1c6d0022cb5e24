# SPDX-License-Identifier: Apache-2.0
"""Pictures of tables: a coloured rectangle with words in it for each place of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iolab.studies.compare.model import Comparison, Key

from .base.drawing import Spec, channel, layer
from .base.loads import key_text, named_text
from .base.panels import Panels

Cells = list[dict[str, Any]]


def grid_panels(comparison: Comparison, variants: Sequence[str]) -> dict[tuple[Key, str], str]:
    """Headings by (table, variant): only what distinguishes one from another."""
    present = {(cell.table, cell.variant) for cell in comparison.cells}
    labels = {}
    for table in comparison.table_levels or ((),):
        for variant in variants:
            if (table, variant) in present:
                parts = [named_text(comparison.tables, table)] if table else []
                parts += [variant] if len(variants) > 1 else []
                labels[(table, variant)] = ", ".join(parts)
    return labels or {((), ""): ""}


def picture(
    comparison: Comparison, cells: Cells, labels: Sequence[str], colour: Spec, lines: int = 1
) -> Spec:
    """Cells with fields `row`, `col`, `panel`, `line1` (and `line2`), `score`, drawn as tables side
    by side."""
    rows = [key_text(key) for key in comparison.row_levels] or [""]
    cols = [key_text(key) for key in comparison.col_levels] or [""]
    longest = max(
        (len(str(cell[f"line{n + 1}"])) for cell in cells for n in range(lines)), default=4
    )
    cell_width = max(64, round(longest * 6.4) + 14, round(max(map(len, cols)) * 6.4) + 10)
    width, height = cell_width * len(cols), (20 + 18 * lines) * len(rows)
    side = max(1, min(len(labels), 960 // max(width, 1), 4))
    x = channel(
        "col:N",
        title=", ".join(comparison.cols) or None,
        scale=Spec(domain=cols, padding=0),
        axis=Spec(orient="top", labelAngle=0, domain=False, ticks=False, labelLimit=0),
    )
    y = channel(
        "row:N",
        title=", ".join(comparison.rows) or None,
        scale=Spec(domain=rows, padding=0),
        axis=Spec(domain=False, ticks=False, labelLimit=0),
    )
    tip = channel("tip:N")
    layers = [layer(Spec(type="rect", style="cell"), x=x, y=y, color=colour, tooltip=tip)]
    for n in range(lines):
        dy = (2 * n - (lines - 1)) * 8
        mark = Spec(type="text", dy=dy, baseline="middle", fontWeight=600 if n else 400)
        layers.append(layer(mark, x=x, y=y, text=channel(f"line{n + 1}:N"), tooltip=tip))
    return Panels(tuple(dict.fromkeys(labels)), side, width, height).draw(layers, own_axes=True)
