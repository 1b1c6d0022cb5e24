"""Text of others, who may have written anything: as UTF-8 can express it, as a terminal may have
it, and as JSON tells it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from html import escape
from typing import Any


def writable(text: str) -> str:
    """Text that UTF-8 can express: the bytes of a file's name that were no text appear as `\\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Text of others as a terminal may have it: what is not printable appears as `\\x1b`, spaces alone as they are."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def visible_json(document: str) -> str:
    """A JSON document as a terminal may have it: what is not printable in its texts appears as `\\u009b`, and means the same."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_spelt, line)) for line in document.split("\n")
    )


def _spelt(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]


def parsed(data: bytes | str, *, shared: bool = False) -> Any:
    """The value of a JSON document, whose texts can be written again. ValueError where it is none.
    `shared`: names of fields are, with those of other documents."""
    try:
        value = json.loads(data, object_pairs_hook=_shared if shared else None)
        # halves of a pair, alone, are no text that could be written again
        halves = (
            b"\\ud" in data.lower() or b"\xed" in data
            if isinstance(data, bytes)
            else "\\ud" in data.lower()
        )
        return _writable(value) if halves else value
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None


def _shared(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {sys.intern(name): value for name, value in pairs}


def _writable(value: Any) -> Any:
    """The same with text that UTF-8 can express."""
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {_writable(name): _writable(each) for name, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list) else value


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], most: int = 60
) -> str:
    """A table as a notebook shows it, every text escaped; of more than `most` rows the first, and
    how many are left out."""

    def line(cells: Sequence[str], tag: str) -> str:
        return (
            "<tr>" + "".join(f"<{tag}>{escape(visible(cell))}</{tag}>" for cell in cells) + "</tr>"
        )

    left = f"<p>{len(rows) - most} more rows</p>" if len(rows) > most else ""
    body = "".join(line(row, "td") for row in rows[:most])
    return f"<table><caption>{escape(visible(caption))}</caption><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>{left}"
