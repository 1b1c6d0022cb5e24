"""The list of kept files: `histograms/files.jsonl`, with size and checksum of each, by which one
that is damaged or missing is told.

The keeper alone writes it: a line after its file is there, another before a file goes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...recording.base.checked_files import Part, digest, known_damage
from ...recording.base.layout import replacing, telling
from ...recording.base.lines import CRC, append_line, line_of
from ...recording.base.tail_reader import Appended
from .paths import LIST, TIERS, File, Tier, file_of, is_folder

if TYPE_CHECKING:
    from .tables import About, Sums

STALE = 1000
"""Lines of files that are gone, beyond as many as there are files, before the list is written anew.
"""


@dataclass(frozen=True)
class Listed:
    """Lines by file ("1s/<folder>/000001-000002.parquet"); of those that are gone there are none.
    lines: how many there are in all; damaged: how many can't be believed."""

    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lines: int = 0
    damaged: int = 0


@dataclass(frozen=True)
class Lost:
    """A file that is damaged or missing. first_s, until_s: seconds that it has sums of, None where
    nobody knows."""

    tier: Tier
    file: File
    words: str
    first_s: int | None
    until_s: int | None


def _added(before: Listed, more: Iterable[dict[str, Any] | None]) -> Listed:
    files, lines, damaged = dict(before.files), before.lines, before.damaged
    for line in more:
        lines += 1
        name = None if line is None or line.get(CRC) is None else line.get("file")
        if line is None or not isinstance(name, str):
            damaged += 1
        elif line.get("dropped"):
            files.pop(name, None)
        else:
            files[name] = line
    return Listed(files, lines, damaged)


_LISTED = Appended(Listed(), _added)
_guard = threading.Lock()


def listed(directory: Path) -> Listed:
    """What is listed of a recording now."""
    return _LISTED.of(directory / LIST)


def note(path: Path, first_s: int, last_s: int) -> None:
    """List a file that was written. OSError where it can't be."""
    size, crc = digest(path)
    directory = _directory(path)
    with _guard:
        append_line(
            directory / LIST,
            {
                "file": _name(path),
                "bytes": size,
                "digest": crc,
                "first_s": first_s,
                "last_s": last_s,
            },
        )
        found = listed(directory)
        if found.lines > 2 * len(found.files) + STALE:
            with replacing(directory / LIST) as temporary:
                lines = (
                    {name: value for name, value in line.items() if name != CRC}
                    for line in found.files.values()
                )
                temporary.write_text(
                    "".join(f"{line_of(line)}\n" for line in lines), encoding="ascii"
                )


def drop(path: Path) -> None:
    """Say that a file goes, before it does. OSError where that can't be written."""
    if _name(path) in listed(_directory(path)).files:
        append_line(_directory(path) / LIST, {"file": _name(path), "dropped": True})


def part_of(directory: Path, path: Path) -> Part:
    """A file as its line has it."""
    line = listed(directory).files.get(_name(path), {})
    size, crc = line.get("bytes"), line.get("digest")
    return Part(
        path, size if isinstance(size, int) else None, crc if isinstance(crc, str) else None
    )


def lost_files(directory: Path) -> list[Lost]:
    """Files that are damaged, as far as their size or an earlier look says, or missing."""
    found = []
    for name, line in listed(directory).files.items():
        tier, each = _file(directory, name)
        if tier is None or each is None:
            continue
        words = _wrong(part_of(directory, each.path))
        # it may have been merged meanwhile
        if words and name in listed(directory).files:
            first, last = line.get("first_s"), line.get("last_s")
            found.append(
                Lost(tier, each, words, first, None if last is None else last + tier.seconds)
            )
    return found


def write(path: Path, parts: Iterable[Sums], statistic: str, source: str) -> About | None:
    """`tables.write`, with a line of what was written."""
    # reading the list loads no pyarrow
    from . import tables

    with telling(path, "list what is kept"):
        drop(path)
    about = tables.write(path, parts, statistic, source)
    if about is not None:
        with telling(path, "list what is kept"):
            note(path, about.first_s, about.last_s)
    return about


def unlisted(directory: Path) -> list[Path]:
    """Files that are not in the list, where there is one."""
    known = listed(directory).files
    return (
        [
            path
            for tier in TIERS
            for folder in sorted((directory / "histograms" / tier.name).glob("*"))
            if is_folder(folder.name)
            for path in sorted(folder.glob("*.parquet"))
            if file_of(path) is not None and _name(path) not in known
        ]
        if known
        else []
    )


def _wrong(part: Part) -> str:
    try:
        status = part.path.stat()
    except FileNotFoundError:
        return "it is missing"
    return known_damage(part.path, status) or (
        ""
        if part.bytes in (None, status.st_size)
        else f"it has {status.st_size} bytes, {part.bytes} were written"
    )


def _file(directory: Path, name: str) -> tuple[Tier | None, File | None]:
    tier = next((each for each in TIERS if name.startswith(f"{each.name}/")), None)
    return tier, file_of(directory / "histograms" / name)


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])


def _directory(path: Path) -> Path:
    return path.parents[3]
