# SPDX-License-Identifier: Apache-2.0
"""Published numbers as CSV: `variant,<factors...>,metric,value,unit[,repetition]`, one value a
line."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import FormatError, IolabError
from iolab.base.metrics import find
from iolab.base.units import BASE, unit

REQUIRED = ("variant", "metric", "value", "unit")
KNOWN = (*REQUIRED, "repetition")


@dataclass(frozen=True)
class PublishedValue:
    """One line: value in base units next to the printed value.

    Attributes:
        line: its number in the file, for errors and links.
    """

    line: int
    variant: str
    factors: dict[str, Any]
    repetition: int
    metric: str
    value: float
    base_unit: str
    printed_value: float
    printed_unit: str


@dataclass(frozen=True)
class PublishedTable:
    """A whole file. `about` holds the `#` lines above the header."""

    about: str
    factors: tuple[str, ...]
    values: tuple[PublishedValue, ...]


def read_published_table(data: bytes, where: str) -> PublishedTable:
    """The table; FormatError with `file:line` for the first thing wrong.

    Lines beginning with `#` above the header say where the numbers were published. Factor levels
    that are all whole numbers become int, all numbers float, else text.
    """
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"is not UTF-8 text: {error}", where=where) from None
    skipped = 0
    while skipped < len(lines) and (
        not lines[skipped].strip() or lines[skipped].lstrip().startswith("#")
    ):
        skipped += 1
    about = "\n".join(line.lstrip("# ").rstrip() for line in lines[:skipped] if line.strip())
    reader = csv.reader(io.StringIO("\n".join(lines[skipped:])), strict=True)
    try:
        rows = [(skipped + reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise FormatError(
            f"is not CSV: {error}", where=f"{where}:{skipped + reader.line_num}"
        ) from None
    if not rows:
        raise FormatError(
            "is empty",
            where=where,
            hint=f"the header is {','.join(REQUIRED[:1])},<factors...>,metric,value,unit",
        )
    (header_line, header), body = rows[0], rows[1:]
    header = [name.strip() for name in header]
    _check_header(header, f"{where}:{header_line}")
    factors = tuple(name for name in header if name not in KNOWN)
    for line, row in body:
        if len(row) != len(header):
            raise FormatError(
                f"has {len(row)} fields, the header has {len(header)}", where=f"{where}:{line}"
            )
    records = [
        (line, dict(zip(header, (field.strip() for field in row), strict=True)))
        for line, row in body
    ]
    if not records:
        raise FormatError("has a header but no values", where=where)
    levels = {name: _convert_column([record[name] for _, record in records]) for name in factors}
    values = tuple(
        _value(line, record, {name: levels[name][place] for name in factors}, where)
        for place, (line, record) in enumerate(records)
    )
    _refuse_twice(values, where)
    return PublishedTable(about, factors, values)


def _check_header(header: list[str], where: str) -> None:
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise FormatError(
            f"the table has no column '{missing[0]}'",
            where=where,
            hint="a published table is variant,<factors...>,metric,value,unit[,repetition]",
        )
    twice = {name for name in header if header.count(name) > 1}
    if twice or "" in header:
        raise FormatError(
            f"column '{sorted(twice)[0] if twice else ''}' is named twice or not at all",
            where=where,
        )


def _convert_column(texts: list[str]) -> list[Any]:
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return list(texts)


def _value(
    line: int, record: dict[str, str], factors: dict[str, Any], where: str
) -> PublishedValue:
    place = f"{where}:{line}"
    try:
        printed = float(record["value"])
        repetition = int(record.get("repetition") or 1)
    except ValueError as error:
        raise FormatError(
            str(error), where=place, hint="value is a number, repetition a whole number"
        ) from None
    if not math.isfinite(printed):
        raise FormatError(
            f"value '{record['value']}' is not finite",
            where=place,
            hint="leave the line out where nothing was measured",
        )
    if not record["variant"] or not record["metric"]:
        raise FormatError("variant or metric is empty", where=place)
    if not record["unit"]:
        raise FormatError(
            f"'{record['metric']}' has no unit",
            where=place,
            hint="units such as 1/s, us, MiB/s, %, s",
        )
    try:
        unit_of_record = unit(record["unit"])
    except IolabError as error:
        raise FormatError(error.message, where=place, hint=error.hint) from None
    metric = find(record["metric"])
    base = BASE[unit_of_record.dimension]
    if metric is not None and metric.unit != base:
        raise FormatError(
            f"'{record['metric']}' can't be in {record['unit']}",
            where=place,
            hint=f"it is stored in {metric.unit or 'plain numbers'}",
        )
    return PublishedValue(
        line,
        record["variant"],
        factors,
        repetition,
        record["metric"],
        printed * unit_of_record.scale,
        base,
        printed,
        record["unit"],
    )


def _refuse_twice(values: tuple[PublishedValue, ...], where: str) -> None:
    line_of_key: dict[tuple[Any, ...], int] = {}
    for value in values:
        key = (value.variant, tuple(value.factors.values()), value.repetition, value.metric)
        if key in line_of_key:
            raise FormatError(
                f"gives {value.metric} of the same cell as line {line_of_key[key]}",
                where=f"{where}:{value.line}",
                hint="number repetitions in a column 'repetition'",
            )
        line_of_key[key] = value.line
