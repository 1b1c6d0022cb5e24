# SPDX-License-Identifier: Apache-2.0
"""Shades of changes: the same change has the same shade in every matrix and table of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from iolab.base.metrics import Metric
from iolab.studies.compare.model import Change, Comparison
from iolab.studies.compare.render.words import change_number, change_unit, short

from ..model.cover_payload import CoverStep
from ..words.phrases import MINUS, brief, brief_signed

MOST = 5
"""The deepest shade, in both directions."""
RATIO_STEPS = (0.05, 0.10, 0.25, 0.50)
"""Rises from which the next shade is used. A fall to 1 / (1 + step) has the same depth."""
POINT_STEPS = (0.02, 0.05, 0.10, 0.20)
"""The same for differences of shares."""


def change_shade(change: Change | None, comparison: Comparison) -> int:
    """-5 (worse, or less where no direction is better) to 5 (better, or more); 0 for no change."""
    if change is None or not math.isfinite(change.value):
        return 0
    if not brief_signed(change_number(change.value, comparison)).strip("0."):
        return 0  # what is written as zero
    metric = comparison.metric
    size, steps = _size(change.value, metric), _steps(comparison)
    depth = 1 + sum(size >= step for step in steps)
    return depth if (change.value > 0) == (metric.better != "lower") else -depth


def value_shades(values: Sequence[float | None]) -> list[int]:
    """0 to 5 for values, from the lowest to the highest; by their logarithm where they span more
    than tenfold. 0 for a missing value, and for all where all are equal."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    if low == high:
        return [0] * len(values)
    is_log = low > 0 and high / low > 10
    scale = math.log if is_log else float
    start, length = scale(low), scale(high) - scale(low)
    return [
        0
        if value is None or not math.isfinite(value)
        else round(MOST * (scale(value) - start) / length)
        for value in values
    ]


def legend(comparisons: Iterable[Comparison]) -> list[CoverStep]:
    """The steps of changes in per cent, from the worst; empty where nothing is compared by ratio."""
    if not any(
        comparison.metric.change == "ratio"
        and any(cell.change is not None for cell in comparison.cells)
        for comparison in comparisons
    ):
        return []
    rises = [f"+{100 * step:.0f}" for step in RATIO_STEPS]
    falls = [f"{MINUS}{brief(100 * (1 - 1 / (1 + step)))}" for step in RATIO_STEPS]
    return [
        *(CoverStep(shade=-2 - place, text=falls[place]) for place in reversed(range(4))),
        CoverStep(shade=-1, text=""),
        CoverStep(shade=1, text=""),
        *(CoverStep(shade=2 + place, text=rises[place]) for place in range(4)),
    ]


def least_step(comparison: Comparison) -> float:
    """The smallest change that counts where there is no test: where the second shade begins. 0 for
    a quantity without steps of its own."""
    is_fixed = comparison.metric.change == "ratio" or comparison.metric.unit == "1"
    return _steps(comparison)[0] if is_fixed else 0.0


def steps_text(comparison: Comparison) -> str:
    """Where the shades of a metric compared by difference change; empty for a ratio, which the
    legend has."""
    if comparison.metric.change == "ratio":
        return ""
    numbers = [short(change_number(step, comparison), 2) for step in _steps(comparison)]
    unit = change_unit(comparison)
    return f"shades deepen at {', '.join(numbers)} {unit}".rstrip()


def _size(value: float, metric: Metric) -> float:
    """The depth of a change: a ratio and its inverse are equally deep."""
    if metric.change != "ratio":
        return abs(value)
    return value if value > 0 else 1 / max(1 + value, 1e-12) - 1


def _steps(comparison: Comparison) -> tuple[float, ...]:
    if comparison.metric.change == "ratio":
        return RATIO_STEPS
    if comparison.metric.unit == "1":
        return POINT_STEPS
    most = max(
        (
            abs(cell.change.value)
            for cell in comparison.cells
            if cell.change is not None and math.isfinite(cell.change.value)
        ),
        default=0.0,
    )
    return tuple(most * place / MOST for place in range(1, MOST))
