# SPDX-License-Identifier: Apache-2.0
"""A sealed segment's events as sums by the second: the one executor, asked about that segment
alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...recording.base.grids import WITHOUT, Linear, LogLinear
from ...recording.read.recording import Recording, Segment
from ..engine.cells import Asked, count
from ..engine.coverage import Losses
from ..engine.engine import Engine, whole
from ..engine.numbers import sums as sum_numbers
from ..engine.snapshot import Snapshot
from ..engine.windows import Window, attach
from ..language.fields import QUANTIZED
from ..language.intervals import SECOND
from ..language.names import Statistic
from .definitions import Spans
from .storage_kind import BITS, COARSER, MOST_KEYS, form_of
from .tables import SCHEMAS, Sums, added


class Making:
    """One segment's events, opened once for all statistics that are made of it; a context manager."""

    def __init__(self, recording: Recording, segment: Segment) -> None:
        self._recording, self._segment = recording, segment
        self._engine: Engine | None = None

    def __enter__(self) -> Making:
        return self

    def __exit__(self, *_: object) -> None:
        if self._engine is not None:
            self._engine.__exit__()

    def sums(
        self,
        statistic: Statistic,
        source: str,
        *,
        since_ns: int | None = None,
        left_out: Spans = (),
    ) -> Sums:
        """What the segment adds to a statistic. `since_ns`, `left_out`: time before and spans that
        do not count.

        FormatError where the segment is damaged, or was removed meanwhile.
        """
        segment = self._segment
        window = Window(
            Snapshot(self._recording, (segment,), None),
            source,
            segment.first_ns,
            segment.last_ns + 1,
            False,
            False,
            SECOND,
            False,
            None,
            Losses(0, 0, 0, ()),
        )
        conditions, bound = window.conditions(statistic.filters)
        conditions = (*conditions, *_times(since_ns, left_out))
        if self._engine is None:
            # one thread: what is measured goes before it, and its time is the caller's
            self._engine = Engine(self._recording.path, threads=1)
            attach(self._engine, window)
        if statistic.breakdown in QUANTIZED:
            return _map(self._engine, window, statistic, conditions, bound)
        return _numbers(self._engine, window, statistic, conditions, bound)


def _times(since_ns: int | None, left_out: Spans) -> list[str]:
    found = [] if since_ns is None else [f"time_ns >= {int(since_ns)}"]
    for first, until in left_out:
        found.append(
            f"time_ns < {int(first)}"
            if until is None
            else f"(time_ns < {int(first)} OR time_ns >= {int(until)})"
        )
    return found


def _map(
    engine: Engine,
    window: Window,
    statistic: Statistic,
    conditions: tuple[str, ...],
    bound: dict[str, Any],
) -> Sums:
    y = next(each for each in QUANTIZED if each == statistic.breakdown)
    width = int(window.snap.sealed[0].facts.get("offset_width", 1)) if y == "offset" else 1
    grid = Linear(0, width) if y == "offset" else LogLinear(BITS + COARSER)
    form = form_of(statistic, counted=False)
    asked = Asked(
        y, window.base_ns, SECOND, conditions, bound, None, None, grid, statistic.entry.weight
    )
    counts = count(engine, asked)
    found = {"count" if form == "map" else "amount": counts}
    if form == "weighed":
        # what moved the bytes is counted as well: how many I/Os they are can be told then
        found["count"] = count(
            engine,
            replace(asked, weight="count", conditions=(*conditions, f"NOT ({asked.lacking})")),
        )
    tables = []
    for name, cells in found.items():
        fine = cells.coarser(steps=COARSER) if isinstance(grid, LogLinear) else cells
        columns = {
            "time_s": fine.t0_ns // SECOND + fine.column,
            "index": fine.index,
            name: fine.count,
        }
        if counts.without_y:
            lacking = sum_numbers(
                engine,
                Statistic("io", "ops" if name == "count" else "bytes"),
                (*conditions, f"({asked.lacking})"),
                bound,
                window.base_ns,
                SECOND,
                window.columns,
            )
            times = whole(lacking["c"]) + window.base_ns // SECOND
            more = {
                "time_s": times,
                "index": np.full(len(times), WITHOUT),
                name: whole(lacking["n"]),
            }
            columns = {each: np.append(held, more[each]) for each, held in columns.items()}
        none = np.zeros(len(columns["time_s"]))
        tables.append(
            pa.table(
                [
                    columns.get(field.name, none).astype(field.type.to_pandas_dtype())
                    for field in SCHEMAS[form]
                ],
                schema=SCHEMAS[form],
            )
        )
    return Sums(added(tables, form), form, width, None if y == "offset" else BITS)


def _numbers(
    engine: Engine,
    window: Window,
    statistic: Statistic,
    conditions: tuple[str, ...],
    bound: dict[str, Any],
) -> Sums:
    found = sum_numbers(
        engine, statistic, conditions, bound, window.base_ns, SECOND, window.columns
    )
    times, amount = whole(found["c"]) + window.base_ns // SECOND, whole(found["n"])
    words = pa.nulls(len(times), pa.string())
    if statistic.breakdown is not None:
        named: Any = np.ma.filled(found["k"], "").astype(object)
        rest = np.ma.getmaskarray(found["k"]) | ~_largest(named, amount)
        words = pa.array(named, pa.string(), mask=rest)
    table = pa.table([times, words.dictionary_encode(), amount], schema=SCHEMAS["numbers"])
    return Sums(added([table], "numbers"), "numbers")


def _largest(words: Any, amount: Any) -> Any:
    """Which rows are of one of the largest names."""
    names, places = np.unique(words.astype(str), return_inverse=True)
    if len(names) <= MOST_KEYS:
        return np.ones(len(words), dtype=bool)
    totals = np.bincount(places, weights=amount, minlength=len(names))
    kept = np.zeros(len(names), dtype=bool)
    kept[np.argsort(-totals, kind="stable")[:MOST_KEYS]] = True
    return kept[places]
