# SPDX-License-Identifier: Apache-2.0
"""Text from other people's files, which may contain anything, escaped for where it is written: UTF-8,
a terminal, JSON, HTML and XML, Markdown.

Everywhere the same characters are escaped, those that `str.isprintable` refuses: control characters
(ESC, C1), controls of the writing direction (U+202E), and what is not assigned.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def writable(text: str) -> str:
    """Text that UTF-8 can express: undecodable bytes of a file's name appear as `\\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Text for a terminal: characters that are not printable appear as `\\x1b`; spaces stay."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def visible_lines(text: str) -> str:
    """`visible` text of several lines."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def visible_json(document: str) -> str:
    """A JSON document for a terminal: characters that are not printable appear as `\\u009b`, with
    the same meaning in JSON."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_char, line))
        for line in document.split("\n")
    )


def _json_char(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]


_IN_JSON = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|[^\x20-\x7e\xa0]+")
_KEPT_IN_JSON = {r"\n", r"\r", r"\t", r"\"", r"\\", r"\/"}


def page_json(document: str) -> str:
    """A JSON document for a page: characters that are not printable are escaped as by `visible`.
    Line ends, tabs and no-break spaces (between number and unit) stay.

    `document`: JSON on one line; characters beyond ASCII are not escaped.
    """

    def escape_match(match: re.Match[str]) -> str:
        text = match[0]
        if text in _KEPT_IN_JSON or (text.isprintable() and text[0] != "\\"):
            return text
        return json.dumps(visible(json.loads(f'"{text}"')), ensure_ascii=False)[1:-1]

    return _IN_JSON.sub(escape_match, document)


def html(text: str) -> str:
    """Text within HTML or XML, attributes in quotes included."""
    # not above: it loads all names of characters, which a question does not need
    from html import escape

    return escape(visible(text))


_IN_MARKDOWN = re.compile(
    r"[\\`*|~$]|<|&|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])",
)
"""What could start code, emphasis, a cell, markup, an entity or a link. An underscore within a word
starts nothing."""
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def markdown(text: str) -> str:
    """Text within a line or a cell of Markdown: it is shown as it is, and is never markup."""
    return _IN_MARKDOWN.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), visible(text))


def parse_json(data: bytes | str, *, shared: bool = False) -> Any:
    """The value of a JSON document, with texts that UTF-8 can express. ValueError if it is not
    JSON. `shared`: intern the names of fields."""
    try:
        value = json.loads(data, object_pairs_hook=_share_names if shared else None)
        # UTF-8 can't express a lone half of a surrogate pair
        halves = (
            b"\\ud" in data.lower() or b"\xed" in data
            if isinstance(data, bytes)
            else "\\ud" in data.lower()
        )
        return _writable(value) if halves else value
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A JSON document for programs (RFC 8259): numbers that are not finite are null, which JSON
    has no other word for; what JSON does not know is written as text."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        finite = _finite(value)
        return json.dumps(finite, indent=indent, ensure_ascii=False, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(member) for name, member in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _share_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {sys.intern(name): value for name, value in pairs}


def _writable(value: Any) -> Any:
    """The same with text that UTF-8 can express."""
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {_writable(name): _writable(member) for name, member in value.items()}
    return [_writable(item) for item in value] if isinstance(value, list) else value


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], most: int = 60
) -> str:
    """A table for a notebook, each text escaped: the first `most` rows and the number of more rows."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html(cell)}</{tag}>" for cell in cells) + "</tr>"

    remainder = f"<p>{len(rows) - most} more rows</p>" if len(rows) > most else ""
    body = "".join(line(row, "td") for row in rows[:most])
    return f"<table><caption>{html(caption)}</caption><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>{remainder}"
