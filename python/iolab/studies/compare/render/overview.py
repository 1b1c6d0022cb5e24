# SPDX-License-Identifier: Apache-2.0
"""Several metrics of one cell in one table: what two results say of each other at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from iolab.base.units import readable_unit
from iolab.base.untrusted_text import markdown

from ..arms import runs_text
from ..axes import axis_text
from ..model import Cell, Comparison
from .grids import grid
from .words import (
    Scale,
    change_text,
    interval_text,
    note_lines,
    opening_lines,
    scale_for,
    size_text,
    superscript,
    test_text,
    undecided_cells,
)

STYLES = ("text", "markdown")

LEAST = 0.1
"""A value below so much of its row's unit has a unit of its own."""


def is_one_cell(comparison: Comparison) -> bool:
    """Whether the comparison has a single place, so that a table of it has a single row."""
    levels = (comparison.table_levels, comparison.row_levels, comparison.col_levels)
    return all(len(axis_levels) == 1 for axis_levels in levels)


def render_overview(
    comparisons: Sequence[Comparison], style: str, *, precision: int | None = None
) -> str:
    """A row for each comparison of the same runs, a single cell each, in one of `STYLES`.

    Values have their unit. Footnotes are numbered over all rows; a note that does not hold for all
    rows names its metric.
    """
    comparisons = [_without_absence(part) for part in comparisons]
    first, footnotes = comparisons[0], _footnotes(comparisons)
    variants = list(dict.fromkeys(name for part in comparisons for name in part.variants))[1:]
    heads = ["metric", first.baseline]
    for variant in variants:
        heads += [variant, "change", "interval", "test"]
    rows = [_row(part, variants, footnotes, precision) for part in comparisons]
    opening, notes = opening_lines(first), _notes(comparisons, footnotes)
    undecided = [line for part in comparisons for line in _undecided_lines(part)]
    undecided = ["~ not significant:", *undecided] if undecided else []
    place = axis_text(first.fixed.keys(), tuple(first.fixed.values()))
    if style == "markdown":
        table = [
            f"| {' | '.join(map(markdown, heads))} |",
            f"|:---|{'|'.join(['---:'] * (len(heads) - 1))}|",
            *(f"| {' | '.join(map(markdown, row))} |" for row in rows),
        ]
        opening, undecided, notes = (
            [f"{markdown(line)}  " for line in lines] for lines in (opening, undecided, notes)
        )
        place = f"### {markdown(place)}" if place else ""
    else:
        table = grid([heads, *rows], left=(0,))
    blocks = [opening, [place] if place else [], table, undecided, notes]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _row(
    comparison: Comparison,
    variants: Sequence[str],
    footnotes: Mapping[str, str],
    precision: int | None,
) -> list[str]:
    """Metric, baseline, and four fields for each variant; empty where a variant lacks the metric."""
    cells = {cell.variant: cell for cell in comparison.cells}
    fields = [
        comparison.metric.name,
        _value(comparison, cells.get(comparison.baseline), footnotes, precision),
    ]
    for variant in variants:
        cell = cells.get(variant)
        change = None if cell is None else cell.change
        fields += [
            _value(comparison, cell, footnotes, precision),
            "" if cell is None else change_text(change, comparison, precision),
            interval_text(change, comparison, precision),
            test_text(change),
        ]
    return fields


def _value(
    comparison: Comparison,
    cell: Cell | None,
    footnotes: Mapping[str, str],
    precision: int | None,
) -> str:
    if cell is None:
        return ""
    value, scale = cell.estimate.value, scale_for(comparison, precision)
    if value and comparison.shown_unit is None and abs(value) < LEAST * scale.scale:
        scale = Scale(*readable_unit([value], comparison.metric.unit), precision)
    symbol = "" if value is None else scale.symbol
    signs = [
        footnotes[_key(comparison, code)] for code in cell.footnotes if code in comparison.footnotes
    ]
    return f"{f'{scale.value(value)} {symbol}'.rstrip()}{''.join(signs)}"


def _without_absence(comparison: Comparison) -> Comparison:
    """The comparison without the footnote and the note that a metric is absent, where an arm has no
    value: the empty field says so."""
    if all(cell.estimate.value is not None for cell in comparison.cells):
        return comparison
    return replace(
        comparison,
        footnotes={code: text for code, text in comparison.footnotes.items() if code != "missing"},
        warnings=tuple(note for note in comparison.warnings if note.code != "without"),
    )


def _footnotes(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Key of each footnote to its mark, numbered over all comparisons."""
    keys = dict.fromkeys(_key(part, code) for part in comparisons for code in part.footnotes)
    return {key: superscript(number) for number, key in enumerate(keys, 1)}


def _key(comparison: Comparison, code: str) -> str:
    """A footnote's code; its text where that names the metric."""
    return comparison.footnotes[code] if code == "missing" else code


def _undecided_lines(comparison: Comparison) -> list[str]:
    """What each change that is not significant still rules out."""
    has_several = len(comparison.variants) > 2
    return [
        f"  {comparison.metric.name}{f' {cell.variant}' if has_several else ''}: {text}"
        for cell, text in undecided_cells(comparison)
        if text
    ]


def _notes(comparisons: Sequence[Comparison], footnotes: Mapping[str, str]) -> list[str]:
    """The lines below the table: footnotes, the method, then the notes of all metrics and of some."""
    texts = {
        _key(part, code): text
        for part in reversed(comparisons)
        for code, text in part.footnotes.items()
    }
    lines = [f"{sign} {texts[key]}" for key, sign in footnotes.items()]
    lines += [runs_text(comparisons[0].arms)] if comparisons[0].arms else []
    changes = [cell.change for part in comparisons for cell in part.cells if cell.change]
    if any(change.low is not None for change in changes):
        lines.append(
            f"{100 * comparisons[0].confidence:.0f} % intervals; each metric has its own tests, "
            f"significant at q <= {comparisons[0].alpha:g}"
        )
    detectable = [f"{part.metric.name} {text}" for part in comparisons if (text := size_text(part))]
    if detectable:
        lines.append(f"minimum detectable change (80 % power): {', '.join(detectable)}")
    metrics_of_note: dict[str, list[str]] = {}
    for part in comparisons:
        for line in note_lines(part):
            metrics_of_note.setdefault(line, []).append(part.metric.name)
    changed = {part.metric.name for part in comparisons if any(cell.change for cell in part.cells)}
    for line, names in metrics_of_note.items():
        is_common = changed <= set(names) or any(name in line for name in names)
        lines.append(line if is_common else f"{', '.join(names)}: {line}")
    return lines
