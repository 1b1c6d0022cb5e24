# SPDX-License-Identifier: Apache-2.0
"""Numbers per second over time: one, or one for each value of a field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..answers.answers import Floats, Series, Stack
from ..engine.coverage import Losses, lost_at
from ..engine.engine import Engine, whole
from ..engine.snapshot import Span
from ..engine.windows import Window, attach
from ..language.catalogue import Entry
from ..language.conditions import field_of
from ..language.names import Statistic
from . import segment_maps

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


def sums_of(
    window: Window, statistic: Statistic, files: segment_maps.MapFiles | None
) -> list[dict[str, Any]]:
    """Sums of a window: of default maps, and of the events that no map has. `files`: the maps, None
    where all events are to be scanned."""
    rest = window if files is None else files.rest(window)
    conditions, bound = rest.conditions(statistic.filters)
    found = []
    with Engine(window.snap.place) as engine:
        if files is None or not rest.is_empty:
            attach(engine, rest)
            found.append(
                sums(
                    engine,
                    statistic,
                    conditions,
                    bound,
                    window.base_ns,
                    window.interval_ns,
                    window.columns,
                )
            )
        if files is not None:
            key = key_of(statistic.breakdown)
            found.append(segment_maps.series(engine, window, files, statistic.filters, key))
    return found


def added(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums of parts of the events, one after the other."""
    if len(parts) == 1:
        return parts[0]
    concatenate: Any = np.ma.concatenate
    return {
        name: concatenate([part[name] for part in parts]) for name in ("c", "k", "n", "lacking")
    }


def answer(
    statistic: Statistic,
    found: Mapping[str, Any],
    *,
    source: str,
    base_ns: int,
    interval_ns: int,
    columns: int,
    span: Span,
    recorded: tuple[Span, ...] | None,
    notes: tuple[str, ...],
    losses: Losses | None = None,
) -> Series | Stack:
    """A series, or a stack where the statistic has a breakdown, from its sums."""
    column, amount = whole(found["c"]), whole(found["n"])
    lacking = int(whole(found["lacking"]).sum())
    if lacking:
        notes = (*notes, f"{lacking} I/Os without a size add nothing")
    seconds = _seconds(recorded, base_ns, interval_ns, columns)
    lengths = (
        span[1] - span[0] if recorded is None else sum(until - first for first, until in recorded)
    )
    if statistic.breakdown == "file":
        notes = (*notes, *_unknown_files(statistic, found["k"], amount))
    common: dict[str, Any] = {
        "statistic": statistic,
        "unit": statistic.entry.unit,
        "t0_ns": base_ns,
        "interval_ns": interval_ns,
        "first_ns": span[0],
        "until_ns": span[1],
        "covered_ns": lengths,
        "source": source,
        "notes": notes,
        "losses": losses,
        "lost_at": lost_at(losses.timed if losses is not None else (), base_ns, interval_ns),
    }
    if statistic.breakdown is None:
        return Series(
            **common, values=_spread(column, amount, columns) / seconds, total=int(amount.sum())
        )
    masked = np.ma.getmaskarray(found["k"])
    named: dict[str, int] = {}
    words, places = np.unique(
        np.ma.filled(found["k"], "").astype(str)[~masked], return_inverse=True
    )
    totals = (
        np.bincount(places, weights=amount[~masked], minlength=len(words))
        if len(words)
        else np.zeros(0)
    )
    order = np.lexsort((words, -totals))
    named = {str(words[place]): place for place in order}
    rows = np.zeros((len(words), columns), dtype=np.int64)
    np.add.at(rows, (places, column[~masked]), amount[~masked])
    every = (
        int(whole(found["every"]).max()) if "every" in found and len(found["every"]) else len(words)
    )
    left = every - len(words)
    return Stack(
        **common,
        keys=list(named),
        values=rows[order] / seconds,
        totals=[int(total) for total in rows.sum(axis=1)[order]],
        rest=_spread(column[masked], amount[masked], columns) / seconds if left else None,
        rest_keys=left,
        rest_total=int(amount[masked].sum()),
    )


def _unknown_files(statistic: Statistic, keys: Any, amount: Any) -> tuple[str, ...]:
    """How much is of files whose name is not known, where some are known."""
    missing = np.ma.filled(keys, "").astype(str) == field_of("file").missing
    unknown, whole_sum = int(amount[missing].sum()), int(amount.sum())
    if not 0 < unknown < whole_sum:
        return ()
    share = 100 * unknown / whole_sum
    return (
        f"unknown file: {share:.2g} % of {'bytes' if statistic.entry.measure == 'bytes' else 'calls'}",
    )


def _spread(column: Any, amount: Any, columns: int) -> Floats:
    """Sums by column."""
    found = np.zeros(columns, dtype=np.int64)
    np.add.at(found, column, amount)
    return found.astype(float)


def _seconds(
    recorded: tuple[Span, ...] | None, base_ns: int, interval_ns: int, columns: int
) -> Floats:
    """Seconds of each column that were recorded: nan where none was. All of it where nobody knows.

    At least a tenth of the column, so that a sliver at an end does not make a peak of the few I/Os
    in it.
    """
    if recorded is None:
        return np.full(columns, interval_ns / 1e9)
    held = np.zeros(columns)
    for first, until in recorded:
        start, end = (first - base_ns) // interval_ns, (until - 1 - base_ns) // interval_ns
        held[start : end + 1] += interval_ns
        held[start] -= first - (base_ns + start * interval_ns)
        held[end] -= base_ns + (end + 1) * interval_ns - until
    return np.where(held > 0, np.maximum(held, interval_ns / 10), np.nan) / 1e9
