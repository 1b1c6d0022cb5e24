# SPDX-License-Identifier: Apache-2.0
"""Filling in a study's tables: variants override, factors replace `{name}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..file.lines import Path

_MENTION = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def overridden(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The table with changes laid over it, table by table; neither is altered."""
    merged = dict(table)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = (
            overridden(below, value)
            if isinstance(below, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def texts(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """(key path, text) of every string of a table."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from texts(below, (*path, str(key)))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from texts(below, (*path, str(index)))
    elif isinstance(value, str):
        yield path, value


def mentions(value: Any) -> Iterator[tuple[Path, str]]:
    """(key path, name) of every `{name}` in the strings of a table."""
    for path, text in texts(value):
        yield from (
            (path, match[1].strip()) for match in _MENTION.finditer(text) if match[1] is not None
        )


def fill(value: Any, factors: Mapping[str, Any]) -> Any:
    """The value with every `{name}` of a known factor replaced; `{{` and `}}` are braces.

    A string that is nothing but one mention takes the level itself, a number stays a number:
    `"{numjobs}"` is 4, not "4".
    """
    if isinstance(value, Mapping):
        return {key: fill(below, factors) for key, below in value.items()}
    if isinstance(value, list):
        return [fill(below, factors) for below in value]
    if not isinstance(value, str):
        return value
    mention = _MENTION.fullmatch(value.strip())
    if mention and mention[1] is not None and mention[1].strip() in factors:
        return factors[mention[1].strip()]
    return _MENTION.sub(lambda match: _replacement(match, factors), value)


def _replacement(match: re.Match[str], factors: Mapping[str, Any]) -> str:
    if match[1] is None:
        return match[0][0]
    level = factors.get(match[1].strip())
    if level is None:
        return match[0]
    return str(int(level)) if isinstance(level, bool) else str(level)
