# SPDX-License-Identifier: Apache-2.0
"""A question to a recording or trace, the same for every statistic, map and drill-down."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import UsageError
from ..recording.base.counts import Weight, Y
from .language.catalogue import Entry
from .language.fields import QUANTIZED
from .language.names import Filter, Statistic

COLUMNS = 400
"""Columns of time where the question has no interval."""


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes:
        statistic: what; None for a map of I/Os under conditions that is no statistic. span: from
        and until (ns), None where left open. interval_ns: length of a column; None for one of 1, 2,
        5 times a power of ten that makes at most `columns` of the span. source: what must answer, None for any. y: of a map,
        None for numbers over time. filters: conditions. weight: what the cells of a map hold.
        low, high: of y, `low` <= y < `high`. buckets: at most so many equal ones.
    """

    statistic: Statistic | None = None
    span: tuple[int | None, int | None] = (None, None)
    interval_ns: int | None = None
    columns: int = COLUMNS
    source: str | None = None
    y: Y | None = None
    filters: tuple[Filter, ...] = ()
    weight: Weight = "count"
    low: int | None = None
    high: int | None = None
    buckets: int | None = None

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        span: tuple[int | None, int | None],
        interval_ns: int | None,
        columns: int,
        source: str | None,
    ) -> Question:
        """The question of a statistic."""
        return cls(None, span, interval_ns, columns, source).with_statistic(statistic)

    def with_statistic(self, statistic: Statistic) -> Question:
        """The same of another statistic."""
        return replace(
            self,
            statistic=statistic,
            y=next((y for y in QUANTIZED if y == statistic.breakdown), None),
            filters=tuple(statistic.filters),
            weight=statistic.entry.weight,
        )

    @property
    def entry(self) -> Entry | None:
        """What the catalogue says of the statistic."""
        return None if self.statistic is None else self.statistic.entry

    @property
    def breakdown(self) -> str | None:
        """The field that divides the answer."""
        return self.y if self.statistic is None else self.statistic.breakdown

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"a map of {self.y}" if self.statistic is None else str(self.statistic)


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
