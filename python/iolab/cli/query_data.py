"""Answers of statistics as CSV and JSON: unrounded, in base units."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..recording.counts import HeatCounts
    from ..statistics.answers import Answer, Floats, Series, Stack
    from ..statistics.names import Statistic

OTHERS = "(others)"
"""The key of all that --top leaves out."""


def seconds(ns: int) -> str:
    """Nanoseconds as seconds, exactly."""
    text = f"{'-' if ns < 0 else ''}{abs(ns) // 10**9}.{abs(ns) % 10**9:09d}"
    return text.rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Row:
    """A key of a stack: its values, their plain sum (0 where there is none), and their mean. `keys`: how many it stands for."""

    key: str
    values: Floats
    total: int
    mean: float
    keys: int = 1


def largest(answer: Stack, top: int | None) -> tuple[list[Row], Row | None]:
    """(the largest keys, the others together, None where there are none)."""
    covered = answer.covered_ns / 1e9
    means = answer.averages or [total / covered if covered else math.nan for total in answer.totals]
    shown = len(answer.keys) if top is None else min(top, len(answer.keys))
    kept = [Row(answer.keys[place], answer.values[place], answer.totals[place], means[place]) for place in range(shown)]
    left = len(answer.keys) - shown + answer.rest_keys
    if not left:
        return kept, None
    values: Floats = answer.values[shown:].sum(axis=0) + (0 if answer.rest is None else answer.rest)
    total = sum(answer.totals[shown:]) + answer.rest_total
    mean = sum(means[shown:]) + (answer.rest_total / covered if covered else 0.0)
    if averaged(answer):
        # the sum of shares of different things is a share of nothing
        values, mean = values / left, mean / left
    return kept, Row(OTHERS, values, total, mean, left)


def averaged(answer: Stack) -> bool:
    """Whether keys are things of which a mean is taken, not parts of a whole."""
    counter = answer.statistic.entry.counter
    return answer.averages is not None and counter is not None and counter.mean and answer.statistic.breakdown == counter.object


def csv_lines(asked: Statistic, answer: Answer, top: int | None) -> list[str]:
    """Lines of CSV: `time_s,value`, `time_s,<breakdown>,value` or `time_s,low,high,count`; where nothing was recorded a value is empty."""
    from ..recording.counts import UNITS, HeatCounts
    from ..statistics.answers import Stack

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if isinstance(answer, HeatCounts):
        writer.writerow(["time_s", "low", "high", "count"])
        edge = seconds if UNITS[answer.y] == "ns" else str
        writer.writerows([seconds(answer.t0_ns + column * answer.interval_ns), edge(low), edge(high), count]
                         for column, low, high, count in _cells(answer))
    elif isinstance(answer, Stack):
        writer.writerow(["time_s", asked.breakdown, "value"])
        kept, rest = largest(answer, top)
        writer.writerows([_time(answer, column), row.key, _value(row.values[column])]
                         for column in range(answer.values.shape[1]) for row in [*kept, *([rest] if rest else [])])
    else:
        writer.writerow(["time_s", "value"])
        writer.writerows([_time(answer, column), _value(value)] for column, value in enumerate(answer.values))
    return text.getvalue().splitlines()


def as_json(asked: Statistic, answer: Answer, top: int | None) -> str:
    """`{"schema": 1, "kind": "series" | "stack" | "heat", "statistic", "unit", "t0_ns", "interval_ns", "notes", ...}`."""
    from ..recording.counts import UNITS, HeatCounts

    data: dict[str, Any] = {"schema": 1, "statistic": str(asked), "t0_ns": answer.t0_ns, "interval_ns": answer.interval_ns}
    if isinstance(answer, HeatCounts):
        cells = _cells(answer)
        data |= {"kind": "heat", "y": answer.y, "unit": UNITS[answer.y], "events": answer.events,
                 "without_y": answer.without_y, "filtered": answer.filtered, "outside": answer.outside, "lost": answer.lost,
                 "damaged": answer.damaged, "unpaired": answer.unpaired, "averaged": answer.averaged,
                 **{name: [cell[place] for cell in cells] for place, name in enumerate(("column", "low", "high", "count"))},
                 "lost_by_column": answer.lost_by_column, "gaps": answer.gaps, "notes": answer.assumptions}
    else:
        data |= _over_time(answer, top)
    return json.dumps(data, ensure_ascii=False)


def _over_time(answer: Series | Stack, top: int | None) -> dict[str, Any]:
    from ..statistics.answers import Stack

    data: dict[str, Any] = {
        "kind": "series", "unit": answer.unit, "source": answer.source, "first_ns": answer.first_ns, "until_ns": answer.until_ns,
        "covered_ns": answer.covered_ns, "total": answer.total, "mean": _number(answer.mean), "notes": answer.notes,
        "lost_by_column": answer.lost}
    if isinstance(answer, Stack):
        kept, rest = largest(answer, top)
        data |= {"kind": "stack", "others": None if rest is None else {"keys": rest.keys, **_row(rest)},
                 "keys": [{"key": row.key, **_row(row)} for row in kept]}
    else:
        data["values"] = _numbers(answer.values)
    return data


def _row(row: Row) -> dict[str, Any]:
    return {"total": row.total, "mean": _number(row.mean), "values": _numbers(row.values)}


def _cells(counts: HeatCounts) -> list[tuple[int, int, int, int]]:
    """(column, low, high, count); low <= y < high in ns or bytes."""
    from .. import _core
    from ..recording.grids import LogLinear

    bounds: dict[int, tuple[int, int]] = {}
    for index in set(counts.index.tolist()):
        if isinstance(counts.grid, LogLinear):
            low, last = _core.grid_bounds(index, counts.grid.bits)
            bounds[index] = low, last + 1
        else:
            bounds[index] = counts.grid.low + index * counts.grid.width, counts.grid.low + (index + 1) * counts.grid.width
    return [(column, *bounds[index], count) for column, index, count in
            zip(counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True)]


def _time(answer: Series | Stack, column: int) -> str:
    return seconds(answer.t0_ns + column * answer.interval_ns)


def _number(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def _numbers(values: Floats) -> list[float | int | None]:
    return [_number(value) for value in values]


def _value(value: float) -> str:
    number = _number(value)
    return "" if number is None else str(number)
