# SPDX-License-Identifier: Apache-2.0
"""Engines that read data files of archives: DuckDB in this process, or a Spark cluster, which runs
the same SQL in its dialect. Both also read the rows of several recordings by one statement."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from iolab.base.errors import FormatError, IolabError, ResultsError

from ...archive.faults import explain, fault_of
from ...archive.recordings import ArchivedEvents, files_of
from ...archive.scan import Rows, dataset, join_rows
from ...archive.spark import Cluster
from ...archive.store import Archive
from ...archive.tables import Table
from ..engine.engine import BY, REQUEST, Engine

if TYPE_CHECKING:
    import pyarrow as pa

MOST_COLUMNS = 1 << 30
"""Columns of time of one statement."""


class FilesRequest(NamedTuple):
    """Data files that can hold rows of a recording, of a source in a span."""

    recording: ArchivedEvents
    table: Table
    source: str
    span: tuple[int, int]


@dataclass(frozen=True)
class Statement:
    """A statement about rows of a recording.

    Attributes:
        views: table and rows, by name. sql, bound: as in `Engine.ask`.
    """

    recording: ArchivedEvents
    views: Mapping[str, tuple[Table, Sequence[Rows]]]
    sql: str
    bound: Mapping[str, Any]


class ArchiveEngine(Engine):
    """An engine that reads data files."""

    def __enter__(self) -> ArchiveEngine:
        return self

    @abstractmethod
    def view(self, name: str, table: Table, parts: Sequence[Rows]) -> None:
        """Make rows of a table known as `name`, for this answer alone."""

    @abstractmethod
    def ask_table(self, sql: str, bound: Mapping[str, Any]) -> pa.Table:
        """As `ask`, as a table of Arrow."""

    def ask(self, sql: str, bound: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return _columns(self.ask_table(sql, dict(bound or {})))


class DuckDBEngine(ArchiveEngine):
    """DuckDB over data files. Its errors are those of the store."""

    def __init__(self, place: Path, archive: Archive) -> None:
        super().__init__(place)
        self._archive = archive

    def view(self, name: str, table: Table, parts: Sequence[Rows]) -> None:
        selects = []
        for place, part in enumerate(parts or [Rows(table=table.columns.empty_table())]):
            source = f"{name}_{place}"
            rows = dataset(self._archive, table, part.files) if part.table is None else part.table
            self.register(source, rows)
            select = f"SELECT * FROM {source}"
            if part.segments is not None:
                ranges = part.ranges()
                self.register(f"{source}_ranges", ranges)
                # many ranges of one number are compared by a hash
                is_single = ranges["first"].equals(ranges["last"])
                within = "= r.first" if is_single else "BETWEEN r.first AND r.last"
                select += (
                    f" SEMI JOIN {source}_ranges AS r "
                    f"ON {source}.recording = r.recording AND segment {within}"
                )
            selects.append(select)
        self.run(f"CREATE TEMP VIEW {name} AS {' UNION ALL BY NAME '.join(selects)}")

    def ask_table(self, sql: str, bound: Mapping[str, Any]) -> pa.Table:
        self._go_on()
        with self._translate_errors():
            rows: pa.Table = self._connection.sql(sql, params=dict(bound)).to_arrow_table()
        return rows

    def _translate(self, error: Exception) -> IolabError:
        translated = super()._translate(error)
        # a damaged file costs its host, a store that fails costs the question
        if isinstance(translated, FormatError) and fault_of(error):
            return explain(error, self._archive.url, "read a data file")
        return translated


class SparkEngine(ArchiveEngine):
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
        # several answers share a session
        self._views[name] = f"{name}_{uuid.uuid4().hex}"
        self._cluster.view(self._views[name], table, parts)

    def ask_table(self, sql: str, bound: Mapping[str, Any]) -> pa.Table:
        self._go_on()
        views = tuple(sorted(self._views.items()))
        return self._cluster.ask(translate(sql, views), bound)


class _JointEngine(ArchiveEngine):
    """The engine of a question that is answered together with others."""

    def __init__(self, recording: ArchivedEvents) -> None:
        super().__init__(recording.path)
        self._recording = recording
        self._views: dict[str, tuple[Table, Sequence[Rows]]] = {}

    def view(self, name: str, table: Table, parts: Sequence[Rows]) -> None:
        self._views[name] = table, parts

    def ask_table(self, sql: str, bound: Mapping[str, Any]) -> pa.Table:
        self._go_on()
        request = REQUEST.get()
        assert request is not None
        rows: pa.Table = request(Statement(self._recording, dict(self._views), sql, bound))
        return rows


def open_engine(recording: ArchivedEvents) -> ArchiveEngine:
    """The engine that reads the rows of a recording."""
    return _JointEngine(recording) if REQUEST.get() is not None else _open_alone(recording)


def _open_alone(recording: ArchivedEvents) -> ArchiveEngine:
    if recording.cluster is not None:
        return SparkEngine(recording.path, recording.cluster)
    return DuckDBEngine(recording.path, recording.archive)


def read_together(requests: Sequence[FilesRequest | Statement]) -> list[Any]:
    """The answers of requests to one archive. Equal statements about different recordings become
    one statement, grouped by recording."""
    answers: dict[int, Any] = {}
    files: dict[tuple[str, str], list[int]] = {}
    statements: dict[Any, list[int]] = {}
    for place, request in enumerate(requests):
        if isinstance(request, FilesRequest):
            files.setdefault((request.table.name, request.source), []).append(place)
        else:
            statements.setdefault(_form(request), []).append(place)
    for places in files.values():
        of_table = [requests[place] for place in places]
        of_files = [request for request in of_table if isinstance(request, FilesRequest)]
        first = of_files[0]
        data_files = files_of(
            [request.recording for request in of_files],
            first.table,
            first.source,
            [request.span for request in of_files],
        )
        answers |= zip(places, data_files, strict=True)
    for places in statements.values():
        group = [request for place in places if isinstance(request := requests[place], Statement)]
        answers |= zip(places, _ask_group(group), strict=True)
    return [answers[place] for place in range(len(requests))]


def _form(statement: Statement) -> Any:
    """What is equal of statements that can be asked as one."""
    bound = dict(statement.bound)
    base_ns, interval_ns = bound.pop("base", 0), bound.get("interval", 1)
    return (
        id(statement.recording.cluster),
        statement.sql,
        tuple(sorted(bound.items())),
        base_ns // interval_ns // MOST_COLUMNS,
    )


def _ask_group(group: Sequence[Statement]) -> list[pa.Table | IolabError]:
    """The rows of each statement. Columns of time begin at the base of each."""
    try:
        return list(_ask_as_one(group))
    except ResultsError:
        raise
    except IolabError as error:
        # a damaged file, or too many rows for one statement
        if len(group) == 1:
            return [error]
        return [rows for statement in group for rows in _ask_group([statement])]


def _ask_as_one(group: Sequence[Statement]) -> Iterator[pa.Table]:
    import pyarrow.compute as pc

    first = group[0]
    bound = dict(first.bound)
    if "base" in bound:
        bound["base"] = min(statement.bound["base"] for statement in group)
    with _open_alone(first.recording) as engine:
        for name, (table, _) in first.views.items():
            parts = [part for statement in group for part in statement.views[name][1]]
            engine.view(name, table, join_rows(parts))
        rows = engine.ask_table(first.sql.replace(BY, "recording, "), bound)
    keys = [statement.recording.key for statement in group]
    place = pc.index_in(rows["recording"], value_set=_strings(keys)).to_numpy()
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(keys) + 1))
    ordered = rows.drop_columns(["recording"]).take(order)
    for statement, start, end in zip(group, ends[:-1], ends[1:], strict=True):
        part = ordered.slice(start, end - start)
        if "base" in bound and "c" in part.column_names:
            shift = (statement.bound["base"] - bound["base"]) // bound["interval"]
            column = pc.subtract(part["c"].cast("int64"), shift)
            part = part.set_column(part.column_names.index("c"), "c", column)
        yield part


def _strings(values: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string())


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


def _columns(rows: pa.Table) -> dict[str, Any]:
    """Columns as `Engine.ask` has them."""
    return {name: _mask_missing(rows.column(name)) for name in rows.column_names}


def _mask_missing(column: pa.ChunkedArray) -> Any:
    """A column, masked where values are missing."""
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
