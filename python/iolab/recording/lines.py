"""Files of JSON lines that only grow: losses, marks, names of processes, what sealed segments hold."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def append_line(path: Path, data: Mapping[str, Any], *, durable: bool = False) -> None:
    """Append one line, and wait for the disk where it must be `durable`. A torn line that a kill left is ended first, so it costs
    only itself. OSError where it can't be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    with path.open("ab+") as file:
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
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return list(objects(data))


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of lines, those that are none left out. Names in them are shared, as most lines have the same ones."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                value = json.loads(line, object_pairs_hook=_shared)
                # halves of a pair, alone, are no text that could be written again
                if b"\\ud" in line.lower() or b"\xed" in line:
                    value = _writable(value)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def _writable(value: Any) -> Any:
    """The same with text that UTF-8 can express."""
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {_writable(name): _writable(each) for name, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list) else value


def writable(text: str) -> str:
    """Text that UTF-8 can express: the bytes of a file's name that were no text appear as `\\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Text of others as a terminal may have it: what is not printable appears as `\\x1b`, spaces alone as they are."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _shared(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {sys.intern(name): value for name, value in pairs}
