# SPDX-License-Identifier: Apache-2.0
"""A question to a recording or trace, the same for every statistic, map and drill-down."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
