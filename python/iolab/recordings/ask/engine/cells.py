# SPDX-License-Identifier: Apache-2.0
"""Events into sums, in SQL: cells of a map by column and bucket, and numbers by column and key. The
log-linear grid comes from the native core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from iolab import _core

from ...store.base.counts import HeatCounts, Integers, Weight, Y, canonical
from ...store.base.grids import Grid, Linear, LogLinear
from ..language.catalogue import Entry
from ..language.fields import FIELDS
from ..question import Statistic
from .engine import BY, Engine, int64s, single
from .windows import field_of

BUCKETS = 512
"""Equal buckets of an offset map."""


@dataclass(frozen=True)
class Asked:
    """What a map is asked to show, of events that are `events` to the engine.

    Attributes:
        y: a quantized field. base_ns: not later than any event, a multiple of interval_ns.
        conditions, bound: that must hold, in SQL. low, high: of y, `low` <= y < `high`; others are
        counted as outside. grid: the buckets. weight: what a cell holds.
    """

    y: Y
    base_ns: int
    interval_ns: int
    conditions: tuple[str, ...]
    bound: dict[str, Any]
    low: int | None
    high: int | None
    grid: Grid
    weight: Weight

    @property
    def column(self) -> str:
        """The column of y."""
        return FIELDS[self.y].column

    @property
    def without_place(self) -> str:
        """Condition for events that have no place on the map."""
        return " OR ".join(
            f"{column} IS NULL" for column in dict.fromkeys((self.column, *self._added_columns))
        )

    @property
    def amount(self) -> str:
        """What an event adds to its cell, in SQL."""
        return " * ".join(
            [
                *(f"CAST(coalesce({column}, 0) AS HUGEINT)" for column in self._added_columns),
                "count",
            ]
        )

    @property
    def _added_columns(self) -> tuple[str, ...]:
        """The column that is added up, of maps that do not count."""
        return {"count": (), "time": ("latency_ns",), "bytes": ("size_bytes",)}[self.weight]

    @property
    def outside(self) -> str:
        """Condition for events beyond the range."""
        ends = [
            f"{self.column} < $low" if self.low else "",
            f"{self.column} >= $high" if self.high is not None else "",
        ]
        return " OR ".join(end for end in ends if end) or "false"

    def values(self) -> dict[str, Any]:
        """What is bound for the conditions and the range."""
        return {
            **self.bound,
            **({"low": self.low} if self.low else {}),
            **({"high": self.high} if self.high is not None else {}),
        }


def where(conditions: Sequence[str]) -> str:
    """The clause for conditions that must all hold."""
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def ends_of(engine: Engine, asked: Asked) -> tuple[int, int] | None:
    """Least and largest value of y that the map shows; None without any."""
    within = [f"NOT ({asked.without_place})", f"NOT coalesce({asked.outside}, false)"]
    ends = engine.ask(
        f"SELECT {BY} min({asked.column}) AS low, max({asked.column}) AS high "
        f"FROM events {where([*asked.conditions, *within])} GROUP BY ALL",
        asked.values(),
    )
    low, high = single(ends["low"]), single(ends["high"])
    return None if low is None or high is None else (low, high)


def covering(low: int, high: int, buckets: int) -> Linear:
    """The finest buckets, of a power of two, of which at most `buckets` cover `low` to `high`, both
    included."""
    shift = next(shift for shift in range(65) if (high >> shift) - (low >> shift) < max(1, buckets))
    return Linear(low >> shift << shift, 1 << shift)


INSIDE, BEYOND, WITHOUT_PLACE = 0, 1, 2
"""Place of an event on a map: in the range that it shows, beyond it, or nowhere."""

Cells: TypeAlias = "dict[str, npt.NDArray[Any]]"
"""Sums of events for a map.

c: column of time. bucket: where `place` is `INSIDE`; on a linear grid from value 0 on. ios, amount: I/Os, and
what a cell holds. low, high: least and largest value, on a linear grid.
"""


def count(engine: Engine, asked: Asked) -> HeatCounts:
    """The cells of all events that meet the conditions, in one pass, with what has no place among
    them."""
    return counts_of(asked, sum_cells(engine, asked))


def sum_cells(engine: Engine, asked: Asked, *, has_ends: bool = False) -> Cells:
    """Sums of all events that meet the conditions, in one pass. has_ends: with `low` and `high`."""
    grid = asked.grid
    if isinstance(grid, Linear):
        bucket = f"{asked.column} >> {grid.width.bit_length() - 1}"
    elif asked.y == "latency":
        bucket = "latency_bucket"
    elif asked.y == "size":
        # sizes are few, so that they are their own groups; their buckets follow
        bucket = "size_bytes"
    else:
        assert isinstance(grid, LogLinear)
        bucket = bucket_sql(asked.column, grid.bits)
    weigh = "" if asked.weight == "count" else f", CAST(sum({asked.amount}) AS BIGINT) AS amount"
    ends = f", min({asked.column}) AS low, max({asked.column}) AS high" if has_ends else ""
    ranged = asked.outside != "false"
    # few and narrow keys, and sums of signed numbers, take half the time of the obvious ones
    rows = engine.ask(
        f"SELECT {BY} CAST((time_ns - $base) // $interval AS INTEGER) AS c, CASE WHEN NOT ({asked.without_place}) THEN {bucket} END AS b, "
        f"{f'coalesce({asked.outside}, false) AS beyond, ' if ranged else ''}"
        f"CAST(sum(CAST(count AS BIGINT)) AS BIGINT) AS ios{weigh}{ends} "
        f"FROM events {where(asked.conditions)} GROUP BY ALL",
        {**asked.values(), "base": asked.base_ns, "interval": asked.interval_ns},
    )
    missing = np.ma.getmaskarray(rows["b"])
    place = np.where(missing, WITHOUT_PLACE, INSIDE)
    if ranged:
        beyond = np.ma.filled(rows["beyond"], False).astype(bool)
        place[~missing & beyond] = BEYOND
    values = np.ma.filled(rows["b"], 0)
    if isinstance(grid, LogLinear) and asked.y == "size":
        values = bucket_of(values, grid, shifted=False)
    cells = {
        "c": int64s(rows["c"]),
        "bucket": values.astype(np.uint64),
        "place": place,
        "ios": int64s(rows["ios"]),
        "amount": int64s(rows["amount" if weigh else "ios"]),
    }
    if has_ends:
        cells |= {name: np.ma.filled(rows[name], 0).astype(np.uint64) for name in ("low", "high")}
    return cells


def counts_of(asked: Asked, cells: Cells) -> HeatCounts:
    """Counts from sums of events."""
    place, ios = cells["place"], cells["ios"]
    is_inside = place == INSIDE
    return cells_of(
        asked,
        cells["c"][is_inside],
        bucket_of(cells["bucket"][is_inside], asked.grid, shifted=True),
        cells["amount"][is_inside],
        events=int(ios[is_inside].sum()),
        without_y=int(ios[place == WITHOUT_PLACE].sum()),
        outside=int(ios[place == BEYOND].sum()),
    )


def bucket_sql(column: str, bits: int) -> str:
    """The bucket of a value on the log-linear grid, in SQL."""
    power = f"CAST(floor(log2(greatest({column}, 1))) AS INTEGER)"
    # the logarithm of a number just below a power of 2 may be rounded up
    shift = f"({power} - CAST(({column} >> {power}) = 0 AS INTEGER) - {bits})"
    return (
        f"CASE WHEN {column} < {1 << bits} THEN CAST({column} AS INTEGER) "
        f"ELSE ({shift} << {bits}) + CAST({column} >> {shift} AS INTEGER) END"
    )


def bucket_of(values: Any, grid: Grid, *, shifted: bool) -> Integers:
    """Buckets of values; `shifted` ones are buckets already, of all values for equal ones."""
    if isinstance(grid, Linear):
        integers: Integers = (values.astype(np.uint64) - np.uint64(grid.low // grid.width)).astype(
            np.int64
        )
    elif shifted:
        integers = values.astype(np.int64)
    else:
        integers = (
            np.searchsorted(lower_bounds(grid.bits), values.astype(np.uint64), side="right").astype(
                np.int64
            )
            - 1
        )
    return integers


@cache
def lower_bounds(bits: int) -> npt.NDArray[np.uint64]:
    """Smallest value of each bucket of the grid, as the native core has them."""
    last = _core.grid_index(2**64 - 1, bits)
    return np.array(
        [_core.grid_bounds(index, bits)[0] for index in range(last + 1)], dtype=np.uint64
    )


def cells_of(
    asked: Asked,
    column: Integers,
    index: Integers,
    amount: Integers,
    *,
    events: int,
    without_y: int,
    outside: int,
) -> HeatCounts:
    """Counts from cells in any order, equal ones added up; column 0 is the first that holds
    anything."""
    empty = HeatCounts(
        asked.y,
        asked.base_ns,
        asked.interval_ns,
        asked.grid,
        column[:0],
        index[:0],
        amount[:0],
        asked.weight,
        events=events,
        without_y=without_y,
        outside=outside,
    )
    is_filled = amount > 0
    if not is_filled.any():
        return empty
    column, index, amount = column[is_filled], index[is_filled], amount[is_filled]
    first = int(column.min())
    column, index, amount = canonical(column - first, index, amount)
    return replace(
        empty,
        t0_ns=asked.base_ns + first * asked.interval_ns,
        column=column,
        index=index,
        count=amount,
    )


MOST_CELLS = 4_000_000
"""Keys times columns that are distinguished; smaller keys are summed."""


def sums_sql(entry: Entry, breakdown: str | None, conditions: tuple[str, ...], columns: int) -> str:
    """Columns c, k, n: the sum of a statistic by column of time and key; keys beyond the largest
    have a null k."""
    sums = all_sums_sql(entry.measure, breakdown, conditions)
    if breakdown is None:
        return sums
    # one pass over the events, which may be a stream; the rest is done on its sums
    return (
        f"WITH sums AS MATERIALIZED ({sums}), "
        f"totals AS (SELECT {BY} k, sum(n) AS total FROM sums GROUP BY ALL), "
        f"ranked AS (SELECT {BY} k, row_number() OVER (PARTITION BY {BY} 1 ORDER BY total DESC, k) AS place, "
        f"count(*) OVER (PARTITION BY {BY} 1) AS every FROM totals) "
        f"SELECT {BY} c, CASE WHEN place <= {most_keys(columns)} THEN k END AS k, CAST(sum(n) AS BIGINT) AS n, "
        f"CAST(sum(lacking) AS BIGINT) AS lacking, every FROM sums JOIN ranked USING ({BY} k) GROUP BY ALL"
    )


def all_sums_sql(measure: str, breakdown: str | None, conditions: Sequence[str]) -> str:
    """As `sums_sql`, with all keys. measure: what is added up, "ops" or "bytes"."""
    amount = "CAST(count AS BIGINT)" if measure == "ops" else "CAST(size_bytes AS HUGEINT) * count"
    sizeless = (
        "0"
        if measure == "ops"
        else "CAST(sum(CASE WHEN size_bytes IS NULL THEN count ELSE 0 END) AS BIGINT)"
    )
    return (
        f"SELECT {BY} (time_ns - $base) // $interval AS c, {key_of(breakdown) or 'NULL'} AS k, "
        f"coalesce(CAST(sum({amount}) AS BIGINT), 0) AS n, "
        f"{sizeless} AS lacking FROM events {where(conditions)} GROUP BY ALL"
    )


def most_keys(columns: int) -> int:
    """Keys that are distinguished in so many columns. Equal for about equal numbers, so that
    recordings of one time have one statement."""
    return max(16, MOST_CELLS >> max(0, columns - 1).bit_length())


def key_of(breakdown: str | None) -> str | None:
    """The key of a breakdown in SQL: the field's value as a word, or the word for events that lack
    it."""
    if breakdown is None:
        return None
    field = field_of(breakdown)
    return f"coalesce(CAST({field.column} AS VARCHAR), '{field.missing}')"


def sums(
    engine: Engine,
    statistic: Statistic,
    conditions: tuple[str, ...],
    bound: Mapping[str, Any],
    base_ns: int,
    interval_ns: int,
    columns: int,
) -> dict[str, Any]:
    """What `sums_sql` asks, of the engine's events."""
    sql = sums_sql(statistic.entry, statistic.breakdown, conditions, columns)
    return engine.ask(sql, {**bound, "base": base_ns, "interval": interval_ns})
