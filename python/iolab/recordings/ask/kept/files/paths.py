# SPDX-License-Identifier: Apache-2.0
"""Where kept statistics lie: `histograms/<tier>/<folder>/<first>-<last>.parquet`, with the numbers
of the segments that are in it.

A file is written as a whole or not at all. A file counts no more if another file of its tier has all
its segments: a merge replaced it.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from iolab.base.files import open_folder

from ...language.fields import QUANTIZED
from ...question import Statistic

DEFINITIONS = "histograms/keep.json"
STATE = "histograms/kept.json"
LIST = "histograms/files.jsonl"
LOCK = "histograms/keep.lock"

DAY = 86400


@dataclass(frozen=True)
class Tier:
    """Sums by a length of time. name: of its folder. seconds: the length. keep_s: how long they are
    kept unless chosen."""

    name: str
    seconds: int
    keep_s: int


TIERS = (Tier("1s", 1, 7 * DAY), Tier("1m", 60, 14 * DAY), Tier("1h", 3600, 90 * DAY))
"""From the finest on; each is a sum of the one before."""

_NAME = re.compile(r"(\d{6,})-(\d{6,})\.parquet")
_FOLDER = re.compile(r"[\w.=-]{1,80}\.[0-9a-f]{8}")
_READABLE = 80


@dataclass(frozen=True, order=True)
class File:
    """Sums of the segments `first` to `last`."""

    first: int
    last: int
    path: Path

    def within(self, other: File) -> bool:
        """Whether another file has all of its segments."""
        return other.first <= self.first and self.last <= other.last

    def meets(self, other: File) -> bool:
        """Whether another file has one of its segments."""
        return other.first <= self.last and self.first <= other.last


class Content(NamedTuple):
    """Segments `first` to `last` in a file, and start of its first and last sum in seconds."""

    first: int
    last: int
    first_s: int
    last_s: int

    @classmethod
    def of_json(cls, data: object) -> Content | None:
        """From a list of four numbers, None where it is none."""
        if isinstance(data, list) and len(data) == 4 and all(type(part) is int for part in data):
            return cls(*data)
        return None


def folder_name(statistic: str) -> str:
    """The folder of a statistic: readable, without signs that globs or shells know, and another one
    for each name."""
    readable = re.sub(r"[^A-Za-z0-9_.=]+|\.{2,}", "-", statistic).strip("-.")[:_READABLE]
    return f"{readable or 'statistic'}.{zlib.crc32(statistic.encode()):08x}"


def is_folder(name: str) -> bool:
    """Whether a folder's name is one of ours; default maps have others."""
    return _FOLDER.fullmatch(name) is not None


def folder(directory: Path, tier: Tier, name: str) -> Path:
    """The folder of a statistic in a tier."""
    return directory / "histograms" / tier.name / name


def path_of(directory: Path, tier: Tier, name: str, first: int, last: int) -> Path:
    """The file of segments `first` to `last`."""
    return folder(directory, tier, name) / f"{first:06}-{last:06}.parquet"


def files(directory: Path, tier: Tier, name: str, through: int | None = None) -> list[File]:
    """Files that count, ascending; without those beyond the segment `through`, which are not
    settled yet."""
    folder_files = _files_in(folder(directory, tier, name))
    settled = [file for file in folder_files if through is None or file.last <= through]
    settled.sort(key=lambda file: (file.first, -file.last))
    kept: list[File] = []
    for file in settled:
        if not kept or not file.within(kept[-1]):
            kept.append(file)
    return kept


NO_STATISTICS = "the recording has no kept statistics"
"""Why roll-ups do not answer where `has_statistics` is false."""


def has_statistics(directory: Path) -> bool:
    """Whether a recording has kept statistics."""
    return all((directory / name).is_file() for name in (DEFINITIONS, STATE))


def stamp(directory: Path) -> tuple[object, ...]:
    """Changes whenever a file of what is kept does."""
    paths = [directory / name for name in (DEFINITIONS, STATE, LIST)]
    for tier in TIERS:
        place = directory / "histograms" / tier.name
        folders = [name for name in _names(place) if is_folder(name)]
        paths += [place / name / file for name in folders for file in _names(place / name)]
    return tuple((str(path), _status(path)) for path in paths)


def _names(folder: Path) -> list[str]:
    try:
        opened = open_folder(folder)
        try:
            return sorted(os.listdir(opened))  # noqa: PTH208 - of a descriptor
        finally:
            os.close(opened)
    except OSError:
        return []


def _status(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_ctime_ns


def replaced_files(directory: Path, tier: Tier, name: str) -> list[File]:
    """Files that count no more."""
    counting = set(files(directory, tier, name))
    return [file for file in _files_in(folder(directory, tier, name)) if file not in counting]


def _files_in(place: Path) -> list[File]:
    try:
        return [file for path in place.iterdir() if (file := file_of(path)) is not None]
    except (FileNotFoundError, NotADirectoryError):
        return []


def file_of(path: Path) -> File | None:
    """The file of a path, None where its name is none of ours."""
    match = _NAME.fullmatch(path.name)
    return (
        File(int(match[1]), int(match[2]), path)
        if match and int(match[1]) <= int(match[2])
        else None
    )


def choose_files(by_tier: Sequence[tuple[Tier, Sequence[File]]]) -> list[tuple[Tier, File]]:
    """Files that hold every segment once, of the longest tiers that are given; given from the
    finest on.

    A file of segments is put into longer tiers before it is merged with others, so that of two
    files in different tiers that share a segment one has all segments of the other.
    """
    chosen_files: list[tuple[Tier, File]] = []
    for tier, tier_files in reversed(by_tier):
        chosen_files += [
            (tier, file)
            for file in tier_files
            if not any(chosen_file.meets(file) for _, chosen_file in chosen_files)
        ]
    return sorted(chosen_files, key=lambda pair: pair[1])


Form: TypeAlias = Literal["map", "weighed", "numbers", "growth"]

BITS = 3
"""Resolution of what is kept: 8 buckets an octave."""
COARSER = 3
"""Bits fewer than events are asked with."""
MOST_KEYS = 1000
"""Names of a segment that are kept apart, the largest; the rest is one sum."""


def form_of(statistic: Statistic, *, counted: bool) -> Form:
    """The form that a statistic is kept in; `counted`: it comes from counters."""
    if counted:
        return "growth"
    if statistic.breakdown not in QUANTIZED:
        return "numbers"
    return "map" if statistic.entry.weight == "count" else "weighed"
