# SPDX-License-Identifier: Apache-2.0
"""The cover: changes of each quantity as a matrix over the factors, or plain values of one variant.

Rows and columns are those of the comparison; each further factor level and each variant has a
matrix of its own. A study with at most one factor has one matrix of all quantities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from iolab.base.verdict import Level
from iolab.studies.compare.model import Change, Comparison, Key
from iolab.studies.compare.render.words import REASONS, change_number, change_unit, scale_for
from iolab.studies.results.evidence.model import Run

from ..model.cover_payload import Cover, CoverCard, CoverCell, CoverMatrix
from ..model.statements import Sentence, Tone
from ..sections.shades import least_step, legend, steps_text
from ..words.phrases import (
    SPACE,
    brief,
    brief_signed,
    change_with_interval,
    count_text,
    key_text,
    list_text,
    place_text,
    probability_text,
)
from .cells import CellMaker, sides_text
from .obstacles import obstacles
from .quantities import Place, Placed, Quantity, bound_cells, place_of, quantities_of

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
    comparisons: Sequence[Comparison],
    runs: Sequence[Run],
    cautions: Sequence[Sentence],
    *,
    is_running: bool = False,
) -> Cover:
    """The cover of a report.

    Args:
        comparisons: of the metrics that lead the report, with equal axes, in report order.
        runs: all runs, in the order of the payload.
        cautions: what a reader must know before the numbers.
        is_running: whether the study is being run.
    """
    quantities = quantities_of(comparisons, MOST_CARDS)
    maker = CellMaker(runs)
    leading = [quantity.first for quantity in quantities]
    if quantities and all(not comparison.cols and not comparison.tables for comparison in leading):
        cards = [_joint_card(quantities, maker)]
    else:
        cards = list(_cards(quantities, maker))
    has_direction = any(comparison.metric.better for comparison in comparisons)
    if all(run.verdict.level is Level.INVALID for run in runs):
        # the obstacle says it, with reasons
        cautions = [item for item in cautions if item.code != "verdicts"]
    return Cover(
        title=_title(leading[0]) if leading else "Answer",
        obstacles=obstacles(comparisons, runs, is_running=is_running),
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
            f"{_places_text(significant)}"
        )
    reasons = {_change(placed).reason for placed in changed}
    if None not in reasons:
        words = " and ".join(sorted(REASONS[reason] for reason in reasons if reason is not None))
        return f"no test in {number} cells ({words}); changes {_span_text(changed)}"
    if reasons == {None} and all(_change(placed).low is None for placed in changed):
        return f"{_untested_text(changed)}, {_span_text(changed)}{_places_text(changed)}; no test"
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


def _places_text(placed: Sequence[Placed]) -> str:
    """The places of the largest loss and the largest gain; without a better direction that of the
    largest change. The number is not repeated where the span has only one, and one cell has only
    its place."""
    several = len({cell.variant for _, cell in placed}) > 1
    if len(placed) == 1:
        return f" at {place_of(*placed[0], several)}"
    losses = [item for item in placed if _change(item).improves is False]
    gains = [item for item in placed if _change(item).improves]
    kinds = {"loss": losses, "gain": gains} if losses or gains else {"change": list(placed)}
    has_one_number = len({_number_text(item) for item in placed}) == 1
    text = ""
    for kind, among in kinds.items():
        if among:
            largest = max(among, key=_depth)
            number = "" if has_one_number else f" {_number_text(largest)}"
            text += f"; largest {kind}{number} at {place_of(*largest, several)}"
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
