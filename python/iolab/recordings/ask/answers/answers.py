# SPDX-License-Identifier: Apache-2.0
"""What statistics answer: a series, a stack of series, or the counts of a heat map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from iolab.base.untrusted_text import html_table, visible

from ...store.base.counts import HeatCounts, LostAt, of_columns
from ..engine.snapshot import Losses
from ..question import Statistic

Floats: TypeAlias = "npt.NDArray[np.float64]"


OWN_CLOCK_NS = 10**17
"""Earlier than this (March 1973) times count from a trace's own start."""


@dataclass(frozen=True)
class _OverTime:
    """Attributes:
    statistic: what was asked. unit: of the values, "1/s" or "B/s".
    t0_ns: start of column 0, a multiple of interval_ns; interval_ns: length of a column.
    first_ns, until_ns: the time that the answer is about; it may begin and end within a column.
    covered_ns: how much of it was recorded. source: of the events. notes: what to know about the
    answer. lost_at: what was lost in which column, by kind, ascending; 0 where the number
    is unknown. losses: all of it, also what has no time, None where it is unknown.
    """

    statistic: Statistic
    unit: str
    t0_ns: int
    interval_ns: int
    first_ns: int
    until_ns: int
    covered_ns: int
    source: str
    notes: tuple[str, ...]
    lost_at: tuple[LostAt, ...]
    losses: Losses | None

    @property
    def lost(self) -> tuple[tuple[int, int], ...]:
        """(column, records lost there, of whatever kind), ascending; 0 where the number is unknown."""
        return of_columns(self.lost_at)

    def _times(self, count: int) -> list[str]:
        """Starts of columns: UTC, or seconds from the start of a trace with a clock of its own."""
        starts = [self.t0_ns + column * self.interval_ns for column in range(count)]
        if self.t0_ns < OWN_CLOCK_NS:
            return [f"{start / 1e9:g} s" for start in starts]
        return [
            f"{datetime.fromtimestamp(start / 1e9, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
            for start in starts
        ]

    def _caption(self) -> str:
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{self.statistic} ({self.unit}), columns of {self.interval_ns / 1e9:g} s, {self.covered_ns / 1e9:g} s recorded{notes}"


@dataclass(frozen=True)
class Series(_OverTime):
    """A number per column.

    Attributes:
        values: per second of the recorded part of each column (levels and shares: on average over
        it), nan where nothing was recorded. total: the plain sum; 0 for levels and shares, which
        have none. average: over all that was recorded, where it is no quotient of the total.
    """

    values: Floats
    total: int
    average: float | None = None

    def __repr__(self) -> str:
        return visible(
            f"<Series {self._caption()}: {len(self.values)} values, {self.mean:.6g} on average>"
        )

    def _repr_html_(self) -> str:
        rows = zip(self._times(len(self.values)), map(_cell, self.values.tolist()), strict=True)
        return html_table(
            f"{self._caption()}; {self.mean:.6g} on average", ("time", self.unit), list(rows)
        )

    @property
    def mean(self) -> float:
        """Per second (levels and shares: on average) over all that was recorded."""
        if self.average is not None:
            return self.average
        return self.total / (self.covered_ns / 1e9) if self.covered_ns else float("nan")


@dataclass(frozen=True)
class Stack(_OverTime):
    """A number per key and column.

    Attributes:
        keys: largest first. values: shape (keys, columns), as in a series. totals: the plain sum of
        each key. rest: of all other keys together, None where there are none; rest_keys: how many;
        rest_total: their sum. averages: of each key, average: of all, where they are no quotients
        of totals. whole: the sum of all, where keys overlap or contain each other (partitions
        and disks) and do not add up to it. adds_up: whether keys are parts of a whole. False
        where they overlap (a partition and its disk), or are things of which a mean is taken
        (shares of several devices): then no sum of some of them says anything.
    """

    keys: list[str]
    values: Floats
    totals: list[int]
    rest: Floats | None
    rest_keys: int
    rest_total: int
    averages: list[float] | None = None
    average: float | None = None
    whole: int | None = None
    adds_up: bool = True

    def __repr__(self) -> str:
        return visible(
            f"<Stack {self._caption()}: {len(self.keys) + self.rest_keys} keys, {', '.join(self.keys[:5])}"
            f"{', ...' if len(self.keys) + self.rest_keys > 5 else ''}>"
        )

    def _repr_html_(self) -> str:
        covered = self.covered_ns / 1e9
        means = (
            self.averages
            if self.averages is not None
            else [total / covered if covered else float("nan") for total in self.totals]
        )
        rows = [
            (key, str(total), _cell(mean))
            for key, total, mean in zip(self.keys, self.totals, means, strict=True)
        ]
        if self.rest is not None:
            rows.append((f"{self.rest_keys} others", str(self.rest_total), ""))
        return html_table(
            self._caption(),
            (self.statistic.breakdown or "key", "total", f"mean ({self.unit})"),
            rows,
        )

    @property
    def total(self) -> int:
        """The plain sum of all keys; 0 for levels and shares."""
        if self.whole is not None:
            return self.whole
        return sum(self.totals) + self.rest_total

    @property
    def mean(self) -> float:
        """Per second (levels and shares: on average) over all that was recorded."""
        if self.average is not None:
            return self.average
        return self.total / (self.covered_ns / 1e9) if self.covered_ns else float("nan")


def _cell(value: float) -> str:
    """A value, nothing where nothing was recorded."""
    return "" if math.isnan(value) else f"{value:.6g}"


Answer: TypeAlias = "Series | Stack | HeatCounts"
