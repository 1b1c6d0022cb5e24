# SPDX-License-Identifier: Apache-2.0
"""Readings of counters as amounts in columns of time: exact at any length of a column, and nothing
where nothing is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...store.base.counts import Integers
from ..answers.answers import Floats
from ..engine.engine import Engine
from ..engine.snapshot import Span
from ..engine.windows import Window, attach
from ..language.catalogue import Counter, Part

MARGIN_NS = 600 * 10**9
"""Readings this long before and after a window still tell of its ends."""

LATE = 5
"""An interval of so many usual ones is a gap: it is unknown when in it the counter grew."""


@dataclass(frozen=True)
class Readings:
    """The readings of one object (a device, a processor, an interface; "" for a whole machine),
    ascending by time.

    Attributes:
        times: shape (n,), ns. values: of each of the kernel's fields, shape (n,); a field that this
        kernel lacks is not there. every: when all objects were read, ascending, ns: where it has no
        reading of its own then, it was not there.
    """

    object: str
    times: Integers
    values: dict[str, Integers]
    every: Integers


@dataclass(frozen=True)
class Shares:
    """The mean between two readings that follow each other, of all parts together: one each,
    whatever the length of columns.

    Attributes:
        column: which holds the end of the time between the two, shape (n,); an end on an edge
        belongs to the column before it. share: amount by what it is divided by, shape (n,).
    """

    column: Integers
    share: Floats

    @classmethod
    def none(cls) -> Shares:
        """Where there are no readings."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True)
class Spread:
    """What an object's counters grew by, in columns of time.

    Attributes:
        object: it. amounts: of each part that is known, by its key, in the statistic's unit times
        seconds. over: what they are divided by: seconds, or the growth of other fields. covered:
        seconds of each column between readings that follow each other. broken: seconds of which
        nothing is known because a counter began again. readings: what was read, not spread out.
    """

    object: str
    amounts: dict[str, Floats]
    over: Floats
    covered: Floats
    broken: Floats
    readings: Shares


def read(window: Window, counter: Counter, *, parted: bool) -> list[Readings]:
    """The readings that a window needs, by object; of processors the machine's sum alone unless
    `parted`."""
    wide = replace(
        window,
        first_ns=window.first_ns - MARGIN_NS,
        until_ns=window.until_ns + MARGIN_NS,
        cuts_first=True,
        cuts_until=True,
    )
    conditions, bound = wide.conditions([])
    fields = {f"f{place}": name for place, name in enumerate(counter.read)}
    conditions = (*conditions, f"field IN ({', '.join(f'${key}' for key in fields)})")
    if counter.object == "cpu":
        conditions = (*conditions, "object <> ''" if parted else "object = ''")
    picked = ", ".join(f"max(value) FILTER (WHERE field = ${key}) AS {key}" for key in fields)
    lists = ", ".join(
        f"list(coalesce({key}, 0) ORDER BY time_ns) AS {key}, count({key}) AS n_{key}"
        for key in fields
    )
    sql = (
        f"WITH readings AS (SELECT object, time_ns, {picked} FROM events WHERE {' AND '.join(conditions)} GROUP BY object, time_ns) "
        f"SELECT object, list(time_ns ORDER BY time_ns) AS times, {lists} FROM readings GROUP BY object ORDER BY object"
    )
    rows: list[tuple[str, Integers, dict[str, Integers]]] = []
    with Engine(window.snap.place) as engine:
        attach(engine, wide, kind="samples")
        for batch in engine.stream(sql, {**bound, **fields}):
            for row in range(batch.num_rows):
                present = {
                    key: field
                    for key, field in fields.items()
                    if batch.column(f"n_{key}")[row].as_py()
                }
                rows.append(
                    (
                        batch.column("object")[row].as_py(),
                        _array(batch.column("times")[row]),
                        {field: _array(batch.column(key)[row]) for key, field in present.items()},
                    )
                )
    # those that do nothing may be left out of a reading, though they are there
    every = None if counter.always is not None else _every([times for _, times, _ in rows])
    return [
        Readings(name, times, values, times if every is None else every)
        for name, times, values in rows
    ]


def _every(times: Sequence[Integers]) -> Integers:
    """All moments in any of them, ascending."""
    most = max(times, key=len, default=np.zeros(0, dtype=np.int64))
    other_times = [time for time in times if not np.array_equal(time, most)]
    return np.unique(np.concatenate([most, *other_times])) if other_times else most


def _array(value: Any) -> Integers:
    integers: Integers = value.values.to_numpy(zero_copy_only=False).astype(np.int64)
    return integers


def spread(
    readings: Readings,
    counter: Counter,
    parts: Sequence[Part],
    window: Window,
    breaks: Sequence[Span],
) -> Spread:
    """The growth between readings that follow each other, in the columns of a window: in equal
    shares over the time between them.

    Growth between two readings is left out where a counter fell (it began again), the
    object was missing meanwhile, one of `breaks` is between them (see `Recording.breaks`), or
    they are far apart.
    """
    times = readings.times
    seconds = np.diff(times) / 1e9
    grown = {name: np.diff(values) for name, values in readings.values.items()}
    fell = np.zeros(len(seconds), dtype=bool)
    if not counter.level:
        for name, growth in grown.items():
            fell |= (growth < 0) & (name not in counter.unsteady)
    apart = np.zeros(len(seconds), dtype=bool)
    for first, until in breaks:
        apart |= (times[:-1] < until) & (times[1:] > first)
    is_known = ~fell & ~apart & (seconds <= LATE * (np.median(seconds) if len(seconds) else 0))
    # what comes back under a name may be another thing, or bring along what it counted elsewhere
    is_known &= np.searchsorted(readings.every, times[1:], "left") == np.searchsorted(
        readings.every, times[:-1], "right"
    )
    base = window.base_ns
    edges = (
        np.clip(
            base + np.arange(window.columns + 1) * window.interval_ns,
            window.first_ns,
            window.until_ns,
        )
        - base
    )
    places = (times - base).astype(np.float64)

    def spread_out(amounts: Any, held: Any) -> Floats:
        if not len(places):
            return np.zeros(window.columns)
        sums = np.concatenate([[0.0], np.cumsum(np.where(held, amounts, 0.0))])
        return np.diff(np.interp(edges.astype(np.float64), places, sums))

    of = (
        {name: values[1:] * seconds for name, values in readings.values.items()}
        if counter.level
        else grown
    )

    def sum_of(names: Sequence[str]) -> Floats:
        return sum((of[name] for name in names if name in of), np.zeros(len(seconds)))

    # readings of fields that belong together are not taken at one instant
    amounts_by_part = {
        part.key: counter.scale * np.maximum(sum_of(part.plus) - sum_of(part.less), 0)
        for part in parts
        if any(name in of for name in part.plus)
    }
    divided = [np.maximum(grown[name], 0) for name in counter.over if name in grown]
    by = sum(divided, np.zeros(len(seconds))) if counter.over else seconds
    amounts = {key: spread_out(amount, is_known) for key, amount in amounts_by_part.items()}
    covered = spread_out(seconds, is_known)
    over = spread_out(by, is_known) if counter.over else covered
    return Spread(
        readings.object,
        amounts,
        over,
        covered,
        spread_out(seconds, fell),
        _shares(times, sum(amounts_by_part.values(), np.zeros(len(seconds))), by, is_known, window)
        if amounts_by_part
        else Shares.none(),
    )


def _shares(times: Integers, amount: Floats, by: Floats, known: Any, window: Window) -> Shares:
    ends = times[1:] - 1
    is_shown = known & (by > 0) & (ends >= window.first_ns) & (ends < window.until_ns)
    return Shares(
        (ends[is_shown] - window.base_ns) // window.interval_ns, amount[is_shown] / by[is_shown]
    )
