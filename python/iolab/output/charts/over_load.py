# SPDX-License-Identifier: Apache-2.0
"""A metric against what was swept: the seed of every study's report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from iolab.base.errors import UsageError
from iolab.base.units import format_quantity
from iolab.base.verdict import Level
from iolab.studies.compare.model import Cell, Comparison, Key

from .base import words
from .base.axes import ValueAxis, value_axis
from .base.loads import LoadAxis, key_text, load_axis, named_text
from .base.model import Chart, Row, slug, specify
from .base.panels import panels
from .lines import Drawn, Spot, layers, rows_of

MOST_LINES = 7
"""Levels of a factor that are distinguished by colour by default, where there is one variant
only."""

VARIANT = "variant"


def over_load(comparison: Comparison, lines: str | None = None) -> Chart:
    """The metric against the comparison's row factor: a line per variant, in panels by column and
    table factors.

    `lines` names one of these factors instead: then its levels are the lines and the variants are
    panels. Where there is one variant alone, a column factor of at most seven levels is taken for
    the lines unasked; `variant` declines.

    Every repetition is a dot, estimates are joined by a line, the band is each estimate's own
    interval. SUSPECT is hollow; an INVALID run is a cross outside the line (at the lower edge where
    its value is unknown); a segment is dashed where an offered rate was not reached. A place that
    was not measured is bridged by the line, not filled in.

    Raises UsageError where `lines` is none of the factors that split the chart.
    """
    metric = comparison.metric
    x = load_axis(comparison.rows, comparison.row_levels)
    y = value_axis(
        metric.title, metric.unit, _values(comparison.cells), shown=words.shown_unit(comparison)
    )
    places, groups, columns = line_places(comparison, lines)
    division = panels(list(dict.fromkeys(place.panel for place in places)), columns=columns)
    drawn_lines: list[Drawn] = []
    for place in places:
        cells = [
            cell
            for row in comparison.row_levels
            if (cell := comparison.cell(place.table, row, place.col, place.variant)) is not None
        ]
        drawn_lines += _line(comparison, cells, x, y, place)
    title = words.capital(comparison.title) + (
        f", over {', '.join(comparison.rows)}" if comparison.rows else ""
    )
    marks = [*words.fixed_text(comparison), *_marks(comparison), *y.notes]
    picture = division.draw(
        layers(
            x.encode(division.width),
            y.encode_y(division.height),
            groups,
            drawn_lines,
            ordinal=x.kind == "ordinal",
        )
    )
    columns_written, rows = _table(comparison)
    return Chart(
        slug(metric.name, "over", *comparison.rows),
        title,
        specify(picture, {"rows": drawn_lines}, title=title, marks=marks),
        columns_written,
        rows,
        words.sentences(marks),
    )


@dataclass(frozen=True)
class LinePlace:
    """One line: where its cells are, its panel, and the name of its colour."""

    table: Key
    col: Key
    variant: str
    panel: str
    group: str

    @property
    def name(self) -> str:
        """The variant, and the level where lines are levels."""
        return self.variant if self.group == self.variant else f"{self.variant}, {self.group}"


def line_places(
    comparison: Comparison, lines: str | None
) -> tuple[list[LinePlace], list[str], int | None]:
    """The lines of a chart, the names of their colours in order, and the panels side by side.

    `lines` as in `over_load`.
    """
    factor = _line_factor(comparison, lines)
    if factor is None:
        places, columns = _by_variant(comparison)
        return places, list(comparison.variants), columns
    places, columns = _by_level(comparison, factor)
    return places, list(dict.fromkeys(place.group for place in places)), columns


def _line_factor(comparison: Comparison, asked: str | None) -> str | None:
    """The factor with a line for each level; None: the variants are."""
    splitting = (*comparison.cols, *comparison.tables)
    if asked is None:
        alone = (
            len(comparison.variants) == 1
            and len(comparison.cols) == 1
            and 1 < len(comparison.col_levels) <= MOST_LINES
        )
        return comparison.cols[0] if alone else None
    if asked == VARIANT or asked in comparison.fixed:
        return None
    if asked not in splitting:
        raise UsageError(
            f"no lines can be drawn for '{asked}'",
            where="lines",
            hint=f"the factors that split this chart are {', '.join((VARIANT, *splitting))}",
        )
    return asked


def _by_variant(comparison: Comparison) -> tuple[list[LinePlace], int | None]:
    labels, columns = words.panel_labels(comparison)
    return [
        LinePlace(*at, variant, panel, variant)
        for at, panel in labels.items()
        for variant in comparison.variants
    ], columns


def _by_level(comparison: Comparison, factor: str) -> tuple[list[LinePlace], int | None]:
    """Variants side by side, other factors below each other."""
    names = (*comparison.tables, *comparison.cols)
    where = names.index(factor)
    rest = (*names[:where], *names[where + 1 :])
    places_of_level: dict[str, list[LinePlace]] = {}
    for table in comparison.table_levels or ((),):
        for col in comparison.col_levels or ((),):
            key = (*table, *col)
            other = named_text(rest, (*key[:where], *key[where + 1 :]))
            for variant in comparison.variants:
                if any(comparison.cell(table, row, col, variant) for row in comparison.row_levels):
                    panel = ", ".join(
                        part
                        for part in (variant if len(comparison.variants) > 1 else "", other)
                        if part
                    )
                    places_of_level.setdefault(other, []).append(
                        LinePlace(table, col, variant, panel, named_text([factor], (key[where],)))
                    )
    places = [
        place
        for places_of_line in places_of_level.values()
        for place in sorted(
            places_of_line, key=lambda place: comparison.variants.index(place.variant)
        )
    ]
    return places, len(comparison.variants) if len(places_of_level) > 1 < len(
        comparison.variants
    ) else None


def _values(cells: Iterable[Cell]) -> Iterable[float | None]:
    """Everything that decides the scale; values of refused runs don't, for they may be anything."""
    for cell in cells:
        estimate = cell.estimate
        yield from (estimate.value, estimate.low, estimate.high, *estimate.values)


def _line(
    comparison: Comparison, cells: list[Cell], x: LoadAxis, y: ValueAxis, line: LinePlace
) -> Iterable[Drawn]:
    common: Drawn = {"group": line.group, "panel": line.panel}
    spots = []
    for i, cell in enumerate(cells):
        estimate, place = cell.estimate, x.place(cell.row)
        at = f"{line.name}, {', '.join(comparison.rows)} {key_text(cell.row)}"
        for value, run in zip(estimate.values, estimate.runs, strict=False):
            if len(estimate.values) > 1 and (height := y.place(value)) is not None:
                tip = f"{at}: {format_quantity(value, comparison.metric.unit)} ({run})"
                yield {**common, "kind": "dot", "x": place, "y": height, "tip": tip}
        for refused, run in words.left_out(estimate):
            limits = y.within(-math.inf if refused is None else refused)
            said = (
                "no value" if refused is None else format_quantity(refused, comparison.metric.unit)
            )
            yield {
                **common,
                "kind": "cross",
                "x": place,
                "y": limits,
                "tip": f"{at}: left out, {said} ({run})",
            }
        middle = y.place(estimate.value)
        if middle is None:
            continue
        spots.append(
            Spot(
                i,
                place,
                middle,
                y.place(estimate.low),
                y.place(estimate.high),
                hollow=estimate.level is Level.SUSPECT,
                dashed=cell.saturated,
                tip=f"{at}: {words.quantity(estimate, comparison.metric.unit)}",
            )
        )
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
        rows.append(
            {
                **common,
                "kind": "estimate",
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "repetitions": len(estimate.values),
                "verdict": estimate.level.value,
                "saturated": cell.saturated,
                "label": words.quantity(estimate, unit),
            }
        )
        rows += [
            {
                **common,
                "kind": "run",
                "value": value,
                "run": run,
                "label": format_quantity(value, unit),
            }
            for value, run in zip(estimate.values, estimate.runs, strict=False)
        ]
        rows += [
            {**common, "kind": "left out", "value": value, "run": run}
            for value, run in words.left_out(estimate)
        ]
    return (
        *factors,
        "variant",
        "metric",
        "kind",
        "value",
        "low",
        "high",
        "unit",
        "run",
        "repetitions",
        "verdict",
        "saturated",
        "label",
    ), tuple(rows)
