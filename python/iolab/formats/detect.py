# SPDX-License-Identifier: Apache-2.0
"""Which format a file is of: asked of every format in turn, content before name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from iolab.base import registry
from iolab.base.errors import FormatError

from .core.tables import Format

_HEAD = 65536
"""Bytes that formats are shown: enough for messages before the JSON, and for any header."""

_NAMES = (
    (re.compile(r"_(?:bw|iops|lat|clat|slat)(?:\.\d+)?\.log$"), "fio-log"),
    (re.compile(r"fio.*\.json$|\.fio\.json$"), "fio-json"),
    (re.compile(r"iostat.*\.json$"), "iostat-json"),
    (re.compile(r"iostat"), "iostat-text"),
    (re.compile(r"(?:terse|minimal)"), "fio-terse"),
    (re.compile(r"diskstats"), "diskstats"),
    (re.compile(r"\.json$"), "fio-json"),
)
"""What a name hints at, the most particular first; asked only of formats that the content left
undecided."""


def detect(data: bytes, file_name: str) -> str | None:
    """The name of the format of a file that begins with `data`, or None when no format takes it.

    The first format with a positive content check wins; formats of other packages are tried after
    the built-in ones. If no check is certain, the format that the file's name suggests is used, so
    that an empty `fio.json` is still fio's.
    """
    head = data[:_HEAD]
    built_in = registry.built_in("format")
    # a log of iolab's own is named after its format
    hints = [name for name in (file_name.removesuffix(".log"),) if name in built_in]
    hints += [name for pattern, name in _NAMES if pattern.search(file_name)]
    undecided: list[str] = []
    # contents exclude each other, so asking the likely format first changes no answer and spares
    # the others' looks
    format_name = _ask(dict.fromkeys([*hints, *built_in]), head, file_name, undecided)
    if format_name is None:
        hinted = next((name for name in hints if name in undecided), None)
        format_name = _ask(_third_parties(), head, file_name, undecided) or hinted
    return format_name


def _ask(names: Iterable[str], head: bytes, file_name: str, undecided: list[str]) -> str | None:
    """The first of the formats that says yes; those that can't tell are added to `undecided`."""
    for name in names:
        answer = _format(name).detect(head, file_name)
        if answer:
            return name
        if answer is None:
            undecided.append(name)
    return None


def _third_parties() -> list[str]:
    """Names that entry points add."""
    built_in = set(registry.built_in("format"))
    return [name for name in registry.names("format") if name not in built_in]


@cache
def _format(name: str) -> Format:
    instance: Format = registry.load("format", name)()
    return instance


def read(data: bytes, where: str) -> tuple[str, Any]:
    """A file's format and its table; `where` is its path, and names it in errors.

    Raises FormatError for a file of no known format, and what the format's own `read` raises.
    """
    name = detect(data, where.rsplit("/", 1)[-1])
    if name is None:
        names = ", ".join(registry.names("format"))
        raise FormatError("no known format", where=where, hint=f"iolab reads {names}")
    return name, _format(name).read(data, where)
