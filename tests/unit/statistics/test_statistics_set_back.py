# SPDX-License-Identifier: Apache-2.0
"""Counters of a recorder that was begun again after the clock was set back: nothing counts where
two sessions have times in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.clocks import SetClock
from support.kept_data import START, aged, busy, io

NAME = "io.utilization"
PARTS = 30


def recorded(path: Path, back: int) -> Recording:
    """Counters of 90 seconds, then, the clock having been set back by so many, of 60 more; a
    reading each second, sealed every thirty."""
    clock = SetClock(START)
    begun = clock.monotonic()

    def record(writer: RecordingWriter, parts: int) -> None:
        for _ in range(parts):
            counted = busy(START + round(clock.monotonic() - begun) * SECOND, PARTS)
            set_by = clock.realtime_ns() - START - round(clock.monotonic() - begun) * SECOND
            times = pa.array(counted.column("time_ns").to_numpy() + set_by)
            writer.append_events(io(clock.realtime_ns(), PARTS))
            writer.append_samples(counted.set_column(1, SAMPLES.field(1), times))
            clock.sleep(PARTS)
            writer.tick(clock.realtime_ns())
            writer.seal()

    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        record(writer, 3)
    clock.set_ahead(-back)
    with RecordingWriter.reopen(path, system=clock) as writer:
        record(writer, 2)
    return Recording(path)


def series(recording: Recording) -> Series:
    found = query(recording, NAME, interval_ns=SECOND)
    assert isinstance(found, Series)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("back", "known"), [(0, 148), (10, 80 - 2 + 50 - 1), (40, 50 + 20 - 3), (80, 10 + 20 - 3)]
)
@pytest.mark.parametrize("kept", [False, True])
def test_what_counters_grew_by_is_not_counted_twice(
    back: int, known: int, kept: bool, tmp_path: Path
) -> None:
    recording = recorded(tmp_path / "r", back)
    steady = float(np.nanmedian(series(recorded(tmp_path / "steady", 0)).values))
    if kept:
        manage.add(tmp_path / "r", [NAME], backfill=True)
        (recording,) = [aged(tmp_path / "r", tmp_path / "old", 0)]
    values = series(recording).values
    assert np.nanmax(values) == pytest.approx(steady, rel=0.05)
    assert np.nanmin(values) == pytest.approx(steady, rel=0.05)
    assert int(np.isfinite(values).sum()) == pytest.approx(known, abs=4)
