# SPDX-License-Identifier: Apache-2.0
"""Pushes into an archive of many data files, against pushes into an empty one.

Each data file of the archive is of a commit of its own, as after a push a minute. Two pushes are made in
turn, of recordings with the same I/Os. IOLAB_BENCH_FILES: data files of `events` (1,000).
IOLAB_BENCH_EVENTS: I/Os of a push (4 million). IOLAB_BENCH_ROUNDS: pairs (3).
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from itertools import count
from pathlib import Path
from unittest import mock

import numpy as np
from bench_query import batch

from iolab.recordings.archive import Archive, push
from iolab.recordings.ask.engine.cells import bucket_of
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.write.writer import RecordingWriter

FILES = int(os.environ.get("IOLAB_BENCH_FILES", "1000"))
EVENTS = int(os.environ.get("IOLAB_BENCH_EVENTS", "4000000"))
ROUNDS = int(os.environ.get("IOLAB_BENCH_ROUNDS", "3"))
SEGMENT = 500_000
SMALL = 1000
APART_NS = 100_000


def record(path: Path, segments: int, rows: int) -> Path:
    """A recording of made-up I/Os."""
    chance = np.random.default_rng(1)
    latencies = np.exp(chance.normal(11.5, 1, rows)).astype(np.uint64)
    buckets = bucket_of(latencies, LogLinear(6), shifted=False).astype(np.uint16)
    with RecordingWriter.create(
        path, host=path.name, clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for segment in range(segments):
            writer.append_segment([batch(segment, chance, latencies, buckets, APART_NS)])
    return path


def rate(path: Path, archive: Archive) -> float:
    """I/Os a second of a push."""
    start = time.perf_counter()
    pushed = push(path, archive)
    return pushed.events / (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as name:
        folder = Path(name)
        archive = Archive.open(str(folder / "archive"), create=True)
        small = record(folder / "small", FILES, SMALL)
        hidden = push.__globals__
        start = time.perf_counter()
        with mock.patch.dict(hidden, {"GROUP_SEGMENTS": 1, "COMMIT_GROUPS": 1}):
            push(small, archive)
        print(
            f"{archive.size()['events'][1]:,} data files of as many commits, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
        numbers = count()
        ratios, rates = [], []
        for _ in range(ROUNDS):
            pair = []
            for is_empty in (True, False):
                number = next(numbers)
                path = record(folder / f"host{number}", EVENTS // SEGMENT, SEGMENT)
                target = (
                    Archive.open(str(folder / f"empty{number}"), create=True)
                    if is_empty
                    else Archive.open(archive.url, create=True)
                )
                pair.append(rate(path, target))
                shutil.rmtree(path)
            rates.append(pair)
            ratios.append(pair[1] / pair[0])
        empty, full = (statistics.median(of) for of in zip(*rates, strict=True))
        print(
            f"push into {FILES:,} files: {statistics.median(ratios):.2f} x the rate into none "
            f"(range {min(ratios):.2f} to {max(ratios):.2f}, {ROUNDS} pairs; "
            f"median {full:,.0f} and {empty:,.0f} I/Os a second)"
        )


if __name__ == "__main__":
    main()
