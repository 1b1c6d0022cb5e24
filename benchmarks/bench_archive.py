# SPDX-License-Identifier: Apache-2.0
"""Questions to an archive of a made-up fleet, against a count of the same rows by the same engine.

Each host has 10 thousand I/Os a second with latencies of its own; one host is slower. The archive is
made in a temporary directory and removed: 8 bytes an I/O. IOLAB_BENCH_EVENTS: I/Os of the fleet
(8 million). IOLAB_BENCH_HOSTS: hosts (4). IOLAB_BENCH_RECORDING: a recording with the latencies that
hosts have, instead of log-normal ones. IOLAB_BENCH_ENGINE: spark://HOST:PORT, sc://HOST:PORT, or
`cluster`: a master and two workers of one core each on this machine (`make archive-test` installs them in
build/archive-test).
IOLAB_BENCH_FOLDER: a directory for the archive, which is not removed. The next run pushes the hosts
that it lacks. IOLAB_BENCH_QUESTION: a word of the question to ask (all). IOLAB_BENCH_ROUNDS: pairs
of it and the count (3). IOLAB_BENCH_PUSH_S: push for so many seconds at most, then end without questions.
IOLAB_BENCH_APART_NS: time between two I/Os of a host (100,000: 10 thousand a second).
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench_query import batch
from pairs import paired

from iolab.recordings.archive import Archive, compact, expire, push, tables
from iolab.recordings.archive.recordings import ArchivedEvents, open_recordings
from iolab.recordings.archive.scan import Rows, data_files, dataset, row_filter
from iolab.recordings.archive.spark import Cluster
from iolab.recordings.ask.engine.cells import bucket_of
from iolab.recordings.ask.engine.engine import Engine
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet
from iolab.recordings.ask.outliers import rank_hosts
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter

EVENTS = int(os.environ.get("IOLAB_BENCH_EVENTS", "8000000"))
HOSTS = int(os.environ.get("IOLAB_BENCH_HOSTS", "4"))
ENGINE = os.environ.get("IOLAB_BENCH_ENGINE")
SEGMENT = 500_000
APART_NS = int(os.environ.get("IOLAB_BENCH_APART_NS", "100000"))
SLOW = 1.5
ROUNDS = int(os.environ.get("IOLAB_BENCH_ROUNDS", "3"))
QUESTION = os.environ.get("IOLAB_BENCH_QUESTION", "")
PUSH_S = float(os.environ.get("IOLAB_BENCH_PUSH_S", "inf"))


def shape_of_latencies(chance: np.random.Generator) -> Any:
    """Latencies in ns that hosts have, scaled."""
    path = os.environ.get("IOLAB_BENCH_RECORDING")
    if path is None:
        return np.exp(chance.normal(11.5, 1, SEGMENT))
    import pyarrow.parquet as pq

    segments, _ = Recording(Path(path)).snapshot("events")
    columns = [pq.read_table(item.path, columns=["latency_ns"])["latency_ns"] for item in segments]
    known = np.concatenate([column.drop_null().to_numpy() for column in columns])
    return chance.choice(known, SEGMENT).astype(float)


def push_host(folder: Path, archive: Archive, number: int) -> tuple[int, float]:
    """Record a host, push it, delete the recording. Returns I/Os, and seconds of the push."""
    chance = np.random.default_rng(number)
    scale = SLOW if number == HOSTS - 1 else chance.uniform(0.95, 1.05)
    latencies = (shape_of_latencies(chance) * scale).astype(np.uint64)
    buckets = bucket_of(latencies, LogLinear(6), shifted=False).astype(np.uint16)
    path = folder / f"host{number:03}"
    with RecordingWriter.create(
        path, host=path.name, clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for segment in range(max(1, EVENTS // HOSTS // SEGMENT)):
            writer.append_segment([batch(segment, chance, latencies, buckets, APART_NS)])
    start = time.perf_counter()
    pushed = push(path, archive)
    passed = time.perf_counter() - start
    for file in sorted(path.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    path.rmdir()
    return pushed.events, passed


def questions(recordings: list[ArchivedEvents]) -> dict[str, Any]:
    """Functions that ask, by name."""

    def ask(text: str) -> Any:
        return ask_fleet(recordings, FleetStatistic.parse(text), columns=400)

    def outliers() -> Any:
        maps = ask("io.ops[latency][host]")
        return rank_hosts({host: m for host, m in maps.items() if isinstance(m, HeatCounts)})

    return {
        "latency map of each host from segment maps": lambda: ask("io.ops[latency][host]"),
        "scan with a filter, by process": lambda: ask("io.ops[latency>=1ms][process]"),
        "outlier hosts": outliers,
    }


def start_engine(name: str, stack: contextlib.ExitStack) -> str:
    """The URL of an engine; a cluster is started and ends with the stack."""
    if name != "cluster":
        return name
    # as the tests start it
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.spark import reason_without, spark_cluster

    reason = reason_without()
    if reason is not None:
        raise SystemExit(reason)
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iolab-spark-")))
    return stack.enter_context(spark_cluster(directory)).connect


def main() -> None:
    with contextlib.ExitStack() as stack:
        name = os.environ.get("IOLAB_BENCH_FOLDER")
        folder = Path(
            name or stack.enter_context(tempfile.TemporaryDirectory(prefix="iolab-bench-"))
        )
        archive = Archive.open(str(folder / "archive"), create=True)
        known = {item.host for item in archive.recordings()}
        begin = time.perf_counter()
        pushes = [
            push_host(folder, archive, number)
            for number in range(HOSTS)
            if f"host{number:03}" not in known and time.perf_counter() - begin < PUSH_S
        ]
        if pushes:
            events = sum(count for count, _ in pushes)
            rate = events / sum(passed for _, passed in pushes)
            print(f"push: {events:,} I/Os of {len(pushes)} hosts, {rate:,.0f} a second", flush=True)
        rows, files, size = archive.size()["events"]
        print(f"{rows:,} rows, {size / rows:.2f} bytes a row, {files} files", flush=True)
        if float("inf") > PUSH_S:
            return
        if pushes:
            start = time.perf_counter()
            done = compact(archive)["events"]
            expire(archive, age_ns=0)
            print(
                f"compact and expire: {done.before} files become {done.after}, {time.perf_counter() - start:.1f} s",
                flush=True,
            )
        cluster = None if ENGINE is None else Cluster.connect(start_engine(ENGINE, stack))
        recordings = open_recordings(archive, archive.recordings(), cluster)
        keys = [recording.key for recording in recordings]
        chosen = data_files(archive, tables.EVENTS, row_filter(keys))

        def count() -> None:
            # of the latency: without a column, only footers are read
            sql = "SELECT count(*) AS n FROM events WHERE latency_ns >= 0"
            if cluster is not None:
                cluster.view("events", tables.EVENTS, [Rows(chosen)])
                cluster.ask(sql, {})
                return
            with Engine(folder) as engine:
                engine.register("events", dataset(archive, tables.EVENTS, chosen))
                engine.ask(sql)

        for text, question in questions(recordings).items():
            if QUESTION in text:
                paired(text, question, count, against="count(*) of a column", rounds=ROUNDS)
        if QUESTION:
            return
        ranked = questions(recordings)["outlier hosts"]()
        print(f"the most unlike host: {ranked[0].host}, distance {ranked[0].distance:.3f}")
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
