# SPDX-License-Identifier: Apache-2.0
"""Hot files: Arrow IPC streams that a kill or a flipped bit shortens, never spoils.

Each append is one group of messages: dictionaries that changed, then one record batch (the first
group begins with the schema). The batch's metadata bears `crc32`: eight hexadecimal digits over all
bytes of the group, those digits taken as zeros. It is checked before anything else looks at the
group.
"""

from __future__ import annotations

import io
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...files import RefusedFileError, map_regular
from ..base.layout import KINDS, Kind, telling
from ..base.loss_log import damage
from .segments import Segment, write_segment

LARGEST = 1 << 30
"""Bytes that a hot file may have; it is sealed long before."""
MOST_TRIES = 2000
"""Places behind damage at which an append is looked for."""

_DIGITS = b"00000000"
_EIGHTS = b"".join(re.escape(bytes([low])) for low in range(0, 256, 8))
# a message begins with this, at a multiple of eight: four bytes of ones, and how long its metadata
# are, a multiple of eight as well. Ones alone are in all that says which rows have a value, and
# would use the tries up
_BEGIN = re.compile(rb"\xff{4}(?!\x00{4})(?=[" + _EIGHTS + rb"][\x00-\xff][\x00-\x0f]\x00)")
# a string of a flatbuffer: its length, its bytes, a zero
_CRC = re.compile(rb"\x08\x00\x00\x00([0-9a-f]{8})\x00")


class HotLog:
    """Appends record batches of one schema to a new file.

    After a failed append the file ends in a torn group, so that it takes no more: `broken` is then
    true.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.schema = path, schema
        self.rows = self.bytes = 0
        self.broken = False
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(
            path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666
        )
        self._sink = io.BytesIO()
        self._stream = pa.ipc.new_stream(self._sink, schema)

    def append(self, batch: pa.RecordBatch) -> None:
        """Append one batch with a single write. OSError where it doesn't fit; what was appended
        before stays readable."""
        self._stream.write_batch(batch, custom_metadata={"crc32": _DIGITS.decode()})
        with self._sink.getbuffer() as group:
            place = _crc_place(pa.py_buffer(group), 0)
            assert place is not None, "the group just written has its place for a checksum"
            group[place.digits : place.digits + 8] = b"%08x" % zlib.crc32(group)
            self._write(group)
            self.bytes += len(group)
        self._sink.seek(0)
        self._sink.truncate()
        self.rows += batch.num_rows

    def _write(self, group: memoryview) -> None:
        done = 0
        try:
            while done < len(group):
                done += os.write(self._file, group[done:])
        except OSError:
            self.broken = True
            raise

    def close(self) -> None:
        """Append no more."""
        os.close(self._file)


@dataclass(frozen=True)
class HotRead:
    """What a hot file holds: batches up to the first that is torn or damaged; bytes read well, and
    bytes from there on. damaged: whether whole ones follow, or the last is as long as it says and
    not what was written: so that it is no end that a kill tore or that is being written."""

    batches: list[pa.RecordBatch]
    good: int
    dropped: int
    damaged: bool = False


def last_ns(batches: Iterable[pa.RecordBatch]) -> int | None:
    """The latest time in batches; None where they have no rows."""
    return max(
        (int(batch.column("time_ns").to_numpy().max()) for batch in batches if batch.num_rows),
        default=None,
    )


def read_hot(path: Path, schema: pa.Schema) -> HotRead:
    """Read a hot file, without copying it. It may grow meanwhile. FileNotFoundError where it has
    been sealed and removed."""
    try:
        data = pa.py_buffer(map_regular(path, limit=LARGEST))
    except RefusedFileError:
        return HotRead([], 0, path.lstat().st_size, True)
    if not data.size:
        return HotRead([], 0, 0)
    good, position = 0, 0
    while (place := _crc_place(data, position)) is not None:
        if not _crc_holds(data, position, place):
            break
        good = position = place.end
    batches: list[pa.RecordBatch] = []
    if good:
        try:
            reader = pa.ipc.open_stream(data.slice(0, good))
            if not reader.schema.equals(schema):
                return HotRead([], 0, data.size, True)
            for batch in reader:
                batch.validate(full=True)
                batches.append(batch)
        except (pa.ArrowException, OSError):
            # as improbable as a checksum that holds by chance
            return HotRead([], 0, data.size, True)
    return HotRead(
        batches,
        good,
        data.size - good,
        good < data.size and (_crc_place(data, good) is not None or _goes_on(data, good)),
    )


def segment_of(number: int, path: Path, read: HotRead) -> Segment | None:
    """The segment of a hot file; None without rows."""
    if not read.batches:
        return None
    # one dictionary and one aggregation: a group_by for each batch of a second costs 0.6 ms
    table = pa.Table.from_batches(read.batches).unify_dictionaries()
    times = table.column("time_ns").to_numpy()
    counts = table.select(["source"]).append_column(
        "count",
        table.column("count")
        if "count" in table.column_names
        else pa.array([1] * table.num_rows, pa.uint64()),
    )
    sums = counts.group_by("source").aggregate([("count", "sum")])
    sources = {row["source"]: row["count_sum"] for row in sums.to_pylist()}
    return Segment(
        number,
        path,
        "hot",
        int(times.min()),
        int(times.max()),
        sources,
        {"rows": table.num_rows, "bytes": read.good},
    )


@dataclass
class RetiredLogs:
    """Hot files of one number that take no more. is_sealed: whether their segment is written, so
    that they are only to be removed, and `losses` to be noted."""

    number: int
    logs: dict[Kind, HotLog]
    is_sealed: bool = False
    losses: list[Mapping[str, Any]] = field(default_factory=list)

    def write(self, directory: Path, losses: Mapping[str, int], told_ns: int | None) -> None:
        """Write their segment. ResultsError where the disk refuses: they stay as they are.

        Args:
            losses: records lost by source. told_ns: until when everything is there.
        """
        batches = {kind: _read_back(self.logs.get(kind)) for kind in KINDS}
        write_segment(directory, self.number, batches["events"], batches["samples"], losses)
        self.is_sealed = True
        for kind, log in self.logs.items():
            rows = log.rows - sum(batch.num_rows for batch in batches[kind])
            if rows > 0:
                words = f"hot {kind} {self.number:06} were damaged before they were sealed"
                self.losses.append(damage(kind, last_ns(batches[kind]), told_ns, rows, words))

    def remove(self) -> None:
        """Remove the files. ResultsError where the disk refuses."""
        for log in self.logs.values():
            with telling(log.path, "remove what was sealed"):
                log.path.unlink(missing_ok=True)


def _read_back(log: HotLog | None) -> list[pa.RecordBatch]:
    if log is None or not log.rows:
        return []
    with telling(log.path, "read what was recorded"):
        try:
            return read_hot(log.path, log.schema).batches
        except FileNotFoundError:
            return []


def _goes_on(data: pa.Buffer, start: int) -> bool:
    """Whether the bytes at `start` are of a whole append. It can't be read: the names that
    it refers to may have been before."""
    tries = 0
    for match in _BEGIN.finditer(memoryview(data), start + 1):
        if match.start() % 8 == 0:
            tries += 1
            place = _crc_place(data, match.start())
            if place is not None and _crc_holds(data, match.start(), place):
                return True
            if tries == MOST_TRIES:
                break
    return False


@dataclass(frozen=True)
class _Place:
    digits: int
    end: int


def _crc_place(data: pa.Buffer, start: int) -> _Place | None:
    """Where the digits of the group beginning at `start` are, and where it ends; None where no
    whole group begins there."""
    source = pa.BufferReader(data)
    source.seek(start)
    while (begin := source.tell()) < data.size:
        try:
            message = pa.ipc.read_message(source)
        except (pa.ArrowException, EOFError, OSError):
            return None
        if message.type == "record batch":
            metadata = message.metadata.to_pybytes()
            digits = [match.start(1) for match in _CRC.finditer(metadata)]
            end = source.tell()
            # continuation and length stand before the metadata; the body ends the group
            return (
                _Place(begin + 8 + digits[0], end)
                if len(digits) == 1 and end - begin >= 8 + len(metadata)
                else None
            )
        if message.type not in ("schema", "dictionary"):
            return None
    return None


def _crc_holds(data: pa.Buffer, start: int, place: _Place) -> bool:
    crc = zlib.crc32(data.slice(start, place.digits - start))
    crc = zlib.crc32(_DIGITS, crc)
    crc = zlib.crc32(data.slice(place.digits + 8, place.end - place.digits - 8), crc)
    return bool(b"%08x" % crc == data.slice(place.digits, 8).to_pybytes())
