# SPDX-License-Identifier: Apache-2.0
"""Sealed segments, and sums of their events and counters by the second, by the same code that answers
questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...store.base.grids import WITHOUT, Linear, LogLinear
from ...store.base.layout import KINDS, Kind
from ...store.read.recording import Recording, Segment
from ...store.segments.segments import noted_segments, sealed_facts
from ..engine.cells import Asked, count
from ..engine.cells import sums as sum_numbers
from ..engine.engine import Engine, int64s
from ..engine.snapshot import Snapshot
from ..engine.windows import Window, attach, whole_window
from ..language.fields import QUANTIZED
from ..question import SECOND, Statistic
from ..tiers import counters
from ..tiers.readings import Readings, Spread, read, spread
from .files.definitions import Kept, Spans
from .files.paths import BITS, COARSER, MOST_KEYS, form_of
from .files.tables import SCHEMAS, Sums, sum_rows


@dataclass(frozen=True)
class Sealed:
    """A sealed segment; one of its kinds may be missing, not both."""

    number: int
    events: Segment | None
    samples: Segment | None

    @property
    def _segments(self) -> list[Segment]:
        return [segment for segment in (self.events, self.samples) if segment is not None]

    @property
    def first_ns(self) -> int:
        """Time of the first event or sample."""
        return min(segment.first_ns for segment in self._segments)

    @property
    def until_ns(self) -> int:
        """After the last one."""
        return max(segment.last_ns for segment in self._segments) + 1

    @property
    def event_sources(self) -> list[str]:
        """Sources that it has events of."""
        return sorted(
            name for name, events in (self.events.sources if self.events else {}).items() if events
        )

    @property
    def sample_sources(self) -> list[str]:
        """Sources that it has samples of."""
        return sorted(
            name
            for name, events in (self.samples.sources if self.samples else {}).items()
            if events
        )

    @property
    def is_of_run(self) -> bool:
        """Whether it belongs to a run, which may be read again in its place."""
        return self.events is not None and self.events.facts.get("label") is not None


def sealed_after(recording: Recording, through: int) -> list[tuple[Sealed | None, Sealed]]:
    """(the segment before it that belongs to no run, None if deleted; the segment) of segments
    beyond the number `through`, ascending, without damaged files."""
    segments: dict[Kind, dict[int, Segment]] = {}
    before_it, lines = through, noted_segments(recording.path)
    # what belongs to a run may stand between two readings of counters
    while lines.get(before_it, {}).get("label") is not None:
        before_it -= 1
    after = max(recording.facts.dropped_through, before_it - 2)
    for kind in KINDS:
        segments[kind] = {
            number: Segment(
                number,
                path,
                "sealed",
                segment_facts["first_ns"],
                segment_facts["last_ns"],
                {
                    source: int(counts["events"])
                    for source, counts in segment_facts["sources"].items()
                },
                segment_facts,
            )
            for number, path, segment_facts in sealed_facts(recording.path, kind, after)
            if segment_facts["first_ns"] is not None
        }
    pairs: list[tuple[Sealed | None, Sealed]] = []
    before: Sealed | None = None
    for number in sorted(segments["events"].keys() | segments["samples"].keys()):
        sealed = Sealed(number, segments["events"].get(number), segments["samples"].get(number))
        if number > through:
            pairs.append((before, sealed))
        before = before if sealed.is_of_run else sealed
    return pairs


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
        snap = Snapshot(self._recording, (segment,), None)
        window = whole_window(snap, source, (segment.first_ns, segment.last_ns + 1), SECOND)
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
    conditions = [] if since_ns is None else [f"time_ns >= {int(since_ns)}"]
    for first, until in left_out:
        conditions.append(
            f"time_ns < {int(first)}"
            if until is None
            else f"(time_ns < {int(first)} OR time_ns >= {int(until)})"
        )
    return conditions


def _map(
    engine: Engine,
    window: Window,
    statistic: Statistic,
    conditions: tuple[str, ...],
    bound: dict[str, Any],
) -> Sums:
    y = next(
        quantized_name for quantized_name in QUANTIZED if quantized_name == statistic.breakdown
    )
    width = int(window.snap.sealed[0].facts.get("offset_width", 1)) if y == "offset" else 1
    grid = Linear(0, width) if y == "offset" else LogLinear(BITS + COARSER)
    form = form_of(statistic, counted=False)
    heat_map = Asked(
        y, window.base_ns, SECOND, conditions, bound, None, None, grid, statistic.entry.weight
    )
    counts = count(engine, heat_map)
    counts_by_name = {"count" if form == "map" else "amount": counts}
    if form == "weighed":
        # what moved the bytes is counted as well: how many I/Os they are can be told then
        counts_by_name["count"] = count(
            engine,
            replace(
                heat_map,
                weight="count",
                conditions=(*conditions, f"NOT ({heat_map.without_place})"),
            ),
        )
    tables = []
    for name, cells in counts_by_name.items():
        fine = cells.coarser(steps=COARSER) if isinstance(grid, LogLinear) else cells
        columns = {
            "time_s": fine.t0_ns // SECOND + fine.column,
            "index": fine.index,
            name: fine.count,
        }
        if counts.without_y:
            sums_without_y = sum_numbers(
                engine,
                Statistic("io", "ops" if name == "count" else "bytes"),
                (*conditions, f"({heat_map.without_place})"),
                bound,
                window.base_ns,
                SECOND,
                window.columns,
            )
            times = int64s(sums_without_y["c"]) + window.base_ns // SECOND
            more = {
                "time_s": times,
                "index": np.full(len(times), WITHOUT),
                name: int64s(sums_without_y["n"]),
            }
            columns = {
                field_name: np.append(column, more[field_name])
                for field_name, column in columns.items()
            }
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
    return Sums(sum_rows(tables, form), form, width, None if y == "offset" else BITS)


def _numbers(
    engine: Engine,
    window: Window,
    statistic: Statistic,
    conditions: tuple[str, ...],
    bound: dict[str, Any],
) -> Sums:
    rows = sum_numbers(engine, statistic, conditions, bound, window.base_ns, SECOND, window.columns)
    times, amount = int64s(rows["c"]) + window.base_ns // SECOND, int64s(rows["n"])
    words = pa.nulls(len(times), pa.string())
    if statistic.breakdown is not None:
        named: Any = np.ma.filled(rows["k"], "").astype(object)
        rest = np.ma.getmaskarray(rows["k"]) | ~_largest(named, amount)
        words = pa.array(named, pa.string(), mask=rest)
    table = pa.table([times, words.dictionary_encode(), amount], schema=SCHEMAS["numbers"])
    return Sums(sum_rows([table], "numbers"), "numbers")


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
        segment.samples
        for segment in (before, sealed)
        if segment is not None and segment.samples is not None
    ]
    first, until = near[0].first_ns // SECOND * SECOND, (near[-1].last_ns // SECOND + 1) * SECOND
    snap = Snapshot(recording, tuple(near), None)
    window = whole_window(snap, counter.source, (first, until), SECOND)
    new_readings = [
        _after(reading, kept.read_ns)
        for reading in read(window, counter, parted=counters.is_parted(statistic))
    ]
    ends = [int(reading.times[-1]) for reading in new_readings if len(reading.times)]
    if not ends:
        return None
    kept.read_ns = max(ends)
    breaks, parts = recording.breaks(counter.source), counters.parts_of(statistic)
    return _sums(
        [
            spread(reading, counter, parts, window, breaks)
            for reading in new_readings
            if len(reading.times)
        ],
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
        values={name: field_values[place:] for name, field_values in readings.values.items()},
    )


def _sums(spreads: Sequence[Spread], window: Window, begins_ns: int, left_out: Spans) -> Sums:
    seconds = window.base_ns // SECOND + np.arange(window.columns)
    is_kept = seconds * SECOND >= begins_ns
    for first, until in left_out:
        is_kept &= (seconds * SECOND < first) | (
            seconds * SECOND >= (2**63 - 1 if until is None else until)
        )
    tables = []
    for object_spread in spreads:
        known_seconds = np.flatnonzero(
            is_kept & ((object_spread.covered > 0) | (object_spread.broken > 0))
        )
        for part, amounts in object_spread.amounts.items():
            words = {
                name: pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(len(known_seconds), dtype=np.int32)), pa.array([word])
                )
                for name, word in (("object", object_spread.object), ("part", part))
            }
            tables.append(
                pa.table(
                    {
                        "time_s": seconds[known_seconds],
                        **words,
                        "amount": amounts[known_seconds],
                        "over": object_spread.over[known_seconds],
                        "covered": object_spread.covered[known_seconds],
                        "broken": object_spread.broken[known_seconds],
                    }
                ).cast(SCHEMAS["growth"])
            )
    return Sums(sum_rows(tables, "growth") if tables else SCHEMAS["growth"].empty_table(), "growth")
