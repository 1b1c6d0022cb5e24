# SPDX-License-Identifier: Apache-2.0
"""Sealed segments by their lines: the contents of each, without opening it where a line has them.

Default maps of many consecutive segments without events are joined, as one file for each map.

The file has the rows of all its segments, each with the number of its segment. Coarser files have the
same rows summed up by longer columns. A line of `segments.jsonl` with the number of the last segment
names them: from the moment it is written, it replaces the lines and files of the single segments.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from iolab.base.errors import ResultsError
from iolab.base.files import map_regular, remove

from ..base.layout import (
    GROWING,
    KINDS,
    LOSSES,
    MAPS,
    SEGMENTS,
    STEPS_S,
    FileStatus,
    Kind,
    hot_file,
    joined_map_file,
    joined_ranges,
    map_file,
    sealed_file,
    sealed_numbers,
    sealed_statuses,
    telling,
)
from ..base.loss_log import read_losses
from ..ledger import (
    CRC,
    ORDERED,
    Contents,
    Numbered,
    NumberedLedger,
    Part,
    append_line,
    digest,
    known_damage,
    wrong_size,
)

MAP_NAMES = ("io.latency", "io.offset", "io.size")


@dataclass(frozen=True)
class Segment:
    """A part of a recording, of one file of events.

    Attributes:
        number: its place in the order of writing. path: its Parquet file, or Arrow stream where
        kind is "hot". first_ns, last_ns: span of its events. sources: events (I/Os) of each source.
        facts: what is stored of a sealed one: rows, sources, names, distinct, other, offset_width,
        bytes, label.
    """

    number: int
    path: Path
    kind: Literal["sealed", "hot"]
    first_ns: int
    last_ns: int
    sources: Mapping[str, int]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> Part:
        """The file of a sealed one as it should be."""
        return Part(self.path, self.facts.get("bytes"), self.facts.get("crc32"))


@dataclass(frozen=True)
class SealedFile:
    """A sealed file of events or samples.

    Attributes:
        number: of the segment. line: of `segments.jsonl`, empty where there is none. facts: what it
        has. A damaged one has `damaged` in its facts, and in `lost` what its line says that it
        held. `bytes` is the size of the file, `crc32` the checksum it should have (None: unknown).
    """

    number: int
    path: Path
    line: Mapping[str, Any]
    facts: Mapping[str, Any]

    @cached_property
    def segment(self) -> Segment | None:
        """The segment; None where the file is damaged."""
        facts = self.facts
        if facts["first_ns"] is None:
            return None
        sources = {source: int(counts["events"]) for source, counts in facts["sources"].items()}
        return Segment(
            self.number, self.path, "sealed", facts["first_ns"], facts["last_ns"], sources, facts
        )

    @cached_property
    def maps(self) -> Sequence[Part]:
        """Default maps of a file of events, as `maps_of_line`."""
        return maps_of_line(self.path.parent.parent, self.line, self.number)


def note_segment(directory: Path, number: int, facts: Mapping[str, Any]) -> None:
    """Append what a segment holds, with size and checksum of each of its files, to
    `segments.jsonl`: it spares opening them, and shows when one is damaged or missing."""
    sizes: dict[str, int | None] = dict.fromkeys(KINDS)
    digests: dict[str, str] = {}
    for name, path in _files_of(directory, number):
        with suppress(FileNotFoundError):
            sizes[name], digests[name] = digest(path)
    facts = {name: value for name, value in facts.items() if (name, value) != ("samples", None)}
    append_line(
        directory / SEGMENTS, {**facts, "number": number, "bytes": sizes, "digests": digests}
    )


def note_unlisted(directory: Path, number: int) -> None:
    """Append what the files of a segment hold where a kill came before its line."""
    line = noted_segments(directory).get(number, {})
    paths = {
        kind: sealed_file(directory, number, kind)
        for kind in KINDS
        if sealed_file(directory, number, kind).exists()
    }
    if all((line.get("bytes") or {}).get(kind) for kind in paths):
        return
    facts = {kind: own_facts(path) for kind, path in paths.items()}
    if any("damaged" in fact for fact in facts.values()):
        return
    with telling(directory / SEGMENTS, "add a line"):
        note_segment(
            directory,
            number,
            {
                **facts.get("events", {}),
                **({"samples": facts["samples"]} if "samples" in facts else {}),
            },
        )


def note_dropped(directory: Path, number: int) -> None:
    """Append that a segment goes, before its files do: it is not missing then."""
    append_line(directory / SEGMENTS, {"number": number, "dropped": True})


def _files_of(directory: Path, number: int) -> Iterator[tuple[str, Path]]:
    """Name in the line and path of each file that a segment may have."""
    yield from ((kind, sealed_file(directory, number, kind)) for kind in KINDS)
    yield from ((name, map_file(directory, number, name)) for name in MAP_NAMES)


def first_of(line: Mapping[str, Any], number: int) -> int:
    """The first of the segments of which a line with a number has the joined maps; its own number
    where it has none."""
    first = line.get("joined")
    return first if isinstance(first, int) and 0 < first < number else number


def step_name(name: str, step_s: int) -> str:
    return name if step_s == 1 else f"{name}/{step_s}s"


def part_of(
    directory: Path, line: Mapping[str, Any], number: int, name: str, step_s: int = 1
) -> Part:
    """A file of a segment as its line has it.

    Args:
        name: "events", "samples", or that of a default map. step_s: length (s) of the columns of a
        joined map.
    """
    kind = _KIND_OF.get(name)
    first = first_of(line, number)
    if kind is not None:
        path = sealed_file(directory, number, kind)
    elif first < number:
        path = joined_map_file(directory, first, number, name, step_s)
    else:
        path = map_file(directory, number, name)
    sizes, digests, key = line.get("bytes"), line.get("digests"), step_name(name, step_s)
    size = sizes.get(key) if isinstance(sizes, dict) else None
    crc = digests.get(key) if isinstance(digests, dict) else None
    return Part(
        path, size if isinstance(size, int) else None, crc if isinstance(crc, str) else None
    )


def maps_of_line(directory: Path, line: Mapping[str, Any], number: int) -> Sequence[Part]:
    """Default maps that a segment has according to its line, lost ones included."""
    parts = ((name, part_of(directory, line, number, name)) for name in MAP_NAMES)
    return [part for name, part in parts if part.crc32 is not None or name in line.get("lost", ())]


_KIND_OF: Mapping[str, Kind] = {kind: kind for kind in KINDS}


def noted_segments(directory: Path) -> Mapping[int, Mapping[str, Any]]:
    """The lines of `segments.jsonl`, by number; the last line of a number holds. A line that was
    changed since is left out."""
    return read_list(directory).content.lines


def read_list(directory: Path) -> Contents[Numbered]:
    """`segments.jsonl` now, with lines as `noted_segments`."""
    return _LEDGER.read(directory / SEGMENTS)


Ledgers = Mapping[str, Contents[Any]]
"""Each ledger of a recording by its path there."""


def read_ledgers(directory: Path) -> Ledgers:
    """All ledgers now; each is opened once."""
    return {
        name: read_list(directory)
        if name == SEGMENTS
        else read_losses(directory)
        if name == LOSSES
        else ORDERED.read(directory / name)
        for name in GROWING
    }


def _number(line: dict[str, Any]) -> int | None:
    number = line.get("number")
    # each had a checksum from the first version on
    return number if isinstance(number, int) and line.pop(CRC, None) is not None else None


_LEDGER = NumberedLedger(_number, first_of)
"""One question asks several times, and after months there are a hundred thousand lines."""


def sealed_facts(
    directory: Path, kind: Kind, after: int = 0, known: Collection[int] = ()
) -> Iterator[tuple[int, Path, Mapping[str, Any]]]:
    """(number, file, facts) of sealed segments of events or samples with numbers beyond `after`,
    ascending, without those `known`; see `SealedFile`."""
    statuses, _ = sealed_statuses(directory / kind, after)
    statuses = {number: status for number, status in statuses.items() if number not in known}
    for file in sealed_files(directory, kind, statuses, noted_segments(directory)):
        yield file.number, file.path, file.facts


def sealed_files(
    directory: Path,
    kind: Kind,
    statuses: Mapping[int, FileStatus],
    lines: Mapping[int, Mapping[str, Any]],
    cache: dict[int, SealedFile] | None = None,
) -> Iterator[SealedFile]:
    """Sealed segments of events or samples by their files' statuses.

    The facts come from the segment's line, or from the file where there is none. `cache`: files by
    number as an earlier call returned them; it is updated.
    """
    cache = {} if cache is None else cache
    for number in cache.keys() - statuses.keys():
        cache.pop(number, None)
    for number in sorted(statuses):
        size = statuses[number][1]
        line, file = lines.get(number, _NO_LINE), cache.get(number)
        path = sealed_file(directory, number, kind) if file is None else file.path
        if (
            file is None
            or file.line is not line
            or file.facts["bytes"] != size
            or known_damage(path)
        ):
            file = SealedFile(
                number, path, line, _facts_of(directory, kind, number, path, line, size)
            )
            if "crc32" in file.facts:
                cache[number] = file
            else:
                cache.pop(number, None)
        yield file


def _facts_of(
    directory: Path,
    kind: Kind,
    number: int,
    path: Path,
    line: Mapping[str, Any],
    size: int,
) -> dict[str, Any]:
    """Facts of a sealed file, see `SealedFile`."""
    listed, part = (
        line if kind == "events" else line.get("samples", {}),
        part_of(directory, line, number, kind),
    )
    has_facts = isinstance(listed, dict) and isinstance(listed.get("sources"), dict)
    words = known_damage(path)
    if not words and part.crc32 is not None and part.bytes != size:
        words = f"it has {size} bytes, {part.bytes} were written"
    if not words and has_facts and part.bytes == size:
        return {**listed, "bytes": size, "crc32": part.crc32}
    facts = {**UNKNOWN, "damaged": words} if words else own_facts(path)
    return {**facts, "lost": listed if has_facts else {}, "bytes": size}


def unlisted_files(
    directory: Path,
    after: int,
    lines: Mapping[int, Mapping[str, Any]] | None = None,
    numbers: Mapping[Kind, Iterable[int]] | None = None,
) -> list[Path]:
    """Sealed files that no line lists, where lines list others; none of a segment that is just
    being sealed. `lines`: of `segments.jsonl`, `numbers`: of sealed files, where they were read
    already."""
    lines = noted_segments(directory) if lines is None else lines
    if not any("digests" in line for line in lines.values()):
        return []
    files = [
        (number, kind)
        for kind in KINDS
        for number in (sealed_numbers(directory / kind) if numbers is None else numbers[kind])
        if number > after
        and not _is_listed(lines, number, kind)
        and not any(hot_file(directory, number, other).exists() for other in KINDS)
    ]
    if not files:
        return []
    # one may have been sealed meanwhile
    lines = noted_segments(directory)
    return [
        path
        for number, kind in files
        if not _is_listed(lines, number, kind)
        and (path := sealed_file(directory, number, kind)).exists()
    ]


def _is_listed(lines: Mapping[int, Mapping[str, Any]], number: int, kind: Kind) -> bool:
    sizes = lines.get(number, {}).get("bytes")
    return isinstance(sizes, dict) and isinstance(sizes.get(kind), int)


_NO_LINE: Mapping[str, Any] = {}
UNKNOWN: Mapping[str, Any] = {"sources": {}, "rows": 0, "first_ns": None, "last_ns": None}
"""Facts of a damaged or lost file of which nothing but its number is known."""


def own_facts(path: Path) -> dict[str, Any]:
    """What a sealed file says of itself; `damaged` says why where it can't be read."""
    import pyarrow as pa

    try:
        facts = stated_facts(path)
        if isinstance(facts.get("sources"), dict):
            return facts
        words = "says nothing of what it holds"
    except (OSError, pa.ArrowException, ValueError) as error:
        words = (str(error) or type(error).__name__).split("\n")[0]
    return {**UNKNOWN, "damaged": words}


def stated_facts(path: Path) -> dict[str, Any]:
    """The facts in the metadata of a Parquet file of a segment. OSError, ArrowException or
    ValueError where it can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(pa.BufferReader(map_regular(path))).metadata or {}
    facts = json.loads(metadata.get(b"iolab", b""))
    return facts if isinstance(facts, dict) else {}


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
                remove(map_file(directory, number, name))
        for step_s in (1, *STEPS_S):
            for first, last in joined_ranges(directory / f"histograms/{step_s}s/{name}"):
                if (first, last) not in used:
                    remove(joined_map_file(directory, first, last, name, step_s))
