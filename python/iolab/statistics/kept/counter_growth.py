# SPDX-License-Identifier: Apache-2.0
"""A sealed segment's readings of counters as growth by the second: of pairs of readings the later
one of which is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...recording.read.recording import Recording
from ..engine.coverage import Losses
from ..engine.snapshot import Snapshot
from ..engine.windows import Window
from ..language.intervals import SECOND
from ..language.names import Statistic
from ..tiers import counters
from ..tiers.readings import Readings, Spread, read, spread
from .definitions import Spans
from .sealed import Sealed
from .state import Kept
from .tables import SCHEMAS, Sums, added


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
