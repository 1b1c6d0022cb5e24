# SPDX-License-Identifier: Apache-2.0
"""Maintenance of an archive by the procedures of the table format: join small data files, and delete
old snapshots with the files that only they have."""

from __future__ import annotations

import contextlib
import re
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import tables
from .faults import explain_errors
from .store import Archive
from .tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

TARGET_BYTES = 32 << 20
"""Size up to which files are joined: about 3 million I/Os, which are in memory at once."""
SNAPSHOT_AGE_NS = 86_400 * 10**9
"""Age at which snapshots are deleted: no reader and no push takes that long."""
_COMPACTED = (
    tables.EVENTS, tables.SAMPLES, tables.SEGMENT_MAPS, tables.COARSE_MAPS, tables.SEGMENTS,
    *tables.ROLLUPS.values(),
)  # fmt: skip

_LIST = re.compile(r"/snap-[^/]*\.avro$")
"""Lists of the manifests of a snapshot, as all engines name them."""
_TORN = (ValueError, EOFError, LookupError, zlib.error, FileNotFoundError)
"""Errors of a list that a writer left when it was killed."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Compacted:
    """What a compaction of a table did.

    Attributes:
        before, after: numbers of the files that were joined, and of the files they became.
        bytes_before, bytes_after: their sizes. skipped: files that another writer changed meanwhile.
    """

    before: int = 0
    after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Expired:
    """What was deleted of a table: snapshots, files, and those that the store could not delete."""

    snapshots: int = 0
    files: int = 0
    failed: int = 0


class ChangedError(Exception):
    """Another writer changed files of a group."""


def compact(
    archive: Archive,
    target_bytes: int = TARGET_BYTES,
    progress: Progress = lambda done, total: None,
) -> dict[str, Compacted]:
    """Join small data files of the same day, source and host into files of up to `target_bytes`, and
    write files again of which another engine deleted rows. Returns what was done, by table.

    The rows and all answers remain. The joined files stay in the store until `expire` deletes the
    snapshots that have them. ResultsError where a table can't be read or written: what was joined
    before stays so.
    """
    names = {table.name for table in _COMPACTED}
    compacted = [table for table in archive.tables() if table.name in names]
    groups = [
        (table, group) for table in compacted for group in _groups(archive, table, target_bytes)
    ]
    done = {table.name: Compacted() for table in compacted}
    for place, (table, group) in enumerate(groups):
        progress(place, len(groups))
        done[table.name] = _add(done[table.name], _join(archive, table, group))
    progress(len(groups), len(groups))
    return done


def _add(first: Compacted, second: Compacted) -> Compacted:
    return Compacted(
        *(getattr(first, name) + getattr(second, name) for name in Compacted.__dataclass_fields__)
    )


def _groups(archive: Archive, table: Table, target_bytes: int) -> Iterator[list[Any]]:
    """Scan tasks of files that become one file: neighbours in time."""
    partitions: dict[tuple[Any, ...], list[Any]] = {}
    iceberg = archive.table(table)
    time_field = iceberg.schema().find_field(table.order[-1]).field_id if table.order else None
    with explain_errors(archive.url, f"read table {table.name}"):
        for task in iceberg.scan().plan_files():
            values = task.file.partition
            key = tuple(values[place] for place in range(len(table.partitions)))
            partitions.setdefault((task.file.spec_id, *key), []).append(task)
    for tasks in partitions.values():
        tasks.sort(key=lambda task: _first(task, time_field))
        group: list[Any] = []
        size = 0
        for task in tasks:
            if task.file.file_size_in_bytes > target_bytes // 2 and not task.delete_files:
                continue
            if group and size + task.file.file_size_in_bytes > target_bytes:
                if _is_worth(group):
                    yield group
                group, size = [], 0
            group.append(task)
            size += task.file.file_size_in_bytes
        if _is_worth(group):
            yield group


def _first(task: Any, time_field: int | None) -> tuple[int, str]:
    """Order of files: their first time, a long in Iceberg's form, then their name."""
    low = (task.file.lower_bounds or {}).get(time_field)
    return (
        0 if low is None else int.from_bytes(low, "little", signed=True),
        str(task.file.file_path),
    )


def _is_worth(group: Sequence[Any]) -> bool:
    return len(group) > 1 or any(task.delete_files for task in group)


def _join(archive: Archive, table: Table, group: Sequence[Any]) -> Compacted:
    from pyiceberg.exceptions import ValidationException

    iceberg = archive.table(table)
    rows = read_files(archive, table, iceberg, group)
    size_before = sum(task.file.file_size_in_bytes for task in group)
    if rows.num_rows:
        name = f"{table.name}-compacted-{uuid.uuid4().hex}.parquet"
        address, size = archive.write_file(table, name, rows)
    else:
        address, size = None, 0
    addresses = {task.file.file_path for task in group}

    def change(transaction: Any) -> None:
        present = {task.file.file_path for task in archive.table(table).scan().plan_files()}
        if not addresses <= present:
            raise ChangedError
        with transaction.update_snapshot().overwrite() as update:
            for task in group:
                update.delete_data_file(task.file)
        if address is not None:
            transaction.add_files([address], check_duplicate_files=False)

    try:
        archive.commit(table, change)
    except (ChangedError, ValidationException):
        if address is not None:
            delete_files(iceberg.io, [address])
        return Compacted(skipped=len(group))
    return Compacted(len(group), int(address is not None), size_before, size)


def read_files(archive: Archive, table: Table, iceberg: Any, group: Sequence[Any]) -> pa.Table:
    """The rows of files, without those that another engine deleted, in the order of the table."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    with explain_errors(archive.url, f"read table {table.name}"):
        scan = ArrowScan(iceberg.metadata, iceberg.io, iceberg.schema(), AlwaysTrue())
        rows: pa.Table = scan.to_table(group)
        rows = rows.select(table.columns.names).cast(table.columns)
        order = [(name, "ascending") for name in table.order]
        return rows.sort_by(order) if order else rows


def expire(archive: Archive, age_ns: int = SNAPSHOT_AGE_NS) -> dict[str, Expired]:
    """Delete snapshots that are older than `age_ns`, but for the current one of each table, and the
    files that no remaining snapshot has. Returns what was deleted, by table.

    Files of no snapshot of the table are deleted too, once they are a day old or of that age. They are
    of snapshots that a commit left out of the list, or of writers that were killed before their
    commit.

    A reader that began before and reads for longer than the age finds its files deleted.
    ResultsError where a table can't be read or written.
    """
    now_ns = time.time_ns()
    return {table.name: _expire_table(archive, table, now_ns, age_ns) for table in archive.tables()}


def _expire_table(archive: Archive, table: Table, now_ns: int, age_ns: int) -> Expired:
    from pyiceberg.table.update.snapshot import ExpireSnapshots

    until_ms = (now_ns - age_ns) // 10**6
    iceberg = archive.table(table)
    with explain_errors(archive.url, f"read table {table.name}"):
        heads = {reference.snapshot_id for reference in iceberg.refs().values()}
        old: list[Any] = []
        kept: list[Any] = []
        for snapshot in iceberg.snapshots():
            is_old = snapshot.timestamp_ms < until_ms and snapshot.snapshot_id not in heads
            (old if is_old else kept).append(snapshot)
        used = _files(iceberg.io, [snapshot.manifest_list for snapshot in kept])
        unused = _files(iceberg.io, [snapshot.manifest_list for snapshot in old]) - used
        lost_before_ns = now_ns - max(age_ns, SNAPSHOT_AGE_NS)
        unused |= _unlisted_files(iceberg, used | unused, lost_before_ns)
    if old:
        numbers = [snapshot.snapshot_id for snapshot in old]
        archive.commit(table, lambda change: ExpireSnapshots(change).by_ids(numbers).commit())
    if unused:
        # files that came back meanwhile: a snapshot may be made of older ones
        with explain_errors(archive.url, f"read table {table.name}"):
            remaining = archive.table(table).snapshots()
            unused -= _files(iceberg.io, [snapshot.manifest_list for snapshot in remaining])
    failed = delete_files(iceberg.io, sorted(unused))
    return Expired(len(old), len(unused) - failed, failed)


def _files(store: Any, lists: Sequence[str]) -> set[str]:
    """Addresses of all files of snapshots with these lists of manifests: lists, manifests, data."""
    from pyiceberg.manifest import read_manifest_list

    addresses: set[str] = set()
    for address in lists:
        addresses.add(address)
        for manifest in read_manifest_list(store.new_input(address)):
            if manifest.manifest_path in addresses:
                continue
            addresses.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(store, discard_deleted=True):
                addresses.add(entry.data_file.file_path)
    return addresses


def _unlisted_files(iceberg: Any, known: set[str], before_ns: int) -> set[str]:
    """Data files, manifests and lists in the directory of a table that are older than a time. They are
    not among the `known` files, nor in a snapshot after that time that a commit left out.

    Of these snapshots the oldest is read: it has each older file that a later one has.
    """
    from pyiceberg.io.pyarrow import PyArrowFileIO

    def path_of(address: str) -> str:
        # other engines may write another scheme
        return PyArrowFileIO.parse_location(address, iceberg.io.properties)[2]

    paths = {path_of(address) for address in known}
    listed = {
        address: modified_ns
        for address, modified_ns in _stored_files(iceberg)
        if path_of(address) not in paths
    }
    dropped = [
        (modified_ns, address)
        for address, modified_ns in listed.items()
        if modified_ns >= before_ns and _LIST.search(address)
    ]
    unlisted = {address for address, modified_ns in listed.items() if modified_ns < before_ns}
    for _, address in sorted(dropped) if unlisted else ():
        try:
            used = {path_of(name) for name in _files(iceberg.io, [address])}
        except _TORN:
            continue
        return {name for name in unlisted if path_of(name) not in used}
    return unlisted


def _stored_files(iceberg: Any) -> Iterator[tuple[str, int]]:
    """(address, time of change in ns) of the files of these kinds in the directory of a table."""
    from pyarrow.fs import FileSelector
    from pyiceberg.io.pyarrow import PyArrowFileIO

    properties = iceberg.io.properties
    for directory, ending in (("data", ".parquet"), ("metadata", ".avro")):
        location = f"{iceberg.location().rstrip('/')}/{directory}"
        scheme, host, path = PyArrowFileIO.parse_location(location, properties)
        filesystem = PyArrowFileIO(properties).fs_by_scheme(scheme, host)
        for info in filesystem.get_file_info(
            FileSelector(path, allow_not_found=True, recursive=True)
        ):
            if info.is_file and info.path.endswith(ending) and info.mtime_ns is not None:
                yield location + info.path[len(path) :], info.mtime_ns


def delete_files(store: Any, addresses: Sequence[str]) -> int:
    """Delete files; how many could not be."""
    failed = len(addresses)
    for address in addresses:
        with contextlib.suppress(Exception):
            store.delete(address)
            failed -= 1
    return failed
