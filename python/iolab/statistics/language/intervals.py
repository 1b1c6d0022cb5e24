# SPDX-License-Identifier: Apache-2.0
"""Columns of time: how long they are, and when the first begins."""

from __future__ import annotations

from ...errors import UsageError

SECOND = 10**9
MOST = 200_000
"""Columns of an answer."""
LONGEST = 36_525 * 24 * 3600 * SECOND


def round_interval(first_ns: int, last_ns: int, columns: int) -> int:
    """The shortest of 1, 2, 5 times a power of ten (ns) that makes at most `columns` columns, at
    least two.

    Columns begin at multiples of their length. The native readers choose alike.
    """
    decade = 1
    while True:
        for step in (1, 2, 5):
            interval = step * decade
            if last_ns // interval - first_ns // interval < max(2, columns):
                return interval
        decade *= 10


def check_interval(interval_ns: int | None) -> None:
    """UsageError for a length that no column has."""
    if interval_ns is not None and not 1 <= interval_ns <= LONGEST:
        raise UsageError(
            "an interval is at least 1 ns"
            if interval_ns < 1
            else "an interval has a hundred years at most"
        )


def columns_of(first_ns: int, last_ns: int, interval_ns: int) -> int:
    """Columns from the one with `first_ns` to the one with `last_ns`. UsageError where they are too
    many."""
    count = last_ns // interval_ns - first_ns // interval_ns + 1
    if count > MOST:
        raise UsageError(
            f"that makes {count} columns, and {MOST} are possible",
            hint="take a longer interval or less time",
        )
    return max(0, count)
