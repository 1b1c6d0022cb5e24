# SPDX-License-Identifier: Apache-2.0
"""Joined default maps: those of many consecutive segments without events, as one file for each map.

The file has the rows of all segments, each with the number of its segment. Coarser files have the
same rows summed up by longer columns. A line of `segments.jsonl` with the number of the last segment
names them: from the moment it is written, it replaces the lines and files of the single segments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import ResultsError
from ..base.checked_files import Part, digest, wrong_size
from ..base.layout import (
    MAPS,
    STEPS_S,
    FileStatus,
    joined_map_file,
    joined_ranges,
    map_file,
    sealed_numbers,
)
from ..ledger import Numbered
from .segments import MAP_NAMES, first_of, maps_of_line, part_of, step_name


def line_of_joined(
    directory: Path, first: int, last: int, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The line of the joined maps of the segments `first` to `last`, with size and checksum of each
    file; `lost` names maps without a file. OSError where one can't be read.

    Args:
        facts: first_ns, last_ns and sources of their events, and the width of offset buckets.
    """
    sizes: dict[str, int] = {}
    digests: dict[str, str] = {}
    for step_s in (1, *STEPS_S):
        for name in MAP_NAMES:
            key = step_name(name, step_s)
            with suppress(FileNotFoundError):
                sizes[key], digests[key] = digest(
                    joined_map_file(directory, first, last, name, step_s)
                )
    lost = [name for name in MAP_NAMES if name not in sizes]
    return {
        "number": last,
        "joined": first,
        **{name: facts[name] for name in ("first_ns", "last_ns", "offset_width")},
        "sources": {source: {} for source in facts["sources"]},
        "maps": sum(sizes.values()),
        "bytes": sizes,
        "digests": digests,
        **({"lost": lost} if lost else {}),
    }


def coarse_maps_of_line(
    directory: Path, line: Mapping[str, Any], number: int, name: str
) -> list[tuple[int, Part]]:
    """(length of its columns in seconds, file) of each coarser form of a joined map, ascending; none
    of the map of a single segment."""
    if first_of(line, number) == number:
        return []
    return [(step_s, part_of(directory, line, number, name, step_s)) for step_s in STEPS_S]


def put_joined(
    path: Path, segments: Numbered, statuses: Mapping[str, dict[int, FileStatus]]
) -> dict[Path, FileStatus]:
    """Replace the statuses of segments' own maps, which may not be deleted yet, by those of their
    joined maps. Returns the statuses of their coarser files."""
    coarse: dict[Path, FileStatus] = {}
    lasts = sorted(segments.firsts)
    for name in MAP_NAMES:
        if lasts:
            for number in [number for number in statuses[name] if number <= lasts[-1]]:
                last = lasts[bisect_left(lasts, number)]
                if segments.firsts[last] <= number:
                    del statuses[name][number]
        for last in lasts:
            file = joined_map_file(path, segments.firsts[last], last, name)
            if (status := _status(file)) is not None:
                statuses[name][last] = status
            for _, part in coarse_maps_of_line(path, segments.lines[last], last, name):
                if (status := _status(part.path)) is not None:
                    coarse[part.path] = status
    return coarse


def _status(path: Path) -> FileStatus | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from error
    return status.st_ino, status.st_size, status.st_ctime_ns


def find_wrong_files(
    directory: Path,
    segments: Numbered,
    maps: Mapping[str, Mapping[int, FileStatus]],
    coarse: Mapping[Path, FileStatus],
    deleted_ns: int,
) -> list[tuple[Path, str]]:
    """Files of joined maps that are missing, of another size than was written, or known to be damaged,
    with what is wrong.

    Args:
        maps, coarse: statuses, see `Catalogue`. deleted_ns: maps that end up to then were deleted.
    """
    wrong = []
    for number in segments.firsts:
        line = segments.lines[number]
        last_ns = line.get("last_ns")
        if not isinstance(last_ns, int) or last_ns <= deleted_ns:
            continue
        statuses = {
            part: maps[part.path.parent.name].get(number)
            for part in maps_of_line(directory, line, number)
        }
        for name in MAP_NAMES:
            for _, part in coarse_maps_of_line(directory, line, number, name):
                statuses[part] = coarse.get(part.path)
        for part, status in statuses.items():
            if words := wrong_size(part, None if status is None else status[1]):
                wrong.append((part.path, words))
    return wrong


def map_paths(directory: Path, line: Mapping[str, Any], number: int) -> list[Path]:
    """All files of the default maps of a line, the one by latency first: without it the others are
    not used."""
    coarse = [
        part.path
        for name in MAP_NAMES
        for _, part in coarse_maps_of_line(directory, line, number, name)
    ]
    return [*(part_of(directory, line, number, name).path for name in MAP_NAMES), *coarse]


def find_unlisted(directory: Path, segments: Numbered, through: int) -> list[tuple[int, int]]:
    """(first, last) segment of joined maps that no line lists because the list is damaged,
    ascending. through: the number of the last deleted segment.

    A joined map with single maps, or listed ones, of its segments is what a kill left: these count.
    """
    single = sealed_numbers(directory / MAPS / MAP_NAMES[0])
    listed = [
        range(first, last + 1)
        for last, first in segments.firsts.items()
        if joined_map_file(directory, first, last, MAP_NAMES[0]).exists()
    ]
    unlisted: list[tuple[int, int]] = []
    # a longer one before those that it contains
    ranges = joined_ranges(directory / MAPS / MAP_NAMES[0])
    for first, last in sorted(ranges, key=lambda numbers: (numbers[0], -numbers[1])):
        place = bisect_left(single, first)
        has_single = place < len(single) and single[place] <= last
        is_within = bool(unlisted) and last <= unlisted[-1][1]
        is_listed = any(first < numbers.stop and numbers.start <= last for numbers in listed)
        if last <= through and not (has_single or is_within or is_listed):
            unlisted.append((first, last))
    return unlisted


def remove_leftovers(directory: Path, segments: Numbered, through: int) -> None:
    """Remove what a kill left when maps were joined or deleted: maps that a joined one replaced, and
    joined ones that no line lists. Those that a damaged list lacks remain, see `find_unlisted`.
    OSError where the disk refuses."""
    lasts = sorted(segments.firsts)
    used = {(segments.firsts[last], last) for last in lasts}
    used.update(find_unlisted(directory, segments, through))
    for name in MAP_NAMES:
        for number in sealed_numbers(directory / MAPS / name):
            place = bisect_left(lasts, number)
            if place < len(lasts) and segments.firsts[lasts[place]] <= number:
                map_file(directory, number, name).unlink(missing_ok=True)
        for step_s in (1, *STEPS_S):
            for first, last in joined_ranges(directory / f"histograms/{step_s}s/{name}"):
                if (first, last) not in used:
                    joined_map_file(directory, first, last, name, step_s).unlink(missing_ok=True)
