# SPDX-License-Identifier: Apache-2.0
"""Answers as plain data, JSON and CSV, whole or column by column: not rounded, in base units."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from iolab import _core
from iolab.base.untrusted_text import json_text

from ...store.base.counts import UNITS, HeatCounts, LostAt, LostKind, of_kinds
from ...store.base.grids import LogLinear
from ..question import Statistic
from .answers import Answer, Floats, Series, Stack

Value: TypeAlias = "float | int | None"

_Amount = TypeVar("_Amount", float, Floats)

OTHERS = "(others)"
"""The key of all that are not named."""


@dataclass(frozen=True)
class Row:
    """A key of a stack: its values, their plain sum (0 where there is none), and their mean.
    `keys`: how many it is the sum of."""

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
    named_keys = len(answer.keys) if top is None else min(top, len(answer.keys))
    kept = [
        Row(answer.keys[place], answer.values[place], answer.totals[place], means[place])
        for place in range(named_keys)
    ]
    other_keys = len(answer.keys) - named_keys + answer.rest_keys
    if not other_keys:
        return kept, None
    values: Floats = answer.values[named_keys:].sum(axis=0) + (
        0 if answer.rest is None else answer.rest
    )
    total = sum(answer.totals[named_keys:]) + answer.rest_total
    mean = sum(means[named_keys:]) + (answer.rest_total / covered if covered else 0.0)
    if not (is_averaged(answer) or answer.adds_up or other_keys == 1):
        total = 0
    return kept, Row(
        OTHERS,
        together(answer, values, other_keys),
        total,
        together(answer, mean, other_keys),
        other_keys,
    )


def together(answer: Stack, amount: _Amount, keys: int) -> _Amount:
    """What is said of so many keys of a stack together, from the sum of theirs."""
    if is_averaged(answer):
        # the sum of shares of different things is a share of nothing
        return amount / keys
    # what overlaps has no sum
    return amount if answer.adds_up or keys == 1 else amount * math.nan


def is_averaged(answer: Stack) -> bool:
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
        low, high = _bounds_of_cells(answer)
        return {
            **common,
            "kind": "heat",
            **_about(answer),
            "column": answer.column.tolist(),
            "low": low,
            "high": high,
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
    """What a map lacks, by kind: `count` of it, and in which `columns`, (column, how many), 0 where the
    number is unknown."""
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
    grid, indices = counts.grid, np.unique(counts.index).tolist()
    if not isinstance(grid, LogLinear):
        starts = {index: grid.low + index * grid.width for index in indices}
        return {index: (start, start + grid.width) for index, start in starts.items()}
    bounds = {}
    for index in indices:
        low, last = _core.grid_bounds(index, grid.bits)
        bounds[index] = low, last + 1
    return bounds


def _bounds_of_cells(counts: HeatCounts) -> tuple[list[int], list[int]]:
    """`low` and `high` of each cell."""
    bounds = bounds_of(counts)
    places = np.searchsorted(np.fromiter(bounds, dtype=np.int64, count=len(bounds)), counts.index)
    # values may have 64 bits, and ends one more
    ends = np.array([*bounds.values()], dtype=object).reshape(-1, 2)[places]
    return ends[:, 0].tolist(), ends[:, 1].tolist()


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


def seconds(ns: int) -> str:
    """Nanoseconds as seconds, exactly."""
    text = f"{'-' if ns < 0 else ''}{abs(ns) // 10**9}.{abs(ns) % 10**9:09d}"
    return text.rstrip("0").rstrip(".")


def csv_lines(asked: Statistic, answer: Answer, top: int | None) -> list[str]:
    """Lines of CSV: `time_s,value`, `time_s,<breakdown>,value` or `time_s,low,high,count` (of bytes
    `bytes`); where nothing was recorded a value is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if isinstance(answer, HeatCounts):
        writer.writerow(["time_s", "low", "high", answer.weight])
        edge = seconds if UNITS[answer.y] == "ns" else str
        bounds = {index: [edge(end) for end in ends] for index, ends in bounds_of(answer).items()}
        writer.writerows(
            [seconds(answer.t0_ns + column * answer.interval_ns), *bounds[index], count]
            for column, index, count in zip(
                answer.column.tolist(), answer.index.tolist(), answer.count.tolist(), strict=True
            )
        )
    elif isinstance(answer, Stack):
        writer.writerow(["time_s", asked.breakdown, "value"])
        kept, rest = largest(answer, top)
        writer.writerows(
            [_time(answer, column), row.key, _value(row.values[column])]
            for column in range(answer.values.shape[1])
            for row in [*kept, *([rest] if rest else [])]
        )
    else:
        writer.writerow(["time_s", "value"])
        writer.writerows(
            [_time(answer, column), _value(value)] for column, value in enumerate(answer.values)
        )
    return text.getvalue().split("\n")[:-1]


def as_json(asked: Statistic, answer: Answer, top: int | None) -> str:
    """`{"schema": 1, ...}`: see `plain.as_data`."""
    return json_text({"schema": 1, **as_data(asked, answer, top)})


def _time(answer: Series | Stack, column: int) -> str:
    return seconds(answer.t0_ns + column * answer.interval_ns)


def _value(value: float) -> str:
    plain = number(value)
    return "" if plain is None else str(plain)


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
    is_in_column = counts.column == column
    bounds = bounds_of(counts)
    return tuple(
        (*bounds[index], count)
        for index, count in zip(
            counts.index[is_in_column].tolist(), counts.count[is_in_column].tolist(), strict=True
        )
    )


def _of_stack(
    answer: Stack, column: int, start: int, lost: Mapping[LostKind, int], top: int | None
) -> Moment:
    kept, rest = largest(answer, None)
    rows = sorted(
        ((row.key, float(row.values[column])) for row in kept),
        key=lambda row: (-_zero_for_nan(row[1]), row[0]),
    )
    # without any key nobody did anything, unless all is unknown
    recorded = answer.covered_ns > 0 and (
        not rows or any(not math.isnan(value) for _, value in rows)
    )
    values_known = sum(not math.isnan(value) for _, value in rows)
    rows = [row for row in rows if row[1] > 0]
    named: list[tuple[str | None, float]] = list(rows if top is None else rows[:top])
    other_sum = sum(_zero_for_nan(value) for _, value in rows[len(named) :]) + (
        0.0 if rest is None else _zero_for_nan(float(rest.values[column]))
    )
    if other_sum > 0:
        named.append(
            (None, together(answer, other_sum, values_known - len(named) + answer.rest_keys))
        )
    return Moment(start, recorded, lost, keys=tuple(named) if recorded else ())


def _zero_for_nan(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def moment_as_data(asked: Statistic, answer: Answer, moment: Moment) -> dict[str, Any]:
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
    other_value = next((number(value) for key, value in moment.keys if key is None), None)
    return {**common, "keys": named if moment.recorded else None, "others": other_value}
