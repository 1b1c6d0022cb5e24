# SPDX-License-Identifier: Apache-2.0
"""Bytes of a text file as a string: encodings, escapes and prefixes that tools and shells leave
behind, and files with nothing in them."""

from __future__ import annotations

import codecs
import re

from iolab.base.errors import FormatError

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\0\b\x07]"
)
_BEFORE = re.compile(
    r"\s*(?:"
    r"(?:&gt;|[>|])"  # quoted in mail
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?=\s)"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?=\s)"
    r"|#\d+ \d+\.\d+(?=\s)"  # BuildKit
    r"|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \S+ [^\s:]+:(?=\s)"  # syslog, journal
    r"|[\w.-]+\s*\|(?=\s)"  # containers
    r"|(?:[^\t]{1,80}\t){1,2}(?=\d{4}-)"  # job and step
    r")"
)

_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes, where: str, *, when_empty: str) -> str:
    """The text of a file; bytes that are no UTF-8 become the replacement character, so that a stray
    one costs its line.

    Output redirected in PowerShell is UTF-16 with a byte order mark and is taken as such.

    Raises FormatError with `when_empty` for a file without anything but white space.
    """
    if data.startswith(_WIDE_MARKS):
        text = data.decode("utf-16", errors="replace")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if not text.strip():
        raise FormatError(f"file is empty: {when_empty}", where=where)
    return text


def looks_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text: a NUL byte outside UTF-16."""
    return b"\0" in head and not head.startswith(_WIDE_MARKS)


def without_escapes(text: str) -> str:
    """A text without the escapes of terminals."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\0" in text else text


def without_prefix(line: str) -> str:
    """A line without what mails, logs of CI systems and containers put before it."""
    while (match := _BEFORE.match(line)) is not None:
        line = line[match.end() :]
    return line
