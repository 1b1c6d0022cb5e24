# SPDX-License-Identifier: Apache-2.0
"""Sums of events by column of time and key, in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..language.catalogue import Entry
from ..language.conditions import field_of
from ..language.names import Statistic
from .engine import Engine

MOST_CELLS = 4_000_000
"""Keys times columns that are told apart; smaller keys are summed."""


def sums_sql(entry: Entry, breakdown: str | None, conditions: tuple[str, ...], columns: int) -> str:
    """Columns c, k, n: the sum of a statistic by column of time and key; keys beyond the largest
    have a null k and stand in `others`."""
    key = key_of(breakdown)
    amount = (
        "CAST(count AS BIGINT)" if entry.measure == "ops" else "CAST(size_bytes AS HUGEINT) * count"
    )
    lacking = (
        "0"
        if entry.measure == "ops"
        else "CAST(sum(CASE WHEN size_bytes IS NULL THEN count ELSE 0 END) AS BIGINT)"
    )
    clause = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    sums = (
        f"SELECT (time_ns - $base) // $interval AS c, {key or 'NULL'} AS k, coalesce(CAST(sum({amount}) AS BIGINT), 0) AS n, "
        f"{lacking} AS lacking FROM events {clause} GROUP BY ALL"
    )
    if key is None:
        return sums
    most = max(16, MOST_CELLS // max(1, columns))
    # one pass over the events, which may be a stream; the rest is done on its sums
    return (
        f"WITH sums AS MATERIALIZED ({sums}), totals AS MATERIALIZED (SELECT k, sum(n) AS total FROM sums GROUP BY k), "
        f"largest AS (SELECT k FROM totals ORDER BY total DESC, k LIMIT {most}) "
        "SELECT s.c, l.k AS k, CAST(sum(s.n) AS BIGINT) AS n, CAST(sum(s.lacking) AS BIGINT) AS lacking, "
        "(SELECT count(*) FROM totals) AS every "
        "FROM sums s LEFT JOIN largest l ON s.k = l.k GROUP BY ALL"
    )


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
