"""What a file of JSON lines says, read once: what is appended later is read alone, however long the
file has become."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...files import EVIDENCE, RefusedFileError, open_regular
from .layout import telling
from .lines import objects

MOST_FILES = 4
"""Files that are remembered unless more are asked for."""
TAIL = 256
"""Bytes before what is new that must be as they were: else the file was written anew."""
BLOCK = 64 << 20
"""Bytes that are read and parsed at a time."""
LONGEST = 16 << 20
"""Bytes that a line may have; a longer one is damaged."""

Lines = Mapping[int, Mapping[str, Any]]
Keyed = Callable[[dict[str, Any]], int | None]
"""The number of a line; None leaves it out."""

T = TypeVar("T")
Adding = Callable[[T, Iterable[dict[str, Any] | None]], T]
"""What lines say with more after them, None for one that is damaged; what they said before is not
changed."""


@dataclass(frozen=True)
class _Read(Generic[T]):
    """What was read. identity: of the file then; whole: bytes up to the end of the last whole line,
    whose last ones are `tail`; found: of whole lines; shown: with what stood after them."""

    identity: tuple[int, int, int]
    whole: int
    tail: bytes
    found: T
    shown: T


class Appended(Generic[T]):
    """What lines add up to. Safe to use from several threads; what it returns is never changed."""

    def __init__(self, nothing: T, adding: Adding[T], most: int = MOST_FILES) -> None:
        """`nothing`: of a file without lines. `most`: files that are remembered, the latest asked
        for."""
        self._nothing, self._adding, self._most = nothing, adding, most
        self._held: dict[Path, _Read[T]] = {}
        self._guard = threading.Lock()

    def of(self, path: Path) -> T:
        """What the file says now; nothing where it is missing or refused (see `files.refusal`).
        ResultsError where it can't be read: that isn't to say that it is empty."""
        with telling(path, "read what it holds"), self._guard:
            try:
                file = open_regular(path)
            except (FileNotFoundError, NotADirectoryError, RefusedFileError):
                return self._nothing
            with file:
                status = _status(file.fileno())
                if status[2] > EVIDENCE:
                    return self._nothing
                held = self._held.pop(path, None)
                if held is None or held.identity != status:
                    held = self._read(file, status, held)
                self._held[path] = held
                while len(self._held) > self._most:
                    del self._held[next(iter(self._held))]
                return held.shown

    def _read(self, file: Any, status: tuple[int, int, int], held: _Read[T] | None) -> _Read[T]:
        before, begin, tail = self._nothing, 0, b""
        if held is not None and held.identity[0] == status[0] and status[2] > held.whole:
            file.seek(held.whole - len(held.tail))
            if file.read(len(held.tail)) == held.tail:
                before, begin, tail = held.found, held.whole, held.tail
        file.seek(begin)
        total, rest = before, b""
        while block := file.read(BLOCK):
            data = rest + block
            ends = data.rfind(b"\n") + 1
            total = self._adding(total, objects(data[:ends]))
            tail, rest, begin = (tail + data[:ends])[-TAIL:], data[ends:], begin + ends
            if len(rest) > LONGEST:
                total = self._adding(total, (None,))
                tail, begin, rest = (tail + rest)[-TAIL:], begin + len(rest), b""
        # a last line without an end is being written, or was torn: it counts if it is whole, and is
        # read again
        shown = self._adding(total, objects(rest)) if rest.strip() else total
        return _Read(status, begin, tail, total, shown)


@dataclass(frozen=True)
class Numbered:
    """Lines by number, the last one of a number holding; damaged: how many lines are none."""

    lines: Lines = field(default_factory=dict)
    damaged: int = 0


class Growing(Appended[Numbered]):
    """Lines by number."""

    def __init__(self, keyed: Keyed) -> None:
        def adding(held: Numbered, lines: Iterable[dict[str, Any] | None]) -> Numbered:
            found, damaged = dict(held.lines), held.damaged
            for line in lines:
                number = None if line is None else keyed(line)
                if line is None or number is None:
                    damaged += 1
                else:
                    found[number] = line
            return Numbered(found, damaged)

        super().__init__(Numbered(), adding)

    def lines(self, path: Path) -> Lines:
        """See `of`."""
        return self.of(path).lines


def _status(descriptor: int) -> tuple[int, int, int]:
    """Inode, time of the last change, size of an open file."""
    status = os.fstat(descriptor)
    return status.st_ino, status.st_mtime_ns, status.st_size
