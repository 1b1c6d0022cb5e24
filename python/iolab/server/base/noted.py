"""What was noted along a recording, as data: marks, and losses. Part of `models`."""

from __future__ import annotations

from typing import Any

from .models import Model, Whole


class Mark(Model):
    """A named span of time; until_ns is null while it lasts."""

    label: str
    kind: str
    from_ns: int
    until_ns: int | None
    link: str | None
    facts: dict[str, Any]


class Marks(Whole):
    """Marks of a recording in the order they were made; `left`: how many earlier ones are not listed."""

    recording: str
    marks: list[Mark]
    left: int


class Loss(Model):
    """Something that is not in a recording; count is null where nobody knows how much."""

    source: str
    kind: str
    from_ns: int | None
    until_ns: int | None
    count: int | None
    words: str


class Losses(Whole):
    """Losses in the order they were noted; `totals` by kind over all of them; `left`: how many earlier ones are not listed.

    recorded: (from, until) in ns when it was recorded, as far as that is still there; empty where nobody knows, as of traces.
    """

    recording: str
    losses: list[Loss]
    totals: dict[str, int]
    gaps: list[tuple[int, int]]
    recorded: list[tuple[int, int]]
    left: int


NOTED: dict[str, type[Model]] = {each.__name__: each for each in (Marks, Losses)}
"""Answers to questions of these, by name."""
