# SPDX-License-Identifier: Apache-2.0
"""Sums by the second of the events and counters of a sealed segment, by the same code that answers
questions, about that segment alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...recording.base.grids import WITHOUT, Linear, LogLinear
from ...recording.read.recording import Recording, Segment
from ..engine.cells import Asked, count
from ..engine.cells import sums as sum_numbers
from ..engine.coverage import Losses
from ..engine.engine import Engine, whole
from ..engine.snapshot import Snapshot
from ..engine.windows import Window, attach
from ..language.fields import QUANTIZED
from ..language.intervals import SECOND
from ..language.names import Statistic
from ..tiers import counters
from ..tiers.readings import Readings, Spread, read, spread
from .definitions import Spans
from .paths import BITS, COARSER, MOST_KEYS, form_of
from .sealed import Sealed
from .state import Kept
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


def from_samples(
    recording: Recording,
    before: Sealed | None,
    sealed: Sealed,
    statistic: Statistic,
    kept: Kept,
    begins_ns: int,
    left_out: Spans,
) -> Sums | None:
    """What a segment adds to a statistic of counters; `kept.read_ns` moves on to its last reading."""
    counter = statistic.entry.counter
    if counter is None or sealed.samples is None or not sealed.samples.sources.get(counter.source):
        return None
    near = [
        each.samples for each in (before, sealed) if each is not None and each.samples is not None
    ]
    first, until = near[0].first_ns // SECOND * SECOND, (near[-1].last_ns // SECOND + 1) * SECOND
    window = Window(
        Snapshot(recording, tuple(near), None),
        counter.source,
        first,
        until,
        False,
        False,
        SECOND,
        False,
        None,
        Losses(0, 0, 0, ()),
    )
    found = [
        _after(each, kept.read_ns)
        for each in read(window, counter, parted=counters.is_parted(statistic))
    ]
    ends = [int(each.times[-1]) for each in found if len(each.times)]
    if not ends:
        return None
    kept.read_ns = max(ends)
    breaks, parts = recording.breaks(counter.source), counters.parts_of(statistic)
    return _sums(
        [spread(each, counter, parts, window, breaks) for each in found if len(each.times)],
        window,
        begins_ns,
        left_out,
    )


def _after(readings: Readings, read_ns: int | None) -> Readings:
    """The readings from the last one on that is in already."""
    if read_ns is None:
        return readings
    place = max(0, int(np.searchsorted(readings.times, read_ns, side="right")) - 1)
    return replace(
        readings,
        times=readings.times[place:],
        values={name: held[place:] for name, held in readings.values.items()},
    )


def _sums(spreads: Sequence[Spread], window: Window, begins_ns: int, left_out: Spans) -> Sums:
    seconds = window.base_ns // SECOND + np.arange(window.columns)
    held = seconds * SECOND >= begins_ns
    for first, until in left_out:
        held &= (seconds * SECOND < first) | (
            seconds * SECOND >= (2**63 - 1 if until is None else until)
        )
    tables = []
    for each in spreads:
        known = np.flatnonzero(held & ((each.covered > 0) | (each.broken > 0)))
        for part, amounts in each.amounts.items():
            words = {
                name: pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(len(known), dtype=np.int32)), pa.array([word])
                )
                for name, word in (("object", each.object), ("part", part))
            }
            tables.append(
                pa.table(
                    {
                        "time_s": seconds[known],
                        **words,
                        "amount": amounts[known],
                        "over": each.over[known],
                        "covered": each.covered[known],
                        "broken": each.broken[known],
                    }
                ).cast(SCHEMAS["growth"])
            )
    return Sums(added(tables, "growth") if tables else SCHEMAS["growth"].empty_table(), "growth")
