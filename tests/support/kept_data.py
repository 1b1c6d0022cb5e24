# SPDX-License-Identifier: Apache-2.0
"""Recordings in which statistics are kept: hours of I/O in little time, whose events can be made to
go."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from iolab import _core
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.base.schema import EVENTS, SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.retention import Retention
from iolab.recordings.store.write.writer import RecordingWriter

__all__ = ["DAY", "HOUR", "START", "add_segment", "aged", "io", "make"]

HOUR = 3600 * SECOND
DAY = 24 * HOUR
START = 1_700_000_000 // 86400 * DAY


def io(start_ns: int, seconds: int, per_s: int = 20, seed: int = 1) -> pa.RecordBatch:
    """Random I/Os, some of which lack a value, over a span of time; every few are late by up to two
    seconds."""
    chance = np.random.default_rng([seed, start_ns // SECOND])
    rows = seconds * per_s
    times = start_ns + np.sort(chance.integers(0, seconds * SECOND, rows))
    late = chance.random(rows) < 0.02
    times = np.where(
        late, np.maximum(times - chance.integers(0, 2 * SECOND, rows), start_ns), times
    )
    latency = chance.lognormal(12, 1.5, rows).astype(np.uint64)
    lacking = chance.random(rows) < 0.02

    def names(values: Sequence[str | None], shares: Sequence[float]) -> pa.Array:
        return pa.array(
            [values[place] for place in chance.choice(len(values), rows, p=shares)], pa.string()
        ).dictionary_encode()

    bucket = pa.array(
        [_core.grid_index(int(value), 6) for value in latency], pa.uint16(), mask=lacking
    )
    columns = {
        "source": pa.array(["block"] * rows).dictionary_encode(),
        "time_ns": times,
        "latency_ns": pa.array(latency, mask=lacking),
        "latency_bucket": bucket,
        "queue_ns": chance.integers(0, 50_000, rows).astype(np.uint64),
        "offset_bytes": chance.integers(0, 2**34, rows).astype(np.uint64)
        // np.uint64(4096)
        * np.uint64(4096),
        "size_bytes": chance.choice(np.array([4096, 8192, 131072], dtype=np.uint64), rows),
        "op": names(("read", "write"), (0.7, 0.3)),
        "device": names(("sda", "sdb", None), (0.6, 0.3, 0.1)),
        "process": names(("fio", "db", "cp"), (0.5, 0.3, 0.2)),
        "file": names([f"/data/{number}" for number in range(40)], [1 / 40] * 40),
        "count": np.ones(rows, dtype=np.uint64),
    }
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in EVENTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


def busy(start_ns: int, seconds: int) -> pa.RecordBatch:
    """A reading each second, not on the second, of two disks' and the processors' counters, which
    grow steadily."""
    rows = []
    for number in range(seconds):
        at = start_ns + number * SECOND + 300_000_000
        passed = at // 1_000_000 - START // 1_000_000
        for place, disk in enumerate(("sda", "sdb")):
            fields = {
                "io_ms": passed // (2 + place),
                "reads": passed * (place + 1),
                "writes": passed // 3,
                "discards": 0,
                "flushes": 0,
            }
            rows += [("diskstats", at, disk, field, value) for field, value in fields.items()]
        rows += [
            ("cpu", at, "", field, passed // share)
            for field, share in (("user", 40), ("system", 70), ("idle", 12))
        ]
    held = list(zip(*rows, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(held, SAMPLES, strict=True)],
        schema=SAMPLES,
    )


def add_segment(
    writer: RecordingWriter, start_ns: int, seconds: int, per_s: int = 20, *, counters: bool = False
) -> None:
    """One sealed segment."""
    writer.append_events(io(start_ns, seconds, per_s))
    if counters:
        writer.append_samples(busy(start_ns, seconds))
    writer.seal()


def make(
    directory: Path,
    names: Sequence[str],
    *,
    segments: int = 6,
    seconds: int = 30,
    per_s: int = 20,
    step_s: int | None = None,
    counters: bool = False,
) -> Recording:
    """A recording at rest, of segments of so many seconds that begin every `step_s`, in which
    statistics are kept."""
    with RecordingWriter.create(
        directory, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(segments):
            add_segment(
                writer,
                START + number * (step_s or seconds) * SECOND,
                seconds,
                per_s,
                counters=counters,
            )
    if names:
        manage.add(directory, names, backfill=True)
    return Recording(directory)


def aged(directory: Path, to: Path, segments: int) -> Recording:
    """A copy of the recording of which the events of all but the last `segments` are gone, as
    retention lets them go."""
    shutil.copytree(directory, to)
    facts = read_facts(to)
    sizes = [
        (
            int(path.stem),
            sum(
                each.stat().st_size
                for kind in ("events", "samples")
                for each in (to / kind).glob(path.name)
            ),
        )
        for path in sorted((to / "events").glob("*.parquet"))
    ]
    facts.retention["bytes"] = sum(size for _, size in sizes[len(sizes) - segments :])
    facts.write(to)
    assert Retention(to).apply(facts, START) == len(sizes) - segments
    return Recording(to)
