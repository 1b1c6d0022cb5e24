"""The lock of a recording's one writer, which says who that is and until when it recorded."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import IO

from ..errors import ResultsError
from ..files import open_for_writing
from .layout import telling

LOCK = "lock"
_DIGITS = 20
_OLDER = re.compile(rb"\d+\n")


def take_lock(directory: Path) -> IO[str]:
    """The lock of the one writer, held until the file is closed or its process ends. ResultsError names who has it."""
    with telling(directory, "write here"):
        file = os.fdopen(open_for_writing(directory / LOCK, os.O_RDWR | os.O_CREAT), "r+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            holder = next(iter(_said(file.fileno())), "")
        by = f" by process {holder}" if holder else ""
        raise ResultsError(f"is being recorded{by}", where=directory, hint="stop that, or choose another directory") from None
    return file


def tell(lock: IO[str], told_ns: int | None) -> None:
    """Write into the lock who holds it, and until when everything was in the recording. OSError where the disk refuses."""
    # in place and never shorter: what is read meanwhile is one or the other
    os.pwrite(lock.fileno(), f"{os.getpid()}\n{'' if told_ns is None else f'{told_ns:0{_DIGITS}}'}\n".encode(), 0)


def told(lock: int) -> int | None:
    """Until when everything was in the recording, as its writer last wrote into this lock (a descriptor); None where none did."""
    lines = _said(lock)
    if len(lines) < 2 or len(lines[1]) != _DIGITS or not lines[1].isdecimal():
        return None
    return min(int(lines[1]), 2**63 - 1)


def changed(lock: int) -> int | None:
    """When an older iolab held this lock for the last time, which said so by its time of change; None of any other lock."""
    return os.fstat(lock).st_mtime_ns if _OLDER.fullmatch(os.pread(lock, 64, 0)) else None


def _said(lock: int) -> list[str]:
    """The lines of a lock: read until two readings agree, as it is written in place."""
    text = os.pread(lock, 64, 0)
    for _ in range(5):
        before, text = text, os.pread(lock, 64, 0)
        if before == text:
            break
    return text.decode("ascii", errors="replace").split()
