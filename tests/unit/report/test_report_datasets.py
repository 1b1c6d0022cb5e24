# SPDX-License-Identifier: Apache-2.0
"""Charts' data move into shared tables by column and come back as they were."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolab.output.charts.base.model import Chart
from iolab.output.report.model.datasets import Datasets
from iolab.output.report.model.payload import Dataset


def rows_of(table: Dataset) -> list[dict[str, Any]]:
    """What the page's `rows` does."""
    return [
        {**table.constants, **{name: column[i] for name, column in table.columns.items()}}
        for i in range(table.length)
    ]


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)


@given(st.lists(st.fixed_dictionaries({"a": CELLS, "b": CELLS}), max_size=8))
def test_rows_survive(rows: list[dict[str, Any]]) -> None:
    datasets = Datasets()
    table = datasets.tables[datasets.add(rows)]
    found = rows_of(table)
    assert found == rows
    assert [[type(value) is bool for value in row.values()] for row in found] == [
        [type(row[name]) is bool for name in one] for row, one in zip(rows, found, strict=True)
    ]


def test_absent_values_and_numbers_that_are_none() -> None:
    datasets = Datasets()
    table = datasets.tables[datasets.add([{"a": 1.0}, {"b": float("nan")}])]
    assert rows_of(table) == [{"a": 1, "b": None}, {"a": None, "b": None}]


def test_equal_tables_are_stored_once() -> None:
    datasets = Datasets()
    assert datasets.add([{"a": 1}]) == datasets.add([{"a": 1}])
    assert len(datasets.tables) == 1


def test_a_chart_keeps_its_shape_and_names_its_data() -> None:
    values = [{"x": 1, "y": 2.5}, {"x": 2, "y": 3.5}]
    spec = {
        "datasets": {"data-1": values},
        "data": {"name": "data-1"},
        "layer": [{"mark": "line"}, {"data": {"values": [{"z": 1}]}, "mark": "rule"}],
    }
    datasets = Datasets()
    item = datasets.chart(Chart("c", "C", spec, ("x", "y"), tuple(values), "words"))
    assert "datasets" not in item.spec
    outer, inner = item.spec["data"]["name"], item.spec["layer"][1]["data"]["name"]
    assert rows_of(datasets.tables[outer]) == values
    assert rows_of(datasets.tables[inner]) == [{"z": 1}]
    assert sorted(item.data) == sorted([outer, inner])
    assert item.table == outer
    assert spec["datasets"] == {"data-1": values}, "the chart itself must stay whole"
