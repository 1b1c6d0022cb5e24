# SPDX-License-Identifier: Apache-2.0
"""Bytes of a text file as a string: encodings that tools and shells leave behind, and files with
nothing in them."""

from __future__ import annotations

import codecs

from iolab.base.errors import FormatError

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
