# SPDX-License-Identifier: Apache-2.0
"""Spans of time (from, until) in ns: of sessions what lies between them, and what two of them have
in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
Session: TypeAlias = Mapping[str, int | None]

_GOES_ON = 2**63 - 1


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same time as spans that are ascending and apart."""
    found: list[Span] = []
    for first, until in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        elif first < until:
            found.append((first, until))
    return found


def common(several: Sequence[Sequence[Span]]) -> list[Span]:
    """What lies in all of several lists of spans, each ascending and apart."""
    found, *others = several
    for other in others:
        found = [
            (max(first, low), min(until, high))
            for first, until in found
            for low, high in other
            if max(first, low) < min(until, high)
        ]
    return list(found)


def without(spans: Sequence[Span], holes: Iterable[Span]) -> list[Span]:
    """Spans with holes cut out."""
    found = list(spans)
    for first, until in holes:
        cut = []
        for start, end in found:
            if until <= start or first >= end:
                cut.append((start, end))
                continue
            cut += [
                span
                for span in ((start, min(first, end)), (max(until, start), end))
                if span[0] < span[1]
            ]
        found = cut
    return found


def between(sessions: Sequence[Session]) -> list[Span]:
    """Times between sessions, in none of them, ascending; in whatever order these were made."""
    return _between(_spans(sessions))[0]


def in_common(sessions: Sequence[Session]) -> list[Span]:
    """Times in more than one session, ascending and apart: the clock was set back before the later
    one began."""
    return joined(_between(_spans(sessions))[1])


def _spans(sessions: Sequence[Session]) -> list[Span]:
    """Ascending; one that goes on has no end."""
    found = ((session.get("from_ns"), session.get("until_ns")) for session in sessions)
    return sorted(
        (first, _GOES_ON if until is None else until) for first, until in found if first is not None
    )


def _between(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """What none of ascending spans holds, and what each has in common with those before it."""
    apart, twice = [], []
    reached = spans[0][0] if spans else 0
    for first, until in spans:
        if first > reached:
            apart.append((reached, first))
        elif first < min(reached, until):
            twice.append((first, min(reached, until)))
        reached = max(reached, until)
    return apart, twice
