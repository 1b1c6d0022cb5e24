# SPDX-License-Identifier: Apache-2.0
"""The lock of a recording's one writer, which says who that is, until when it recorded, and how
long its files are.

Three lines: the writer's process, until when (ns) everything is there, and the least sizes of the
files that grow, by their names, as JSON behind the checksum of all three. They are written in
place, and never shorter.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from iolab.base.errors import ResultsError
from iolab.base.files import RefusedFileError, open_for_reading, open_for_writing

from .layout import telling

LOCK = "lock"
_DIGITS = 20
_OLDEST = re.compile(rb"\d+\n")
_OLDER = re.compile(rb"(?:\d+\n(\d{%d})?\n?)?" % _DIGITS)
_SIZES = 480
"""Room for the sizes of files."""


@dataclass(frozen=True)
class Told:
    """What a lock says. until_ns: until when everything was in the recording, None where
    it is unknown. sizes: bytes that files have at least, by their names in the recording. is_damaged:
    whether its checksum is wrong or missing, so that it says nothing. pid: of who wrote it."""

    until_ns: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_damaged: bool = False
    pid: int | None = None


def take_lock(directory: Path) -> IO[str]:
    """The lock of the one writer, held until the file is closed or its process ends. ResultsError
    names who has it."""
    with telling(directory, "write here"):
        file = os.fdopen(
            open_for_writing(directory / LOCK, os.O_RDWR | os.O_CREAT), "r+", encoding="ascii"
        )
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            said = read(file.fileno(), False).pid
            holder = holder_of(file.fileno()) or (f"process {said}" if said else "")
        by = f" by {holder}" if holder else ""
        raise ResultsError(
            f"is being recorded{by}", where=directory, hint="stop that, or choose another directory"
        ) from None
    return file


def tell(lock: IO[str], told_ns: int | None, sizes: Mapping[str, int] | None = None) -> None:
    """Write into the lock who holds it, until when everything was in the recording, and how long
    its files are at least. OSError where the disk refuses."""
    head = f"{os.getpid()}\n{'' if told_ns is None else f'{told_ns:0{_DIGITS}}'}\n"
    words = json.dumps(sizes or {}, separators=(",", ":"))
    words = f"{words if len(words) <= _SIZES else '{}':{_SIZES}}"
    # in place and never shorter: what is read meanwhile is one or the other, or its checksum is
    # wrong
    os.pwrite(
        lock.fileno(), f"{head}{zlib.crc32((head + words).encode()):08x} {words}\n".encode(), 0
    )


def read(lock: int, is_signed: bool) -> Told:
    """What a lock (a descriptor) says. is_signed: whether `recording.json` has a checksum: then the
    lock has one since before it was there, and what has none is damaged. One of an older iolab has
    no sizes and no checksum."""
    pid = None
    for _ in range(20):
        text = _text(lock)
        lines = text.decode("ascii", errors="replace").split("\n")
        pid = int(lines[0]) if lines[0].isdecimal() and len(lines[0]) < 10 else None
        if len(lines) > 2 and lines[2].strip():
            crc, _, words = lines[2].partition(" ")
            head = f"{lines[0]}\n{lines[1]}\n"
            if crc == f"{zlib.crc32((head + words).encode()):08x}":
                return Told(int(lines[1]) if lines[1] else None, json.loads(words), pid=pid)
        elif not is_signed and (older := _OLDER.fullmatch(text)):
            return Told(min(int(older[1]), 2**63 - 1) if older[1] else None, pid=pid)
    return Told(is_damaged=True, pid=pid)


def read_lock(directory: Path, *, is_signed: bool) -> tuple[Told, int | None]:
    """(what the lock of a recording says, `changed` of it); nothing where there is none."""
    try:
        descriptor = open_for_reading(directory / LOCK)
    except RefusedFileError:
        return Told(is_damaged=True), None
    except OSError:
        return Told(), None
    try:
        return read(descriptor, is_signed), change_time(descriptor, is_signed)
    except OSError:
        return Told(is_damaged=True), None
    finally:
        os.close(descriptor)


def is_written(told: Told) -> bool:
    """Whether the process that wrote a lock last is there, as far as can be seen from here."""
    if told.pid is None:
        return False
    try:
        os.kill(told.pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def has_writer(directory: Path) -> bool:
    """Whether a process writes the recording.

    The holder of its lock counts. The kernel's list of locks may not show it (other PID namespace,
    overlayfs). Then the process that wrote the lock last counts."""
    try:
        descriptor = open_for_reading(directory / LOCK)
    except (OSError, RefusedFileError):
        return False
    try:
        # asking by flock() would refuse a writer that starts at this moment
        if holder_of(descriptor):
            return True
        pid = read(descriptor, True).pid
        written_s = os.fstat(descriptor).st_mtime
    except (OSError, ValueError):
        return False
    finally:
        os.close(descriptor)
    if pid is None:
        return False
    try:
        started_s = _start_time(pid)
    except (OSError, ValueError, IndexError):
        return False
    # a process that got the id of an ended writer began after the last line of that
    return started_s <= written_s + 1


def _start_time(pid: int) -> float:
    """When a process started, in s since 1970 (`proc_pid_stat(5)`: field 22, clock ticks since
    boot). ValueError for a process that has ended and is not reaped."""
    # the name may hold spaces and brackets
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X"):
        raise ValueError("the process has ended")
    since_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot_s


def change_time(lock: int, is_signed: bool) -> int | None:
    """When an older iolab held this lock for the last time, which said so by its time of change;
    None of any other lock."""
    return (
        os.fstat(lock).st_mtime_ns
        if not is_signed and _OLDEST.fullmatch(os.pread(lock, 64, 0))
        else None
    )


def _text(lock: int) -> bytes:
    """A lock's text: read until two readings agree, as it is written in place."""
    text = os.pread(lock, 1024, 0)
    for _ in range(5):
        before, text = text, os.pread(lock, 1024, 0)
        if before == text:
            break
    return text


def holder_of(file: int) -> str:
    """Who holds the lock of an open file, for an error: `process 17 of user ann`, as the kernel
    says; empty where it doesn't."""
    status = os.fstat(file)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    for words in map(str.split, lines):
        # one that waits has an arrow before its kind
        if words[1:2] == ["FLOCK"] and place in words and words[4].isdecimal():
            return f"process {words[4]}{_user_of(words[4])}"
    return ""


def _user_of(process: str) -> str:
    try:
        uid = Path(f"/proc/{process}").stat().st_uid
    except OSError:
        return ""
    try:
        return f" of user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f" of user {uid}"


@contextmanager
def short_lock(path: Path, seconds: float = 10.0) -> Iterator[None]:
    """The lock of what takes moments, in a file of its own. ResultsError names who has it where it
    isn't released within some seconds."""
    file = open_for_writing(path, os.O_RDWR | os.O_CREAT, mode=0o600)
    try:
        limit = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= limit:
                    holder = holder_of(file)
                    raise ResultsError(
                        f"is locked{f' by {holder}' if holder else ''}",
                        where=path,
                        hint="end that, or try again",
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(file)
