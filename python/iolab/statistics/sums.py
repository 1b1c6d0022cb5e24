# SPDX-License-Identifier: Apache-2.0
"""The common forms of sums that tiers give for a span of I/Os."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..recording.base.counts import HeatCounts
from .tiers.readings import Spread


@dataclass(frozen=True)
class Axis:
    """Columns of time. source: of the events. base_ns: start of column 0. interval_ns: length of a
    column. columns: how many. span: from, until (ns)."""

    source: str
    base_ns: int
    interval_ns: int
    columns: int
    span: tuple[int, int]


@dataclass(frozen=True)
class Numbers:
    """Sums by column of time and key.

    Attributes:
        rows: columns of equal length, by name.
            c: column of time. k: key, masked for the sum of other keys. n: the sum.
            lacking: I/Os that add nothing, as they have no size.
            every: number of all keys, absent unless some were summed up.
        notes: about the sums. axis: columns of a trace, known after reading.
    """

    rows: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    axis: Axis | None = None


@dataclass(frozen=True)
class Growth:
    """Growth of counters in columns of time, by object. notes: about it."""

    spreads: tuple[Spread, ...]
    notes: tuple[str, ...] = ()


Sums: TypeAlias = "Numbers | HeatCounts | Growth"
"""Numbers for a series or stack; counts by time and value for a map; growth of counters."""


@dataclass(frozen=True)
class Bounds:
    """Least and largest value that I/Os have, None without any. `width`: both are starts of equal
    buckets of this width."""

    ends: tuple[int, int] | None
    width: int = 1
