# SPDX-License-Identifier: Apache-2.0
"""Which variants a report draws where there are more than a chart can show.

Every variant is compared, and the tests are corrected for all of them. Charts, tables and sentences
are of the baseline and of the variants that matter most; the table of runs has every run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from iolab.studies.compare.model import Cell, Comparison, Key

MOST_VARIANTS = 20
"""Variants with charts and tables, the baseline among them."""
MOST_PANELS = 48
"""Combinations of column and table factors with a panel in a chart."""


@dataclass(frozen=True)
class Selection:
    """What a report shows of its comparisons.

    Attributes:
        variants: those shown, in their order. panels: (table, column) shown, None for all.
        of_variants, of_panels: how many there are.
    """

    variants: tuple[str, ...]
    panels: frozenset[tuple[Key, Key]] | None
    of_variants: int
    of_panels: int

    def words(self) -> list[str]:
        """The omitted variants and the rule, as sentences; empty without any."""
        sentences = []
        if len(self.variants) < self.of_variants:
            sentences.append(
                f"Charts and tables show {len(self.variants)} of {self.of_variants:,} variants: the "
                "baseline, and those with the most significant changes, then the most cells "
                "compared with it, then the largest change. Tests are corrected for all variants; "
                "the table of runs has every run, and iolab compare writes every cell. So many "
                "variants may come from a wrong layout: iolab import --layout sets it."
            )
        if self.panels is not None:
            sentences.append(
                f"They show {len(self.panels)} of {self.of_panels:,} combinations of the other "
                "factors: those with the most significant changes, then the most cells."
            )
        return sentences

    def of(self, comparison: Comparison) -> Comparison:
        """What is shown of a comparison; its tests remain those over all variants."""

        def is_shown(table: Key, col: Key, variant: str) -> bool:
            return variant in variants and (self.panels is None or (table, col) in self.panels)

        variants = {*self.variants, comparison.baseline}
        cells = tuple(
            cell for cell in comparison.cells if is_shown(cell.table, cell.col, cell.variant)
        )
        if len(cells) == len(comparison.cells):
            return comparison
        return replace(
            comparison,
            variants=tuple(name for name in comparison.variants if name in variants),
            cells=cells,
            row_levels=_present(comparison.row_levels, {cell.row for cell in cells}),
            col_levels=_present(comparison.col_levels, {cell.col for cell in cells}),
            table_levels=_present(comparison.table_levels, {cell.table for cell in cells}),
            summaries=tuple(
                summary
                for summary in comparison.summaries
                if is_shown(summary.table, summary.col, summary.variant)
            ),
        )


def select(comparisons: Sequence[Comparison]) -> Selection | None:
    """What a report shows of these comparisons; None for all of it."""
    variants = list(
        dict.fromkeys(name for comparison in comparisons for name in comparison.variants)
    )
    cells = [cell for comparison in comparisons for cell in comparison.cells]
    panels = list(dict.fromkeys((cell.table, cell.col) for cell in cells))
    if len(variants) <= MOST_VARIANTS and len(panels) <= MOST_PANELS:
        return None
    baselines = {comparison.baseline for comparison in comparisons}
    by_variant: dict[str, list[Cell]] = {}
    for cell in cells:
        by_variant.setdefault(cell.variant, []).append(cell)
    compared = sorted(
        (name for name in variants if name not in baselines),
        key=lambda name: _weight(by_variant.get(name, [])),
        reverse=True,
    )
    selected = {*baselines, *compared[: max(0, MOST_VARIANTS - len(baselines))]}
    visible: frozenset[tuple[Key, Key]] | None = None
    if len(panels) > MOST_PANELS:
        by_panel: dict[tuple[Key, Key], list[Cell]] = {panel: [] for panel in panels}
        for cell in cells:
            if cell.variant in selected:
                by_panel[cell.table, cell.col].append(cell)
        ranked = sorted(panels, key=lambda panel: _weight_of_panel(by_panel[panel]), reverse=True)
        visible = frozenset(ranked[:MOST_PANELS])
    return Selection(
        tuple(name for name in variants if name in selected), visible, len(variants), len(panels)
    )


def _weight(cells: Sequence[Cell]) -> tuple[int, int, float]:
    """Significant changes, cells compared with the baseline, and the largest change."""
    changes = [cell.change for cell in cells if cell.change is not None]
    return (
        sum(change.decided for change in changes),
        len(changes),
        max((abs(change.value) for change in changes), default=0.0),
    )


def _weight_of_panel(cells: Sequence[Cell]) -> tuple[int, int]:
    return sum(cell.change is not None and cell.change.decided for cell in cells), len(cells)


def _present(levels: Sequence[Key], there: Collection[Key]) -> tuple[Key, ...]:
    return tuple(level for level in levels if level in there)
