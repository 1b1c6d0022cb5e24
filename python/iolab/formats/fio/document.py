# SPDX-License-Identifier: Apache-2.0
"""JSON documents in a file that fio wrote: text before and between them, several of them, numbers
that aren't JSON.

fio prints messages into its output file (io_u errors, "terminating on signal 2"), and writes one
document after another under `--status-interval`; its manual page calls the result "technically not
valid json".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import FormatError

from ..core.text import decode

_FIRST_BRACE = re.compile(r"^[ \t]*(\{)[ \t]*\r?$", re.MULTILINE)
_ANY_BRACE = re.compile(r"^[ \t]*(\{)", re.MULTILINE)
# printf's words for what C's arithmetic left; JSON has none of them
_NOT_FINITE = re.compile(r"(:[ \t]*)-?(?:nan|inf(?:inity)?)(?=[\s,}\]])", re.IGNORECASE)

_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Documents:
    """What a file held: the last whole document, how many there were, what stood before, and what
    had to be assumed."""

    last: dict[str, Any]
    count: int
    leading_text: str
    assumptions: tuple[str, ...]


def read_documents(data: bytes, where: str) -> Documents:
    """The JSON documents of a file.

    A torn last document after whole ones (fio killed while it reported) leaves the one before it,
    said in `assumptions`; the shorter runtime it reports is for the judges.

    Raises FormatError: empty file, no JSON in it, JSON cut off or damaged (with the line).
    """
    text = decode(
        data, where, when_empty="fio was killed before it could write, or refused its options"
    )
    assumptions: list[str] = []
    first = _FIRST_BRACE.search(text) or _ANY_BRACE.search(text)
    if first is None:
        raise FormatError(
            f"no JSON in the file; it begins with '{_start_of(text)}'",
            where=where,
            hint="was fio run with --output-format=json or json+?",
        )
    leading_text = text[: first.start()].strip()
    documents: list[dict[str, Any]] = []
    at: re.Match[str] | None = first
    while at is not None:
        begin = at.start(1)
        try:
            document, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            rest, replaced = _NOT_FINITE.subn(r"\1null", text[begin:])
            if replaced:
                assumptions.append(
                    f"{replaced} values that are not numbers (nan, inf) taken as absent"
                )
                text = text[:begin] + rest
                continue
            if not documents:
                raise _damage_error(error, text, where) from None
            assumptions.append(
                f"document {len(documents) + 1} is cut off: the one before it counts"
            )
            break
        if isinstance(document, dict):
            documents.append(document)
        at = _ANY_BRACE.search(text, end)
    if not documents:
        raise FormatError("no JSON object in the file", where=where)
    return Documents(documents[-1], len(documents), leading_text, tuple(assumptions))


def _start_of(text: str) -> str:
    line = text.strip().splitlines()[0]
    return line if len(line) <= 60 else f"{line[:60]}..."


def _damage_error(error: Exception, text: str, where: str) -> FormatError:
    if not isinstance(error, json.JSONDecodeError):
        return FormatError(
            "the JSON is damaged: nested too deeply, or a number of absurd length", where=where
        )
    line = text.count("\n", 0, error.pos) + 1
    lines = text.rstrip().count("\n") + 1
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return FormatError(
            f"JSON ends at line {lines}, before its last brace: fio was killed, or the disk was full",
            where=where,
        )
    return FormatError(f"the JSON is damaged: {error.msg.lower()}", where=f"{where}:{line}")
