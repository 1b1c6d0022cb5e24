# SPDX-License-Identifier: Apache-2.0
"""Answers of statistics as plain data: unrounded, in base units. What the terminal prints as JSON
and the service sends is this."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ... import _core
from ...recording.base.counts import UNITS, HeatCounts
from ...recording.base.grids import LogLinear
from ...recording.base.loss_columns import LostAt, LostKind, of_kinds
from ..language.names import Statistic
from .answers import Answer, Floats, Series, Stack

Value: TypeAlias = "float | int | None"

_Amount = TypeVar("_Amount", float, Floats)

OTHERS = "(others)"
"""The key of all that are not named."""


@dataclass(frozen=True)
class Row:
    """A key of a stack: its values, their plain sum (0 where there is none), and their mean.
    `keys`: how many it stands for."""

    key: str
    values: Floats
    total: int
    mean: float
    keys: int = 1


def largest(answer: Stack, top: int | None) -> tuple[list[Row], Row | None]:
    """(the largest keys, the others together, None where there are none). Shares are averaged over
    the others; what does not add up for another reason has no value there."""
    covered = answer.covered_ns / 1e9
    means = answer.averages or [total / covered if covered else math.nan for total in answer.totals]
    shown = len(answer.keys) if top is None else min(top, len(answer.keys))
    kept = [
        Row(answer.keys[place], answer.values[place], answer.totals[place], means[place])
        for place in range(shown)
    ]
    left = len(answer.keys) - shown + answer.rest_keys
    if not left:
        return kept, None
    values: Floats = answer.values[shown:].sum(axis=0) + (0 if answer.rest is None else answer.rest)
    total = sum(answer.totals[shown:]) + answer.rest_total
    mean = sum(means[shown:]) + (answer.rest_total / covered if covered else 0.0)
    if not (averaged(answer) or answer.adds_up or left == 1):
        total = 0
    return kept, Row(
        OTHERS, together(answer, values, left), total, together(answer, mean, left), left
    )


def together(answer: Stack, amount: _Amount, keys: int) -> _Amount:
    """What is said of so many keys of a stack together, from the sum of theirs."""
    if averaged(answer):
        # the sum of shares of different things is a share of nothing
        return amount / keys
    # what overlaps has no sum
    return amount if answer.adds_up or keys == 1 else amount * math.nan


def averaged(answer: Stack) -> bool:
    """Whether keys are things of which a mean is taken, not parts of a whole."""
    counter = answer.statistic.entry.counter
    return (
        answer.averages is not None
        and counter is not None
        and counter.mean
        and answer.statistic.breakdown in counter.objects
    )


def as_data(asked: Statistic, answer: Answer, top: int | None) -> dict[str, Any]:
    """`{"kind": "series" | "stack" | "heat", "statistic", "unit", "t0_ns", "interval_ns", "notes",
    ...}`; `top`: keys of a stack that are named, None for all."""
    common = {"statistic": str(asked), "t0_ns": answer.t0_ns, "interval_ns": answer.interval_ns}
    if isinstance(answer, HeatCounts):
        bounds, index = bounds_of(answer), answer.index.tolist()
        return {
            **common,
            "kind": "heat",
            **_about(answer),
            "column": answer.column.tolist(),
            "low": [bounds[each][0] for each in index],
            "high": [bounds[each][1] for each in index],
            "count": answer.count.tolist(),
        }
    common |= {
        "unit": answer.unit,
        "source": answer.source,
        "first_ns": answer.first_ns,
        "until_ns": answer.until_ns,
        "covered_ns": answer.covered_ns,
        "total": answer.total,
        "mean": number(answer.mean),
        "notes": list(answer.notes),
        "lost_by_column": list(answer.lost),
        "losses": _losses(answer.lost_at, {} if answer.losses is None else answer.losses.sums),
    }
    if isinstance(answer, Series):
        return {**common, "kind": "series", "values": numbers(answer.values)}
    kept, rest = largest(answer, top)
    return {
        **common,
        "kind": "stack",
        "adds_up": answer.adds_up,
        "keys": [{"key": row.key, **_row(row)} for row in kept],
        "others": None if rest is None else {"keys": rest.keys, **_row(rest)},
    }


def heat_facts(asked: Statistic, counts: HeatCounts) -> dict[str, Any]:
    """All that is said of a map besides its cells."""
    return {
        "statistic": str(asked),
        "t0_ns": counts.t0_ns,
        "interval_ns": counts.interval_ns,
        **_about(counts),
    }


def losses_of(counts: HeatCounts) -> list[dict[str, Any]]:
    """What a map lacks, by kind: `count` of it, and in which `columns`, (column, how many), 0 where
    nobody knows."""
    return _losses(
        counts.lost_at,
        {"lost": counts.lost, "damaged": counts.damaged, "unpaired": counts.unpaired},
    )


def _losses(parts: Iterable[LostAt], sums: Mapping[LostKind, int]) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "count": count, "columns": columns}
        for kind, count, columns in of_kinds(parts, sums)
    ]


def bounds_of(counts: HeatCounts) -> dict[int, tuple[int, int]]:
    """(low, high) of each bucket that holds a count, in whole ns or bytes; low <= value < high."""
    found = {}
    for index in np.unique(counts.index).tolist():
        if isinstance(counts.grid, LogLinear):
            low, last = _core.grid_bounds(index, counts.grid.bits)
            found[index] = low, last + 1
        else:
            found[index] = (
                counts.grid.low + index * counts.grid.width,
                counts.grid.low + (index + 1) * counts.grid.width,
            )
    return found


def number(value: float) -> Value:
    """A value for JSON: whole ones as such, None for nan."""
    if math.isnan(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def numbers(values: Floats) -> list[Value]:
    """Values for JSON."""
    return [number(value) for value in values.tolist()]


def _row(row: Row) -> dict[str, Any]:
    return {"total": row.total, "mean": number(row.mean), "values": numbers(row.values)}


def _about(counts: HeatCounts) -> dict[str, Any]:
    return {
        "y": counts.y,
        "unit": UNITS[counts.y],
        "weight": counts.weight,
        "events": counts.events,
        "without_y": counts.without_y,
        "filtered": counts.filtered,
        "outside": counts.outside,
        "lost": counts.lost,
        "damaged": counts.damaged,
        "unpaired": counts.unpaired,
        "averaged": counts.averaged,
        "lost_by_column": list(counts.lost_by_column),
        "losses": losses_of(counts),
        "gaps": list(counts.gaps),
        "notes": list(counts.assumptions),
    }
