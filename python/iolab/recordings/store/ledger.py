# SPDX-License-Identifier: Apache-2.0
"""Ledgers: files of JSON lines that only grow, each line with its checksum. Sealed segments, losses,
marks, processes and files of kept statistics are listed in one each.

A line that was torn by a kill, or changed since, costs only itself. A reader remembers what it
read, and reads only the lines that were appended.

Files that a line lists are checked too: each is read whole once in a process, before anything is
believed that it says. Its line has its size and the CRC-32 of its content: of the checksums at hand it is the fastest
by far, finds every flipped bit and every run of 32 damaged ones, and covers the footer: by its
statistics a scan leaves out parts of a Parquet file. Files of an older iolab have no line with
one: of these the checksums of their pages are checked.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from iolab import _core
from iolab.base.errors import FormatError
from iolab.base.files import (
    EVIDENCE,
    RefusedFileError,
    make_folders,
    map_regular,
    move,
    open_for_reading,
    open_for_writing,
    open_regular,
    read_regular,
    refusal,
)
from iolab.base.untrusted_text import parse_json

from .base.layout import replacing, telling

CRC = "crc32"
"""The field that has the checksum of the others."""
MOST_FILES = 4
"""Files that are remembered unless more are requested."""
TAIL = 256
"""Bytes before the new lines that must be as they were: else the file was rewritten."""
BLOCK = 64 << 20
"""Bytes that are read and parsed at a time."""
LONGEST = 16 << 20
"""Bytes that a line may have; a longer one is damaged."""

Line = Mapping[str, Any]
T = TypeVar("T")
Adding = Callable[[T, Iterable[dict[str, Any] | None]], T]
"""Content with more lines, None for a damaged one; the content before is not changed."""


def checksum(data: Line) -> str:
    """CRC-32 of an object in hexadecimal: of its JSON with sorted names."""
    text = json.dumps(data, sort_keys=True)
    if "\\ud" in text:
        # as it will be read: halves of a pair, alone, become text that can be written again
        text = json.dumps(parse_json(text), sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x}"


def sign(data: Line) -> dict[str, Any]:
    """An object with its checksum."""
    return {**data, CRC: checksum(data)}


def without_checksum(data: Line) -> dict[str, Any]:
    """An object without its checksum."""
    return {name: value for name, value in data.items() if name != CRC}


def holds(data: Line) -> bool:
    """Whether an object's checksum is right. An object of an older iolab may have none, which is
    right."""
    return CRC not in data or bool(data[CRC] == checksum(without_checksum(data)))


def line_of(data: Line) -> str:
    """A line as it is written, without its end."""
    return json.dumps(sign(data), ensure_ascii=True, separators=(",", ":"))


def objects(data: bytes) -> Iterator[dict[str, Any] | None]:
    """The objects of lines, with their checksums, None for a damaged line. Names in them are
    shared, as most lines have the same ones."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                value = parse_json(line, shared=True)
            except ValueError:
                yield None
                continue
            yield value if isinstance(value, dict) and holds(value) else None


def append_line(path: Path, data: Line, *, durable: bool = False) -> None:
    """Append one line, and wait for the disk where it must be `durable`. A torn line that a kill
    left is ended first, so it costs only itself. OSError where it can't be written."""
    make_folders(path.parent)
    line = line_of(data).encode() + b"\n"
    with os.fdopen(open_for_writing(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def rewrite(path: Path, lines: Iterable[Line]) -> None:
    """Replace all lines; their checksums are made again. OSError where they can't be written."""
    with replacing(path) as temporary:
        temporary.write_text(
            "".join(f"{line_of(without_checksum(line))}\n" for line in lines), encoding="ascii"
        )


def set_aside(path: Path) -> None:
    """Keep a damaged file as `NAME.damaged`: a refused one (see `files.refusal`) is renamed, any
    other one is copied. OSError where it can't be read or written."""
    aside = path.with_name(f"{path.name}.damaged")
    if refusal(path):
        move(path, aside)
        return
    data = read_regular(path, limit=EVIDENCE)
    with replacing(aside) as temporary:
        temporary.write_bytes(data)


@dataclass(frozen=True)
class Contents(Generic[T]):
    """A ledger as it was read. content: of its lines. size: in bytes, None where the file is
    missing. refusal: why it was not opened (see `files.refusal`)."""

    content: T
    size: int | None = None
    refusal: str = ""


@dataclass(frozen=True)
class _Read(Generic[T]):
    """What was read. identity: of the file then; whole: bytes up to the end of the last whole line;
    tail: their last ones; content: of whole lines; shown: with the torn line after them."""

    identity: tuple[int, int, int]
    whole: int
    tail: bytes
    content: T
    shown: T


class Ledger(Generic[T]):
    """Reads ledgers of one kind. Safe to use from several threads; contents are never changed."""

    def __init__(self, empty: T, add: Adding[T], most: int = MOST_FILES) -> None:
        """`empty`: content of a file without lines. `most`: files that are remembered, the latest
        read ones."""
        self._empty, self._add, self._most = empty, add, most
        self._held: dict[Path, _Read[T]] = {}
        self._guard = threading.Lock()

    def content(self, path: Path) -> T:
        """The content now; empty where the file is missing or refused. ResultsError where it can't
        be read: it may not be empty then."""
        return self.read(path).content

    def read(self, path: Path) -> Contents[T]:
        """The file now. Errors as of `content`."""
        with telling(path, "read what it holds"), self._guard:
            try:
                file = open_regular(path)
            except (FileNotFoundError, NotADirectoryError):
                return Contents(self._empty)
            except RefusedFileError as error:
                return Contents(self._empty, refusal=error.strerror or str(error))
            with file:
                status = _status(file.fileno())
                if status[2] > EVIDENCE:
                    return Contents(self._empty, status[2], refusal(path))
                cached = self._held.pop(path, None)
                if cached is None or cached.identity != status:
                    cached = self._read(file, status, cached)
                self._held[path] = cached
                while len(self._held) > self._most:
                    del self._held[next(iter(self._held))]
                return Contents(cached.shown, status[2])

    def _read(self, file: Any, status: tuple[int, int, int], held: _Read[T] | None) -> _Read[T]:
        before, begin, tail = self._empty, 0, b""
        if held is not None and held.identity[0] == status[0] and status[2] > held.whole:
            file.seek(held.whole - len(held.tail))
            if file.read(len(held.tail)) == held.tail:
                before, begin, tail = held.content, held.whole, held.tail
        file.seek(begin)
        total, rest = before, b""
        while block := file.read(BLOCK):
            data = rest + block
            ends = data.rfind(b"\n") + 1
            total = self._add(total, objects(data[:ends]))
            tail, rest, begin = (tail + data[:ends])[-TAIL:], data[ends:], begin + ends
            if len(rest) > LONGEST:
                total = self._add(total, (None,))
                tail, begin, rest = (tail + rest)[-TAIL:], begin + len(rest), b""
        # a last line without an end is being written, or was torn: it counts if it is whole, and is
        # read again
        contents = self._add(total, objects(rest)) if rest.strip() else total
        return _Read(status, begin, tail, total, contents)


@dataclass(frozen=True)
class Numbered:
    """Lines by number, the last one of a number holding.

    Attributes:
        damaged: how many lines are damaged. replaced: how many were replaced by later ones.
        firsts: of lines that represent several consecutive numbers and have the last of them, the
        first.
    """

    lines: Mapping[int, Line] = field(default_factory=dict)
    damaged: int = 0
    replaced: int = 0
    firsts: Mapping[int, int] = field(default_factory=dict)


class NumberedLedger(Ledger[Numbered]):
    """Lines by number."""

    def __init__(
        self,
        number_of: Callable[[dict[str, Any]], int | None],
        first_of: Callable[[Line, int], int] = lambda _, number: number,
    ) -> None:
        """`number_of`: the number of a line, None where it has none and counts as damaged.
        `first_of`: the first number that a line with a number represents; it replaces the lines of
        all of them."""

        def add(before: Numbered, more: Iterable[dict[str, Any] | None]) -> Numbered:
            lines, firsts = dict(before.lines), dict(before.firsts)
            damaged, replaced = before.damaged, before.replaced
            for line in more:
                number = None if line is None else number_of(line)
                if line is None or number is None:
                    damaged += 1
                    continue
                first = first_of(line, number)
                numbers = range(first, number + 1)
                # a wrong line may name more numbers than there are lines
                if len(numbers) > len(lines):
                    listed_numbers = [listed for listed in lines if listed in numbers]
                else:
                    listed_numbers = [listed for listed in numbers if listed in lines]
                for listed in listed_numbers:
                    del lines[listed]
                    firsts.pop(listed, None)
                replaced += len(listed_numbers)
                lines[number] = line
                if first < number:
                    firsts[number] = first
            return Numbered(lines, damaged, replaced, firsts)

        super().__init__(Numbered(), add)


@dataclass(frozen=True)
class Ordered:
    """Lines in their order, without their checksums; damaged: how many lines are damaged."""

    lines: tuple[Line, ...] = ()
    damaged: int = 0


def _append(before: Ordered, more: Iterable[dict[str, Any] | None]) -> Ordered:
    lines = list(more)
    complete = [without_checksum(line) for line in lines if line is not None]
    return Ordered((*before.lines, *complete), before.damaged + len(lines) - len(complete))


ORDERED = Ledger(Ordered(), _append)
"""Marks and processes."""


def _status(descriptor: int) -> tuple[int, int, int]:
    """Inode, time of the last change, size of an open file."""
    status = os.fstat(descriptor)
    return status.st_ino, status.st_mtime_ns, status.st_size


THREADS = min(8, os.cpu_count() or 1)
LARGEST = 1 << 40
"""Bytes that a sealed file may have: its size in the list is checked as well."""
FRESH_NS = 10**8
"""What changed so short a time ago may change again without its times telling: that it is whole is
not remembered."""
FEW_BYTES = 1 << 24
"""Bytes that one thread checks sooner than a pool of threads is loaded and started."""
MOST = 1 << 18
"""Files that are remembered."""

MISSING = "it is missing"

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last change of content and of anything, in ns."""


@dataclass(frozen=True)
class Part:
    """A file as a list has it. bytes: its size; crc32: of its content, in hexadecimal. None where
    nothing says so."""

    path: Path
    bytes: int | None = None
    crc32: str | None = None


class DamagedError(FormatError):
    """Files are not what was written. What asked may ask again: from then on they are known as
    damaged."""


_whole: dict[tuple[Path, str | None], Identity] = {}
_damaged: dict[Path, tuple[Identity, str]] = {}
_changes = [0]
_guard = threading.Lock()


def damages_found() -> int:
    """How often this process found a damaged file so far: what it says of a recording changes then."""
    return _changes[0]


def digest(path: Path) -> tuple[int, str]:
    """(size, CRC-32 in hexadecimal) of a file. Raises OSError."""
    descriptor = open_for_reading(path)
    try:
        crc, size = _core.crc32_of_file(Path(f"/proc/self/fd/{descriptor}"))
    finally:
        os.close(descriptor)
    return size, f"{crc:08x}"


def known_damage(path: Path) -> str:
    """What this process found wrong with a file as it is now; empty if it found nothing, or did not
    look."""
    damage_then = _damaged.get(path)
    if damage_then is None:
        return ""
    try:
        return damage_then[1] if damage_then[0] == _identity(path.stat()) else ""
    except OSError:
        return ""


def wrong_size(part: Part, size: int | None) -> str:
    """What is wrong with a file of a size, as far as that and earlier readings show; empty for
    nothing. size: None where it is missing."""
    if size is None:
        return MISSING
    if words := known_damage(part.path):
        return words
    return "" if part.bytes == size else f"it has {size} bytes, {part.bytes} were written"


def damage(part: Part) -> str:
    """What is wrong with a file, in words; empty where it is whole. FileNotFoundError where it is
    deleted."""
    status = part.path.stat()
    identity = _identity(status)
    if _whole.get((part.path, part.crc32)) == identity:
        return ""
    words = known_damage(part.path) or _look_for_damage(part, status.st_size)
    with _guard:
        if words:
            _damaged[part.path] = identity, words
            _changes[0] += 1
        else:
            if time.time_ns() - max(identity[3:]) > FRESH_NS:
                _whole[part.path, part.crc32] = identity
            _damaged.pop(part.path, None)
        while len(_whole) > MOST:
            del _whole[next(iter(_whole))]
        while len(_damaged) > MOST:
            del _damaged[next(iter(_damaged))]
    return words


def check(parts: Sequence[Part]) -> None:
    """Read files that were not read yet, several at a time. DamagedError where one is not what was
    written or is deleted."""
    for part, words in damages(parts):
        raise DamagedError(
            f"is damaged: {words}", where=part.path, hint="iolab verify says what is lost"
        )


def damages(parts: Sequence[Part]) -> list[tuple[Part, str]]:
    """Those of some files that are damaged or missing, with what is wrong."""
    return [(part, words) for part, words in zip(parts, _each(parts), strict=True) if words]


def _each(parts: Sequence[Part]) -> Iterable[str]:
    unread = [part for part in parts if not _is_known_whole(part)]
    if (
        len(unread) < 2
        or THREADS < 2
        or sum(part.bytes or FEW_BYTES for part in unread) <= FEW_BYTES
    ):
        words = [_damage_or_gone(part) for part in unread]
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREADS) as pool:
            words = list(pool.map(_damage_or_gone, unread))
    words_by_part = dict(zip(unread, words, strict=True))
    return [words_by_part.get(part, "") for part in parts]


def _is_known_whole(part: Part) -> bool:
    """Whether this process read a file whole as it is now."""
    try:
        return _whole.get((part.path, part.crc32)) == _identity(part.path.stat())
    except OSError:
        return False


def _damage_or_gone(part: Part) -> str:
    try:
        return damage(part)
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return error.strerror or str(error)


def _look_for_damage(part: Part, size: int) -> str:
    if refused := refusal(part.path, limit=LARGEST):
        return f"it {refused}"
    if part.bytes is not None and size != part.bytes:
        return f"it has {size} bytes, {part.bytes} were written"
    if part.crc32 is None:
        return _pages(part.path)
    try:
        _, crc32 = digest(part.path)
    except FileNotFoundError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    return "" if crc32 == part.crc32 else "its checksum is not that of what was written"


def _pages(path: Path) -> str:
    """What is wrong with the pages of a Parquet file that no list has the checksum of."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(
            pa.BufferReader(map_regular(path)), page_checksum_verification=True
        ) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number, use_threads=False)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        return (str(error) or type(error).__name__).splitlines()[0]
    return ""


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
