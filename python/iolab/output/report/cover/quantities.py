# SPDX-License-Identifier: Apache-2.0
"""Quantities of the cover: comparisons that share a matrix, and their cells by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from iolab.base.metrics import OPERATIONS, PLURALS
from iolab.base.verdict import Level
from iolab.studies.compare.model import Cell, Comparison, Key

from ..words.phrases import place_text

Placed = tuple[Comparison, Cell]
"""A cell with the comparison that it is of."""


class Place(NamedTuple):
    """Where a cell is, and of which variant."""

    table: Key
    row: Key
    col: Key
    variant: str


@dataclass
class Quantity:
    """Comparisons of one quantity: of several operations where each cell has one of them, else of
    a single metric."""

    title: str
    comparisons: list[Comparison]
    cells: dict[Place, Placed] = field(default_factory=dict)

    @property
    def first(self) -> Comparison:
        """The comparison that gives axes, variants and the section."""
        return self.comparisons[0]

    @property
    def is_plain(self) -> bool:
        """Whether there are values alone, nothing to compare them with."""
        return all(place.variant == self.first.baseline for place in self.cells)


def quantities_of(comparisons: Sequence[Comparison], most: int) -> list[Quantity]:
    """Comparisons by quantity, at most `most`, those with a number in some cell first.

    Reads and writes of a sweep over operations are one quantity; a cell that has both keeps them
    apart.
    """
    by_name: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        operation, _, name = comparison.metric.name.partition(".")
        is_of_load = operation in OPERATIONS and operation != "sync"
        by_name.setdefault(name if is_of_load else comparison.metric.name, []).append(comparison)
    quantities = []
    for group in by_name.values():
        cells = [_cells_of(comparison) for comparison in group]
        places = [place for part in cells for place in part]
        axes = {(item.rows, item.cols, item.tables, item.baseline) for item in group}
        if len(set(places)) == len(places) and len(axes) == 1:
            joined = {place: placed for part in cells for place, placed in part.items()}
            quantities.append(Quantity(_title(group), group, joined))
        else:
            quantities += [
                Quantity(item.title, [item], part) for item, part in zip(group, cells, strict=True)
            ]
    order = {id(comparison): place for place, comparison in enumerate(comparisons)}
    quantities.sort(key=lambda quantity: order[id(quantity.first)])
    return _with_numbers([quantity for quantity in quantities if quantity.cells])[:most]


def _with_numbers(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Quantities with a number in some cell; all where none has one."""

    def has_number(comparison: Comparison, cell: Cell) -> bool:
        return cell.change is not None or (
            cell.variant == comparison.baseline and cell.estimate.value is not None
        )

    chosen_cells = [
        quantity
        for quantity in quantities
        if any(has_number(*placed) for placed in quantity.cells.values())
    ]
    return chosen_cells or list(quantities)


def _title(group: Sequence[Comparison]) -> str:
    if len(group) == 1:
        return group[0].title
    operation = group[0].metric.name.partition(".")[0]
    return group[0].metric.title.removesuffix(f", {PLURALS[operation]}")


def _cells_of(comparison: Comparison) -> dict[Place, Placed]:
    """Cells with something to draw: a change, or the value where there is one variant, or INVALID
    runs."""
    compared = [name for name in comparison.variants if name != comparison.baseline]
    cells: dict[Place, Placed] = {}
    for cell in comparison.cells:
        base = comparison.cell(cell.table, cell.row, cell.col, comparison.baseline)
        sides = [cell] if base is None or base is cell else [base, cell]
        has_value = any(side.estimate.value is not None for side in sides)
        is_invalid = any(side.estimate.level is Level.INVALID for side in sides)
        if (cell.variant in compared or not compared) and (has_value or is_invalid):
            cells[Place(cell.table, cell.row, cell.col, cell.variant)] = comparison, cell
    return cells


def place_of(comparison: Comparison, cell: Cell, several: bool = False) -> str:
    """`numjobs 8, disks 2`, with the variant where there are `several`."""
    axes = (
        (comparison.rows, cell.row),
        (comparison.cols, cell.col),
        (comparison.tables, cell.table),
    )
    parts = [cell.variant if several else "", *(place_text(names, key) for names, key in axes)]
    return ", ".join(part for part in parts if part) or "the only cell"


def bound_cells(cells: Mapping[Place, Placed], most: int) -> tuple[dict[Place, Placed], str]:
    """At most `most` cells, and a note on the omitted: first the matrices, then the rows with the
    fewest significant and the smallest changes."""
    if len(cells) <= most:
        return dict(cells), ""
    by_matrix: dict[tuple[Key, str], dict[Place, Placed]] = {}
    for place, placed in cells.items():
        by_matrix.setdefault((place.table, place.variant), {})[place] = placed
    chosen_cells: set[Place] = set()
    for matrix in sorted(by_matrix.values(), key=_weight, reverse=True):
        by_row: dict[Key, dict[Place, Placed]] = {}
        for place, placed in matrix.items():
            by_row.setdefault(place.row, {})[place] = placed
        for row in sorted(by_row.values(), key=_weight, reverse=True):
            if len(chosen_cells) + len(row) <= most:
                chosen_cells.update(row)
    if not chosen_cells:
        chosen_cells.update(list(cells)[:most])
    note = (
        f"{len(chosen_cells):,} of {len(cells):,} cells are drawn: the rows with the most significant, then "
        "the largest changes; iolab compare writes every cell"
    )
    return {place: placed for place, placed in cells.items() if place in chosen_cells}, note


def _weight(cells: Mapping[Place, Placed]) -> tuple[int, float]:
    changes = [cell.change for _, cell in cells.values() if cell.change is not None]
    return (
        sum(change.decided for change in changes),
        max((abs(change.value) for change in changes), default=0.0),
    )
