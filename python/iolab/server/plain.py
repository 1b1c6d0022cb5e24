"""Answers of statistics as the service writes them: unrounded, in base units, the same numbers as `iolab query --format json`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from ..errors import UsageError
from ..recording.counts import UNITS, HeatCounts
from ..recording.grids import LogLinear
from ..statistics.answers import Answer, Floats, Series, Stack
from ..statistics.names import Statistic
from .models import HeatAnswer, Layer, Others, SeriesAnswer, StackAnswer, Value

MOST_NUMBERS = 2_000_000
"""Values of a series or stack, or cells of a map, in one answer."""

SHORTER = "take a longer interval, less time, or a smaller 'top'"


def plain(asked: Statistic, answer: Answer, top: int) -> SeriesAnswer | StackAnswer | HeatAnswer:
    """An answer as data; UsageError where it would be too large. `top`: keys of a stack that are named."""
    if isinstance(answer, HeatCounts):
        return _heat(asked, answer)
    common: dict[str, Any] = {
        "statistic": str(asked), "t0_ns": answer.t0_ns, "interval_ns": answer.interval_ns, "unit": answer.unit, "source": answer.source,
        "first_ns": answer.first_ns, "until_ns": answer.until_ns, "covered_ns": answer.covered_ns, "total": answer.total,
        "mean": number(answer.mean), "notes": list(answer.notes), "lost_by_column": list(answer.lost)}
    if isinstance(answer, Stack):
        return _stack(answer, top, common)
    assert isinstance(answer, Series)
    check_size(len(answer.values))
    return SeriesAnswer(**common, values=numbers(answer.values))


def check_size(count: int) -> None:
    """UsageError where so many numbers are too many for an answer."""
    if count > MOST_NUMBERS:
        raise UsageError(f"the answer would have {count} numbers, and {MOST_NUMBERS} are the most", hint=SHORTER)


def bounds_of(counts: HeatCounts) -> dict[int, tuple[int, int]]:
    """(low, high) of each bucket that holds a count, in whole ns or bytes; low <= value < high."""
    found = {}
    for index in np.unique(counts.index).tolist():
        if isinstance(counts.grid, LogLinear):
            low, last = _core.grid_bounds(index, counts.grid.bits)
            found[index] = low, last + 1
        else:
            found[index] = counts.grid.low + index * counts.grid.width, counts.grid.low + (index + 1) * counts.grid.width
    return found


def number(value: float) -> Value:
    """A value for JSON: whole ones as such, null for nan."""
    if math.isnan(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def numbers(values: Floats) -> list[Value]:
    """Values for JSON."""
    return [number(value) for value in values.tolist()]


def heat_facts(asked: Statistic, counts: HeatCounts) -> dict[str, Any]:
    """All that is said of a map besides its cells."""
    return {
        "statistic": str(asked), "t0_ns": counts.t0_ns, "interval_ns": counts.interval_ns, "y": counts.y, "unit": UNITS[counts.y],
        "events": counts.events, "without_y": counts.without_y, "filtered": counts.filtered, "outside": counts.outside,
        "lost": counts.lost, "damaged": counts.damaged, "unpaired": counts.unpaired, "averaged": counts.averaged,
        "lost_by_column": list(counts.lost_by_column), "gaps": list(counts.gaps), "notes": list(counts.assumptions)}


def _heat(asked: Statistic, counts: HeatCounts) -> HeatAnswer:
    check_size(4 * len(counts.count))
    bounds = bounds_of(counts)
    index = counts.index.tolist()
    return HeatAnswer(**heat_facts(asked, counts), column=counts.column.tolist(), low=[bounds[each][0] for each in index],
                      high=[bounds[each][1] for each in index], count=counts.count.tolist())


def _stack(answer: Stack, top: int, common: dict[str, Any]) -> StackAnswer:
    shown = min(top, len(answer.keys))
    check_size((shown + 1) * answer.values.shape[1])
    covered = answer.covered_ns / 1e9
    means = answer.averages or [total / covered if covered else math.nan for total in answer.totals]
    keys = [Layer(key=answer.keys[place], total=answer.totals[place], mean=number(means[place]), values=numbers(answer.values[place]))
            for place in range(shown)]
    left = len(answer.keys) - shown + answer.rest_keys
    others = None
    if left:
        values: Floats = answer.values[shown:].sum(axis=0) + (0 if answer.rest is None else answer.rest)
        mean = sum(means[shown:]) + (answer.rest_total / covered if covered else 0.0)
        if _averaged(answer):
            # the sum of shares of different things is a share of nothing
            values, mean = values / left, mean / left
        others = Others(keys=left, total=sum(answer.totals[shown:]) + answer.rest_total, mean=number(mean), values=numbers(values))
    return StackAnswer(**common, keys=keys, others=others)


def _averaged(answer: Stack) -> bool:
    """Whether keys are things of which a mean is taken, not parts of a whole."""
    counter = answer.statistic.entry.counter
    return answer.averages is not None and counter is not None and counter.mean and answer.statistic.breakdown == counter.object
