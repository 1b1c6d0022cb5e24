# SPDX-License-Identifier: Apache-2.0
"""The cover: changes of each quantity as a matrix over the factors, or plain values of one variant.

Rows and columns are those of the comparison; each further factor level and each variant has a
matrix of its own. A study with at most one factor has one matrix of all quantities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...compare.axes import level_text
from ...compare.model import Cell, Change, Comparison, Key
from ...compare.render.words import (
    REASONS,
    Scale,
    cell_scale,
    change_number,
    change_unit,
    scale_for,
)
from ...metrics import OPERATIONS, PLURALS
from ...results.evidence.model import Run
from ...verdict import Level
from ..model.cover_payload import Certainty, Cover, CoverCard, CoverCell, CoverMatrix, CoverSide
from ..model.statements import Sentence
from ..words.cover_words import Placed, cover_sentence, place_of
from ..words.credibility import reason_counts
from ..words.phrases import (
    SPACE,
    brief_signed,
    change_interval_text,
    change_text,
    count_text,
    key_text,
    list_text,
    place_text,
    probability_text,
    value_interval_text,
)
from .shades import change_shade, legend, steps_text, value_shades

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

    def sentence(self) -> Sentence:
        """The sentence about it."""
        return cover_sentence(self.title, list(self.cells.values()), self.first.metric.name)


def cover_sentences(comparisons: Sequence[Comparison]) -> list[Sentence]:
    """The sentences of the cover, in its order; comparisons as `cover` takes them."""
    quantities = _with_numbers(_quantities(comparisons))[:MOST_CARDS]
    return [quantity.sentence() for quantity in quantities]


def cover(
    comparisons: Sequence[Comparison], runs: Sequence[Run], cautions: Sequence[Sentence]
) -> Cover:
    """The cover of a report.

    Args:
        comparisons: of the metrics that lead the report, with equal axes, in report order.
        runs: all runs, in the order of the payload.
        cautions: what a reader must know before the numbers.
    """
    quantities = _with_numbers(_quantities(comparisons))[:MOST_CARDS]
    maker = _Maker(runs)
    leading = [quantity.first for quantity in quantities]
    if quantities and all(not comparison.cols and not comparison.tables for comparison in leading):
        cards = [maker.joint_card(quantities)]
    else:
        cards = maker.cards(quantities)
    has_direction = any(comparison.metric.better for comparison in comparisons)
    return Cover(
        cautions=list(cautions),
        cards=cards,
        legend=legend(leading),
        legend_note="blue: better, orange: worse" if has_direction else "blue: more, orange: less",
    )


def _quantities(comparisons: Sequence[Comparison]) -> list[Quantity]:
    """Comparisons by quantity. Reads and writes of a sweep over operations are one quantity; a cell
    that has both keeps them apart."""
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
    return [quantity for quantity in quantities if quantity.cells]


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


class _Maker:
    """Cards of one report."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.places = {run.id: place for place, run in enumerate(runs)}
        self.scales: dict[int, Scale] = {}

    def joint_card(self, quantities: Sequence[Quantity]) -> CoverCard:
        """One matrix of all quantities for each variant, over the only factor or without one."""
        first = quantities[0].first
        prepared = [
            (quantity, self.drawn_cells(quantity, self.shades(quantity))) for quantity in quantities
        ]
        notes = [steps_text(quantity.first) for quantity in quantities]
        variants = list(
            dict.fromkeys(place.variant for quantity in quantities for place in quantity.cells)
        )
        levels = list(first.row_levels)
        if first.rows:
            matrices = [
                self.joint_matrix(
                    variant if len(variants) > 1 else "", prepared, first, levels, variant
                )
                for variant in variants
            ]
        else:
            rows = [
                [cells.get(Place((), (), (), name)) for name in variants] for _, cells in prepared
            ]
            heads = [quantity_head(quantity, self.unit(quantity)) for quantity in quantities]
            matrices = [
                CoverMatrix(
                    title="",
                    row_title="",
                    column_title="",
                    rows=heads,
                    columns=variants,
                    cells=rows,
                )
            ]
        sentences = [quantity.sentence() for quantity in quantities]
        return CoverCard(
            title=f"changes against {first.baseline}"
            if first.baseline not in variants
            else "values",
            unit="",
            is_open=True,
            sentences=sentences,
            note="; ".join(dict.fromkeys(filter(None, notes))),
            matrices=matrices,
        )

    def joint_matrix(
        self,
        title: str,
        prepared: Sequence[tuple[Quantity, Mapping[Place, CoverCell]]],
        first: Comparison,
        levels: Sequence[Key],
        variant: str,
    ) -> CoverMatrix:
        """Quantities by the levels of the only factor; transposed where there are many levels."""
        heads = [quantity_head(quantity, self.unit(quantity)) for quantity, _ in prepared]
        rows = [
            [cells.get(Place((), level, (), variant)) for level in levels] for _, cells in prepared
        ]
        is_wide = len(levels) > MOST_COLUMNS
        factor = ", ".join(first.rows)
        texts = [key_text(level) for level in levels]
        return CoverMatrix(
            title=title,
            row_title=factor if is_wide else "",
            column_title="" if is_wide else factor,
            rows=texts if is_wide else heads,
            columns=heads if is_wide else texts,
            cells=[list(column) for column in zip(*rows, strict=True)] if is_wide else rows,
        )

    def cards(self, quantities: Sequence[Quantity]) -> list[CoverCard]:
        """A card for each quantity, the first open."""
        cards: list[CoverCard] = []
        total = size_of_cards = 0
        for quantity in quantities:
            size = min(len(quantity.cells), MOST_CELLS)
            total += size
            if total > MOST_OF_ALL and cards:
                cards.append(self.card(quantity, {}, is_open=False))
                continue
            size_of_cards += size
            chosen_cells, note = bound_cells(quantity.cells)
            cards.append(
                self.card(
                    quantity,
                    chosen_cells,
                    is_open=not cards or size_of_cards <= OPEN_CELLS,
                    note=note,
                )
            )
        return cards

    def card(
        self,
        quantity: Quantity,
        chosen_cells: Mapping[Place, Placed],
        *,
        is_open: bool,
        note: str = "",
    ) -> CoverCard:
        """One quantity with its matrices: one for each variant and level of the table factors."""
        notes = [note, steps_text(quantity.first)]
        if not chosen_cells:
            notes = [f"{len(quantity.cells):,} cells: their numbers are in the tables below"]
        cells = self.drawn_cells(
            Quantity(quantity.title, quantity.comparisons, dict(chosen_cells)),
            self.shades(quantity),
        )
        return CoverCard(
            title=quantity.title,
            unit=self.unit(quantity),
            is_open=is_open,
            sentences=[quantity.sentence()],
            note="; ".join(filter(None, notes)),
            matrices=list(self.matrices(quantity, cells)),
        )

    def matrices(
        self, quantity: Quantity, cells: Mapping[Place, CoverCell]
    ) -> Iterable[CoverMatrix]:
        """Matrices of a quantity over rows and columns of its comparison."""
        first = quantity.first
        row_levels = union([item.row_levels for item in quantity.comparisons])
        col_levels = union([item.col_levels for item in quantity.comparisons])
        table_levels = union([item.table_levels for item in quantity.comparisons])
        variants = [
            name for name in first.variants if any(place.variant == name for place in cells)
        ]
        for table in table_levels:
            for variant in variants:
                in_matrix = {
                    (place.row, place.col): cell
                    for place, cell in cells.items()
                    if place.table == table and place.variant == variant
                }
                rows = [row for row in row_levels if any(row == at for at, _ in in_matrix)]
                cols = [col for col in col_levels if any(col == at for _, at in in_matrix)]
                if not in_matrix:
                    continue
                names = [
                    place_text(first.tables, table),
                    variant if len(variants) > 1 else "",
                ]
                yield CoverMatrix(
                    title=", ".join(filter(None, names)),
                    row_title=", ".join(first.rows),
                    column_title=", ".join(first.cols),
                    rows=[key_text(row) for row in rows],
                    columns=[key_text(col) for col in cols],
                    cells=[[in_matrix.get((row, col)) for col in cols] for row in rows],
                )

    def unit(self, quantity: Quantity) -> str:
        """What the numbers of a quantity are in."""
        first = quantity.first
        if all(place.variant == first.baseline for place in quantity.cells):
            return self.scale(first).symbol
        return change_unit(first)

    def scale(self, comparison: Comparison) -> Scale:
        """The unit of a comparison's values."""
        return self.scales.setdefault(id(comparison), cell_scale(comparison, None))

    def shades(self, quantity: Quantity) -> dict[Place, int]:
        """The shade of each cell: of its change, or of its value among all where there is none."""
        if any(place.variant != quantity.first.baseline for place in quantity.cells):
            return {
                place: change_shade(cell.change, comparison)
                for place, (comparison, cell) in quantity.cells.items()
            }
        values = [cell.estimate.value for _, cell in quantity.cells.values()]
        return dict(zip(quantity.cells, value_shades(values), strict=True))

    def drawn_cells(
        self, quantity: Quantity, shades: Mapping[Place, int]
    ) -> dict[Place, CoverCell]:
        """The cells of a quantity as the page draws them."""
        return {
            place: self.cell(comparison, cell, shades[place])
            for place, (comparison, cell) in quantity.cells.items()
        }

    def cell(self, comparison: Comparison, cell: Cell, shade: int) -> CoverCell:
        """One cell with the texts and numbers of its details."""
        is_plain = cell.variant == comparison.baseline
        base = comparison.cell(cell.table, cell.row, cell.col, comparison.baseline)
        sides = [side for side in (None if is_plain else base, cell) if side is not None]
        scale = scale_for(comparison, None)
        change = cell.change
        names = [name for side in sides for name in (*side.estimate.runs, *side.estimate.left_out)]
        places = [self.places[name] for name in dict.fromkeys(names) if name in self.places]
        level = max((side.estimate.level for side in sides), key=lambda level: level.rank)
        run = self.runs[places[0]] if places else None
        return CoverCell(
            text=self.text(comparison, cell, is_plain),
            change=None if change is None else change_number(change.value, comparison),
            shade=shade,
            has_direction=comparison.metric.better is not None,
            certainty=_certainty(cell, is_plain),
            level=level.value,
            metric=comparison.metric.name,
            title=place_of(comparison, cell),
            cell=""
            if run is None
            else ", ".join(f"{name}={level_text(value)}" for name, value in run.factors.items()),
            facts=self.facts(comparison, sides, change, [self.runs[place] for place in places]),
            sides=[
                CoverSide(
                    arm=side.variant,
                    value=_in_scale(side.estimate.value, scale),
                    low=_in_scale(side.estimate.low, scale),
                    high=_in_scale(side.estimate.high, scale),
                )
                for side in sides
            ],
            quantity=f"{comparison.title} ({scale.symbol})" if scale.symbol else comparison.title,
            runs=places,
        )

    def text(self, comparison: Comparison, cell: Cell, is_plain: bool) -> str:
        """The number of a cell without its unit; a dash where there is none."""
        if is_plain:
            value = cell.estimate.value
            return "—" if value is None else self.scale(comparison).brief(value)
        if cell.change is None:
            return "—"
        return brief_signed(change_number(cell.change.value, comparison))

    def facts(
        self,
        comparison: Comparison,
        sides: Sequence[Cell],
        change: Change | None,
        runs: Sequence[Run],
    ) -> list[tuple[str, str]]:
        """Values, change, test and verdict in words."""
        scale = scale_for(comparison, None)
        facts = []
        for side in sides:
            estimate = side.estimate
            interval = value_interval_text(estimate.low, estimate.high, scale.scale)
            unit = scale.symbol if estimate.value is not None else ""
            text = f"{scale.value(estimate.value)}{SPACE}{unit}".rstrip()
            facts.append((side.variant, f"{text} {interval}".rstrip()))
        if change is not None:
            interval = change_interval_text(change, comparison)
            facts.append(("change", f"{change_text(change.value, comparison)} {interval}".rstrip()))
            facts.append(("test", _test_text(change)))
        for level in (Level.INVALID, Level.SUSPECT):
            of_level = [run for run in runs if run.verdict.level is level]
            if of_level:
                facts.append((level.value, reason_counts(of_level, level)))
        return facts


def quantity_head(quantity: Quantity, unit: str) -> str:
    """A quantity as the head of a row or column, with the unit of its numbers."""
    return f"{quantity.title} ({unit})" if unit else quantity.title


def union(levels: Sequence[Sequence[Key]]) -> list[Key]:
    """Levels of several comparisons over the same runs, in the order of the first that has them."""
    return list(dict.fromkeys(level for part in levels for level in part))


def bound_cells(cells: Mapping[Place, Placed]) -> tuple[dict[Place, Placed], str]:
    """At most `MOST_CELLS` cells, and what is left out: first the matrices, then the rows with the
    fewest significant and the smallest changes."""
    if len(cells) <= MOST_CELLS:
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
            if len(chosen_cells) + len(row) <= MOST_CELLS:
                chosen_cells.update(row)
    if not chosen_cells:
        chosen_cells.update(list(cells)[:MOST_CELLS])
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


def _certainty(cell: Cell, is_plain: bool) -> Certainty:
    if is_plain:
        return "none" if cell.estimate.value is None else "value"
    change = cell.change
    if change is None:
        return "none"
    if change.low is None or change.reason is not None:
        return "untested"
    return "significant" if change.decided else "insignificant"


def _test_text(change: Change) -> str:
    units = f"n = {change.pairs}"
    if change.sessions is not None:
        units = f"sessions: {' against '.join(map(str, change.sessions))}"
    if change.dropped:
        units += f", {change.dropped} left out"
    if change.reason is not None:
        return f"none, {REASONS[change.reason]}; {units}"
    if change.low is None:
        return f"none, one pair of runs; {units}"
    q = probability_text(change.q if change.q is not None else change.p)
    word = "significant" if change.decided else "not significant"
    needed = ""
    if change.blocks_needed and not change.decided:
        unit = "block" if change.sessions is None else "session"
        needed = f"; a change of this size needs about {count_text(change.blocks_needed, unit)}"
        needed += "" if change.sessions is None else " of each arm"
    return f"{word}, q {q}; {units}{needed}"


def _in_scale(value: float | None, scale: Scale) -> float | None:
    return None if value is None else value / scale.scale


def cover_cautions(
    runs: Sequence[Run], sessions: Sequence[Sentence], trust: Sequence[Sentence], most: int = 2
) -> list[Sentence]:
    """What a reader must know before the numbers: how the arms were measured, the verdicts with
    their reasons in a word, and what weakens the numbers."""
    verdicts, *statements = trust
    cautions = [
        item
        for item in statements
        if item.tone == "caution" and not item.text.startswith(SAID_ON_COVER)
    ]
    levels = {run.verdict.level for run in runs}
    if levels & {Level.SUSPECT, Level.INVALID}:
        verdicts = Sentence(text=f"Of {count_text(len(runs), 'run')}: {_levels_text(runs)}.")
    return [*(item for item in sessions if item.tone == "caution"), verdicts, *cautions[:most]]


SAID_ON_COVER = ("Every cell has one pair", "INVALID runs", "SUSPECT runs", "fio times syncs apart")
"""Beginnings of statements that sentences, titles and verdicts of the cover already make."""


def _levels_text(runs: Sequence[Run]) -> str:
    """`31 OK, 5 SUSPECT (stall in 5)`."""
    parts = []
    for level in sorted(Level, key=lambda level: level.rank):
        of_level = [run for run in runs if run.verdict.level is level]
        codes = Counter(
            code
            for run in of_level
            for code in {reason.code for reason in run.verdict.reasons if reason.level is level}
        )
        listed = list_text([f"{code} in {number}" for code, number in codes.most_common()], 3)
        is_named = listed and level in (Level.SUSPECT, Level.INVALID)
        if of_level:
            parts.append(f"{len(of_level)} {level.value}{f' ({listed})' if is_named else ''}")
    return ", ".join(parts)
