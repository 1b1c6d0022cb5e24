# SPDX-License-Identifier: Apache-2.0
"""Rows of kept files as the engine reads them, though merges go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...errors import FormatError
from ...recording.base.checked_files import Part
from ..engine.engine import Engine
from ..engine.windows import Window
from ..language.intervals import SECOND
from .coverage import Held
from .listed import lost_files, part_of
from .paths import Tier

COLUMN = "(time_s * 1000000000 - $base) // $interval"
INSIDE = "time_s >= $from_s AND time_s < $until_s"
"""In SQL: the column of time of a row, and whether it lies in the window."""

_TRIES = 5

T = TypeVar("T")


class Replaced(FormatError):
    """A file was merged with others while it was read."""


def steady(ask: Callable[[], T]) -> T:
    """Ask again where a merge came in between."""
    for _ in range(_TRIES):
        try:
            return ask()
        except Replaced:
            continue
    return ask()


def by_width(held: Held, tiers: Sequence[Tier]) -> dict[int, list[Part]]:
    """Files that count by the width of their equal buckets; all under 1 where they have none."""
    if held.statistic.breakdown != "offset":
        parts = [part_of(held.directory, each.path) for _, each in held.files(tiers)]
        return {1: parts} if parts else {}
    # a question of another kind loads no pyarrow
    from . import tables

    found: dict[int, list[Part]] = {}
    for _, each in held.files(tiers):
        try:
            width = tables.about(each.path).width
        except FileNotFoundError:
            raise Replaced("was merged meanwhile", where=each.path) from None
        found.setdefault(width, []).append(part_of(held.directory, each.path))
    return found


def rows(engine: Engine, parts: Sequence[Part], window: Window, sql: str) -> dict[str, Any]:
    """What SQL says of `kept`, the rows of these files; it may use `COLUMN` and `INSIDE`.
    FormatError where one is damaged."""
    try:
        engine.files("kept", parts)
        return engine.ask(
            sql,
            {
                "base": window.base_ns,
                "interval": window.interval_ns,
                "from_s": -(-window.first_ns // SECOND),
                "until_s": -(-window.until_ns // SECOND),
            },
        )
    except FormatError:
        if any(
            not part.path.exists() and part.path.parent.exists() for part in parts
        ) and not lost_files(window.snap.place):
            raise Replaced("was merged meanwhile", where=window.snap.place) from None
        raise
