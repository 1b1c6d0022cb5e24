# SPDX-License-Identifier: Apache-2.0
"""The list of kept files: `histograms/files.jsonl`, with size and checksum of each. It shows which
files are damaged or missing.

Only the keeper and a repair write it: a line after a file is written, another before a file is
deleted. Where the list is damaged or missing, other files show which files are missing: each file
names the previous one of its folder, `kept.json` the last one, and a file of a longer tier has the
segments of files of the shorter tiers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import FormatError, IolabError
from iolab.base.files import refusal

from ....store.base.layout import telling
from ....store.ledger import (
    CRC,
    Ledger,
    Part,
    append_line,
    digest,
    known_damage,
    rewrite,
    set_aside,
)
from ...question import SECOND
from .definitions import Kept, read_state
from .paths import LIST, TIERS, Content, File, Tier, file_of, files, folder_name, is_folder, path_of

if TYPE_CHECKING:
    from .tables import About, Sums

STALE = 1000
"""Lines of deleted files, beyond the number of files, before the list is written again.
"""


@dataclass(frozen=True)
class Listed:
    """Lines by file ("1s/<folder>/000001-000002.parquet"), without deleted files. dropped: names of
    deleted files; lines: number of all lines; damaged: number of lines with a wrong checksum."""

    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    lines: int = 0
    damaged: int = 0


@dataclass(frozen=True)
class Lost:
    """A file that is damaged or missing. first_s, until_s: seconds that it has sums of, None where
    unknown."""

    tier: Tier
    file: File
    words: str
    first_s: int | None
    until_s: int | None


def _add_lines(before: Listed, more: Iterable[dict[str, Any] | None]) -> Listed:
    files, dropped = dict(before.files), set(before.dropped)
    lines, damaged = before.lines, before.damaged
    for line in more:
        lines += 1
        name = None if line is None or line.get(CRC) is None else line.get("file")
        if line is None or not isinstance(name, str):
            damaged += 1
        elif line.get("dropped"):
            files.pop(name, None)
            dropped.add(name)
        else:
            files[name] = line
            dropped.discard(name)
    return Listed(files, frozenset(dropped), lines, damaged)


_LEDGER = Ledger(Listed(), _add_lines)
_guard = threading.Lock()


def read_list(directory: Path) -> Listed:
    """What is listed of a recording now."""
    return _LEDGER.content(directory / LIST)


def note(path: Path, first_s: int, last_s: int) -> None:
    """List a file that was written. OSError where it can't be."""
    line, directory = _line(path, first_s, last_s), _directory(path)
    with _guard:
        append_line(directory / LIST, line)
        list_now = read_list(directory)
        if list_now.lines > 2 * len(list_now.files) + STALE:
            rewrite(directory / LIST, list_now.files.values())


def _line(path: Path, first_s: int, last_s: int) -> dict[str, Any]:
    """The line of a file."""
    size, crc = digest(path)
    times = {"first_s": first_s, "last_s": last_s}
    return {"file": _name(path), "bytes": size, "digest": crc, **times}


def drop(path: Path) -> None:
    """Say that a file goes, before it does. OSError where that can't be written."""
    if _name(path) in read_list(_directory(path)).files:
        append_line(_directory(path) / LIST, {"file": _name(path), "dropped": True})


def part_of(directory: Path, path: Path) -> Part:
    """A file as its line has it."""
    line = read_list(directory).files.get(_name(path), {})
    size, crc = line.get("bytes"), line.get("digest")
    return Part(
        path, size if isinstance(size, int) else None, crc if isinstance(crc, str) else None
    )


def listed_in(directory: Path, tier: Tier, name: str) -> list[tuple[File, Content | None]]:
    """Files of a statistic's folder that a line lists, with their content where the line has it."""
    place = directory / "histograms" / tier.name / name
    files_of_statistic = []
    for listed_name, line in read_list(directory).files.items():
        if not listed_name.startswith(f"{tier.name}/{name}/"):
            continue
        file = file_of(place / listed_name.rpartition("/")[2])
        if file is not None:
            times = [line.get("first_s"), line.get("last_s")]
            files_of_statistic.append((file, Content.of_json([file.first, file.last, *times])))
    return files_of_statistic


def missing_in(directory: Path, tier: Tier, name: str) -> list[File]:
    """Files of a statistic's folder that a line lists and that do not exist."""
    return [file for file, _ in listed_in(directory, tier, name) if not file.path.exists()]


def lost_files(directory: Path) -> list[Lost]:
    """Files that are damaged, as far as their size or an earlier check shows, or missing."""
    losses = []
    for name, line in read_list(directory).files.items():
        tier, file = _file(directory, name)
        if tier is None or file is None:
            continue
        words = _wrong(part_of(directory, file.path))
        # it may have been merged meanwhile
        if words and name in read_list(directory).files:
            first, last = line.get("first_s"), line.get("last_s")
            losses.append(
                Lost(tier, file, words, first, None if last is None else last + tier.seconds)
            )
    return losses if is_whole(directory) else [*losses, *find_lost_files(directory)]


def is_whole(directory: Path) -> bool:
    """Whether the list is readable, and has a line of every file."""
    place = directory / LIST
    return (
        place.is_file()
        and not refusal(place)
        and not read_list(directory).damaged
        and not unlisted_files(directory)
    )


def find_lost_files(directory: Path) -> list[Lost]:
    """Files that are missing and that no line lists, according to other files.

    Neighbours that are missing together are one loss: of the time, and the segments, between the
    files before and after them.
    """
    kept: dict[str, Kept] = {}
    with suppress(IolabError):
        state = read_state(directory)
        kept = {} if state is None else state.statistics
    statistics = {folder_name(name): statistic for name, statistic in kept.items()}
    folders = {
        path.name
        for tier in TIERS
        for path in (directory / "histograms" / tier.name).glob("*")
        if is_folder(path.name)
    }
    return [
        lost
        for name in sorted(folders | statistics.keys())
        for lost in _lost_in(directory, name, statistics.get(name))
    ]


def _lost_in(directory: Path, name: str, kept: Kept | None) -> list[Lost]:
    """`find_lost_files` of one folder's name in all tiers."""
    existing: dict[Tier, list[File]] = {}
    contents: dict[Tier, list[Content]] = {}
    stated: dict[Tier, list[Content]] = {}
    for tier in TIERS:
        listed_files = listed_in(directory, tier, name)
        existing[tier] = [file for file, _ in listed_files]
        contents[tier] = [content for _, content in listed_files if content is not None]
        stated[tier] = []
        if kept is not None and tier.name in kept.latest:
            stated[tier].append(kept.latest[tier.name])
        for file in files(directory, tier, name):
            existing[tier].append(file)
            with suppress(FormatError, FileNotFoundError):
                first_s, last_s, previous = _read_content(file.path, file.path.stat().st_mtime_ns)
                contents[tier].append(Content(file.first, file.last, first_s, last_s))
                if previous is not None:
                    stated[tier].append(previous)
    for place, tier in enumerate(TIERS):
        stated[tier] += [
            content
            for longer in TIERS[place + 1 :]
            for content in contents[longer]
            if not any(file.meets(_file_of(content)) for file in existing[tier])
        ]
    return [
        lost
        for tier in TIERS
        for lost in _gaps(directory, tier, name, kept, existing[tier], contents[tier], stated[tier])
    ]


def _gaps(
    directory: Path,
    tier: Tier,
    name: str,
    kept: Kept | None,
    existing: list[File],
    contents: list[Content],
    stated: list[Content],
) -> list[Lost]:
    """Losses of files that others state and that do not exist. `contents`: of `existing` files, as
    far as known."""
    list_now = read_list(directory)
    begin_s = kept.begins.get(tier.name, 0) if kept is not None else 0
    if kept is not None and kept.first_ns is not None:
        begin_s = max(begin_s, kept.first_ns // SECOND // tier.seconds * tier.seconds)
    covering, losses = list(existing), []
    for content in sorted(stated, key=lambda content: (content.last, -content.first)):
        stated_file = _file_of(content)
        path = path_of(directory, tier, name, content.first, content.last)
        if (
            any(stated_file.within(file) for file in covering)
            or content.last_s + tier.seconds <= begin_s
            # retention may not have noted yet that it deleted the file
            or (not list_now.damaged and _name(path) in list_now.dropped)
        ):
            continue
        before = max((file.last for file in covering if file.last < content.first), default=None)
        end_s = max(
            (part.last_s + tier.seconds for part in contents if part.last < content.first),
            default=begin_s or content.first_s,
        )
        if before is None:
            before = 0 if content.first_s > end_s else content.first - 1
        file = File(
            before + 1, content.last, path_of(directory, tier, name, before + 1, content.last)
        )
        first_s = content.first_s if file.first == content.first else min(content.first_s, end_s)
        losses.append(Lost(tier, file, "it is missing", first_s, content.last_s + tier.seconds))
        covering.append(file)
        contents = [*contents, Content(file.first, file.last, first_s, content.last_s)]
    return losses


def _file_of(content: Content) -> File:
    return File(content.first, content.last, Path())


@lru_cache(maxsize=4096)
def _read_content(path: Path, changed_ns: int) -> tuple[int, int, Content | None]:
    """First and last second of a file, and the previous one, as its metadata has them."""
    # a question of a whole list loads no pyarrow
    from . import tables

    about = tables.about(path)
    return about.first_s, about.last_s, about.previous


def rebuild_list(directory: Path) -> None:
    """Write the list again, unless it is whole: without its damaged lines, which are kept in
    `files.jsonl.damaged`, with lines of whole files that have none, and with lines of missing
    files, so that they stay missing. ResultsError where that can't be written."""
    if is_whole(directory):
        return
    from . import tables

    place = directory / LIST
    lost, list_now = find_lost_files(directory), read_list(directory)
    lines = [dict(line) for line in list_now.files.values()]
    for path in unlisted_files(directory):
        with suppress(FormatError, FileNotFoundError):
            tables.read(path)
            first_s, last_s, _ = _read_content(path, path.stat().st_mtime_ns)
            lines.append(_line(path, first_s, last_s))
    for missing in lost:
        assert missing.until_s is not None
        lines.append(
            {
                "file": _name(missing.file.path),
                "first_s": missing.first_s,
                "last_s": missing.until_s - missing.tier.seconds,
            }
        )
    with telling(place, "write it again"):
        if list_now.damaged or refusal(place):
            set_aside(place)
        if lines or place.exists():
            with _guard:
                rewrite(place, lines)


def write(path: Path, parts: Iterable[Sums], statistic: str, source: str) -> About | None:
    """`tables.write`, with a line of the file."""
    # reading the list loads no pyarrow
    from . import tables

    with telling(path, "list what is kept"):
        drop(path)
    about = tables.write(path, parts, statistic, source, _previous(path))
    if about is not None:
        with telling(path, "list what is kept"):
            note(path, about.first_s, about.last_s)
    return about


def _previous(path: Path) -> Content | None:
    """The last file before a new one, in its folder."""
    directory = _directory(path)
    tier, file = _file(directory, _name(path))
    if tier is None or file is None:
        return None
    return max(
        (
            content
            for _, content in listed_in(directory, tier, path.parent.name)
            if content is not None and content.last < file.first
        ),
        key=lambda content: content.last,
        default=None,
    )


def unlisted_files(directory: Path) -> list[Path]:
    """Files that are not in the list."""
    names = read_list(directory).files
    return [
        path
        for tier in TIERS
        for folder in sorted((directory / "histograms" / tier.name).glob("*"))
        if is_folder(folder.name)
        for path in sorted(folder.glob("*.parquet"))
        if file_of(path) is not None and _name(path) not in names
    ]


def _wrong(part: Part) -> str:
    try:
        status = part.path.stat()
    except FileNotFoundError:
        return "it is missing"
    return known_damage(part.path) or (
        ""
        if part.bytes in (None, status.st_size)
        else f"it has {status.st_size} bytes, {part.bytes} were written"
    )


def _file(directory: Path, name: str) -> tuple[Tier | None, File | None]:
    tier = next((tier for tier in TIERS if name.startswith(f"{tier.name}/")), None)
    return tier, file_of(directory / "histograms" / name)


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])


def _directory(path: Path) -> Path:
    return path.parents[3]
