# SPDX-License-Identifier: Apache-2.0
"""The cover: changes of each quantity as a matrix over the factors, or plain values of one variant.

Rows and columns are those of the comparison; each further factor level and each variant has a
matrix of its own. A study with at most one factor has one matrix of all quantities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...compare.model import Comparison, Key
from ...results.evidence.model import Run
from ..model.cover_payload import Cover, CoverCard, CoverCell, CoverMatrix
from ..model.statements import Sentence
from ..sections.shades import legend, steps_text
from ..words.phrases import key_text, list_text, place_text
from .cells import CellMaker
from .quantities import Place, Placed, Quantity, bound_cells, quantities_of
from .sentences import cover_sentence

MOST_CARDS = 8
"""Quantities with a sentence on the cover."""
MOST_CELLS = 2_000
"""Cells of one quantity that are drawn."""
MOST_OF_ALL = 4_000
"""Cells of all quantities that are drawn; beyond it a quantity has its sentence alone."""
OPEN_CELLS = 120
"""Cells of the first cards up to which these are open."""
MOST_COLUMNS = 16
"""Levels of the only factor that are columns; more are rows."""
MOST_DETAILED = 8
"""Columns up to which the cells of a joint matrix show the values of both arms."""


def cover_sentences(comparisons: Sequence[Comparison]) -> list[Sentence]:
    """The sentences of the cover, in its order; comparisons as `cover` takes them."""
    return [cover_sentence(quantity) for quantity in quantities_of(comparisons, MOST_CARDS)]


def cover(
    comparisons: Sequence[Comparison], runs: Sequence[Run], cautions: Sequence[Sentence]
) -> Cover:
    """The cover of a report.

    Args:
        comparisons: of the metrics that lead the report, with equal axes, in report order.
        runs: all runs, in the order of the payload.
        cautions: what a reader must know before the numbers.
    """
    quantities = quantities_of(comparisons, MOST_CARDS)
    maker = CellMaker(runs)
    leading = [quantity.first for quantity in quantities]
    if quantities and all(not comparison.cols and not comparison.tables for comparison in leading):
        cards = [_joint_card(quantities, maker)]
    else:
        cards = list(_cards(quantities, maker))
    has_direction = any(comparison.metric.better for comparison in comparisons)
    return Cover(
        title=_title(leading[0]) if leading else "",
        cautions=list(cautions),
        cards=cards,
        legend=legend(leading),
        legend_note="blue: better, orange: worse" if has_direction else "blue: more, orange: less",
    )


def _title(comparison: Comparison) -> str:
    """`b and c against a`; the name of the only variant."""
    compared = [name for name in comparison.variants if name != comparison.baseline]
    return (
        f"{list_text(compared)} against {comparison.baseline}" if compared else comparison.baseline
    )


def _joint_card(quantities: Sequence[Quantity], maker: CellMaker) -> CoverCard:
    """All quantities: a matrix for each variant over the only factor; one matrix without a factor."""
    first = quantities[0].first
    cells_by_quantity = [maker.cells(quantity) for quantity in quantities]
    heads = [_head(quantity, maker) for quantity in quantities]
    variants = list(
        dict.fromkeys(place.variant for quantity in quantities for place in quantity.cells)
    )
    if first.rows:
        matrices = [
            _matrix_of_levels(
                variant if len(variants) > 1 else "", heads, cells_by_quantity, first, variant
            )
            for variant in variants
        ]
    else:
        matrices = [
            CoverMatrix(
                title="",
                row_title="",
                column_title="",
                rows=heads,
                columns=variants,
                cells=[
                    [cells.get(Place((), (), (), name)) for name in variants]
                    for cells in cells_by_quantity
                ],
            )
        ]
    notes = [steps_text(quantity.first) for quantity in quantities]
    return CoverCard(
        title=f"changes against {first.baseline}" if first.baseline not in variants else "values",
        unit="",
        is_open=True,
        has_details=all(len(matrix.columns) <= MOST_DETAILED for matrix in matrices),
        sentences=[cover_sentence(quantity) for quantity in quantities],
        note="; ".join(dict.fromkeys(filter(None, notes))),
        matrices=matrices,
    )


def _matrix_of_levels(
    title: str,
    heads: Sequence[str],
    cells_by_quantity: Sequence[Mapping[Place, CoverCell]],
    first: Comparison,
    variant: str,
) -> CoverMatrix:
    """Quantities by the levels of the only factor; transposed where there are many levels."""
    levels = first.row_levels
    rows = [
        [cells.get(Place((), level, (), variant)) for level in levels]
        for cells in cells_by_quantity
    ]
    is_wide = len(levels) > MOST_COLUMNS
    factor = ", ".join(first.rows)
    texts = [key_text(level) for level in levels]
    return CoverMatrix(
        title=title,
        row_title=factor if is_wide else "",
        column_title="" if is_wide else factor,
        rows=texts if is_wide else list(heads),
        columns=list(heads) if is_wide else texts,
        cells=[list(column) for column in zip(*rows, strict=True)] if is_wide else rows,
    )


def _cards(quantities: Sequence[Quantity], maker: CellMaker) -> Iterator[CoverCard]:
    """A card for each quantity, the first open. Quantities beyond `MOST_OF_ALL` cells have no
    matrix."""
    total = opened = 0
    for place, quantity in enumerate(quantities):
        size = min(len(quantity.cells), MOST_CELLS)
        total += size
        if place and total > MOST_OF_ALL:
            note = f"{len(quantity.cells):,} cells: their numbers are in the tables below"
            yield _card(quantity, maker, {}, note, is_open=False)
            continue
        opened += size
        subset, note = bound_cells(quantity.cells, MOST_CELLS)
        yield _card(quantity, maker, subset, note, is_open=not place or opened <= OPEN_CELLS)


def _card(
    quantity: Quantity,
    maker: CellMaker,
    subset: Mapping[Place, Placed],
    note: str,
    *,
    is_open: bool,
) -> CoverCard:
    """One quantity with its matrices: one for each variant and level of the table factors."""
    steps = steps_text(quantity.first) if subset else ""
    return CoverCard(
        title=quantity.title,
        unit=maker.unit(quantity),
        is_open=is_open,
        has_details=False,
        sentences=[cover_sentence(quantity)],
        note="; ".join(filter(None, [note, steps])),
        matrices=list(_matrices(quantity, maker.cells(quantity, subset))),
    )


def _matrices(quantity: Quantity, cells: Mapping[Place, CoverCell]) -> Iterable[CoverMatrix]:
    """Matrices of a quantity over rows and columns of its comparison."""
    first = quantity.first
    row_levels = _union([item.row_levels for item in quantity.comparisons])
    col_levels = _union([item.col_levels for item in quantity.comparisons])
    table_levels = _union([item.table_levels for item in quantity.comparisons])
    variants = [name for name in first.variants if any(place.variant == name for place in cells)]
    for table in table_levels:
        for variant in variants:
            in_matrix = {
                (place.row, place.col): cell
                for place, cell in cells.items()
                if place.table == table and place.variant == variant
            }
            if not in_matrix:
                continue
            rows = [row for row in row_levels if any(row == at for at, _ in in_matrix)]
            cols = [col for col in col_levels if any(col == at for _, at in in_matrix)]
            names = [place_text(first.tables, table), variant if len(variants) > 1 else ""]
            yield CoverMatrix(
                title=", ".join(filter(None, names)),
                row_title=", ".join(first.rows),
                column_title=", ".join(first.cols),
                rows=[key_text(row) for row in rows],
                columns=[key_text(col) for col in cols],
                cells=[[in_matrix.get((row, col)) for col in cols] for row in rows],
            )


def _head(quantity: Quantity, maker: CellMaker) -> str:
    """A quantity as the head of a row or column, with the unit of its numbers."""
    unit = maker.unit(quantity)
    return f"{quantity.title} ({unit})" if unit else quantity.title


def _union(levels: Sequence[Sequence[Key]]) -> list[Key]:
    """Levels of several comparisons over the same runs, in the order of the first that has them."""
    return list(dict.fromkeys(level for part in levels for level in part))
