# SPDX-License-Identifier: Apache-2.0
"""Charts packed for the page: a specification with names of shared datasets as its data, stored by
column."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...charts.base.model import Chart
from .payload import ChartItem, Dataset


class Datasets:
    """The distinct tables of a report's charts. Equal tables are stored once, whichever chart they
    came with."""

    def __init__(self) -> None:
        self.tables: dict[str, Dataset] = {}

    def add(self, rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> str:
        """Name of the dataset of these rows; a column absent from a row is None there."""
        names = (
            list(columns)
            if columns is not None
            else list(dict.fromkeys(name for row in rows for name in row))
        )
        values = {name: [_plain(row.get(name)) for row in rows] for name in names}
        constants = {
            name: column[0]
            for name, column in values.items()
            if column and all(_same(value, column[0]) for value in column)
        }
        varying = {name: column for name, column in values.items() if name not in constants}
        table = Dataset(length=len(rows), columns=varying, constants=constants)
        name = hashlib.sha256(table.model_dump_json().encode()).hexdigest()[:12]
        self.tables.setdefault(name, table)
        return name

    def chart(self, chart: Chart) -> ChartItem:
        """The chart with its inline data moved into datasets."""
        names: dict[str, str] = {}
        spec = self._without_values(chart.spec, names)
        inline = spec.pop("datasets", None) or {}
        names |= {old: self.add(rows) for old, rows in inline.items()}
        spec = _rename(spec, names)
        return ChartItem(
            name=chart.name,
            title=chart.title,
            caption=chart.caption,
            spec=spec,
            data=sorted(set(names.values())),
            table=self.add(chart.rows, chart.columns),
            table_columns=list(chart.columns),
        )

    def _without_values(self, part: Any, names: dict[str, str]) -> Any:
        """A copy in which every `{"values": [...]}` under `data` is the name of a dataset."""
        if isinstance(part, dict):
            copy = {}
            for key, value in part.items():
                if key == "data" and isinstance(value, dict) and _is_rows(value.get("values")):
                    name = self.add(value["values"])
                    names[name] = name
                    copy[key] = {"name": name}
                elif key == "datasets":
                    copy[key] = value
                else:
                    copy[key] = self._without_values(value, names)
            return copy
        if isinstance(part, list):
            return [self._without_values(value, names) for value in part]
        return part


def _is_rows(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(row, Mapping) for row in values)


def _rename(part: Any, names: Mapping[str, str]) -> Any:
    if isinstance(part, dict):
        return {
            key: {"name": names.get(value["name"], value["name"])}
            if key == "data" and isinstance(value, dict) and "name" in value
            else _rename(value, names)
            for key, value in part.items()
        }
    if isinstance(part, list):
        return [_rename(value, names) for value in part]
    return part


def _plain(value: Any) -> Any:
    """A value as JSON has it: numpy scalars as Python's, whole floats as integers, not finite ones
    as None."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value  # nearly all of them, and there are hundreds of thousands
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return json.loads(json.dumps(value, default=str))


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
