"""Files of JSON lines that only grow: losses, marks, names of processes, what sealed segments hold."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..files import EVIDENCE, open_for_writing, read_regular
from ..texts import parsed


def append_line(path: Path, data: Mapping[str, Any], *, durable: bool = False) -> None:
    """Append one line, and wait for the disk where it must be `durable`. A torn line that a kill left is ended first, so it costs
    only itself. OSError where it can't be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    with os.fdopen(open_for_writing(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Its objects in order; a line that is none (torn by a kill, or damaged) is left out. Empty where there is no file."""
    try:
        data = read_regular(path, limit=EVIDENCE)
    except FileNotFoundError:
        return []
    return list(objects(data))


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of lines, those that are none left out. Names in them are shared, as most lines have the same ones."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                value = parsed(line, shared=True)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value
