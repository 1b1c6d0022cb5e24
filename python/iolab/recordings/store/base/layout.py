# SPDX-License-Identifier: Apache-2.0
"""The layout of a recording's directory, and writing there so that a kill or a full disk costs
nothing that was kept."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from iolab import _core
from iolab.base import files
from iolab.base.errors import ResultsError

Kind: TypeAlias = Literal["events", "samples"]
KINDS: tuple[Kind, ...] = ("events", "samples")

FACTS = "recording.json"
HOT = "hot"
SEGMENTS = "segments.jsonl"
LOSSES = "losses/losses.jsonl"
PROCESSES = "names/processes.jsonl"
MARKS = "marks.jsonl"
MAPS = "histograms/1s"
STEPS_S = (100, 1000)
"""Lengths of time (s) by which joined maps are summed up as well."""

FileStatus: TypeAlias = tuple[int, int, int]
"""Inode, size in bytes, and time of the last change (ns), which no program can set."""

GROWING = (SEGMENTS, LOSSES, PROCESSES, MARKS)
"""Files of lines: they grow, or are written again."""

PATHS = 1 << 16
"""Paths of files of segments that are remembered: making one takes longer than the file's status."""

_HOT_NAME = re.compile(r"(\d{6,})\.(events|samples)\.arrows")
_SEALED = ".parquet"
_RANGE_NAME = re.compile(r"(\d{6,18})-(\d{6,18})\.parquet")


def is_recording(path: Path) -> bool:
    """Whether a directory holds a recording."""
    return (path / FACTS).is_file()


def hot_file(directory: Path, number: int, kind: Kind) -> Path:
    """The hot file of a segment."""
    return directory / f"{HOT}/{number:06}.{kind}.arrows"


@lru_cache(maxsize=PATHS)
def sealed_file(directory: Path, number: int, kind: Kind) -> Path:
    """The sealed file of a segment."""
    return directory / f"{kind}/{number:06}.parquet"


@lru_cache(maxsize=PATHS)
def map_file(directory: Path, number: int, name: str) -> Path:
    """The default map `name` (io.latency, io.offset, io.size) of a segment."""
    return directory / f"{MAPS}/{name}/{number:06}.parquet"


@lru_cache(maxsize=PATHS)
def joined_map_file(directory: Path, first: int, last: int, name: str, step_s: int = 1) -> Path:
    """The default map `name` of the segments `first` to `last`, joined. step_s: length of its columns."""
    return directory / f"histograms/{step_s}s/{name}/{first:06}-{last:06}.parquet"


def joined_ranges(folder: Path) -> list[tuple[int, int]]:
    """(first, last) segment of each joined map in a folder, ascending."""
    matches = (_RANGE_NAME.fullmatch(name) for name in _names(folder))
    ranges = ((int(match[1]), int(match[2])) for match in matches if match)
    return sorted((first, last) for first, last in ranges if first <= last)


def hot_numbers(directory: Path, kind: Kind) -> list[int]:
    """Numbers of hot files, ascending, sealed or not. List them before the sealed ones: then none
    is missed during sealing."""
    matches = (_HOT_NAME.fullmatch(name) for name in _names(directory / HOT))
    return sorted(int(match[1]) for match in matches if match and match[2] == kind)


def sealed_numbers(folder: Path) -> list[int]:
    """Numbers of sealed files in a folder, ascending."""
    end = -len(_SEALED)
    return sorted(
        int(name[:end])
        for name in _names(folder)
        if name.endswith(_SEALED) and len(name) >= 6 - end and name[:end].isdecimal()
    )


def sealed_statuses(folder: Path, after: int = 0) -> tuple[dict[int, FileStatus], bool]:
    """(statuses by number of the sealed files in a folder with numbers beyond `after`, in any order;
    whether one vanished meanwhile)."""
    try:
        opened = files.open_folder(folder)
        try:
            return _core.sealed_statuses(Path(f"/proc/self/fd/{opened}"), after)
        finally:
            os.close(opened)
    except (FileNotFoundError, NotADirectoryError):
        return {}, False
    except OSError as error:
        raise _not_listed(folder, error) from error


def _names(folder: Path) -> list[str]:
    try:
        opened = files.open_folder(folder)
        try:
            # a hundred thousand names; a path of each takes almost three times as long
            return os.listdir(opened)  # noqa: PTH208 - of a descriptor
        finally:
            os.close(opened)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _not_listed(folder, error) from error


def _not_listed(folder: Path, error: OSError) -> ResultsError:
    return ResultsError(f"can't be listed: {error.strerror or error}", where=folder)


@contextmanager
def telling(path: Path, doing: str) -> Iterator[None]:
    """What the system refuses becomes a ResultsError that says what was being done, and what to do
    where the disk is full."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free space there; what was recorded so far is kept" if full else None
        raise ResultsError(
            f"can't {doing}: {error.strerror or error}", where=path, hint=hint
        ) from error


def keep_private(directory: Path) -> None:
    """Close an own directory to other users."""
    with telling(directory, "keep it from other users"):
        folder = files.open_folder(directory)
        try:
            status = os.fstat(folder)
            if status.st_uid == os.geteuid() and status.st_mode & 0o077:
                os.fchmod(folder, stat.S_IMODE(status.st_mode) & ~0o077)
        finally:
            os.close(folder)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """`files.replacing`, in a folder that is made where it is missing."""
    files.make_folders(path.parent)
    with files.replacing(path) as temporary:
        yield temporary


def sync_folder(folder: Path) -> None:
    """Wait until a folder's entries are on disk."""
    descriptor = files.open_folder(folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a JSON file as a whole."""
    with replacing(path) as temporary:
        temporary.write_text(
            json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def remove_temporary(directory: Path) -> None:
    """Remove what an interrupted `replacing` left. Only the writer may."""
    for folder in (
        directory,
        *(directory / kind for kind in KINDS),
        *(
            folder
            for step_s in (1, *STEPS_S)
            for folder in sorted((directory / f"histograms/{step_s}s").glob("*"))
        ),
    ):
        for name in _names(folder):
            if name.startswith(".") and name.endswith(".tmp"):
                with suppress(OSError):
                    files.remove(folder / name)
