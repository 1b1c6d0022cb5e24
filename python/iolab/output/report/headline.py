# SPDX-License-Identifier: Apache-2.0
"""The headline of results: what is compared first, with sentences and colours of the report's cover.
No chart is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolab.base.errors import UsageError
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Comparison

from .cover.cards import cover, cover_sentences
from .cover.obstacles import obstacles
from .model.metric_selection import chosen_metrics
from .model.source import Progress, Source
from .model.statements import Sentence
from .model.variant_selection import select
from .page.cover_html import cell_classes

MOST_MATRICES = 4
MOST_CELLS = 300
"""Cells of a matrix of colours; larger ones are left out."""


@dataclass(frozen=True)
class Headline:
    """Sentences of the cover, after what can't be compared. matrices: those of its first
    quantities, as a title and rows of cells. Cells are classes of the page, empty where nothing was
    measured."""

    sentences: list[Sentence]
    matrices: list[tuple[str, list[list[str]]]]


def headline(results: Source, most: int) -> Headline:
    """The first `most` sentences and the first matrices of the cover, in its order."""
    comparisons = _shown_comparisons(results)
    return Headline(_sentences(comparisons, results)[:most], _matrices(comparisons, results))


def headline_sentences(results: Source) -> list[Sentence]:
    """The sentences of the cover, in its order, after what can't be compared."""
    return _sentences(_shown_comparisons(results), results)


def _shown_comparisons(results: Source) -> list[Comparison]:
    leading, _ = chosen_metrics(results.metrics(), results.runs)
    comparisons = compare_metrics(results, leading)
    selection = select(comparisons)
    if selection is not None:
        comparisons = [selection.of(comparison) for comparison in comparisons]
    return main_comparisons(comparisons)


def _sentences(comparisons: Sequence[Comparison], results: Source) -> list[Sentence]:
    is_running = results.standing is not None and results.standing.is_running
    blocked = [
        Sentence(text=obstacle.text, tone="caution", code="obstacle")
        for obstacle in (
            obstacles(comparisons, results.runs, is_running=is_running) if results.runs else []
        )
    ]
    return [*blocked, *cover_sentences(comparisons)]


def _matrices(
    comparisons: Sequence[Comparison], results: Source
) -> list[tuple[str, list[list[str]]]]:
    cards = cover(comparisons, results.runs, []).cards if comparisons else []
    matrices = [
        (
            f"{card.title}: {matrix.title}" if matrix.title else card.title,
            [[cell_classes(cell) if cell else "" for cell in row] for row in matrix.cells],
        )
        for card in cards
        for matrix in card.matrices
        if 0 < len(matrix.rows) * len(matrix.columns) <= MOST_CELLS
    ]
    return matrices[:MOST_MATRICES]


def compare_metrics(
    results: Source, names: Sequence[str], begin: Progress | None = None
) -> list[Comparison]:
    """A comparison per metric; a metric that cannot be compared (no run that counts has it) is left
    out. `begin` is called with each step that begins."""
    comparisons = []
    for name in names:
        if begin is not None:
            begin(f"comparing {name}")
        try:
            comparisons.append(compare(results.runs, name, baseline=baseline_of(results)))
        except UsageError:
            continue
    return [
        comparison
        for comparison in comparisons
        if any(cell.estimate.value is not None for cell in comparison.cells)
    ]


def main_comparisons(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that cover and summary state.

    Throughput is left to its table where the rate says the same, and so is the maximum, a single
    I/O of each run.
    """
    names = {comparison.metric.name for comparison in comparisons}

    def repeats(name: str) -> bool:
        return name.endswith(".max") or (
            name.endswith(".bw") and name.removesuffix("bw") + "iops" in names
        )

    return [
        comparison for comparison in comparisons if not repeats(comparison.metric.name)
    ] or list(comparisons)


def baseline_of(results: Source) -> str | None:
    """The manifest's baseline where a run of it is there; else whichever variant comes first."""
    name = results.manifest.baseline
    return name if any(run.variant == name for run in results.runs) else None
