"""Files of JSON lines that only grow: losses, marks, names of processes, what sealed segments hold.
Each line has its checksum."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...files import EVIDENCE, RefusedFileError, open_for_writing, read_regular
from ...untrusted_text import parsed

CRC = "crc32"
"""The field that has the checksum of the others."""


def checksum(data: Mapping[str, Any]) -> str:
    """CRC-32 of an object in hexadecimal: of its JSON with sorted names."""
    text = json.dumps(data, sort_keys=True)
    if "\\ud" in text:
        # as it will be read: halves of a pair, alone, become text that can be written again
        text = json.dumps(parsed(text), sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x}"


def signed(data: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its checksum."""
    return {**data, CRC: checksum(data)}


def holds(data: Mapping[str, Any]) -> bool:
    """Whether an object's checksum is the right one. One of an older iolab may have none, which is
    right."""
    return CRC not in data or bool(
        data[CRC] == checksum({name: value for name, value in data.items() if name != CRC})
    )


def line_of(data: Mapping[str, Any]) -> str:
    """A line as it is written, without its end."""
    return json.dumps(signed(data), ensure_ascii=True, separators=(",", ":"))


def append_line(path: Path, data: Mapping[str, Any], *, durable: bool = False) -> None:
    """Append one line, and wait for the disk where it must be `durable`. A torn line that a kill
    left is ended first, so it costs only itself. OSError where it can't be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = line_of(data).encode() + b"\n"
    with os.fdopen(open_for_writing(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """(its objects in order, how many lines are none: torn by a kill, or damaged). Nothing where
    the file is missing or refused (see `files.refusal`)."""
    try:
        data = read_regular(path, limit=EVIDENCE)
    except (FileNotFoundError, RefusedFileError):
        return [], 0
    found = list(objects(data))
    whole = [
        {name: value for name, value in each.items() if name != CRC}
        for each in found
        if each is not None
    ]
    return whole, len(found) - len(whole)


def objects(data: bytes) -> Iterator[dict[str, Any] | None]:
    """The objects of lines, with their checksums, None for a line that is none or was changed
    since. Names in them are shared, as most lines have the same ones."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                value = parsed(line, shared=True)
            except ValueError:
                yield None
                continue
            yield value if isinstance(value, dict) and holds(value) else None
