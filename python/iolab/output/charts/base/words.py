# SPDX-License-Identifier: Apache-2.0
"""Words that charts share: headings of panels, values with their intervals, captions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from iolab.base.metrics import Metric
from iolab.base.units import format_number, format_quantity, readable_unit
from iolab.base.verdict import Level
from iolab.studies.compare.axes import level_text
from iolab.studies.compare.model import Change, Comparison, Estimate, Key
from iolab.studies.compare.render.words import short

from .loads import named_text

MINUS = "−"
_PERCENTILE = re.compile(r"p\d")
_FACTOR = re.compile(r"\S+ = ")


def panel_labels(comparison: Comparison) -> tuple[dict[tuple[Key, Key], str], int | None]:
    """Headings of the (table, column) pairs that were measured, in order, and the columns of a
    whole grid of them."""
    measured = {(cell.table, cell.col) for cell in comparison.cells}
    names = (*comparison.tables, *comparison.cols)
    labels = {
        (table, col): named_text(names, (*table, *col))
        for table in comparison.table_levels or ((),)
        for col in comparison.col_levels or ((),)
        if (table, col) in measured
    }
    grid = len(comparison.table_levels) > 1 and len(labels) == len(comparison.table_levels) * len(
        comparison.col_levels
    )
    if not labels:
        return {((), ()): ""}, None
    return labels, len(comparison.col_levels) if grid else None


def fixed_text(comparison: Comparison) -> list[str]:
    """What did not vary, as one phrase."""
    said = ", ".join(f"{name} = {level_text(level)}" for name, level in comparison.fixed.items())
    return [said] if said else []


def quantity(estimate: Estimate, base: str) -> str:
    """`1.62 k/s [1.58, 1.66]`: an estimate in its own readable unit, with its interval where it has
    one."""
    if estimate.value is None:
        return "no value"
    symbol, scale = readable_unit([estimate.value], base)
    text = format_number(estimate.value / scale)
    if estimate.low is not None and estimate.high is not None:
        text += f" [{format_number(estimate.low / scale)}, {format_number(estimate.high / scale)}]"
    return f"{text} {symbol}".rstrip()


def bare_change(value: float, metric: Metric, digits: int = 3) -> str:
    """`+62.1 %`, or `+3.0 points` for shares, or a difference with its unit."""
    if metric.change == "ratio":
        return _signed_number(value * 100, digits) + " %"
    if metric.unit == "1":
        return _signed_number(value * 100, digits) + " points"
    text = format_quantity(abs(value), metric.unit, digits)
    return ("+" if value > 0 else MINUS if value < 0 else "±") + text


def change_text(change: Change | None, metric: Metric) -> str:
    """A change with its interval, `~` where it is tested and undecided."""
    if change is None:
        return "no change can be given"
    text = bare_change(change.value, metric)
    if change.low is not None and change.high is not None:
        text += f" [{bare_change(change.low, metric)}, {bare_change(change.high, metric)}]"
        text += "" if change.decided else " ~"
    return text


def left_out(estimate: Estimate) -> list[tuple[float | None, str]]:
    """Runs that were left out, with their value where the comparison kept it."""
    values = estimate.left_out_values or (None,) * len(estimate.left_out)
    return list(zip(values, estimate.left_out, strict=False))


def shown_unit(comparison: Comparison) -> tuple[str, float] | None:
    """Unit in which the comparison asks its values to be written, as (symbol, scale); None leaves
    the choice."""
    return None if comparison.shown_unit is None else comparison.written_unit


def star(estimate: Estimate) -> str:
    """The mark behind a SUSPECT value in a table."""
    return "*" if estimate.level is Level.SUSPECT else ""


def sentences(phrases: Iterable[str]) -> str:
    """Phrases as sentences of a caption; a factor that begins one (`bs = 128k`) keeps its name."""
    return " ".join(
        f"{phrase if _FACTOR.match(phrase) else capital(phrase)}." for phrase in phrases
    )


def capital(text: str) -> str:
    """The text with a capital at its start, the rest as it is; a percentile (`p99`) keeps its
    letter."""
    return text if _PERCENTILE.match(text) else text[:1].upper() + text[1:]


def _signed_number(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return format_number(value)
    size = short(abs(value), digits)
    return ("+" if value > 0 else MINUS if value < 0 else "±") + size
