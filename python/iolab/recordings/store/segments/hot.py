# SPDX-License-Identifier: Apache-2.0
"""Hot files: Arrow IPC streams that a kill or a flipped bit shortens, never spoils.

Each append is one group of messages: dictionaries that changed, then one record batch (the first
group begins with the schema). The batch's metadata bears `crc32`: eight hexadecimal digits over all
bytes of the group, those digits taken as zeros. It is checked before anything else looks at the
group.

`UnsealedRows` has the rows that are not sealed, by source and time.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolab import _core
from iolab.base.files import RefusedFileError, make_folders, map_regular, open_for_writing, remove

from ..base.layout import KINDS, Kind, telling
from ..base.loss_log import damage
from .sealing import write_segment
from .segments import Segment


class SourceBatch(NamedTuple):
    """Rows of one source. events: I/Os; of samples, readings. first_ns, last_ns: the earliest and
    the latest time."""

    source: str
    rows: pa.RecordBatch
    events: int
    first_ns: int
    last_ns: int


def split_by_source(batch: pa.RecordBatch) -> Iterator[SourceBatch]:
    """The rows of each source of a batch. Rows of a single source, the usual case, are not
    copied."""
    if not batch.num_rows:
        return
    source = batch.column("source")
    codes = np.asarray(source.indices)
    used = np.unique(codes) if len(source.dictionary) > 1 else codes[:1]
    for code in used.tolist():
        rows = batch if len(used) == 1 else batch.filter(pa.array(codes == code))
        times = pc.min_max(rows.column("time_ns")).as_py()
        events = (
            int(rows.column("count").to_numpy().sum())
            if "count" in rows.schema.names
            else rows.num_rows
        )
        yield SourceBatch(source.dictionary[code].as_py(), rows, events, times["min"], times["max"])


class UnsealedRows:
    """Rows that are not sealed, in batches of one source each. To choose among them copies none."""

    def __init__(self, batches: Sequence[SourceBatch], schema: pa.Schema) -> None:
        self._schema, self._all = schema, batches
        self._batches: dict[str, list[SourceBatch]] = {}
        for batch in batches:
            self._batches.setdefault(batch.source, []).append(batch)

    @property
    def sources(self) -> Sequence[str]:
        """Sources with rows."""
        return list(self._batches)

    def bounds(self, source: str) -> tuple[int, int] | None:
        """(first, last) time of a source; None without rows."""
        batches = self._batches.get(source)
        if not batches:
            return None
        return min(batch.first_ns for batch in batches), max(batch.last_ns for batch in batches)

    def batches(self, source: str) -> Sequence[SourceBatch]:
        """The batches of a source. They do not change: later rows come in further batches."""
        return self._batches.get(source, ())

    def only(self, batches: Sequence[SourceBatch]) -> UnsealedRows:
        """Some of the batches alone."""
        return UnsealedRows(batches, self._schema)

    def of(self, source: str, span: tuple[int, int] | None = None) -> pa.Table | None:
        """Rows of a source, None where there are none. span: from (ns) up to, not including, until
        (ns); batches without a row in it are left out, other rows beyond it are not."""
        rows = [
            batch.rows
            for batch in self._batches.get(source, ())
            if span is None or (batch.first_ns < span[1] and batch.last_ns >= span[0])
        ]
        return pa.Table.from_batches(rows, self._schema) if rows else None

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches([batch.rows for batch in self._all], self._schema)


LARGEST = 1 << 30
"""Bytes that a hot file may have; it is sealed long before."""
MOST_TRIES = 2000
"""Places behind damage at which an append is looked for."""

_PIECE = 1 << 18
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
        make_folders(path.parent)
        self._file = open_for_writing(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
        self._sink = io.BytesIO()
        self._stream = pa.ipc.new_stream(self._sink, schema)

    def append(self, batch: pa.RecordBatch) -> None:
        """Append one batch with a single write. OSError where it doesn't fit; what was appended
        before stays readable."""
        self._stream.write_batch(batch, custom_metadata={"crc32": _DIGITS.decode()})
        with self._sink.getbuffer() as group:
            place = _crc_place(pa.py_buffer(group), 0)
            assert place is not None, "the group just written has its place for a checksum"
            group[place.digits : place.digits + 8] = b"%08x" % _crc32(group)
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
    """What a hot file holds.

    Attributes:
        batches: up to the first that is torn or damaged. good: bytes read well. dropped: bytes from
        there on. damaged: whether whole batches follow, or the last one is complete and wrong. Then
        the end is neither torn by a kill nor being written. by_source: the rows of the batches.
    """

    batches: Sequence[pa.RecordBatch]
    good: int
    dropped: int
    damaged: bool = False
    by_source: Sequence[SourceBatch] = ()

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """The first and last time in ns, None without rows."""
        if not self.by_source:
            return None
        first = min(batch.first_ns for batch in self.by_source)
        return first, max(batch.last_ns for batch in self.by_source)

    @cached_property
    def events(self) -> Mapping[str, int]:
        """I/Os by source; of samples, readings."""
        events: Counter[str] = Counter()
        for batch in self.by_source:
            events[batch.source] += batch.events
        return dict(events)

    @property
    def rows(self) -> int:
        """Rows of all batches."""
        return sum(batch.num_rows for batch in self.batches)


class HotReader:
    """Reads a hot file; later, what was appended since. What was checked once is not read again."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._restart()

    def _restart(self) -> None:
        self._read = HotRead((), 0, 0)
        # a stream that ends where the last batch did: the schema, and the names that hold there
        self._state: pa.Buffer | None = None

    def read(self) -> HotRead:
        """Read to the end of the file, without copying it. It may grow meanwhile. FileNotFoundError
        where it has been sealed and removed."""
        try:
            data = pa.py_buffer(map_regular(self._path, limit=LARGEST))
        except RefusedFileError:
            self._restart()
            return HotRead((), 0, self._path.lstat().st_size, True)
        if data.size < self._read.good:
            self._restart()
        before = self._read
        end = before.good
        while end < data.size and (place := _crc_place(data, end)) is not None:
            if not _crc_holds(data, end, place):
                break
            end = place.end
        if end > before.good:
            try:
                self._take(data.slice(before.good, end - before.good))
            except (pa.ArrowException, OSError):
                # as improbable as a checksum that is right by chance
                self._restart()
                return HotRead((), 0, data.size, True)
        self._read = replace(
            self._read,
            good=end,
            dropped=data.size - end,
            damaged=end < data.size and (_crc_place(data, end) is not None or _goes_on(data, end)),
        )
        return self._read

    def _take(self, groups: pa.Buffer) -> None:
        """Read whole groups that follow those read before. ArrowException where they are none."""
        parts = [groups] if self._state is None else [self._state, groups]
        reader = pa.ipc.open_stream(_Concatenation(parts))
        if not reader.schema.equals(self._schema):
            raise pa.ArrowInvalid("another schema")
        # the batch of the state has no rows
        batches = list(reader)[0 if self._state is None else 1 :]
        for batch in batches:
            batch.validate(full=True)
        if not batches:
            return
        state = io.BytesIO()
        pa.ipc.new_stream(state, self._schema).write_batch(batches[-1].slice(0, 0))
        self._state = pa.py_buffer(state.getvalue())
        before = self._read
        by_source = [part for batch in batches for part in split_by_source(batch)]
        self._read = HotRead(
            (*before.batches, *batches),
            before.good,
            0,
            by_source=(*before.by_source, *by_source),
        )


class _Concatenation:
    """Buffers as one file for Arrow, which copies none of them. Messages do not cross them."""

    closed = False

    def __init__(self, parts: Sequence[pa.Buffer]) -> None:
        self._parts, self._place = list(parts), 0

    def read(self, size: int) -> pa.Buffer | bytes:
        """Up to `size` bytes of one part; none at the end."""
        while self._parts and self._place == self._parts[0].size:
            self._place = 0
            del self._parts[0]
        if not self._parts:
            return b""
        piece = self._parts[0].slice(self._place, min(size, self._parts[0].size - self._place))
        self._place += piece.size
        return piece

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it has positions: never."""
        return False


def last_ns(batches: Iterable[pa.RecordBatch]) -> int | None:
    """The latest time in batches; None where they have no rows."""
    return max(
        (int(batch.column("time_ns").to_numpy().max()) for batch in batches if batch.num_rows),
        default=None,
    )


def read_hot(path: Path, schema: pa.Schema) -> HotRead:
    """Read a hot file once. See `HotReader.read`."""
    return HotReader(path, schema).read()


def segment_of(number: int, path: Path, read: HotRead) -> Segment | None:
    """The segment of a hot file; None without rows."""
    if read.span is None:
        return None
    facts = {"rows": read.rows, "bytes": read.good}
    return Segment(number, path, "hot", *read.span, dict(read.events), facts)


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
                remove(log.path)


def _read_back(log: HotLog | None) -> list[pa.RecordBatch]:
    if log is None or not log.rows:
        return []
    with telling(log.path, "read what was recorded"):
        try:
            return list(read_hot(log.path, log.schema).batches)
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


def _crc32(data: memoryview | pa.Buffer | bytes, value: int = 0) -> int:
    """CRC-32 of bytes by the native core, which is faster than zlib, in pieces that fit into the
    second cache."""
    view = memoryview(data)
    for start in range(0, len(view), _PIECE):
        value = _core.crc32(bytes(view[start : start + _PIECE]), value)
    return value


def _crc_holds(data: pa.Buffer, start: int, place: _Place) -> bool:
    crc = _crc32(data.slice(start, place.digits - start))
    crc = _crc32(_DIGITS, crc)
    crc = _crc32(data.slice(place.digits + 8, place.end - place.digits - 8), crc)
    return bool(b"%08x" % crc == data.slice(place.digits, 8).to_pybytes())
