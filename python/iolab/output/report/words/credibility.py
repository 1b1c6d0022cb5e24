# SPDX-License-Identifier: Apache-2.0
"""How far the numbers can be trusted, in words: verdicts, repetitions, what was left out, noise
floor, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iolab.base.verdict import Level
from iolab.studies.compare.model import CONFOUNDED, WITHOUT_METRIC, Comparison
from iolab.studies.results.evidence.model import Run

from ..model.payload import Sentence
from .phrases import change_text, count_text, list_text

MOST_RUNS = 3
"""Runs named in one sentence; more are counted."""

STATED_HERE = {"one-variant", "unjudged", "one-block", "dropped", CONFOUNDED, WITHOUT_METRIC}
"""Warnings of the comparison that the report states in its own words."""


def trust(
    comparisons: Sequence[Comparison], runs: Sequence[Run], missing: Sequence[str] = ()
) -> list[Sentence]:
    """Verdicts, what is missing of the study, repetitions, what was left out, the noise floor and
    the comparison's own warnings."""
    sentences = [
        *verdict_sentences(runs),
        *(Sentence(text=_full_stop(text), tone="caution", code="missing") for text in missing),
    ]
    changes = [
        cell.change
        for comparison in comparisons
        for cell in comparison.cells
        if cell.change is not None
    ]
    if changes and all(change.low is None and change.reason is None for change in changes):
        sentences.append(
            Sentence(
                tone="caution",
                code="one-pair",
                text="Every cell has one pair of runs: there is no interval and no test, so "
                "nothing here says which changes are more than noise. Repetitions would.",
            )
        )
    dropped = max(
        (
            sum(
                cell.change.dropped - cell.change.without
                for cell in comparison.cells
                if cell.change
            )
            for comparison in comparisons
        ),
        default=0,
    )
    if dropped:
        is_by_sessions = any(change.sessions is not None for change in changes)
        what = count_text(dropped, "run" if is_by_sessions else "pair")
        why = "INVALID, or without a run of the other arm"
        sentences.append(
            Sentence(
                tone="caution",
                text=f"{what} left out: {why}."
                if is_by_sessions
                else f"{what} left the estimates because one side was INVALID or missing.",
            )
        )
    for comparison in comparisons:
        if comparison.noise_floor is not None:
            low, high = comparison.noise_floor
            text = (
                f"{comparison.metric.title}: where nothing differs (the baseline against itself) cells still show "
                f"{change_text(low, comparison)} to {change_text(high, comparison)}."
            )
            alarms, cells = comparison.false_alarms
            if cells:
                text += (
                    f" {alarms} of {count_text(cells, 'cell')} raised a false alarm; stated is at most "
                    f"{100 * comparison.alpha:g} % of studies with any."
                )
            sentences.append(Sentence(text=text, section=comparison.metric.name))
    saturated = _count_saturated(comparisons)
    if saturated:
        sentences.append(
            Sentence(
                text=f"The offered rate was not reached in {count_text(saturated, 'cell')} (saturated, marked)."
            )
        )
    return [
        *sentences,
        *(
            Sentence(text=_full_stop(text), tone="caution", code=code)
            for text, code in _warnings(comparisons)
        ),
    ]


def _warnings(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """Text and code of each warning once; one about several metrics names all of them."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for comparison in comparisons:
        prefix = f"{comparison.metric.name}: "
        for warning in comparison.warnings:
            if warning.code not in STATED_HERE:
                text = warning.text.removeprefix(prefix)
                names = metrics.setdefault((text, warning.code), [])
                if warning.text.startswith(prefix):
                    names.append(comparison.metric.name)
    return [
        (f"{list_text(names)}: {text}" if names else text, code)
        for (text, code), names in metrics.items()
    ]


def _count_saturated(comparisons: Sequence[Comparison]) -> int:
    places = {
        (cell.table, cell.row, cell.col, cell.variant)
        for comparison in comparisons
        for cell in comparison.cells
        if cell.saturated
    }
    return len(places)


def verdict_sentences(runs: Sequence[Run]) -> list[Sentence]:
    """How many runs have which level, and why those that aren't OK are not."""
    if not runs:
        return [Sentence(text="There are no runs.", tone="caution", code="verdicts")]
    by_level = {level: [run for run in runs if run.verdict.level is level] for level in Level}
    if len(by_level[Level.UNJUDGED]) == len(runs):
        text = (
            f"All {len(runs)} cells are published numbers: without evidence, so they are UNJUDGED."
        )
        if all(run.plan.status != "published" for run in runs):
            text = f"All {count_text(len(runs), 'run')} are UNJUDGED: there was no evidence to judge them by."
        return [Sentence(text=text, tone="caution", code="verdicts")]
    if len(by_level[Level.OK]) == len(runs):
        return [
            Sentence(
                text="The only run passed every gate."
                if len(runs) == 1
                else f"All {len(runs)} runs passed every gate.",
                code="verdicts",
            )
        ]
    counts = [f"{len(reasons)} {level.value}" for level, reasons in by_level.items() if reasons]
    sentences = [
        Sentence(text=f"Of {count_text(len(runs), 'run')}, {list_text(counts)}.", code="verdicts")
    ]
    if invalid := by_level[Level.INVALID]:
        everything = " Nothing is left to estimate from." if len(invalid) == len(runs) else ""
        sentences.append(
            Sentence(
                tone="caution",
                code="invalid",
                text=f"INVALID runs enter no estimate: {reason_counts(invalid, Level.INVALID)}.{everything}",
            )
        )
    if suspect := by_level[Level.SUSPECT]:
        sentences.append(
            Sentence(
                tone="caution",
                code="suspect",
                text=f"SUSPECT runs count and are marked: {reason_counts(suspect, Level.SUSPECT)}.",
            )
        )
    return sentences


def reason_counts(runs: Iterable[Run], level: Level) -> str:
    """`stall in 5 runs (0012-ab, 0044-cd, ...)`: which gates brought runs to a level, most frequent
    first."""
    runs_of_code: dict[str, list[str]] = {}
    for run in runs:
        for code in dict.fromkeys(
            reason.code for reason in run.verdict.reasons if reason.level is level
        ):
            runs_of_code.setdefault(code, []).append(run.id)
    ordered = sorted(runs_of_code.items(), key=lambda item: -len(item[1]))
    return (
        "; ".join(
            f"{code} in {count_text(len(ids), 'run')} ({list_text(ids, MOST_RUNS)})"
            for code, ids in ordered
        )
        or "no reason recorded"
    )


def _full_stop(text: str) -> str:
    """A warning as a sentence; a metric that it begins with keeps its name."""
    first = text.split(" ", 1)[0]
    sentence = text if not first.isalpha() else text[:1].upper() + text[1:]
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
