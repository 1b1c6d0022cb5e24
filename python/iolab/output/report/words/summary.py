# SPDX-License-Identifier: Apache-2.0
"""The summary in words, generated from the numbers: what changed, how sure that is, and what to
know before believing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from iolab.studies.compare.model import CONFOUNDED, Cell, Change, Comparison, Summary
from iolab.studies.compare.render.words import REASONS, scale_for
from iolab.studies.results.evidence.model import Run

from ..model.payload import Sentence, SummaryPart, Tone
from .credibility import trust
from .phrases import (
    MINUS,
    change_text,
    change_with_interval,
    count_text,
    list_text,
    place_text,
    probability_text,
)

MOST_TABLES, MOST_BY_TABLE = 6, 2
"""Tables that are described one by one, and the metrics (the first of the report) of which they
are."""


def summarise(
    comparisons: Sequence[Comparison], runs: Sequence[Run], missing: Sequence[str] = ()
) -> list[SummaryPart]:
    """What a reader should know first: each variant against the baseline, then how far the numbers
    can be trusted.

    Args:
        comparisons: one per metric that leads the report, in report order.
        runs: every run, whether or not it counts.
        missing: what is not there of the study, a line each.
    """
    parts = []
    baseline = comparisons[0].baseline if comparisons else ""
    for variant in comparisons[0].variants if comparisons else ():
        if variant != baseline:
            sentences = [
                sentence
                for place, comparison in enumerate(comparisons)
                for sentence in against_baseline(
                    comparison, variant, by_table=place < MOST_BY_TABLE
                )
            ]
            parts.append(
                SummaryPart(
                    title=f"{variant} against {baseline}",
                    sentences=sentences
                    or [Sentence(text="No cell was measured on both sides.", tone="caution")],
                )
            )
    if not parts:
        sentences = [sentence for comparison in comparisons for sentence in level_alone(comparison)]
        only = list_text(sorted({run.variant for run in runs}))
        parts.append(
            SummaryPart(
                title=f"{only}: nothing to compare with" if only else "No runs", sentences=sentences
            )
        )
    parts.append(
        SummaryPart(title="How far to trust this", sentences=trust(comparisons, runs, missing))
    )
    return parts


def against_baseline(
    comparison: Comparison, variant: str, *, by_table: bool = True
) -> list[Sentence]:
    """One variant, one metric: how many cells moved which way, the geometric means, the extremes,
    what is not significant.

    Tables are unlike things (a medium, a block size): where there are several, each is described
    separately below the whole if `by_table` requests it.
    """
    cells = [
        cell for cell in comparison.cells if cell.variant == variant and cell.change is not None
    ]
    if not cells:
        return []
    title, section = comparison.title, comparison.metric.name
    tables = [
        level for level in comparison.table_levels if any(cell.table == level for cell in cells)
    ]
    if not by_table or not 1 < len(tables) <= MOST_TABLES:
        return [
            Sentence(
                text=f"{title}: {_describe(comparison, variant, cells)}.",
                tone=_tone(cells),
                section=section,
            )
        ]
    sentences = [
        Sentence(
            text=f"{title}: {_moved_words(comparison, cells)}.", tone=_tone(cells), section=section
        )
    ]
    for level in tables:
        cells_of_level = [cell for cell in cells if cell.table == level]
        text = f"{place_text(comparison.tables, level)}: {_describe(comparison, variant, cells_of_level)}."
        sentences.append(
            Sentence(text=text, tone=_tone(cells_of_level), section=section, under=True)
        )
    return sentences


def _describe(comparison: Comparison, variant: str, cells: Sequence[Cell]) -> str:
    tables = {cell.table for cell in cells}
    means = [
        summary
        for summary in comparison.summaries
        if summary.variant == variant
        and summary.table in tables
        and summary.change is not None
        and summary.cells > 1
    ]
    return f"{_moved_words(comparison, cells)}{_means_words(comparison, means)}{_extremes_words(comparison, cells)}"


def _moved_words(comparison: Comparison, cells: Sequence[Cell]) -> str:
    changes = [cell.change for cell in cells if cell.change is not None]
    if len(changes) == 1 and changes[0].low is not None:
        return _single_words(comparison, changes[0])
    return (
        _decided_words(changes)
        if any(change.low is not None or change.reason is not None for change in changes)
        else _estimate_words(comparison, changes)
    )


def _single_words(comparison: Comparison, change: Change) -> str:
    """The change of the only cell, with its interval and p."""
    tested = "" if change.p is None else f", p {probability_text(change.p)}"
    if change.q is not None and change.q != change.p:
        tested = f", q {probability_text(change.q)}"
    words = change_with_interval(change, comparison) + tested
    if change.decided:
        return words
    if change.reason is not None:
        label = " within session only" if change.reason == CONFOUNDED else ""
        return f"{REASONS[change.reason]}: {words}{label}"
    unit = count_text(change.blocks_needed or 0, "block")
    if change.sessions is not None:
        unit = f"{count_text(change.blocks_needed or 0, 'session')} of each arm"
    needed = (
        "" if change.blocks_needed is None else f"; about {unit} would confirm one of this size"
    )
    return f"no significant change: {words}{needed}"


def _decided_words(changes: Sequence[Change]) -> str:
    """Counts of cells with an interval, by the direction of significant changes."""
    of = len(changes)
    reasons = {change.reason for change in changes}
    if len(reasons) == 1 and (reason := reasons.pop()) is not None:
        return f"{REASONS[reason]} in {'the only cell' if of == 1 else f'each of {of} cells'}"
    rose = sum(change.decided and change.value > 0 for change in changes)
    fell = sum(change.decided and change.value < 0 for change in changes)
    single = sum(change.low is None and change.reason is None for change in changes)
    confounded = [REASONS[change.reason] for change in changes if change.reason is not None]
    open_ = of - rose - fell - single - len(confounded)
    without = f", {single} without an interval" if single else ""
    without += "".join(f", {reason} in {number}" for reason, number in Counter(confounded).items())
    if not rose and not fell:
        return f"no significant change ({count_text(of, 'cell')}){without}"
    parts = [
        f"{word} in {number}" for word, number in (("higher", rose), ("lower", fell)) if number
    ]
    words = f"significantly {' and '.join(parts)} of {count_text(of, 'cell')}"
    if open_:
        words += f", not significant in {open_}"
    return words + without


def _estimate_words(comparison: Comparison, changes: Sequence[Change]) -> str:
    """Counts where every cell has a single pair: estimates, without a test.

    A change that is written as zero counts as the same: its sign says nothing.
    """
    texts = [change_text(change.value, comparison) for change in changes]
    higher, lower = (
        sum(text.startswith("+") for text in texts),
        sum(text.startswith(MINUS) for text in texts),
    )
    counts = {"higher": higher, "lower": lower, "the same": len(texts) - higher - lower}
    words = list_text([f"{word} in {number}" for word, number in counts.items() if number])
    return f"{words} of {count_text(len(changes), 'cell')}"


def _means_words(comparison: Comparison, means: Sequence[Summary]) -> str:
    """The geometric mean change, or its span over the columns: none is taken over columns, block
    sizes may differ."""
    if not means:
        return ""
    name = "geometric mean" if comparison.metric.change == "ratio" else "mean difference"
    if len(means) == 1:
        only = means[0].change
        return "" if only is None else f"; {name} {change_with_interval(only, comparison)}"
    lowest, highest = min(means, key=_summary_value), max(means, key=_summary_value)
    several = len({mean.table for mean in means}) > 1
    ends = [
        f"{change_text(_summary_value(mean), comparison)} ({_column_text(comparison, mean, several)})"
        for mean in (lowest, highest)
    ]
    return f"; {name} per column from {ends[0]} to {ends[1]}"


def _summary_value(summary: Summary) -> float:
    return summary.change.value if summary.change is not None else 0.0


def _column_text(comparison: Comparison, summary: Summary, several: bool) -> str:
    """The place of a mean; its table is named only where means of several are listed."""
    names = [
        place_text(comparison.tables, summary.table) if several else "",
        place_text(comparison.cols, summary.col),
    ]
    return ", ".join(name for name in names if name) or "all"


def _extremes_words(comparison: Comparison, cells: Sequence[Cell]) -> str:
    """The cells at both ends, where there is more than one; significant ones only where there are
    any."""
    decided = [cell for cell in cells if cell.change is not None and cell.change.decided]
    among = decided or [
        cell for cell in cells if cell.change is not None and cell.change.low is None
    ]
    if len(among) < 2:
        return ""
    ordered = sorted(among, key=lambda cell: cell.change.value if cell.change else 0.0)
    has_tables = len({cell.table for cell in cells}) > 1
    ends = [
        f"{change_text(cell.change.value, comparison)} at {cell_text(comparison, cell, has_tables)}"
        for cell in (ordered[0], ordered[-1])
        if cell.change
    ]
    return f"; cells from {ends[0]} to {ends[1]}"


def cell_text(comparison: Comparison, cell: Cell, several: bool = False) -> str:
    """`numjobs 64, disks 8`: the place of a cell; its table is named only where cells of several
    are listed."""
    axes = [(comparison.rows, cell.row), (comparison.cols, cell.col)]
    if several:
        axes.append((comparison.tables, cell.table))
    return (
        ", ".join(text for names, key in axes if (text := place_text(names, key)))
        or "the only cell"
    )


def _tone(cells: Sequence[Cell]) -> Tone:
    """Better or worse only where every significant change agrees; plain otherwise."""
    changes = [cell.change for cell in cells if cell.change is not None and cell.change.decided]
    ways = {change.improves for change in changes if change.improves is not None}
    return "plain" if len(ways) != 1 else "better" if ways.pop() else "worse"


def level_alone(comparison: Comparison) -> list[Sentence]:
    """A metric of a single variant: the span of its values."""
    values = [cell.estimate.value for cell in comparison.cells if cell.estimate.value is not None]
    if not values:
        return []
    scale = scale_for(comparison, None)
    low, high = (
        f"{scale.value(value)} {scale.symbol}".rstrip() for value in (min(values), max(values))
    )
    span = low if low == high else f"from {low} to {high}"
    return [
        Sentence(
            text=f"{comparison.title}: {span} over {count_text(len(values), 'cell')}.",
            section=comparison.metric.name,
        )
    ]


def lead(comparison: Comparison) -> str:
    """One line under a metric's heading: what the numbers are and how they compare."""
    metric = comparison.metric
    way = {
        "higher": "higher is better",
        "lower": "lower is better",
        None: "no direction is better",
    }[metric.better]
    kind = (
        "geometric mean over runs; change as a ratio"
        if metric.change == "ratio"
        else "mean over runs; change as a difference"
    )
    return f"{kind}; {way}; intervals at {100 * comparison.confidence:g} %{_fixed_text(comparison.fixed)}."


def _fixed_text(fixed: Mapping[str, object]) -> str:
    return f"; throughout: {place_text(list(fixed), tuple(fixed.values()))}" if fixed else ""
