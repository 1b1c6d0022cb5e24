# SPDX-License-Identifier: Apache-2.0
"""Recordings: bytes an I/O, speed of appending and sealing, speed and memory of importing a large
trace.

I/Os are random 8 KiB ones at 50 thousand a second, half of them writes, with log-normal latencies
and one process. The trace to import is a fio log of IOLAB_BENCH_EVENTS lines (100 million by
default: 5 GB, made in a temporary directory and removed).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench_heatmap import write_log

from iolab import _core
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter

EVENTS_IMPORTED = int(os.environ.get("IOLAB_BENCH_EVENTS", "100000000"))
SECONDS, RATE = 60, 50_000


def second(number: int, chance: np.random.Generator, buckets: np.ndarray) -> pa.RecordBatch:
    """The events of one second."""
    start = 1_700_000_000_000_000_000 + number * 1_000_000_000
    latency = np.minimum(chance.lognormal(11.5, 1, RATE), 2**26 - 1).astype(np.uint64)
    columns = {
        "source": pa.DictionaryArray.from_arrays(np.zeros(RATE, np.int32), ["block"]),
        "time_ns": start + np.sort(chance.integers(0, 1_000_000_000, RATE)),
        "latency_ns": latency,
        "latency_bucket": buckets[(latency // 64).astype(np.int64)],
        "offset_bytes": chance.integers(0, 2**25, RATE).astype(np.uint64) * 8192,
        "size_bytes": np.full(RATE, 8192, np.uint64),
        "op": pa.DictionaryArray.from_arrays(
            chance.integers(0, 2, RATE).astype(np.int32), ["read", "write"]
        ),
        "process": pa.DictionaryArray.from_arrays(np.zeros(RATE, np.int32), ["fio"]),
        "count": np.ones(RATE, np.uint64),
    }
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.nulls(RATE, field.type)
        for field in EVENTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


def appended(folder: Path) -> None:
    """A minute of 50 thousand I/O a second, appended a second at a time."""
    chance = np.random.default_rng(1)
    buckets = np.array(
        [_core.grid_index(64 * number, 6) for number in range(2**20)], dtype=np.uint16
    )
    batches = [second(number, chance, buckets) for number in range(SECONDS)]
    rows, hot = SECONDS * RATE, []
    writer = RecordingWriter.create(
        folder / "r", host="", clock="realtime", origin={"kind": "record"}
    )
    appending = sealing = 0.0
    for number, batch in enumerate(batches):
        begun = time.perf_counter()
        writer.append_events(batch)
        appending += time.perf_counter() - begun
        if number % 12 == 11:
            hot.append(sum(path.stat().st_size for path in (folder / "r/hot").iterdir()))
            begun = time.perf_counter()
            writer.seal()
            sealing += time.perf_counter() - begun
    writer.close()
    summary = Recording(folder / "r").summary()
    assert summary.rows == rows
    print(
        f"bytes an I/O: {summary.bytes_per_io:.2f} sealed, {sum(hot) / rows:.0f} hot; "
        f"default maps {summary.bytes['histograms'] / rows:.2f}"
    )
    print(
        f"appending {rows / appending / 1e6:.1f} M events/s, a batch of {RATE:,} in {1000 * appending / SECONDS:.1f} ms"
    )
    print(
        f"sealing {rows / sealing / 1e6:.1f} M events/s, {12 * RATE:,} events in {sealing / len(hot):.2f} s, with default maps and fsync"
    )
    begun = time.perf_counter()
    Recording(folder / "r").summary()
    print(f"summary of {rows:,} events: {1000 * (time.perf_counter() - begun):.0f} ms")


IMPORT = """
import resource, sys, time
from pathlib import Path
from iolab.recordings.store.write.ingest import ingest
from iolab.recordings.store.read.trace import Trace
begun = time.perf_counter()
done = ingest(Trace(Path(sys.argv[1])), Path(sys.argv[2]))
print(done.events, time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def imported(folder: Path) -> None:
    """A large fio log into a recording, in a process of its own."""
    log = folder / "big_lat.1.log"
    write_log(log, EVENTS_IMPORTED, offsets=True)
    out = subprocess.run(
        [sys.executable, "-c", IMPORT, str(log), str(folder / "i")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    events, taken, most = out.split()
    assert int(events) == EVENTS_IMPORTED
    summary = Recording(folder / "i").summary()
    assert summary.events == EVENTS_IMPORTED
    print(
        f"import of {EVENTS_IMPORTED:,} lines ({log.stat().st_size / 1e6:.0f} MB): {float(taken):.1f} s, "
        f"{EVENTS_IMPORTED / float(taken) / 1e6:.2f} M events/s, {int(most) / 1024:.0f} MiB of memory, "
        f"{summary.bytes_per_io:.2f} bytes an I/O"
    )
    begun = time.perf_counter()
    Recording(folder / "i").summary()
    print(f"summary of {EVENTS_IMPORTED:,} events: {1000 * (time.perf_counter() - begun):.0f} ms")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        appended(Path(folder))
        imported(Path(folder))
    print(
        f"most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
