# SPDX-License-Identifier: Apache-2.0
"""One plain sentence about each quantity: how many cells changed, how far, and where most."""

from __future__ import annotations

from collections.abc import Sequence

from ...compare.model import Cell, Change, Comparison
from ...compare.render.words import REASONS, change_number, change_unit, scale_for
from ...verdict import Level
from ..model.statements import Sentence, Tone
from .phrases import (
    SPACE,
    brief,
    brief_signed,
    change_with_interval,
    count_text,
    place_text,
    probability_text,
)

Placed = tuple[Comparison, Cell]
"""A cell with the comparison that it is of."""


def cover_sentence(title: str, cells: Sequence[Placed], section: str) -> Sentence:
    """The sentence about one quantity.

    Args:
        title: of the quantity; the sentence begins with it.
        cells: of the variants that are compared; of the only variant where there is one alone.
        section: of the page, which the sentence leads to.
    """
    text, tone = _said(cells)
    return Sentence(text=f"{title}: {text}.", tone=tone, section=section)


def _said(cells: Sequence[Placed]) -> tuple[str, Tone]:
    if all(cell.variant == comparison.baseline for comparison, cell in cells):
        return _values_text(cells), "plain"
    changed = [(comparison, cell) for comparison, cell in cells if cell.change is not None]
    if not changed:
        return "no cell has a change", "caution"
    significant = [placed for placed in changed if _change(placed).decided]
    if len(changed) == 1:
        text, tone = _single_text(changed[0]), _tone(significant)
    elif significant:
        text = (
            f"{len(significant)} of {len(changed)} cells changed significantly, "
            f"{_span_text(significant)}{_extremes_text(significant, len(changed))}"
        )
        tone = _tone(significant)
    else:
        text, tone = _open_text(changed), "plain"
    return text + _without_text(cells), tone


def _single_text(placed: Placed) -> str:
    comparison, change = placed[0], _change(placed)
    words = change_with_interval(change, comparison)
    if change.reason is not None:
        return f"{words}, {REASONS[change.reason]}"
    if change.low is None:
        return f"{words}, one pair of runs, no test"
    q = probability_text(change.q if change.q is not None else change.p)
    verdict = "changed significantly" if change.decided else "no significant change"
    return f"{verdict}, {words}, q {q}"


def _open_text(changed: Sequence[Placed]) -> str:
    """Changes without a significant one among them: why, and what would have been seen."""
    cells = f"{len(changed)} cells"
    reasons = {_change(placed).reason for placed in changed}
    if reasons == {None} and all(_change(placed).low is None for placed in changed):
        return (
            f"one pair of runs in each of {cells}, no test; changes {_span_text(changed)}"
            f"{_extremes_text(changed, len(changed))}"
        )
    if None not in reasons:
        words = " and ".join(sorted(REASONS[reason] for reason in reasons if reason is not None))
        return f"no test in {cells} ({words}); changes {_span_text(changed)}"
    text = f"no significant change in {cells}, {_span_text(changed)}"
    sizes = [
        f"{brief(change_number(comparison.detectable, comparison))}{SPACE}{change_unit(comparison)}"
        for comparison, _ in changed
        if comparison.detectable is not None
        and (comparison.metric.change != "ratio" or comparison.detectable <= 10)
    ]
    return f"{text}; a change of about {sizes[0].rstrip()} would be found" if sizes else text


def _span_text(placed: Sequence[Placed]) -> str:
    """`−42 % to +8 %`."""
    ordered = sorted(placed, key=_size)
    low, high = _number_text(ordered[0]), _number_text(ordered[-1])
    unit = change_unit(placed[0][0])
    if low == high:
        return low
    return f"{low if unit == '%' else low.removesuffix(unit).rstrip()} to {high}"


def _extremes_text(placed: Sequence[Placed], of: int) -> str:
    """The place of the largest loss, or of the largest gain where nothing is lost; without a better
    direction that of the largest change."""
    if of < 2:
        return ""
    losses = [cell for cell in placed if _change(cell).improves is False]
    gains = [cell for cell in placed if _change(cell).improves]
    kind, among = (
        ("loss", losses) if losses else ("gain", gains) if gains else ("change", list(placed))
    )
    largest = max(among, key=_depth)
    several = len({cell.variant for _, cell in placed}) > 1
    return f"; largest {kind}: {_number_text(largest)} at {place_of(*largest, several)}"


def place_of(comparison: Comparison, cell: Cell, several: bool = False) -> str:
    """`numjobs 8, disks 2`, with the variant where there are `several`."""
    axes = (
        (comparison.rows, cell.row),
        (comparison.cols, cell.col),
        (comparison.tables, cell.table),
    )
    parts = [cell.variant if several else "", *(place_text(names, key) for names, key in axes)]
    return ", ".join(part for part in parts if part) or "the only cell"


def _values_text(cells: Sequence[Placed]) -> str:
    ordered = sorted(
        (placed for placed in cells if placed[1].estimate.value is not None),
        key=lambda placed: placed[1].estimate.value or 0.0,
    )
    if not ordered:
        return "no value"
    ends = [
        f"{scale.value(cell.estimate.value)}{SPACE}{scale.symbol}".rstrip()
        for comparison, cell in (ordered[0], ordered[-1])
        for scale in (scale_for(comparison, None),)
    ]
    if len(ordered) == 1 or ends[0] == ends[1]:
        return (
            ends[0]
            + (f" in {len(ordered)} cells" if len(ordered) > 1 else "")
            + _without_text(cells)
        )
    better = ordered[0][0].metric.better
    best = ordered[0 if better == "lower" else -1]
    word = {"higher": "best", "lower": "best", None: "highest"}[better]
    return (
        f"{ends[0]} to {ends[1]} in {len(ordered)} cells; {word}: {place_of(*best)}"
        f"{_without_text(cells)}"
    )


def _without_text(cells: Sequence[Placed]) -> str:
    """Cells that have no number because their runs are INVALID."""
    number = sum(cell.estimate.level is Level.INVALID for _, cell in cells)
    return f"; {count_text(number, 'cell')} INVALID" if number else ""


def _tone(significant: Sequence[Placed]) -> Tone:
    ways = {_change(placed).improves for placed in significant} - {None}
    return "plain" if len(ways) != 1 else "better" if ways.pop() else "worse"


def _change(placed: Placed) -> Change:
    change = placed[1].change
    assert change is not None
    return change


def _size(placed: Placed) -> float:
    return _change(placed).value


def _depth(placed: Placed) -> float:
    """How large a change is: a ratio and its inverse are equally large."""
    value = _size(placed)
    if placed[0].metric.change != "ratio" or value >= 0:
        return abs(value)
    return 1 / max(1 + value, 1e-12) - 1


def _number_text(placed: Placed) -> str:
    comparison = placed[0]
    number = change_number(_size(placed), comparison)
    return f"{brief_signed(number)}{SPACE}{change_unit(comparison)}".rstrip()
