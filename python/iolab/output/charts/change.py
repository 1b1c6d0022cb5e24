# SPDX-License-Identifier: Apache-2.0
"""The change against the baseline, over what was swept: the seed's third chart, with its
uncertainty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from iolab.studies.compare.model import Cell, Change, Comparison, Key

from .base import words
from .base.axes import ValueAxis, ratio_axis, value_axis
from .base.loads import LoadAxis, key_text, load_axis, named_text
from .base.model import Chart, Row, slug, specify
from .base.panels import panels
from .lines import Drawn, Spot, layers, rows_of
from .reference import floor_layer, zero_layer


def change(comparison: Comparison) -> Chart:
    """Every variant's change against the row factor, a line for each level of the column factor.

    The band is the interval of the change. A point is filled where the change is decided and hollow
    where it is not; nothing is clipped. Panels are variants (where there are several) and levels of
    the table factor; without a column factor the variants are the lines. The baseline alone leaves
    an empty chart that says so.
    """
    metric = comparison.metric
    cells = [cell for cell in comparison.cells if cell.change is not None]
    changes = [cell.change for cell in cells if cell.change is not None]
    x = load_axis(comparison.rows, comparison.row_levels)
    y = _axis(comparison, changes)
    by_variant = not comparison.cols
    labels = _panel_labels(comparison, cells, by_variant)
    names = (
        list(comparison.variants)
        if by_variant
        else [
            named_text(comparison.cols, col)
            for col in comparison.col_levels
            if any(cell.col == col for cell in cells)
        ]
    )
    division = panels(list(dict.fromkeys(labels.values())))
    drawn_lines: list[Drawn] = []
    for (table, variant), panel in labels.items():
        for col in comparison.col_levels or ((),):
            changed_cells = [
                cell
                for row in comparison.row_levels
                if (cell := comparison.cell(table, row, col, variant)) is not None
                and cell.change is not None
            ]
            group = variant if by_variant else named_text(comparison.cols, col)
            drawn_lines += _line(comparison, changed_cells, x, y, {"group": group, "panel": panel})
    variants_to_compare = [
        variant for variant in comparison.variants if variant != comparison.baseline
    ]
    who = (
        f"{variants_to_compare[0]} against {comparison.baseline}"
        if len(variants_to_compare) == 1
        else f"against {comparison.baseline}"
    )
    title = f"{words.capital(comparison.title)}: change, {who}"
    marks = [*words.fixed_text(comparison), *_marks(comparison, changes), *y.notes]
    vertical = y.encode_y(division.height)
    lines = layers(
        x.encode(division.width), vertical, names, drawn_lines, ordinal=x.kind == "ordinal"
    )
    floor = (
        floor_layer(comparison.noise_floor, y, vertical)
        if comparison.noise_floor and changes
        else []
    )
    picture = division.draw([*floor, *zero_layer(y, vertical), *lines])
    columns, rows = _table(comparison)
    return Chart(
        slug(metric.name, "change", "over", *comparison.rows),
        title,
        specify(picture, {"rows": drawn_lines}, title=title, marks=marks),
        columns,
        rows,
        words.sentences(marks),
    )


def _axis(comparison: Comparison, changes: list[Change]) -> ValueAxis:
    """Per cent, percentage points or the metric's own unit; ratios beyond ninefold growth get a
    logarithmic axis."""
    metric = comparison.metric
    values = [
        number
        for item in changes
        for number in (item.value, item.low, item.high)
        if number is not None
    ]
    values += comparison.noise_floor or ()
    title = f"change of {metric.title}"
    if metric.change != "ratio":
        axis = value_axis(title, metric.unit, [*values, 0.0], log=False)
        return replace(axis, title=f"{title} (percentage points)") if metric.unit == "1" else axis
    if values and max(values) > 9:
        return ratio_axis(title, values)
    return value_axis(title, "1", [*values, 0.0], log=False)


def _panel_labels(
    comparison: Comparison, cells: list[Cell], by_variant: bool
) -> dict[tuple[Key, str], str]:
    """Headings of (table, variant): what distinguishes them, unless the variants are the lines."""
    present = {(cell.table, cell.variant) for cell in cells}
    several = not by_variant and len({variant for _, variant in present}) > 1
    labels = {}
    for table in comparison.table_levels or ((),):
        for variant in comparison.variants:
            if (table, variant) in present:
                parts = [variant] if several else []
                parts += [named_text(comparison.tables, table)] if table else []
                labels[(table, variant)] = ", ".join(parts)
    return labels or {((), ""): ""}


def _line(
    comparison: Comparison, cells: list[Cell], x: LoadAxis, y: ValueAxis, common: Drawn
) -> Iterable[Drawn]:
    spots = []
    for i, cell in enumerate(cells):
        change_of_cell = cell.change
        if change_of_cell is None or (height := y.place(change_of_cell.value)) is None:
            continue
        at = f"{common['group']}, {', '.join(comparison.rows)} {key_text(cell.row)}"
        spots.append(
            Spot(
                i,
                x.place(cell.row),
                height,
                y.place(change_of_cell.low),
                y.place(change_of_cell.high),
                hollow=not change_of_cell.decided,
                dashed=cell.saturated,
                tip=f"{at}: {words.change_text(change_of_cell, comparison.metric)}",
            )
        )
    return rows_of(spots, common)


def _marks(comparison: Comparison, changes: list[Change]) -> list[str]:
    """What the marks that occur mean, and what can't be drawn."""
    if not changes:
        return ["nothing to compare with the baseline"]
    better = comparison.metric.better
    said = [f"{better} is better"] if better else []
    if any(item.low is not None for item in changes):
        said.append(f"band or bar: {comparison.confidence * 100:g} % interval of the change")
        said.append("filled: significant, hollow: not significant")
    else:
        said.append("one repetition each: no interval, no test (hollow)")
    if comparison.noise_floor:
        said.append(
            f"grey: changes seen where nothing differs ({comparison.baseline} against itself)"
        )
    if any(cell.saturated and cell.change for cell in comparison.cells):
        said.append("dashed: offered rate not reached")
    lost = sum(
        cell.change is None and cell.variant != comparison.baseline for cell in comparison.cells
    )
    if lost:
        said.append(
            f"{lost} {'cell has' if lost == 1 else 'cells have'} no change (a side is missing or zero)"
        )
    return said


def _table(comparison: Comparison) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    factors = (*comparison.tables, *comparison.cols, *comparison.rows)
    unit = "1" if comparison.metric.change == "ratio" else comparison.metric.unit
    rows = tuple(
        {
            **dict(zip(factors, (*cell.table, *cell.col, *cell.row), strict=True)),
            "variant": cell.variant,
            "baseline": comparison.baseline,
            "metric": comparison.metric.name,
            "change": change_of_cell.value,
            "low": change_of_cell.low,
            "high": change_of_cell.high,
            "unit": unit,
            "pairs": change_of_cell.pairs,
            "p": change_of_cell.p,
            "q": change_of_cell.q,
            "decided": change_of_cell.decided,
            "label": words.change_text(change_of_cell, comparison.metric),
        }
        for cell in comparison.cells
        if (change_of_cell := cell.change) is not None
    )
    return (
        *factors,
        "variant",
        "baseline",
        "metric",
        "change",
        "low",
        "high",
        "unit",
        "pairs",
        "p",
        "q",
        "decided",
        "label",
    ), rows
