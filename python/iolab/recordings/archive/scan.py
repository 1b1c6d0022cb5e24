# SPDX-License-Identifier: Apache-2.0
"""Data files of an archive that can hold rows of some recordings, a source and a span, and their
rows as an Arrow dataset. Partitions and statistics of the table choose them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .faults import explain_errors
from .store import Archive, expressions
from .tables import Table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

Range = tuple[Any, Any]
"""The least and the largest value of a column in a file."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table.

    Attributes:
        address: its URL. bytes, rows: its size. recordings, segments, times: ranges of its columns
        `recording`, `segment`, and `time_ns` or `second_ns`; None where the table does not say.
        has_deletes: whether another engine deleted rows of it without a new file.
    """

    address: str
    bytes: int
    rows: int
    recordings: Range | None
    segments: Range | None
    times: Range | None
    has_deletes: bool

    def may_hold(self, key: str) -> bool:
        """Whether it can have rows of a recording."""
        return self.recordings is None or self.recordings[0] <= key <= self.recordings[1]

    def may_overlap(self, from_ns: int, until_ns: int) -> bool:
        """Whether it can have rows of a span."""
        return self.times is None or (self.times[0] < until_ns and self.times[1] >= from_ns)

    def holds_only(self, key: str, numbers: Collection[int]) -> bool:
        """Whether all its rows are of a recording and of these segments."""
        if self.recordings != (key, key) or self.segments is None or self.has_deletes:
            return False
        first, last = self.segments
        return last - first < len(numbers) and all(
            number in numbers for number in range(first, last + 1)
        )


@dataclass(frozen=True)
class Rows:
    """Rows of data files, or of a table in memory.

    Attributes:
        files, table: where they are. segments: of these recordings and segments only; None: all.
    """

    files: Sequence[DataFile] = ()
    table: pa.Table | None = None
    segments: Mapping[str, Collection[int]] | None = None

    def ranges(self) -> pa.Table:
        """Ranges of consecutive segments: columns recording, first, last (included)."""
        import pyarrow as pa

        ranges = []
        for recording, numbers in (self.segments or {}).items():
            ordered = sorted(numbers)
            breaks = [place for place, (a, b) in enumerate(pairwise(ordered), 1) if b != a + 1]
            ranges += [
                (recording, ordered[first], ordered[past - 1])
                for first, past in pairwise([0, *breaks, len(ordered)])
                if first < past
            ]
        kinds = (("recording", pa.string()), ("first", pa.int64()), ("last", pa.int64()))
        return pa.table(
            {
                name: pa.array([line[place] for line in ranges], kind)
                for place, (name, kind) in enumerate(kinds)
            }
        )


def join_rows(parts: Iterable[Rows]) -> list[Rows]:
    """The rows of some parts, which have no row in common, in fewer parts."""
    every = list(parts)
    joined = [part for part in every if part.table is not None]
    whole_files = {
        file.address: file for part in every if part.segments is None for file in part.files
    }
    joined += [Rows(list(whole_files.values()))] if whole_files else []
    divided = [part for part in every if part.segments is not None and part.files]
    if divided:
        files = {file.address: file for part in divided for file in part.files}
        segments: dict[str, Collection[int]] = {}
        for part in divided:
            segments |= part.segments or {}
        joined.append(Rows(list(files.values()), segments=segments))
    return joined


def row_filter(
    keys: Sequence[str],
    from_ns: int | None = None,
    until_ns: int | None = None,
    sources: Sequence[str] = (),
    time_column: str = "time_ns",
) -> Any:
    """The PyIceberg expression for rows of recordings in a span (None: open), of sources (none:
    all)."""
    from datetime import UTC, datetime, timedelta

    def day(time_ns: int) -> str:
        # outside the calendar every day is read
        seconds = min(max(time_ns // 10**9, -62_135_596_800), 253_402_300_799)
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).date().isoformat()

    of = expressions()
    where: Any = of.In("recording", keys)
    if from_ns is not None:
        where = of.And(
            where,
            of.GreaterThanOrEqual(time_column, from_ns),
            of.GreaterThanOrEqual("day", day(from_ns)),
        )
    if until_ns is not None:
        where = of.And(
            where, of.LessThan(time_column, until_ns), of.LessThanOrEqual("day", day(until_ns))
        )
    return of.And(where, of.In("source", sources)) if sources else where


def data_files(archive: Archive, table: Table, where: Any) -> list[DataFile]:
    """Files of a table that can hold rows of a filter. Only metadata is read."""
    iceberg = archive.table(table)
    with explain_errors(archive.url, f"read table {table.name}"):
        tasks = iceberg.scan(row_filter=where).plan_files()
        return [file_of(task, table, iceberg.schema()) for task in tasks]


def file_of(task: Any, table: Table, schema: Any) -> DataFile:
    """The data file of a task of a scan."""
    from pyiceberg.conversions import from_bytes

    def range_of(column: str) -> Range | None:
        field = schema.find_field(column)
        low = task.file.lower_bounds.get(field.field_id)
        high = task.file.upper_bounds.get(field.field_id)
        if low is None or high is None:
            return None
        return from_bytes(field.field_type, low), from_bytes(field.field_type, high)

    return DataFile(
        task.file.file_path,
        task.file.file_size_in_bytes,
        task.file.record_count,
        range_of("recording"),
        range_of("segment"),
        range_of(table.order[-1]),
        bool(task.delete_files),
    )


def dataset(archive: Archive, table: Table, files: Iterable[DataFile]) -> ds.Dataset:
    """Rows of data files, with the columns of the table. Checksums of pages are checked when they
    are read. Files with deletes can't be read so."""
    import pyarrow.dataset as ds
    from pyiceberg.io.pyarrow import PyArrowFileIO

    properties = archive.table(table).io.properties
    store = PyArrowFileIO(properties)
    form = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(
            page_checksum_verification=True, pre_buffer=True
        )
    )
    filesystem: Any = None
    paths = []
    for file in files:
        scheme, host, path = PyArrowFileIO.parse_location(file.address, properties)
        if filesystem is None:
            filesystem = store.fs_by_scheme(scheme, host)
        paths.append(path)
    with explain_errors(archive.url, f"read table {table.name}"):
        return ds.FileSystemDataset.from_paths(
            paths, schema=table.columns, format=form, filesystem=filesystem
        )


def to_recorded(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of an archive with the columns of recordings."""
    import pyarrow as pa

    columns = [
        rows.column(field.name).cast(field.type)
        if not pa.types.is_dictionary(field.type)
        else rows.column(field.name).cast(pa.string()).dictionary_encode().cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema).combine_chunks()
