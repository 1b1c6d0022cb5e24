# SPDX-License-Identifier: Apache-2.0
"""Maps of a recording of 100 million events, and a fio log against DuckDB's CSV reader.

The recording (0.9 GB) and the log are made in a temporary directory and removed. Page cache warm.
Each question to the recording is asked in a process of its own: what is counted is the time from
opening the recording to the counts, with the loading of DuckDB; the interpreter's start and numpy's
loading are not. CPU time is that of all threads. IOLAB_BENCH_EVENTS and IOLAB_BENCH_LINES make both
shorter; IOLAB_BENCH_SEGMENTS (1, 600 and 10000) are the sizes of recordings of many small segments.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from bench_heatmap import write_log
from pairs import paired

from iolab import _core
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.engine.cells import bucket_of
from iolab.recordings.ask.query import query
from iolab.recordings.ask.tiers.map_sums import EVER
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.ledger import THREADS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.writer import RecordingWriter

MILLIONS = max(1, int(os.environ.get("IOLAB_BENCH_EVENTS", "100000000")) // 1_000_000)
LINES = int(os.environ.get("IOLAB_BENCH_LINES", "5000000"))
SEGMENT = 1_000_000
START_NS = 1_700_000_000_000_000_000

ASK = """
import sys, time
import numpy
from iolab.recordings.store.base.conditions import parse_where
start, spent = time.perf_counter(), time.process_time()
from pathlib import Path
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.ask.query import heat, query
recording = Recording(Path(sys.argv[1]))
{question}
print(time.perf_counter() - start, time.process_time() - spent, total)
"""

CSV = """
SELECT ms // 1000 AS c, CASE WHEN latency < 64 THEN latency
       ELSE (latency >> CAST(floor(log2(latency)) - 6 AS INTEGER)) + 64 * CAST(floor(log2(latency)) - 6 AS BIGINT) END AS b, count(*)
FROM read_csv($log, header=false, delim=',', auto_detect=false,
              columns={'ms': 'BIGINT', 'latency': 'BIGINT', 'op': 'BIGINT', 'size': 'BIGINT', 'priority': 'BIGINT'})
GROUP BY ALL
"""

QUESTIONS = {
    "latency map from default maps": "total = heat(recording, 'latency').events",
    "latency map of writes from default maps": "total = heat(recording, 'latency', where=parse_where(['op=write'])).events",
    "offset map from default maps": "total = heat(recording, 'offset').events",
    "latency map of one process by a full scan": "total = heat(recording, 'latency', where=parse_where(['process=fio'])).events",
    "latency map of writes in columns of 0.5 s by a full scan": (
        "total = heat(recording, 'latency', where=parse_where(['op=write']), "
        "interval_ns=500_000_000).events"
    ),
    "offset map of slow writes by a full scan": "total = heat(recording, 'offset', where=parse_where(['op=write', 'latency>=1ms'])).events",
    "I/Os by process by a full scan": "total = query(recording, 'io.ops[process]').total",
}

SEGMENTS = tuple(map(int, os.environ.get("IOLAB_BENCH_SEGMENTS", "1 600 10000").split()))
"""Recordings of so many small segments: what a question costs for each segment."""
SMALL = 2000
"""Rows of a small segment."""
MINUTE_NS = 60 * 10**9
"""Time of a small segment: a recorder seals after a minute."""

WARM = {
    "I/Os over time": "io.ops",
    "latency map": "io.ops[latency]",
    "I/Os by process of the last 10 segments": "io.ops[process]",
}

DRILLED = min(MILLIONS, 50)
"""Millions of events in the window of a drill-down: the recording's last ones."""

DRILL_DOWN = {
    f"drill-down of three levels, by device, the last {DRILLED} M events": (
        "total = query(recording, 'io.ops[op=write][process=fio][latency>=1ms][device]', "
        "from_ns=FROM).total"
    ),
    f"drill-down of three levels, latency map, the last {DRILLED} M events": (
        "total = query(recording, 'io.ops[op=write][process=fio][size=8KiB][latency]', "
        "from_ns=FROM).events"
    ),
    f"who is in a rectangle, against the last {DRILLED} M events": "from iolab.recordings.ask.attribution import Rectangle, who; "
    "found = who(recording, 'latency', Rectangle(low=10**6), around=(FROM, None)); total = found.inside + found.outside",
}


def names(words: list[str], places: np.ndarray) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), words)


def batch(
    number: int,
    chance: np.random.Generator,
    latencies: np.ndarray,
    buckets: np.ndarray,
    apart_ns: int,
) -> pa.RecordBatch:
    """I/Os of 8 KiB, one every `apart_ns`, log-normal latencies, two operations, two
    processes."""
    count = len(latencies)
    rows = np.arange(count)
    turn = number * 7919
    made = {
        "source": names(["block"], np.zeros(count)),
        "time_ns": pa.array(START_NS + (number * count + rows) * apart_ns),
        "latency_ns": pa.array(np.roll(latencies, turn)),
        "latency_bucket": pa.array(np.roll(buckets, turn)),
        "offset_bytes": pa.array(chance.integers(0, 2**27, count).astype(np.uint64) * 8192),
        "size_bytes": pa.array(np.full(count, 8192, np.uint64)),
        "op": names(["read", "write"], rows % 2),
        "device": names(["sda"], np.zeros(count)),
        "process": names(["fio", "dd"], rows % 10 == 0),
        "count": pa.array(np.ones(count, np.uint64)),
    }
    columns = [
        made[field.name]
        if field.name in made
        else pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()), pa.array([], pa.string()))
        if pa.types.is_dictionary(field.type)
        else pa.nulls(count, field.type)
        for field in EVENTS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def write_recording(
    directory: Path, segments: int = MILLIONS, rows: int = SEGMENT, apart_ns: int = 20_000
) -> None:
    chance = np.random.default_rng(1)
    latencies = np.exp(chance.normal(11.5, 1, rows)).astype(np.uint64)
    buckets = bucket_of(latencies, LogLinear(6), shifted=False).astype(np.uint16)
    with RecordingWriter.create(
        directory, host="bench", clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for number in range(segments):
            writer.append_segment([batch(number, chance, latencies, buckets, apart_ns)])


def ask(directory: Path, name: str, question: str, rounds: int = 5) -> None:
    # as it is installed: with modules compiled
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(directory.parent / "compiled"),
    }
    times, spent, total = [], [], ""
    for turn in range(rounds + 1):
        done = subprocess.run(
            [sys.executable, "-c", ASK.format(question=question), str(directory)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        passed, used, total = done.stdout.split()
        if turn:
            times.append(float(passed))
            spent.append(float(used))
    print(
        f"{name}, {MILLIONS} M events: median {1000 * statistics.median(times):.0f} ms (range {1000 * min(times):.0f} to "
        f"{1000 * max(times):.0f}, {rounds} processes), "
        f"CPU {1000 * statistics.median(spent):.0f} ms, {int(total):,} I/Os counted",
        flush=True,
    )


def against_reading(directory: Path) -> None:
    """The sums of all default maps of latency, against reading the same files."""
    files = sorted((directory / "histograms/1s/io.latency").iterdir())

    def add_up() -> int:
        (*_, ios, _), _ = _core.sum_maps(
            [(file, 0) for file in files],
            "block",
            5 * 10**9,
            EVER,
            by=["index"],
            is_timed=False,
            threads=THREADS,
        )
        return int(np.frombuffer(ios, "<i8").sum())

    def read() -> int:
        return sum(len(file.read_bytes()) for file in files)

    assert add_up() == MILLIONS * 10**6
    paired(f"default maps of {MILLIONS} M events", add_up, read, against="reading their files")


def ask_warm(directory: Path, segments: int, rounds: int = 7) -> None:
    """Questions in one process, as a service answers them: each was asked once before, about the
    same span (its answer is remembered) or about another one (sums of maps are)."""
    recording = Recording(directory)
    last_ns = START_NS + (segments - 10) * MINUTE_NS
    for name, question in WARM.items():
        from_ns = last_ns if "last" in name else None
        total, times, spent = query(recording, question, from_ns=from_ns).total, [], []
        for _ in range(rounds):
            start, used = time.perf_counter(), time.process_time()
            query(recording, question, from_ns=from_ns)
            times.append(1000 * (time.perf_counter() - start))
            spent.append(1000 * (time.process_time() - used))
        print(
            f"{name}, {segments:,} segments, warm: median {statistics.median(times):.0f} ms (range {min(times):.0f} to "
            f"{max(times):.0f}, {rounds} rounds), CPU {statistics.median(spent):.0f} ms, {total:,} I/Os counted",
            flush=True,
        )
        if from_ns is None and segments > rounds:
            spent = []
            for minute in range(1, rounds + 1):
                used = time.process_time()
                query(recording, question, from_ns=START_NS + minute * MINUTE_NS)
                spent.append(1000 * (time.process_time() - used))
            print(
                f"{name}, {segments:,} segments, another span: CPU {statistics.median(spent[1:]):.0f} ms"
            )
    around = (last_ns if segments > 10 else None, None)
    taken: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        who(recording, "latency", Rectangle(low=10**6), around=around)
        taken.append(1000 * (time.process_time() - start))
    print(
        f"who of the last 10 segments, {segments:,} segments: CPU {statistics.median(taken[1:]):.0f} ms"
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        log = Path(folder) / "plain_lat.1.log"
        write_log(log, LINES, offsets=False)

        def ours() -> int:
            return Trace(log).counts("latency", interval_ns=10**9).events

        def theirs() -> int:
            with duckdb.connect(":memory:", config={"threads": os.cpu_count() or 1}) as connection:
                return sum(row[2] for row in connection.execute(CSV, {"log": str(log)}).fetchall())

        assert ours() == theirs() == LINES
        paired(
            f"latency histograms of a fio log of {LINES:,} lines",
            ours,
            theirs,
            against="DuckDB's CSV reader with an explicit schema",
        )
        directory = Path(folder) / "recording"
        start = time.perf_counter()
        write_recording(directory)
        size = sum(path.stat().st_size for path in (directory / "events").iterdir())
        print(
            f"recording of {MILLIONS} M events written in {time.perf_counter() - start:.0f} s, {size / MILLIONS / 1e6:.2f} bytes an I/O"
        )
        against_reading(directory)
        for name, question in QUESTIONS.items():
            ask(directory, name, question)
        for segments in SEGMENTS:
            small = Path(folder) / f"segments-{segments}"
            write_recording(small, segments, SMALL, MINUTE_NS // SMALL)
            ask_warm(small, segments)
        start_ns = START_NS + (MILLIONS - DRILLED) * SEGMENT * 20_000
        for name, question in DRILL_DOWN.items():
            ask(directory, name, question.replace("FROM", str(start_ns)))


if __name__ == "__main__":
    main()
