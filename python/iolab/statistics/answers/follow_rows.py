# SPDX-License-Identifier: Apache-2.0
"""Answers column by column: what a line of `iolab query --follow` says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...recording.base.counts import UNITS, HeatCounts
from ...recording.base.loss_columns import LostKind
from ..language.names import Statistic
from .answers import Answer, Series, Stack
from .json_form import bounds_of, largest, number, together


@dataclass(frozen=True)
class Moment:
    """One column.

    Attributes:
        t0_ns: its start. recorded: whether anything of it was. lost: what was lost in it, of each
        kind how many. value: of a series, nan where there is none. keys: of a stack, largest first,
        the others last, as None. cells: of a map: (low, high, count or bytes), low <= value < high,
        ascending.
    """

    t0_ns: int
    recorded: bool
    lost: Mapping[LostKind, int]
    value: float = math.nan
    keys: tuple[tuple[str | None, float], ...] = ()
    cells: tuple[tuple[int, int, int], ...] = ()


def moments(answer: Answer, first_ns: int, until_ns: int, top: int | None) -> Iterator[Moment]:
    """The columns from `first_ns` to `until_ns`; `top`: keys that are named, None for all."""
    lost: dict[int, dict[LostKind, int]] = {}
    for at, kind, count in answer.lost_at:
        lost.setdefault(at, {})[kind] = count
    interval = answer.interval_ns
    for start in range(first_ns // interval * interval, until_ns, interval):
        column = (start - answer.t0_ns) // interval
        if isinstance(answer, HeatCounts):
            recorded = not any(first <= column < past for first, past in answer.gaps)
            yield Moment(start, recorded, lost.get(column, {}), cells=_cells(answer, column))
        elif isinstance(answer, Series):
            value = float(answer.values[column])
            yield Moment(start, not math.isnan(value), lost.get(column, {}), value)
        else:
            yield _of_stack(answer, column, start, lost.get(column, {}), top)


def _cells(counts: HeatCounts, column: int) -> tuple[tuple[int, int, int], ...]:
    held = counts.column == column
    bounds = bounds_of(counts)
    return tuple(
        (*bounds[index], count)
        for index, count in zip(
            counts.index[held].tolist(), counts.count[held].tolist(), strict=True
        )
    )


def _of_stack(
    answer: Stack, column: int, start: int, lost: Mapping[LostKind, int], top: int | None
) -> Moment:
    kept, rest = largest(answer, None)
    rows = sorted(
        ((row.key, float(row.values[column])) for row in kept),
        key=lambda row: (-_known(row[1]), row[0]),
    )
    # without any key nobody did anything, unless all is unknown
    recorded = answer.covered_ns > 0 and (
        not rows or any(not math.isnan(value) for _, value in rows)
    )
    known = sum(not math.isnan(value) for _, value in rows)
    rows = [row for row in rows if row[1] > 0]
    named: list[tuple[str | None, float]] = list(rows if top is None else rows[:top])
    others = sum(_known(value) for _, value in rows[len(named) :]) + (
        0.0 if rest is None else _known(float(rest.values[column]))
    )
    if others > 0:
        named.append((None, together(answer, others, known - len(named) + answer.rest_keys)))
    return Moment(start, recorded, lost, keys=tuple(named) if recorded else ())


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def as_data(asked: Statistic, answer: Answer, moment: Moment) -> dict[str, Any]:
    """`{"schema": 1, "kind": "series" | "stack" | "heat", "statistic", "unit", "t0_ns",
    "interval_ns", "lost", "losses", "notes"}` and `value`; `keys` (name to value) and `others`; or
    `recorded`, `weight`, `low`, `high` and `count`."""
    heat = isinstance(answer, HeatCounts)
    unit = UNITS[answer.y] if isinstance(answer, HeatCounts) else answer.unit
    common = {
        "schema": 1,
        "kind": "heat" if heat else "stack" if isinstance(answer, Stack) else "series",
        "statistic": str(asked),
        "unit": unit,
        "t0_ns": moment.t0_ns,
        "interval_ns": answer.interval_ns,
        "lost": sum(moment.lost.values()),
        "losses": dict(moment.lost),
        "notes": list(answer.assumptions if isinstance(answer, HeatCounts) else answer.notes),
    }
    if isinstance(answer, HeatCounts):
        low, high, count = ([cell[place] for cell in moment.cells] for place in range(3))
        return {
            **common,
            "recorded": moment.recorded,
            "weight": answer.weight,
            "low": low,
            "high": high,
            "count": count,
        }
    if not isinstance(answer, Stack):
        return {**common, "value": number(moment.value)}
    named = {key: number(value) for key, value in moment.keys if key is not None}
    others = next((number(value) for key, value in moment.keys if key is None), None)
    return {**common, "keys": named if moment.recorded else None, "others": others}
