# SPDX-License-Identifier: Apache-2.0
"""Recordings of counter readings, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from iolab.base.clock import FakeClock
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.schema import EVENTS, SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import unsealed
from support.statistics_data import Event, recording_of, trace_of

SECOND = 10**9
START = 1_700_000_000 * SECOND
Reading = tuple[float, str, str, int]
"""Seconds after the start, object, field, value."""


def kept(
    folder: Path,
    readings: Mapping[str, list[Reading]],
    *,
    events: list[Event] | None = None,
    hot: bool = False,
    source: str = "block",
) -> Recording:
    """A recording of readings by source, sealed in two halves, or the second of them hot."""
    folder.mkdir(exist_ok=True)
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        folder / "r", host="here", clock="realtime", origin={"kind": "record"}, system=clock
    )
    rows = [
        (name, START + round(at * SECOND), thing, field, value)
        for name, held in readings.items()
        for at, thing, field, value in held
    ]
    rows.sort(key=lambda row: row[1])
    for place, half in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        if half:
            columns = list(zip(*half, strict=True))
            writer.append_samples(
                pa.RecordBatch.from_arrays(
                    [
                        pa.array(column, field.type)
                        for column, field in zip(columns, SAMPLES, strict=True)
                    ],
                    schema=SAMPLES,
                )
            )
        if not (hot and place):
            writer.seal()
    if events:
        made = unsealed(
            recording_of(trace_of(events, folder / "e.csv"), folder / "e", source=source, hot=True)
        )
        writer.append_events(made.cast(EVENTS).combine_chunks().to_batches()[0])
        writer.seal()
    if hot:
        # as a kill leaves it
        writer._lock.close()
    else:
        clock.sleep((rows[-1][1] - START) / SECOND)
        writer.close()
    return Recording(folder / "r")


def disk(
    thing: str, field: str, values: list[int], first: float = 0, step: float = 1
) -> list[Reading]:
    return [(first + step * place, thing, field, value) for place, value in enumerate(values)]


def series(
    recording: Recording, name: str, seconds: tuple[float, float], interval: float = 1
) -> Series:
    found = query(
        recording,
        name,
        from_ns=START + round(seconds[0] * SECOND),
        until_ns=START + round(seconds[1] * SECOND),
        interval_ns=round(interval * SECOND),
    )
    assert isinstance(found, Series)
    return found


def stack(recording: Recording, name: str, seconds: tuple[float, float]) -> Stack:
    found = query(
        recording,
        name,
        from_ns=START + round(seconds[0] * SECOND),
        until_ns=START + round(seconds[1] * SECOND),
        interval_ns=SECOND,
    )
    assert isinstance(found, Stack)
    return found


def same(found: np.ndarray, expected: Sequence[float] | Sequence[Sequence[float]]) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


NAN = float("nan")
