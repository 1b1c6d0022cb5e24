# SPDX-License-Identifier: Apache-2.0
"""A Spark cluster as the engine of questions to an archive. It runs the same SQL as DuckDB, in
Spark's dialect, and returns sums."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...archive.spark import Cluster, Rows
from ...archive.tables import Table
from ..engine.engine import Engine

if TYPE_CHECKING:
    import pyarrow as pa


class SparkEngine(Engine):
    """Views of one answer on a cluster."""

    def __init__(self, place: Path, cluster: Cluster) -> None:
        super().__init__(place)
        self._cluster = cluster
        self._views: dict[str, str] = {}

    def __exit__(self, *exception: object) -> None:
        names = list(self._views.values())
        self._views.clear()
        if exception[:1] in ((), (None,)):
            self._cluster.drop(names)
        super().__exit__(*exception)

    def view(self, name: str, table: Table, parts: Sequence[Rows]) -> None:
        """As `Cluster.view`, for this answer alone."""
        # several answers share a session
        self._views[name] = f"{name}_{uuid.uuid4().hex}"
        self._cluster.view(self._views[name], table, parts)

    def ask(self, sql: str, bound: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self._go_on()
        views = tuple(sorted(self._views.items()))
        rows = self._cluster.ask(translate(sql, views), dict(bound or {}))
        return {name: _mask_missing(rows.column(name)) for name in rows.column_names}


@lru_cache(256)
def translate(sql: str, views: tuple[tuple[str, str], ...]) -> str:
    """A statement for DuckDB in Spark's dialect. views: pairs of a name and its name in Spark."""
    from sqlglot import exp, parse_one

    names = dict(views)

    def change(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Table) and node.name in names:
            node.set("this", exp.to_identifier(names[node.name]))
        elif isinstance(node, exp.CTE):
            node.set("materialized", None)
        elif isinstance(node, exp.DataType) and node.is_type("int128"):
            # a sum that does not fit is an error in both
            return exp.DataType.build("bigint")
        elif isinstance(node, exp.Floor) and isinstance(node.this, exp.Log):
            # Spark's logarithm is inexact at powers of 2
            value = node.this.expression
            return parse_one(f"length(bin({value.sql('duckdb')})) - 1", read="duckdb")
        return node

    statement = parse_one(sql, read="duckdb").transform(change)
    return str(statement.sql("spark", identify=True))


def _mask_missing(column: pa.ChunkedArray) -> Any:
    """A column as DuckDB gives it: masked where values are missing."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.ma.MaskedArray(np.zeros(len(column), dtype=np.int64), True)
    mask = column.is_null().to_numpy()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = column.fill_null("").to_numpy().astype(object)
    elif pa.types.is_boolean(column.type):
        values = column.fill_null(False).to_numpy()
    else:
        values = column.fill_null(0).to_numpy()
    return np.ma.MaskedArray(values, mask) if mask.any() else values
