# SPDX-License-Identifier: Apache-2.0
"""Whether files are still what was written. Each is read whole once in a process, before anything
is believed that it says.

A file's line has its size and the CRC-32 of its content: of the checksums at hand it is the fastest
by far, finds every flipped bit and every run of 32 damaged ones, and covers the footer: by its
statistics a scan leaves out parts of a Parquet file. Files of an older iolab have no line with
one: of these the checksums of their pages are checked.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import _core
from ...errors import FormatError
from ...files import map_regular, open_for_reading, refusal

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
