# SPDX-License-Identifier: Apache-2.0
"""Answers of statistics as CSV and JSON: unrounded, in base units."""

from __future__ import annotations

import csv
import io
import json

from ...recording.base.counts import UNITS, HeatCounts
from ..language.names import Statistic
from .answers import Answer, Series, Stack
from .json_form import as_data, bounds_of, largest, number


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
    return json.dumps({"schema": 1, **as_data(asked, answer, top)}, ensure_ascii=False)


def _time(answer: Series | Stack, column: int) -> str:
    return seconds(answer.t0_ns + column * answer.interval_ns)


def _value(value: float) -> str:
    found = number(value)
    return "" if found is None else str(found)
