# SPDX-License-Identifier: Apache-2.0
"""Cells of the cover: the number, its shade and certainty, and the facts that the page shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.base.verdict import Level
from iolab.studies.compare.axes import level_text
from iolab.studies.compare.model import Cell, Change, Comparison
from iolab.studies.compare.render.words import (
    REASONS,
    Scale,
    cell_scale,
    change_number,
    change_unit,
    scale_for,
    short,
)
from iolab.studies.results.evidence.model import Run

from ..model.cover_payload import Certainty, CoverCell, CoverSide
from ..sections.shades import change_shade, value_shades
from ..words.credibility import reason_counts
from ..words.phrases import (
    SPACE,
    brief_signed,
    change_interval_text,
    change_text,
    count_text,
    probability_text,
    value_interval_text,
)
from .quantities import Place, Placed, Quantity, place_of


class CellMaker:
    """Cells of one report. `runs` are all runs, in the order of the payload."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._places = {run.id: place for place, run in enumerate(runs)}
        self._scales: dict[int, Scale] = {}

    def cells(
        self, quantity: Quantity, subset: Mapping[Place, Placed] | None = None
    ) -> dict[Place, CoverCell]:
        """The cells of a quantity as the page draws them, or the chosen ones. Shades are relative to
        all."""
        shades = self._shades(quantity)
        to_draw = quantity.cells if subset is None else subset
        return {
            place: self._cell(comparison, cell, shades[place])
            for place, (comparison, cell) in to_draw.items()
        }

    def unit(self, quantity: Quantity) -> str:
        """What the numbers of a quantity are in."""
        first = quantity.first
        return self._scale(first).symbol if quantity.is_plain else change_unit(first)

    def _scale(self, comparison: Comparison) -> Scale:
        """The unit of a comparison's values."""
        return self._scales.setdefault(id(comparison), cell_scale(comparison, None))

    def _shades(self, quantity: Quantity) -> dict[Place, int]:
        """The shade of each cell: of its change, or of its value among all where there is none."""
        if not quantity.is_plain:
            return {
                place: change_shade(cell.change, comparison)
                for place, (comparison, cell) in quantity.cells.items()
            }
        values = [cell.estimate.value for _, cell in quantity.cells.values()]
        return dict(zip(quantity.cells, value_shades(values), strict=True))

    def _cell(self, comparison: Comparison, cell: Cell, shade: int) -> CoverCell:
        """One cell with the texts and numbers of its details."""
        is_plain = cell.variant == comparison.baseline
        base = comparison.cell(cell.table, cell.row, cell.col, comparison.baseline)
        sides = [side for side in (None if is_plain else base, cell) if side is not None]
        scale = scale_for(comparison, None)
        change = cell.change
        names = [name for side in sides for name in (*side.estimate.runs, *side.estimate.left_out)]
        places = [self._places[name] for name in dict.fromkeys(names) if name in self._places]
        level = max((side.estimate.level for side in sides), key=lambda level: level.rank)
        run = self._runs[places[0]] if places else None
        return CoverCell(
            text=self._text(comparison, cell, is_plain),
            detail="" if is_plain or base is None else sides_text(comparison, base, cell),
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
            facts=self._facts(comparison, sides, change, [self._runs[place] for place in places]),
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

    def _text(self, comparison: Comparison, cell: Cell, is_plain: bool) -> str:
        """The number of a cell without its unit; a dash where there is none."""
        if is_plain:
            value = cell.estimate.value
            return "—" if value is None else self._scale(comparison).brief(value)
        if cell.change is None:
            return "—"
        return brief_signed(change_number(cell.change.value, comparison))

    def _facts(
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


def sides_text(comparison: Comparison, base: Cell, cell: Cell) -> str:
    """`968 → 811 1/s`: the values of the baseline and of a variant; empty where one is missing."""
    before, after = base.estimate.value, cell.estimate.value
    if before is None or after is None:
        return ""
    scale = cell_scale(comparison, None)
    texts = [short(value / scale.scale) for value in (before, after)]
    return f"{texts[0]}{SPACE}→{SPACE}{texts[1]}{SPACE}{scale.symbol}".rstrip()


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
