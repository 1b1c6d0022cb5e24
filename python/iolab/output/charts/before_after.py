# SPDX-License-Identifier: Apache-2.0
"""Before, after, and what became of it: one table for each level of the table factor and each
variant."""

from __future__ import annotations

import math

from iolab.base.metrics import Metric
from iolab.base.units import readable_unit
from iolab.studies.compare.model import Cell, Change, Comparison, Estimate
from iolab.studies.compare.render.words import short

from .base import words
from .base.drawing import Spec, channel
from .base.loads import key_text
from .base.model import Chart, Row, slug, specify
from .tables import Cells, grid_panels, picture

_FULL = 1.0
"""Colour is full at a doubling or halving; beyond it the figures speak."""


def before_after(comparison: Comparison) -> Chart:
    """Cells with the baseline's value, the variant's, and the change; colour runs from worse over
    nothing to better.

    All values of the picture share one unit. `~` follows a tested, undecided change; a star
    marks a SUSPECT side. Without a second variant the cells hold the baseline's values alone.
    """
    metric = comparison.metric
    variants_to_compare = [
        variant for variant in comparison.variants if variant != comparison.baseline
    ]
    values = [cell.estimate.value for cell in comparison.cells if cell.estimate.value is not None]
    symbol, scale = words.shown_unit(comparison) or readable_unit(values, metric.unit)
    labels = grid_panels(comparison, variants_to_compare or list(comparison.variants))
    scores = [
        abs(score)
        for cell in comparison.cells
        if (score := _score(cell.change, metric)) is not None
    ]
    most = max(scores, default=0.0)
    most = min(most, _FULL) if metric.change == "ratio" else most
    cells: Cells = []
    rows: list[Row] = []
    for (table, variant), panel in labels.items():
        for row in comparison.row_levels:
            for col in comparison.col_levels:
                after = comparison.cell(table, row, col, variant)
                before = (
                    comparison.cell(table, row, col, comparison.baseline)
                    if variants_to_compare
                    else None
                )
                if after is None and before is None:
                    continue
                change = after.change if after is not None else None
                cells.append(
                    {
                        "row": key_text(row),
                        "col": key_text(col),
                        "panel": panel,
                        "line1": _sides(before, after, scale, bool(variants_to_compare)),
                        "line2": _change(change, metric),
                        "score": round(_score(change, metric) or 0.0, 5),
                        "tip": words.change_text(change, metric),
                    }
                )
                rows.append(_row(comparison, before, after, change, (*table, *col, *row), variant))
    unit = f" ({symbol})" if symbol else ""
    against = (
        f"{comparison.baseline} → {variants_to_compare[0]}"
        if len(variants_to_compare) == 1
        else f"{comparison.baseline} → variant"
    )
    title = f"{words.capital(comparison.title)}{unit}: {against if variants_to_compare else comparison.baseline}"
    marks = [*words.fixed_text(comparison), *_marks(comparison, variants_to_compare)]
    extent = most if most > 0 else 1.0
    colour = channel(
        "score:Q",
        legend=None,
        scale=Spec(domain=[-extent, extent], domainMid=0, clamp=True, interpolate="lab"),
    )
    chart = picture(
        comparison, cells, list(labels.values()), colour, lines=2 if variants_to_compare else 1
    )
    factors = (*comparison.tables, *comparison.cols, *comparison.rows)
    return Chart(
        slug(metric.name, "before-after"),
        title,
        specify(chart, {"rows": cells}, title=title, marks=marks),
        (
            *factors,
            "variant",
            "metric",
            "unit",
            "before",
            "before_low",
            "before_high",
            "after",
            "after_low",
            "after_high",
            "change",
            "low",
            "high",
            "decided",
            "label",
        ),
        tuple(rows),
        words.sentences(marks),
    )


def _sides(before: Cell | None, after: Cell | None, scale: float, both: bool) -> str:
    return f"{_side(before, scale)} → {_side(after, scale)}" if both else _side(after, scale)


def _side(cell: Cell | None, scale: float) -> str:
    if cell is None or cell.estimate.value is None:
        return "—"
    return short(cell.estimate.value / scale) + words.star(cell.estimate)


def _change(change: Change | None, metric: Metric) -> str:
    if change is None:
        return "—"
    undecided = change.low is not None and not change.decided
    return words.bare_change(change.value, metric) + (" ~" if undecided else "")


def _score(change: Change | None, metric: Metric) -> float | None:
    """How much better (or, without a direction, more): doublings for ratios, the difference
    else."""
    if change is None or not math.isfinite(change.value):
        return None
    if metric.change == "ratio":
        size = math.log2(1 + change.value) if change.value > -1 else -math.inf
    else:
        size = change.value
    size = max(min(size, 1e12), -1e12)
    return -size if metric.better == "lower" else size


def _marks(comparison: Comparison, others: list[str]) -> list[str]:
    if not others:
        return ["one variant: no change"]
    better = comparison.metric.better
    said = [f"{better} is better" if better else "no direction is better"]
    said.append("blue: better, orange: worse" if better else "blue: more, orange: less")
    changes = [cell.change for cell in comparison.cells if cell.change is not None]
    if any(change.low is not None and not change.decided for change in changes):
        said.append("~ not significant")
    if not any(change.low is not None for change in changes):
        said.append("no interval")
    if any(words.star(cell.estimate) for cell in comparison.cells):
        said.append("* suspect")
    return said


def _row(
    comparison: Comparison,
    before: Cell | None,
    after: Cell | None,
    change: Change | None,
    place: tuple[object, ...],
    variant: str,
) -> Row:
    factors = (*comparison.tables, *comparison.cols, *comparison.rows)
    return {
        **dict(zip(factors, place, strict=True)),
        "variant": variant,
        "metric": comparison.metric.name,
        "unit": comparison.metric.unit,
        **_side_fields("before", before.estimate if before else None),
        **_side_fields("after", after.estimate if after else None),
        "change": change and change.value,
        "low": change and change.low,
        "high": change and change.high,
        "decided": change and change.decided,
        "label": words.change_text(change, comparison.metric),
    }


def _side_fields(side: str, estimate: Estimate | None) -> dict[str, object]:
    if estimate is None:
        return {}
    return {side: estimate.value, f"{side}_low": estimate.low, f"{side}_high": estimate.high}
