"""The summary in words, generated from the numbers: what changed, how sure that is, and what to know before believing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..compare.model import Cell, Change, Comparison, Summary
from ..results.model import Run
from ..units import format_number, readable_unit
from ..verdict import Level
from .payload import Sentence, SummaryPart, Tone
from .wording import change_text, change_with_interval, count_text, list_text, place_text

MOST_RUNS = 3
"""Runs named in one sentence; more are counted."""

SAID_HERE = {"one-variant", "unjudged", "one-block", "dropped"}
"""Warnings of the comparison that the summary says in words of its own."""


def summarise(comparisons: Sequence[Comparison], runs: Sequence[Run]) -> list[SummaryPart]:
    """What a reader should know first: each variant against the baseline, then how far the numbers can be trusted.

    Args:
        comparisons: one per metric that leads the report, in report order.
        runs: every run, whether or not it counts.
    """
    parts = []
    baseline = comparisons[0].baseline if comparisons else ""
    for variant in comparisons[0].variants if comparisons else ():
        if variant != baseline:
            sentences = [sentence for comparison in comparisons for sentence in against_baseline(comparison, variant)]
            parts.append(
                SummaryPart(
                    title=f"{variant} against {baseline}",
                    sentences=sentences or [Sentence(text="No cell was measured on both sides.", tone="caution")],
                )
            )
    if not parts:
        sentences = [sentence for comparison in comparisons for sentence in level_alone(comparison)]
        only = list_text(sorted({run.variant for run in runs}))
        parts.append(
            SummaryPart(title=f"{only}: nothing to compare with" if only else "No runs", sentences=sentences)
        )
    parts.append(SummaryPart(title="How far to trust this", sentences=trust(comparisons, runs)))
    return parts


def against_baseline(comparison: Comparison, variant: str) -> list[Sentence]:
    """One variant, one metric: how many cells moved which way, the geometric means, the extremes and what stays undecided."""
    cells = [cell for cell in comparison.cells if cell.variant == variant and cell.change is not None]
    changes = [cell.change for cell in cells if cell.change is not None]
    if not changes:
        return []
    metric = comparison.metric
    measured = [change for change in changes if change.low is not None]
    words = _decided_words(changes) if measured else _estimate_words(changes)
    means = _means_words(comparison, variant)
    extremes = _extremes_words(comparison, cells)
    text = f"{metric.title} {words}{means}{extremes}."
    return [Sentence(text=text, tone=_tone(measured or changes, bool(measured)), section=metric.name)]


def _decided_words(changes: Sequence[Change]) -> str:
    """Counts of cells with an interval; only decided ones rose or fell."""
    of = len(changes)
    rose = sum(change.decided and change.value > 0 for change in changes)
    fell = sum(change.decided and change.value < 0 for change in changes)
    single = sum(change.low is None for change in changes)
    open_ = of - rose - fell - single
    if not rose and not fell:
        words = f"shows no decided change in any of {count_text(of, 'cell')}"
        needed = [change.blocks_needed for change in changes if not change.decided and change.blocks_needed]
        if needed and of == 1:
            words += f" (a change of this size would need {count_text(min(needed), 'block')})"
        return words + (f", {single} without an interval" if single else "")
    parts = [f"{word} in {number}" for word, number in (("rose", rose), ("fell", fell)) if number]
    words = f"{' and '.join(parts)} of {count_text(of, 'cell')}"
    if open_:
        words += f", undecided in {open_}"
    return words + (f", {single} without an interval" if single else "")


def _estimate_words(changes: Sequence[Change]) -> str:
    """Counts where every cell stands on a single pair: estimates, of which nothing is decided."""
    of = len(changes)
    rose = sum(change.value > 0 for change in changes)
    fell = sum(change.value < 0 for change in changes)
    parts = [f"{word} in {number}" for word, number in (("is higher", rose), ("lower", fell)) if number]
    if not parts:
        return f"is the same in {count_text(of, 'cell')}"
    return f"{' and '.join(parts).replace('lower', 'is lower', 0 if rose else 1)} of {count_text(of, 'cell')}"


def _means_words(comparison: Comparison, variant: str) -> str:
    """The geometric mean change, or its span over the columns: one is never averaged over columns (block sizes differ)."""
    means = [
        summary
        for summary in comparison.summaries
        if summary.variant == variant and summary.change is not None and summary.cells > 1
    ]
    if not means:
        return ""
    name = "geometric mean" if comparison.metric.change == "ratio" else "mean difference"
    if len(means) == 1:
        only = means[0].change
        assert only is not None
        return f"; {name} {change_with_interval(only, comparison)}"
    lowest, highest = min(means, key=_summary_value), max(means, key=_summary_value)
    ends = [
        f"{change_text(_summary_value(mean), comparison)} ({_column_text(comparison, mean)})"
        for mean in (lowest, highest)
    ]
    return f"; {name} per column from {ends[0]} to {ends[1]}"


def _summary_value(summary: Summary) -> float:
    return summary.change.value if summary.change is not None else 0.0


def _column_text(comparison: Comparison, summary: Summary) -> str:
    names = [place_text(comparison.tables, summary.table), place_text(comparison.cols, summary.col)]
    return ", ".join(name for name in names if name) or "all"


def _extremes_words(comparison: Comparison, cells: Sequence[Cell]) -> str:
    """The cells at both ends, where there is more than one; decided ones only where there are any."""
    decided = [cell for cell in cells if cell.change is not None and cell.change.decided]
    among = decided or [cell for cell in cells if cell.change is not None and cell.change.low is None]
    if len(among) < 2:
        return ""
    ordered = sorted(among, key=lambda cell: cell.change.value if cell.change else 0.0)
    ends = [
        f"{change_text(cell.change.value, comparison)} at {cell_text(comparison, cell)}"
        for cell in (ordered[0], ordered[-1])
        if cell.change
    ]
    return f"; from {ends[0]} to {ends[1]}"


def cell_text(comparison: Comparison, cell: Cell) -> str:
    """`numjobs 64, disks 8`: where a cell stands."""
    axes = ((comparison.rows, cell.row), (comparison.cols, cell.col), (comparison.tables, cell.table))
    return ", ".join(text for names, key in axes if (text := place_text(names, key))) or "the only cell"


def _tone(changes: Sequence[Change], measured: bool) -> Tone:
    """Better or worse only where every decided cell agrees; estimates without an interval stay plain."""
    if not measured:
        return "plain"
    ways = {change.improves for change in changes if change.decided and change.improves is not None}
    return "plain" if len(ways) != 1 else "better" if ways.pop() else "worse"


def level_alone(comparison: Comparison) -> list[Sentence]:
    """A metric of a single variant: the span of its values."""
    values = [cell.estimate.value for cell in comparison.cells if cell.estimate.value is not None]
    if not values:
        return []
    symbol, scale = readable_unit(values, comparison.metric.unit)
    low, high = (f"{format_number(value / scale)} {symbol}".rstrip() for value in (min(values), max(values)))
    span = low if low == high else f"from {low} to {high}"
    return [
        Sentence(
            text=f"{comparison.metric.title}: {span} over {count_text(len(values), 'cell')}.",
            section=comparison.metric.name,
        )
    ]


def trust(comparisons: Sequence[Comparison], runs: Sequence[Run]) -> list[Sentence]:
    """Verdicts, repetitions, what was left out, the noise floor and the comparison's own warnings."""
    sentences = [*verdict_sentences(runs)]
    changes = [cell.change for comparison in comparisons for cell in comparison.cells if cell.change is not None]
    if changes and all(change.low is None for change in changes):
        sentences.append(
            Sentence(
                tone="caution",
                text="Every cell stands on one pair of runs: there is no interval and no test, so "
                "nothing here says which changes are more than noise. Repetitions would.",
            )
        )
    dropped = max(
        (sum(cell.change.dropped for cell in comparison.cells if cell.change) for comparison in comparisons),
        default=0,
    )
    if dropped:
        sentences.append(
            Sentence(
                tone="caution",
                text=f"{count_text(dropped, 'pair')} left the estimates because one side was INVALID or missing.",
            )
        )
    for comparison in comparisons:
        if comparison.noise_floor is not None:
            low, high = comparison.noise_floor
            text = (
                f"{comparison.metric.title}: where nothing differs (the baseline against itself) cells still show "
                f"{change_text(low, comparison)} to {change_text(high, comparison)}."
            )
            sentences.append(Sentence(text=text, section=comparison.metric.name))
    saturated = _saturated(comparisons)
    if saturated:
        sentences.append(
            Sentence(text=f"The offered rate was not reached in {count_text(saturated, 'cell')} (saturated, marked).")
        )
    seen: set[str] = set()
    for comparison in comparisons:
        for warning in comparison.warnings:
            if warning.text not in seen and warning.code not in SAID_HERE:
                seen.add(warning.text)
                sentences.append(Sentence(text=_full_stop(warning.text), tone="caution"))
    return sentences


def _saturated(comparisons: Sequence[Comparison]) -> int:
    places = {
        (cell.table, cell.row, cell.col, cell.variant)
        for comparison in comparisons
        for cell in comparison.cells
        if cell.saturated
    }
    return len(places)


def verdict_sentences(runs: Sequence[Run]) -> list[Sentence]:
    """How many runs stand at which level, and why those that aren't OK are not."""
    if not runs:
        return [Sentence(text="There are no runs.", tone="caution")]
    by_level = {level: [run for run in runs if run.verdict.level is level] for level in Level}
    if len(by_level[Level.UNJUDGED]) == len(runs):
        text = f"All {count_text(len(runs), 'value', 'values')} are published numbers: their evidence is not here, so they stand UNJUDGED."
        if all(run.plan.status != "published" for run in runs):
            text = f"All {count_text(len(runs), 'run')} are UNJUDGED: there was no evidence to judge them by."
        return [Sentence(text=text, tone="caution")]
    if len(by_level[Level.OK]) == len(runs):
        return [
            Sentence(
                text="The only run passed every gate."
                if len(runs) == 1
                else f"All {len(runs)} runs passed every gate."
            )
        ]
    counts = [f"{len(found)} {level.value}" for level, found in by_level.items() if found]
    sentences = [Sentence(text=f"Of {count_text(len(runs), 'run')}, {list_text(counts)}.")]
    if invalid := by_level[Level.INVALID]:
        everything = " Nothing is left to estimate from." if len(invalid) == len(runs) else ""
        sentences.append(
            Sentence(
                tone="caution",
                text=f"INVALID runs enter no estimate: {reason_counts(invalid, Level.INVALID)}.{everything}",
            )
        )
    if suspect := by_level[Level.SUSPECT]:
        sentences.append(
            Sentence(
                tone="caution", text=f"SUSPECT runs count and are marked: {reason_counts(suspect, Level.SUSPECT)}."
            )
        )
    return sentences


def reason_counts(runs: Iterable[Run], level: Level) -> str:
    """`stall in 5 runs (0012-ab, 0044-cd, ...)`: which gates brought runs to a level, most frequent first."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for code in dict.fromkeys(reason.code for reason in run.verdict.reasons if reason.level is level):
            found.setdefault(code, []).append(run.id)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return (
        "; ".join(f"{code} in {count_text(len(ids), 'run')} ({list_text(ids, MOST_RUNS)})" for code, ids in ordered)
        or "no reason recorded"
    )


def lead(comparison: Comparison) -> str:
    """One line under a metric's heading: what the numbers are and how they compare."""
    metric = comparison.metric
    way = {"higher": "higher is better", "lower": "lower is better", None: "no direction is better"}[metric.better]
    kind = (
        "geometric mean over runs; change as a ratio"
        if metric.change == "ratio"
        else "mean over runs; change as a difference"
    )
    return f"{kind}; {way}; intervals at {100 * comparison.confidence:g} %{_fixed_text(comparison.fixed)}."


def _fixed_text(fixed: Mapping[str, object]) -> str:
    return f"; throughout: {place_text(list(fixed), tuple(fixed.values()))}" if fixed else ""


def _full_stop(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
