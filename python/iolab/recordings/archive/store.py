# SPDX-License-Identifier: Apache-2.0
"""An archive: the Iceberg catalog that holds its tables.

A directory and a prefix in S3 are archives with a catalog of their own (SQLite). `catalog:NAME` is a catalog of
PyIceberg's configuration (`~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__NAME__...`): REST, SQL, Hive,
Glue, with tables in S3 or another store. Credentials come from there or from the store's usual
chain, never from files of iolab.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from iolab.base.errors import ResultsError, UsageError

from . import tables
from .address import url_of
from .faults import explain_errors
from .tables import NAMESPACE, TABLES, Table

if TYPE_CHECKING:
    import pyarrow as pa

DATABASE = "catalog.db"
"""The catalog of a directory."""
SCHEME = "catalog:"
S3 = "s3://"
_SPECIAL = "?#%"
TRIES = 8
"""Commits of one change while others commit to the same table."""
PAUSE_S = 0.2
PROPERTIES = {
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "30",
}
"""Of each table. A commit adds a manifest, and each question reads all that can hold its rows: 30 become
one."""


@dataclass(frozen=True)
class ArchivedRecording:
    """A recording in an archive.

    Attributes:
        host, recording: its key.
        clock, sources, origin: of recording.json.
        first_ns: time of its earliest row; None: it has none.
        until_ns: everything before it that was recorded is archived.
        pushed_ns: time of the last push.
        events, samples, segments: numbers of what is archived.
        recorded_ns: until when its writer said that it recorded, None where it did not.
        labels: of its host, by name.
        kept: its kept statistics, as `rollups.parse_statistics` reads them.
    """

    host: str
    recording: str
    clock: str
    first_ns: int | None
    until_ns: int | None
    pushed_ns: int
    sources: dict[str, Any]
    origin: dict[str, Any]
    events: int = 0
    samples: int = 0
    segments: int = 0
    recorded_ns: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    kept: list[dict[str, Any]] = field(default_factory=list)


class Archive:
    """The tables of an archive.

    Attributes:
        url: as given.
    """

    def __init__(self, url: str, catalog: Any) -> None:
        self.url = url
        self._catalog = catalog
        self._tables: dict[str, Any] = {}

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Archive:
        """Open an archive: a directory, `file:///directory`, `s3://bucket/prefix` or `catalog:NAME`.

        Args:
            create: create what is missing.
        UsageError where `url` is none, or PyIceberg is not installed. ResultsError where there is
        no archive, or the catalog does not answer.
        """
        check_address(url)
        from pyiceberg.catalog import load_catalog

        # it warns of each retry; without a handler Python prints that
        logging.getLogger("pyiceberg").addHandler(logging.NullHandler())

        with explain_errors(url, "open the archive"):
            if url.startswith(SCHEME):
                archive = cls(url, load_catalog(url.removeprefix(SCHEME)))
            elif url.startswith(S3):
                from .object_catalog import ObjectCatalog

                archive = cls(url, ObjectCatalog(NAMESPACE, url, DATABASE, create=create))
            else:
                archive = cls(url, _directory_catalog(url, create))
            if create:
                archive.add_missing_tables()
            elif not archive._exists():
                raise ResultsError(
                    "is not an archive", where=url, hint="iolab archive push creates one"
                )
        return archive

    def _exists(self) -> bool:
        return bool(self._catalog.namespace_exists(NAMESPACE)) and bool(
            self._catalog.table_exists(f"{NAMESPACE}.{tables.RECORDINGS.name}")
        )

    def add_missing_tables(self) -> None:
        """Create the tables and columns that an archive of an older iolab lacks."""
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.table.sorting import SortField, SortOrder
        from pyiceberg.transforms import IdentityTransform

        self._catalog.create_namespace_if_not_exists(NAMESPACE)
        for table in TABLES:
            schema = tables.iceberg_schema(table)
            if self._catalog.table_exists(f"{NAMESPACE}.{table.name}"):
                self._renew(table, schema)
                continue
            self._catalog.create_table_if_not_exists(
                f"{NAMESPACE}.{table.name}",
                schema=schema,
                partition_spec=PartitionSpec(
                    *(
                        PartitionField(
                            schema.find_field(name).field_id,
                            1000 + place,
                            IdentityTransform(),
                            name,
                        )
                        for place, name in enumerate(table.partitions)
                    )
                ),
                sort_order=SortOrder(
                    *(
                        SortField(schema.find_field(name).field_id, IdentityTransform())
                        for name in table.order
                    )
                ),
                properties={"format-version": "2", **PROPERTIES},
            )

    def _renew(self, table: Table, schema: Any) -> None:
        """Add the columns and properties that an archive of an older iolab lacks."""
        iceberg = self.table(table)
        if set(schema.column_names) - set(iceberg.schema().column_names):
            with iceberg.update_schema() as update:
                update.union_by_name(schema)
        missing = {key: text for key, text in PROPERTIES.items() if key not in iceberg.properties}
        if missing:
            self.commit(table, lambda transaction: transaction.set_properties(missing))

    def tables(self) -> list[Table]:
        """The tables that it has: an archive of an older iolab lacks some until the next push."""
        with explain_errors(self.url, "read the catalog"):
            return [
                table for table in TABLES if self._catalog.table_exists(f"{NAMESPACE}.{table.name}")
            ]

    def table(self, table: Table) -> Any:
        """The PyIceberg table as it is now."""
        name = f"{NAMESPACE}.{table.name}"
        with explain_errors(self.url, f"read table {table.name}"):
            table_now = self._tables.get(name)
            if table_now is None:
                table_now = self._tables[name] = self._catalog.load_table(name)
            else:
                table_now.refresh()
            return table_now

    def read(self, table: Table, where: Any = None, columns: tuple[str, ...] = ("*",)) -> pa.Table:
        """Rows of a table that meet a PyIceberg expression (None: all)."""
        iceberg = self.table(table)
        with explain_errors(self.url, f"read table {table.name}"):
            rows: pa.Table = iceberg.scan(
                row_filter=expressions().AlwaysTrue() if where is None else where,
                selected_fields=columns,
            ).to_arrow()
            return rows

    def has(self, table: Table) -> bool:
        """Whether it has a table: an archive of an older iolab may lack it."""
        with explain_errors(self.url, "read the catalog"):
            name = f"{NAMESPACE}.{table.name}"
            return name in self._tables or bool(self._catalog.table_exists(name))

    def read_if_present(self, table: Table, where: Any = None) -> pa.Table:
        """As `read`, without rows where an archive of an older iolab lacks the table."""
        return self.read(table, where) if self.has(table) else table.columns.empty_table()

    def batches(self, table: Table, where: Any) -> Iterator[pa.RecordBatch]:
        """Rows of a table that meet an expression, batch by batch."""
        iceberg = self.table(table)
        with explain_errors(self.url, f"read table {table.name}"):
            yield from iceberg.scan(row_filter=where).to_arrow_batch_reader()

    def commit(self, table: Table, change: Any) -> Any:
        """Apply `change(transaction)` to a table in one commit. Where another writer committed first,
        `change` is called again: what it reads of the table is what it is committed to. Returns
        the current snapshot; None: there is none."""
        from pyiceberg.exceptions import CommitFailedException

        from .transaction import CheckedTransaction

        for attempt in range(1, TRIES + 1):
            iceberg = self.table(table)
            with explain_errors(self.url, f"write table {table.name}"):
                try:
                    transaction = CheckedTransaction(iceberg)
                    change(transaction)
                    transaction.drop_old_snapshots()
                    transaction.commit_transaction()
                    return iceberg.current_snapshot()
                except CommitFailedException:
                    if attempt == TRIES:
                        raise
            # writers that met do not meet again at once
            time.sleep(random.uniform(0, PAUSE_S * attempt))
        raise AssertionError("the last try returns or raises")

    def replace(self, table: Table, where: Any, new: pa.Table) -> int:
        """Replace the rows that meet an expression in one commit, unless they are the same. Returns
        the number of rows that were deleted."""
        deleted = 0

        def change(transaction: Any) -> None:
            nonlocal deleted
            old = self.read(table, where)
            deleted = 0
            if sorted(old.to_pylist(), key=repr) == sorted(new.to_pylist(), key=repr):
                return
            deleted = old.num_rows
            if deleted:
                transaction.delete(where)
            if new.num_rows:
                transaction.append(new)

        self.commit(table, change)
        return deleted

    def write_file(self, table: Table, name: str, rows: pa.Table) -> tuple[str, int]:
        """Write rows as a Parquet file below the table's location. Returns (address, bytes); it is
        no part of the table until it is added."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        iceberg = self.table(table)
        address = f"{iceberg.location().rstrip('/')}/data/{name}"
        with explain_errors(self.url, f"write {name}"):
            present = {
                key: way for key, way in tables.ENCODINGS.items() if key in rows.column_names
            }
            buffer = pa.BufferOutputStream()
            pq.write_table(
                rows,
                buffer,
                compression="zstd",
                use_dictionary=[key for key in rows.column_names if key not in present],
                column_encoding=present,
                write_page_checksum=True,
                row_group_size=1 << 20,
            )
            data = buffer.getvalue()
            with iceberg.io.new_output(address).create(overwrite=True) as stream:
                stream.write(data)
        return address, data.size

    def recordings(self) -> list[ArchivedRecording]:
        """What is archived, by host and time."""
        counts: dict[str, dict[str, int]] = {}
        numbers: dict[str, set[int]] = {}
        for row in self.read(
            tables.SEGMENTS, None, ("recording", "segment", "kind", "count")
        ).to_pylist():
            of_kind = counts.setdefault(row["recording"], {})
            of_kind[row["kind"]] = of_kind.get(row["kind"], 0) + row["count"]
            numbers.setdefault(row["recording"], set()).add(row["segment"])
        labels: dict[str, dict[str, str]] = {}
        for row in self.read_if_present(tables.HOSTS).to_pylist():
            labels.setdefault(row["host"], {})[row["label"]] = row["value"]
        recordings = [
            ArchivedRecording(
                row["host"],
                row["recording"],
                row["clock"],
                row["first_ns"],
                row["until_ns"],
                row["pushed_ns"],
                json.loads(row["sources"]),
                json.loads(row["origin"]),
                counts.get(row["recording"], {}).get("events", 0),
                counts.get(row["recording"], {}).get("samples", 0),
                len(numbers.get(row["recording"], ())),
                row.get("recorded_ns"),
                labels.get(row["host"], {}),
                json.loads(row.get("kept") or "[]"),
            )
            for row in self.read(tables.RECORDINGS).to_pylist()
        ]
        return sorted(recordings, key=lambda item: (item.host, item.first_ns or 0, item.recording))

    def rows_behind(self) -> dict[str, int]:
        """Rows that were not sealed at the last push, by key of their recording."""
        rows: dict[str, int] = {}
        where = expressions().EqualTo("kind", "behind")
        for row in self.read(tables.COVERAGE, where, ("recording", "count")).to_pylist():
            rows[row["recording"]] = rows.get(row["recording"], 0) + (row["count"] or 0)
        return rows

    def size(self) -> dict[str, tuple[int, int, int]]:
        """(rows, files, bytes) of each table, from its metadata alone."""
        sizes = {}
        for table in self.tables():
            iceberg = self.table(table)
            with explain_errors(self.url, f"read table {table.name}"):
                snapshot = iceberg.current_snapshot()
                summary = snapshot.summary if snapshot is not None else None
                sizes[table.name] = (
                    int((summary or {}).get("total-records") or 0),
                    int((summary or {}).get("total-data-files") or 0),
                    int((summary or {}).get("total-files-size") or 0),
                )
        return sizes


def check_address(url: str) -> None:
    """UsageError where `url` can be no archive, or a package that it needs is not installed. The
    store is not asked."""
    if url.removeprefix(SCHEME) in ("", "file://"):
        raise UsageError(
            "names no archive",
            where=url or "archive",
            hint="a directory, s3://BUCKET/PREFIX or catalog:NAME",
        )
    needed = [("pyiceberg.catalog", "PyIceberg", "archive")]
    if url.startswith(S3):
        needed.append(("boto3", "boto3", "archive-s3"))
    for module, name, extra in needed:
        try:
            is_installed = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            is_installed = False
        if not is_installed:
            raise UsageError(
                f"an archive needs {name}",
                where=url,
                hint=f"install it: pip install 'iolab[{extra}]'",
            )
    if url.startswith(S3):
        if not urlsplit(url).netloc:
            raise UsageError("names no bucket", where=url, hint="s3://BUCKET/PREFIX")
    elif not url.startswith(SCHEME):
        directory = _directory(url)
        path = url.removeprefix("file://")
        if named := url_of(path):
            raise UsageError(
                "is the archive as a path of iolab query, heatmap and view",
                where=url,
                hint=f"name it without the word before the colon: {named}",
            )
        if "://" in path:
            raise UsageError(
                "a store without a directory needs a catalog",
                where=url,
                hint="name one of PyIceberg's configuration: catalog:NAME",
            )
        if ":" in path.partition("/")[0]:
            raise UsageError(
                "is neither a directory nor a store",
                where=url,
                hint=f"s3://BUCKET/PREFIX, catalog:NAME, or ./{path} for a directory of that name",
            )
        if special := sorted(set(_SPECIAL) & set(str(directory))):
            raise UsageError(
                f"the path of an archive can't contain {' '.join(special)}",
                where=url,
                hint="they have a meaning in the addresses of its files",
            )


def _directory(url: str) -> Path:
    return Path(url.removeprefix("file://")).absolute()


def _directory_catalog(url: str, create: bool) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    directory = _directory(url)
    database = directory / DATABASE
    if not database.is_file():
        if not create:
            raise ResultsError(
                "is not an archive", where=url, hint="iolab archive push creates one"
            )
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise ResultsError(
                "is not empty and no archive", where=url, hint="name another directory"
            )
        # names of files and processes are in it
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(database, os.O_CREAT | os.O_WRONLY, 0o600))
    return SqlCatalog(
        NAMESPACE, uri=f"sqlite:///{database}", warehouse=f"file://{directory}/tables"
    )


def expressions() -> Any:
    """Module `pyiceberg.expressions`, of which the signatures that it declares are not those that
    it takes."""
    return importlib.import_module("pyiceberg.expressions")
