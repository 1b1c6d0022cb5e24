# SPDX-License-Identifier: Apache-2.0
"""Throughput and latency in one table, `1623 MiB/s @ 45 µs`: what came through, and how long each
I/O took for it."""

from __future__ import annotations

from iolab.base.errors import UsageError
from iolab.base.metrics import joint_title
from iolab.studies.compare.model import Cell, Comparison
from iolab.studies.compare.render.words import Scale, cell_scale

from .base import words
from .base.drawing import Spec, channel
from .base.loads import key_text
from .base.model import Chart, Row, slug, specify
from .tables import Cells, grid_panels, picture


def matrix(throughput: Comparison, latency: Comparison) -> Chart:
    """A table for each variant (and level of the table factor); colour deepens with throughput.

    One unit of each kind for the whole picture. A place measured on one side only shows a dash for
    the other; a star marks a SUSPECT value. Raises UsageError where the two comparisons have
    different axes.
    """
    axes = [
        (comparison.rows, comparison.cols, comparison.tables)
        for comparison in (throughput, latency)
    ]
    if axes[0] != axes[1]:
        raise UsageError(
            "throughput and latency are compared over different factors",
            hint="ask for the same rows, columns and tables in both comparisons",
        )
    scales = [cell_scale(comparison, None) for comparison in (throughput, latency)]
    labels = grid_panels(throughput, throughput.variants)
    cells: Cells = []
    rows: list[Row] = []
    factors = (*throughput.tables, *throughput.cols, *throughput.rows)
    for (table, variant), panel in labels.items():
        for row in throughput.row_levels:
            for col in throughput.col_levels:
                sides = [
                    comparison.cell(table, row, col, variant)
                    for comparison in (throughput, latency)
                ]
                if sides == [None, None]:
                    continue
                fast, slow = (side.estimate if side is not None else None for side in sides)
                words_of = [_text(side, scale) for side, scale in zip(sides, scales, strict=True)]
                cells.append(
                    {
                        "row": key_text(row),
                        "col": key_text(col),
                        "panel": panel,
                        "line1": " @ ".join(words_of),
                        "score": _score(sides[0], scales[0].scale),
                        "tip": f"{panel or variant}: {' @ '.join(words_of)}",
                    }
                )
                place = dict(zip(factors, (*table, *col, *row), strict=True))
                rows.append(
                    {
                        **place,
                        "variant": variant,
                        throughput.metric.name: fast and fast.value,
                        f"{throughput.metric.name} unit": throughput.metric.unit,
                        latency.metric.name: slow and slow.value,
                        f"{latency.metric.name} unit": latency.metric.unit,
                        "label": " @ ".join(words_of),
                    }
                )
    title = words.capital(joint_title(throughput.title, latency.title, "@"))
    marks = [*words.fixed_text(throughput), "colour deepens with throughput"]
    if any(cell["line1"].find("*") >= 0 for cell in cells):
        marks.append("* suspect")
    top = max((cell["score"] for cell in cells), default=0.0)
    colour = channel("score:Q", legend=None, scale=Spec(domain=[0, top or 1.0], interpolate="lab"))
    chart = picture(throughput, cells, list(labels.values()), colour)
    columns = (
        *factors,
        "variant",
        throughput.metric.name,
        f"{throughput.metric.name} unit",
        latency.metric.name,
        f"{latency.metric.name} unit",
        "label",
    )
    return Chart(
        slug(throughput.metric.name, "at", latency.metric.name),
        title,
        specify(chart, {"rows": cells}, title=title, marks=marks),
        columns,
        tuple(rows),
        words.sentences(marks),
    )


def _text(cell: Cell | None, scale: Scale) -> str:
    if cell is None or cell.estimate.value is None:
        return "—"
    return f"{scale.brief(cell.estimate.value)}{words.star(cell.estimate)} {scale.symbol}".rstrip()


def _score(cell: Cell | None, scale: float) -> float:
    value = cell.estimate.value if cell is not None else None
    return 0.0 if value is None else float(f"{max(value, 0.0) / scale:.5g}")
