# SPDX-License-Identifier: Apache-2.0
"""What a kept by-latency statistic takes on disk and how fast a day of it opens: 86,400 s at 2,000
I/Os a second, of three kinds of load.

Rows are made as the keeper makes them (per second and bucket of 3 bits), written segment by segment
and merged by its own code; nothing about the files is simulated. Then the day is asked for by the
second (a map of 86,400 columns) and by the minute, in a process of its own each time. Prints bytes
per non-empty bucket and per second, files, seconds to open, and what a segment of real events costs
to keep; and what a recording of one hour takes while it grows, most of whose files are of a minute
yet. IOLAB_BENCH_HOURS (24) and IOLAB_BENCH_RATE (2000) make it shorter or another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from iolab.recordings.ask.engine.cells import lower_bounds
from iolab.recordings.ask.kept import manage, recovery
from iolab.recordings.ask.kept.compaction import Merger
from iolab.recordings.ask.kept.files import definitions, tables
from iolab.recordings.ask.kept.files.definitions import Kept, State
from iolab.recordings.ask.kept.files.paths import BITS, TIERS, files, folder_name, path_of
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.write.writer import RecordingWriter

HOURS = int(os.environ.get("IOLAB_BENCH_HOURS", "24"))
RATE = int(os.environ.get("IOLAB_BENCH_RATE", "2000"))
START = 1_790_000_000 // 86400 * 86400
SEGMENT = 60
NAME = "io.ops[process=db][latency]"
LOADS = {
    "flash": ((80e3, 0.35, 1.0),),
    "flash with a cache": ((12e3, 0.25, 0.6), (90e3, 0.4, 0.4)),
    "disks with a cache": ((80e3, 0.35, 0.5), (4e6, 0.6, 0.5)),
}
"""Parts of a load: median latency in ns, sigma of its logarithm, share of the I/Os."""

_ASK = """
import json, sys, time
from pathlib import Path
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.ask.query import query
import duckdb, pyarrow.parquet
recording = Recording(Path(sys.argv[1]))
begin = time.perf_counter()
found = query(recording, sys.argv[2], interval_ns=int(sys.argv[3]) * 10**9, source="block")
print(json.dumps({"seconds": time.perf_counter() - begin, "columns": found.columns, "cells": len(found.count), "total": found.total,
                  "notes": found.assumptions}))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for name, parts in LOADS.items():
            stored(Path(scratch, name.replace(" ", "-")), name, parts)
            growing(Path(scratch, f"{name.replace(' ', '-')}-growing"), name, parts)
        made(Path(scratch, "made"))


def stored(path: Path, name: str, parts: tuple[tuple[float, float, float], ...]) -> None:
    """A day on disk, and how fast it opens."""
    total, seconds = written(path, parts)
    print(f"{name}, {RATE:,} I/Os a second, {HOURS} h ({seconds:.0f} s to write):", flush=True)
    for tier in TIERS:
        found = files(path, tier, folder_name(NAME))
        size, rows = (
            sum(each.path.stat().st_size for each in found),
            sum(tables.about(each.path).rows for each in found),
        )
        print(
            f"  {tier.name}: {len(found)} files, {size / 1e6:.2f} MB, {rows / (HOURS * 3600 / tier.seconds):.1f} buckets a column, "
            f"{size / rows:.3f} bytes a bucket, {size / (HOURS * 3600):.1f} bytes a second of time"
        )
    for interval in (1, 60):
        done = [
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", _ASK, path, NAME, str(interval)],
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
            )
            for _ in range(3)
        ]
        assert {each["total"] for each in done} == {total}, "not an I/O is missing"
        best = min(each["seconds"] for each in done)
        print(
            f"  opened by {interval} s: {done[0]['columns']:,} columns, {done[0]['cells']:,} cells in {best:.2f} s",
            flush=True,
        )


def growing(path: Path, name: str, parts: Sequence[tuple[float, float, float]]) -> None:
    """An hour on disk that begins in the midst of an hour, minute by minute."""
    found: list[tuple[int, float]] = []

    def look(number: int) -> None:
        held = files(path, TIERS[0], folder_name(NAME))
        size, rows = (
            sum(each.path.stat().st_size for each in held),
            sum(tables.about(each.path).rows for each in held),
        )
        found.append((len(held), size / rows))

    written(path, parts, 1, begin=START + 38 * 60, after=look)
    late = [each for _, each in found[30:]]
    print(
        f"{name}, the first hour: {found[9][1]:.2f} bytes a bucket after ten minutes, {min(late):.2f} to {max(late):.2f} from half an "
        f"hour on, {found[-1][1]:.2f} at its end; at most {max(count for count, _ in found)} files",
        flush=True,
    )


def written(
    path: Path,
    parts: Sequence[tuple[float, float, float]],
    hours: int = HOURS,
    rate: int = RATE,
    *,
    begin: int = START,
    after: Callable[[int], None] | None = None,
) -> tuple[int, float]:
    """Write a recording of which only what was kept of `NAME` is left: (I/Os in it, seconds that it
    took). `after` is told the number of each segment."""
    RecordingWriter.create(
        path, host="bench", clock="realtime", origin={"kind": "record"}, live=False
    ).close()
    chance, lower = np.random.default_rng(1), lower_bounds(BITS)
    merger = Merger(path, NAME, "block")
    number = total = 0
    first, last, started = begin, begin + hours * 3600, time.perf_counter()
    for second in range(first, last, SEGMENT):
        number += 1
        latency = np.concatenate(
            [
                chance.lognormal(np.log(median), sigma, int(share * rate * SEGMENT))
                for median, sigma, share in parts
            ]
        )
        at = second + chance.integers(0, SEGMENT, len(latency))
        cells, counts = np.unique(
            at << 16 | np.searchsorted(lower, latency.astype(np.uint64), side="right") - 1,
            return_counts=True,
        )
        total += len(latency)
        table = pa.table(
            [cells >> 16, (cells & 0xFFFF).astype(np.uint32), counts.astype(np.uint64)],
            schema=tables.SCHEMAS["map"],
        )
        sums = tables.Sums(tables.sum_rows([table], "map"), "map", 1, BITS)
        tables.write(
            path_of(path, TIERS[0], folder_name(NAME), number, number), [sums], NAME, "block"
        )
        merger.merge(number)
        if after is not None:
            after(number)
    seconds = time.perf_counter() - started
    until = last * SECOND
    recovery.change_definitions(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
    facts = read_facts(path)
    facts.dropped = {
        "through": number,
        "until_ns": until,
        "segments": number,
        "events": {"block": total},
        "bytes": 0,
    }
    facts.write(path)
    State(1, {NAME: Kept(1, "block", number, number, first * SECOND, until)}).write(path)
    return total, seconds


def made(path: Path) -> None:
    """What it costs to keep a segment of real events."""
    chance = np.random.default_rng(2)
    for rows in sorted({RATE * SEGMENT, 600_000}):
        where = path / str(rows)
        where.parent.mkdir(exist_ok=True)
        names = pa.array(["fio", "db", "cp"])
        latency = chance.lognormal(11, 1, rows).astype(np.uint64)
        bounds = lower_bounds(6)

        def named(values: pa.Array, size: int) -> pa.Array:
            return pa.DictionaryArray.from_arrays(
                pa.array(chance.integers(0, len(values), size).astype(np.int32)), values
            )

        columns = {
            "source": named(pa.array(["block"]), rows),
            "time_ns": START * SECOND + np.sort(chance.integers(0, 60 * SECOND, rows)),
            "latency_ns": latency,
            "latency_bucket": (np.searchsorted(bounds, latency, side="right") - 1).astype(
                np.uint16
            ),
            "offset_bytes": chance.integers(0, 2**40, rows).astype(np.uint64),
            "size_bytes": np.full(rows, 8192, dtype=np.uint64),
            "op": named(pa.array(["read", "write"]), rows),
            "device": named(pa.array(["sda"]), rows),
            "process": named(names, rows),
            "count": np.ones(rows, dtype=np.uint64),
        }
        arrays = [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(rows, field.type)
            for field in EVENTS
        ]
        with RecordingWriter.create(
            where, host="bench", clock="realtime", origin={"kind": "record"}, live=False
        ) as writer:
            writer.append_events(pa.RecordBatch.from_arrays(arrays, schema=EVENTS))
        kept = (
            "io.ops[op]",
            "io.bytes[op]",
            "io.ops[latency]",
            "io.ops[process]",
            "io.ops[process=db][latency]",
            "io.ops[offset]",
            "io.ops[op=write][size]",
            "io.bytes[process]",
            "io.ops[latency>=1ms][process]",
            "io.ops[queue]",
        )
        costs = {
            row["statistic"]: row["cpu_ns"] / 1e6 for row in manage.add(where, kept, backfill=True)
        }
        print(
            f"a segment of {rows:,} I/Os costs, in ms of CPU: {', '.join(f'{name} {cost:.0f}' for name, cost in costs.items())}; "
            f"all ten {sum(costs.values()):.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
