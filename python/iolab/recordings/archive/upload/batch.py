# SPDX-License-Identifier: Apache-2.0
"""Rows of many segments that are added to each table in one commit.

A commit costs about the same for one data file as for many: requests to the store, and a new list of
the files of the table. So the data files of several groups of segments are written first.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import tables
from ..maintenance import delete_files
from ..store import Archive, expressions
from ..tables import Table
from .present import PresentSegments
from .rows import file_word, is_sorted, partition

if TYPE_CHECKING:
    import pyarrow as pa


class Batch:
    """Data files of segments of one recording and kind that are in no table yet.

    Attributes:
        size: bytes of its data files. lines: for `segments`, of what it has.
    """

    def __init__(self, archive: Archive, present: PresentSegments, host: str, key: str) -> None:
        self._archive, self._present, self._host, self._key = archive, present, host, key
        self._addresses: dict[str, tuple[Table, list[str]]] = {}
        self.size = 0
        self.lines: list[dict[str, Any]] = []

    @property
    def numbers(self) -> set[int]:
        """The segments."""
        return {line["segment"] for line in self.lines}

    def write(self, table: Table, parts: Sequence[pa.Table], first: int) -> None:
        """Write rows of segments as data files, one for each day and source. `first`: the first of the
        segments, for the names of the files. ResultsError where the store can't be written."""
        import pyarrow as pa

        if table.order[0] == "map":
            parts = sorted(parts, key=lambda part: part["map"][0].as_py() if part.num_rows else "")
        addresses = self._addresses.setdefault(table.name, (table, []))[1]
        for (day, source), part in partition(pa.concat_tables(parts)):
            if not is_sorted(part, table.order):
                part = part.sort_by([(name, "ascending") for name in table.order])
            name = f"{table.name}-{self._key}-{first:06}-{day}-{file_word(source)}-{uuid.uuid4().hex}.parquet"
            address, size = self._archive.write_file(table, name, part)
            addresses.append(address)
            self.size += size

    def commit(self) -> list[dict[str, Any]]:
        """Add the rows to their tables, then list the segments. Returns the lines that another process
        has not listed meanwhile. ResultsError where a table can't be written."""
        while self._addresses:
            # a commit that fails may have arrived: its files must stay
            table, addresses = self._addresses.pop(next(iter(self._addresses)))
            self._add(table, addresses)
        return self._list()

    def discard(self) -> None:
        """Delete the data files of which no commit was tried."""
        for table, addresses in self._addresses.values():
            delete_files(self._archive.table(table).io, addresses)
        self._addresses.clear()

    def _add(self, table: Table, addresses: list[str]) -> None:
        """Add data files in one commit. They replace rows of the same segments, of a killed push or of
        another process."""
        numbers = self.numbers

        def change(transaction: Any) -> None:
            present = self._present.read(table, self._host, self._key, min(numbers))
            replaced = numbers & {number for _, number in present}
            if replaced:
                of = expressions()
                transaction.delete(
                    of.And(of.EqualTo("recording", self._key), of.In("segment", replaced))
                )
            transaction.add_files(addresses, check_duplicate_files=False)

        snapshot = self._archive.commit(table, change)
        self._present.add(table, self._key, {("", number) for number in numbers}, snapshot)

    def _list(self) -> list[dict[str, Any]]:
        import pyarrow as pa

        new = self.lines

        def change(transaction: Any) -> None:
            nonlocal new
            present = self._present.read(tables.SEGMENTS, self._host, self._key)
            new = [line for line in self.lines if (line["kind"], line["segment"]) not in present]
            if new:
                transaction.append(pa.Table.from_pylist(new, schema=tables.SEGMENTS.columns))

        snapshot = self._archive.commit(tables.SEGMENTS, change)
        listed = {(line["kind"], line["segment"]) for line in new}
        self._present.add(tables.SEGMENTS, self._key, listed, snapshot)
        return new
