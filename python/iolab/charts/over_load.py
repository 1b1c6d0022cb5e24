"""A metric against what was swept: the seed of every study's report."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..compare.model import Cell, Comparison
from ..units import format_quantity
from ..verdict import Level
from . import words
from .axes import ValueAxis, value_axis
from .lines import Drawn, Spot, layers, rows_of
from .loads import LoadAxis, key_text, load_axis
from .model import Chart, Row, slug, specify, unchecked
from .panels import panels


@unchecked
def over_load(comparison: Comparison) -> Chart:
    """The metric of every variant against the comparison's row factor, in panels by column and table factors.

    Every repetition is a dot, estimates are joined by a line, the band is each estimate's own interval. SUSPECT is
    hollow; an INVALID run is a cross outside the line (at the lower edge where its value is unknown); a segment is
    dashed where an offered rate was not reached. A place that was not measured is bridged by the line, not filled in.
    """
    metric = comparison.metric
    x = load_axis(comparison.rows, comparison.row_levels)
    y = value_axis(metric.title, metric.unit, _values(comparison.cells), shown=words.shown_unit(comparison))
    labels, columns = words.panel_labels(comparison)
    division = panels(list(labels.values()), columns=columns)
    drawn: list[Drawn] = []
    for (table, col), panel in labels.items():
        for variant in comparison.variants:
            cells = [cell for row in comparison.row_levels
                     if (cell := comparison.cell(table, row, col, variant)) is not None]
            drawn += _line(comparison, cells, x, y, {"group": variant, "panel": panel})
    title = words.capital(metric.title) + (f", over {', '.join(comparison.rows)}" if comparison.rows else "")
    marks = [*words.fixed(comparison), *_marks(comparison), *y.notes]
    picture = division.draw(layers(x.encode(division.width), y.encode_y(division.height), comparison.variants, drawn,
                                   ordinal=x.kind == "ordinal"))
    columns_written, rows = _table(comparison)
    return Chart(slug(metric.name, "over", *comparison.rows), title, specify(picture, {"rows": drawn}, title=title, marks=marks),
                 columns_written, rows, words.sentences(marks))


def _values(cells: Iterable[Cell]) -> Iterable[float | None]:
    """Everything that decides the scale; values of refused runs don't, for they may be anything."""
    for cell in cells:
        estimate = cell.estimate
        yield from (estimate.value, estimate.low, estimate.high, *estimate.values)


def _line(comparison: Comparison, cells: list[Cell], x: LoadAxis, y: ValueAxis, common: Drawn) -> Iterable[Drawn]:
    spots = []
    for i, cell in enumerate(cells):
        estimate, place = cell.estimate, x.place(cell.row)
        at = f"{common['group']}, {', '.join(comparison.rows)} {key_text(cell.row)}"
        for value, run in zip(estimate.values, estimate.runs, strict=False):
            if len(estimate.values) > 1 and (height := y.drawn(value)) is not None:
                tip = f"{at}: {format_quantity(value, comparison.metric.unit)} ({run})"
                yield {**common, "kind": "dot", "x": place, "y": height, "tip": tip}
        for refused, run in words.left_out(estimate):
            shown = y.within(-math.inf if refused is None else refused)
            said = "no value" if refused is None else format_quantity(refused, comparison.metric.unit)
            yield {**common, "kind": "cross", "x": place, "y": shown, "tip": f"{at}: left out, {said} ({run})"}
        middle = y.drawn(estimate.value)
        if middle is None:
            continue
        spots.append(Spot(i, place, middle, y.drawn(estimate.low), y.drawn(estimate.high),
                          hollow=estimate.level is Level.SUSPECT, dashed=cell.saturated,
                          tip=f"{at}: {words.quantity(estimate, comparison.metric.unit)}"))
    yield from rows_of(spots, common)


def _marks(comparison: Comparison) -> list[str]:
    """What the marks that occur mean."""
    cells = comparison.cells
    said = []
    if any(len(cell.estimate.values) > 1 for cell in cells):
        said.append("dots: single repetitions")
    elif cells:
        said.append("one repetition each: no interval")
    if any(cell.estimate.low is not None for cell in cells):
        said.append(f"band or bar: {comparison.confidence * 100:g} % interval")
    if any(cell.estimate.level is Level.SUSPECT for cell in cells):
        said.append("hollow: suspect")
    if any(cell.estimate.left_out for cell in cells):
        said.append("crosses: runs left out")
    if any(cell.saturated for cell in cells):
        said.append("dashed: offered rate not reached")
    return said


def _table(comparison: Comparison) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    factors = (*comparison.tables, *comparison.cols, *comparison.rows)
    rows: list[Row] = []
    for cell in comparison.cells:
        estimate, unit = cell.estimate, comparison.metric.unit
        place = dict(zip(factors, (*cell.table, *cell.col, *cell.row), strict=True))
        common = {**place, "variant": cell.variant, "metric": comparison.metric.name, "unit": unit}
        rows.append({**common, "kind": "estimate", "value": estimate.value, "low": estimate.low,
                     "high": estimate.high, "repetitions": len(estimate.values), "verdict": estimate.level.value,
                     "saturated": cell.saturated, "label": words.quantity(estimate, unit)})
        rows += [{**common, "kind": "run", "value": value, "run": run, "label": format_quantity(value, unit)}
                 for value, run in zip(estimate.values, estimate.runs, strict=False)]
        rows += [{**common, "kind": "left out", "value": value, "run": run} for value, run in words.left_out(estimate)]
    return (*factors, "variant", "metric", "kind", "value", "low", "high", "unit", "run", "repetitions", "verdict",
            "saturated", "label"), tuple(rows)
