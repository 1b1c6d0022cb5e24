# SPDX-License-Identifier: Apache-2.0
"""Whose the I/Os of a recording's map are: counts of each value of a field, so that a part of the
map can name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...recording.base.conditions import Where
from ...recording.base.counts import HeatCounts
from ...recording.read.breakdown import MOST, Dimension, dimension
from ..answers.answers import Stack
from ..engine.snapshot import choose, snapshot
from ..language.names import Statistic
from .query import query

if TYPE_CHECKING:
    from ...recording.read.recording import Recording

FIELDS = ("op", "device", "process", "file", "job", "client")
BUDGET = 2 * 10**9
"""Events to scan for this; beyond, fewer fields are told apart."""


def dimensions_of(
    recordings: Sequence[Recording],
    whole: HeatCounts,
    read: Callable[[Recording, Where], HeatCounts],
) -> tuple[list[Dimension], list[str]]:
    """Fields in which the recordings have more than one value, and the names of those left out for
    the recordings' size.

    `read` counts a recording under further conditions, on the whole's columns. What a recording
    holds of other sources than the map's counts for nothing: a value without a count has no part.
    """
    events = sum(
        sum(segment.sources.values())
        for recording in recordings
        for segment in recording.segments()
    )
    budget, found, left = BUDGET, [], []
    for name in FIELDS:
        if MOST * events > budget:
            left.append(name)
            continue
        totals = _totals(recordings, name)
        values = sorted(totals, key=lambda value, totals=totals: (-totals[value], value))[:MOST]  # type: ignore[misc]
        if len(totals) < 2:
            continue
        budget -= len(values) * events
        found.append(
            dimension(
                name,
                values,
                recordings,
                whole,
                read,
                growing=any(_is_growing(each) for each in recordings),
            )
        )
    return found, left


def _is_growing(recording: Recording) -> bool:
    """Whether something may be recorded meanwhile: a session has no end."""
    return any(each.get("until_ns") is None for each in recording.facts.sessions)


def _totals(recordings: Sequence[Recording], name: str) -> dict[str, int]:
    """I/Os by value of a field, over all time."""
    found: dict[str, int] = {}
    for recording in recordings:
        # events as the map's, though counters could tell some of it
        source, _ = choose(snapshot(recording).sources, None, None, recording.path)
        answer = query(recording, Statistic("io", "ops", (), name), columns=1, source=source)
        assert isinstance(answer, Stack)
        for key, total in zip(answer.keys, answer.totals, strict=True):
            found[key] = found.get(key, 0) + total
    return found
