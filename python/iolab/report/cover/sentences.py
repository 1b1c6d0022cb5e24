# SPDX-License-Identifier: Apache-2.0
"""One plain sentence about each quantity: how many cells changed, how far, and where most."""

from __future__ import annotations

from collections.abc import Sequence

from ...compare.model import Change
from ...compare.render.words import REASONS, change_number, change_unit, scale_for
from ...verdict import Level
from ..model.statements import Sentence, Tone
from ..sections.shades import least_step
from ..words.phrases import (
    SPACE,
    brief,
    brief_signed,
    change_with_interval,
    count_text,
    probability_text,
)
from .cells import sides_text
from .quantities import Placed, Quantity, place_of


def cover_sentence(quantity: Quantity) -> Sentence:
    """The sentence about one quantity. It begins with the title and leads to the section of its
    first comparison."""
    cells = list(quantity.cells.values())
    changed = [placed for placed in cells if placed[1].change is not None]
    significant = [placed for placed in changed if _change(placed).decided]
    tone: Tone = _tone(significant)
    if quantity.is_plain:
        text = _values_text(cells)
    elif not changed:
        text, tone = "no cell has a change", "caution"
    elif len(changed) == 1:
        text = _single_text(changed[0])
    else:
        text = _several_text(changed, significant)
    invalid = sum(cell.estimate.level is Level.INVALID for _, cell in cells)
    if invalid and (changed or quantity.is_plain):
        text += f"; {count_text(invalid, 'cell')} INVALID"
    return Sentence(
        text=f"{quantity.title}: {text}.", tone=tone, section=quantity.first.metric.name
    )


def _single_text(placed: Placed) -> str:
    """`968 → 811 1/s, −16.3 % [−18.5, −14.0], significant, q < 0.001`."""
    comparison, cell = placed
    change = _change(placed)
    base = comparison.cell(cell.table, cell.row, cell.col, comparison.baseline)
    values = "" if base is None else sides_text(comparison, base, cell)
    words = ", ".join(filter(None, [values, change_with_interval(change, comparison)]))
    if change.reason is not None:
        return f"{words}, {REASONS[change.reason]}"
    if change.low is None:
        return f"{words}, one pair of runs, no test"
    q = probability_text(change.q if change.q is not None else change.p)
    return f"{words}, {'significant' if change.decided else 'not significant'}, q {q}"


def _several_text(changed: Sequence[Placed], significant: Sequence[Placed]) -> str:
    """How many cells changed which way, the span of the changes and the places of the largest."""
    number = len(changed)
    if significant:
        counts = _counts_text(significant)
        return (
            f"significantly {counts} of {number} cells, {_span_text(significant)}"
            f"{_extremes_text(significant)}"
        )
    reasons = {_change(placed).reason for placed in changed}
    if None not in reasons:
        words = " and ".join(sorted(REASONS[reason] for reason in reasons if reason is not None))
        return f"no test in {number} cells ({words}); changes {_span_text(changed)}"
    if reasons == {None} and all(_change(placed).low is None for placed in changed):
        return f"{_untested_text(changed)}, {_span_text(changed)}{_extremes_text(changed)}; no test"
    text = f"no significant change in {number} cells, {_span_text(changed)}"
    sizes = [
        f"{brief(change_number(comparison.detectable, comparison))}{SPACE}{change_unit(comparison)}"
        for comparison, _ in changed
        if comparison.detectable is not None
        and (comparison.metric.change != "ratio" or comparison.detectable <= 10)
    ]
    return f"{text}; a change of about {sizes[0].rstrip()} would be found" if sizes else text


def _untested_text(changed: Sequence[Placed]) -> str:
    """`better by 5 % or more in 97 and worse in 12 of 176 cells`, for changes without a test.

    A fall counts as the rise that undoes it, as shades do: 5 % or more is 4.8 % or more down.
    """
    comparison = changed[0][0]
    step = least_step(comparison)
    least = f"{brief(change_number(step, comparison)).removesuffix('.0')}{SPACE}{change_unit(comparison)}"
    large = [placed for placed in changed if _depth(placed) >= step and _size(placed)]
    if not large:
        return f"no change of {least} or more in {len(changed)} cells"
    return f"{_counts_text(large, least if step else '')} of {len(changed)} cells"


def _counts_text(placed: Sequence[Placed], least: str = "") -> str:
    """`better in 5 and worse in 2`, `better by 5 % or more in 3`; `higher` and `lower` where
    neither is better."""
    has_direction = any(_change(item).improves is not None for item in placed)
    words = ("better", "worse") if has_direction else ("higher", "lower")
    up = sum(bool(_change(item).improves) if has_direction else _size(item) > 0 for item in placed)
    counts = zip(words, (up, len(placed) - up), strict=True)
    by = f" by {least} or more" if least else ""
    texts = [f"{word}{{}} in {number}" for word, number in counts if number]
    return " and ".join(text.format(by if not place else "") for place, text in enumerate(texts))


def _span_text(placed: Sequence[Placed]) -> str:
    """`−42 % to +8 %`."""
    ordered = sorted(placed, key=_size)
    low, high = _number_text(ordered[0]), _number_text(ordered[-1])
    unit = change_unit(placed[0][0])
    if low == high:
        return low
    return f"{low if unit == '%' else low.removesuffix(unit).rstrip()} to {high}"


def _extremes_text(placed: Sequence[Placed]) -> str:
    """The places of the largest loss and the largest gain; without a better direction that of the
    largest change."""
    losses = [item for item in placed if _change(item).improves is False]
    gains = [item for item in placed if _change(item).improves]
    kinds = {"loss": losses, "gain": gains} if losses or gains else {"change": list(placed)}
    several = len({cell.variant for _, cell in placed}) > 1
    text = ""
    for kind, among in kinds.items():
        if among:
            largest = max(among, key=_depth)
            text += f"; largest {kind} {_number_text(largest)} at {place_of(*largest, several)}"
    return text


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
        return ends[0] + (f" in {len(ordered)} cells" if len(ordered) > 1 else "")
    better = ordered[0][0].metric.better
    best = ordered[0 if better == "lower" else -1]
    word = {"higher": "best", "lower": "best", None: "highest"}[better]
    return f"{ends[0]} to {ends[1]} in {len(ordered)} cells; {word}: {place_of(*best)}"


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
