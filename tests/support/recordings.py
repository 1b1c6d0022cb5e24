# SPDX-License-Identifier: Apache-2.0
"""Events and recordings made for tests: random batches with every column, and a writer to kill."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa

from iolab import _core
from iolab.recordings.store.base.schema import EVENTS, SAMPLES, schema_of
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def events(
    rows: int,
    seed: int = 1,
    *,
    source: str = "block",
    start_ns: int = START,
    per_s: int = 1000,
    backwards: bool = False,
) -> pa.RecordBatch:
    """Events with every column, some values lacking."""
    chance = random.Random(f"{seed} {source}")
    # some rows are a few events late, as batches of several processors are
    times = [
        start_ns
        + number * SECOND // per_s
        - (chance.randrange(3 * SECOND) if backwards and chance.random() < 0.1 else 0)
        for number in range(rows)
    ]
    latency = [
        None if chance.random() < 0.05 else int(chance.lognormvariate(11, 2)) for _ in range(rows)
    ]

    def perhaps(values: Sequence[object], share: float = 0.8) -> list[object]:
        return [chance.choice(values) if chance.random() < share else None for _ in range(rows)]

    columns = {
        "source": [source] * rows,
        "time_ns": times,
        "latency_ns": latency,
        "latency_bucket": [
            None if value is None else _core.grid_index(value, 6) for value in latency
        ],
        "queue_ns": perhaps([0, 5, 10**6]),
        "offset_bytes": perhaps([chance.randrange(2**40) for _ in range(50)]),
        "size_bytes": perhaps([512, 4096, 8192, 131072, 131073]),
        "op": [chance.choice(_core.trace_ops()) for _ in range(rows)],
        "device": perhaps(["sda", "sdb", "nvme0n1"]),
        "process": perhaps(["fio", "ünïcode", "a b"]),
        "file": perhaps([f"/data/{number}" for number in range(40)]),
        "mount": perhaps(["/data"]),
        "client": perhaps(["10.0.0.1"], 0.1),
        "job": perhaps(["job0"], 0.1),
        "pid": perhaps([1, 2**32 - 1]),
        "thread": perhaps([7]),
        "error": perhaps(["EIO"], 0.01),
        "flags": perhaps(["AS", "M"]),
        "count": [chance.choice([1, 1, 1, 17]) for _ in range(rows)],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in EVENTS], schema=EVENTS
    )


def samples(rows: int, *, source: str = "diskstats", start_ns: int = START) -> pa.RecordBatch:
    """One reading a second of a growing counter of two disks."""
    columns = {
        "source": [source] * rows,
        "time_ns": [start_ns + number * SECOND for number in range(rows)],
        "object": [("sda", "sdb")[number % 2] for number in range(rows)],
        "field": ["reads"] * rows,
        "value": [7 * number for number in range(rows)],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in SAMPLES], schema=SAMPLES
    )


def rows_of(table: pa.Table | pa.RecordBatch) -> list[tuple[object, ...]]:
    """Rows as plain values, sorted, for comparison without regard to order."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def write_until_killed(directory: Path) -> None:
    """Append numbered batches for ever, sealing now and then; prints each batch's number when it is
    kept."""
    writer = (
        RecordingWriter.reopen(directory)
        if (directory / "recording.json").exists()
        else RecordingWriter.create(
            directory, host="here", clock="realtime", origin={"kind": "record"}
        )
    )
    number = 0
    while True:
        writer.append_events(events(50, number, start_ns=START + number * SECOND))
        writer.append_samples(samples(3, start_ns=START + number * SECOND))
        print(number, flush=True)
        number += 1
        if number % 4 == 0:
            writer.seal()


if __name__ == "__main__":
    write_until_killed(Path(sys.argv[1]))


def unsealed(recording: Recording, kind: Literal["events", "samples"] = "events") -> pa.Table:
    """What is not sealed yet, with every column, in the order it was appended."""
    rows = recording.snapshot(kind)[1]
    return schema_of(kind).empty_table() if rows is None else rows.table()
