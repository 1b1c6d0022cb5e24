# SPDX-License-Identifier: Apache-2.0
"""How many injected faults `iolab odd` names first, and what it finds where nothing happened.

`python benchmarks/bench_odd.py` makes recordings of 60 s with 10 thousand I/Os a second: six
devices, four processes, rates that wander, latencies with slow noise, bursts and a flusher that
writes every 5 s. Each fault is injected into one of them; ten others stay quiet. It prints a table.
`--real DIR` judges recordings of a real machine too: DIR has a directory for each, and `faults.json`
with `{"NAME": {"field": ..., "values": [...], "from_ns": ...}}`; an empty field means quiet.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from iolab.recordings.ask.kept.recorded import span_of
from iolab.recordings.ask.oddities import Oddities, Oddity, oddities
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest

SECONDS = 60
RATE = 10_000
START_NS = 1_700_000_000 * 10**9
COLUMNS = "time:ns,op,device,offset:bytes,size:bytes,latency:ns,process,file,client"
GIB = 2**30
Table = dict[str, Any]


def workload(rng: np.random.Generator) -> Table:
    """I/Os of a machine on which nothing happens: as arrays by column, in order of time."""
    step = 0.1
    steps = int(SECONDS / step)
    wander = _wander(rng, steps, 0.08)
    counts = rng.poisson(RATE * step * np.exp(wander))
    at = np.repeat(np.arange(steps), counts)
    size = len(at)
    seconds = np.sort((at + rng.random(size)) * step)
    device = rng.choice(6, size, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1])
    process = rng.choice(["db", "web", "mail"], size, p=[0.6, 0.25, 0.15])
    read = rng.random(size) < np.where(process == "db", 0.7, 0.5)
    slow = np.exp(_wander(rng, steps, 0.12))[at]
    # bursts of another machine's work on the same array: half a second each, three times as slow
    bursts = np.cumsum(rng.integers(5, 15, steps // 5)) - 5
    burst = np.isin(at // 5, bursts)
    middle = np.where(read, 180e3, 90e3) * (1 + 0.2 * device) * slow * np.where(burst, 3.0, 1.0)
    latency = middle * np.exp(rng.normal(0, 0.5, size))
    rare = rng.random(size) < 0.003
    latency[rare] *= rng.uniform(5, 40, int(rare.sum()))
    blocks = rng.integers(0, 8 * GIB // 4096, size)
    table = {
        "seconds": seconds,
        "op": np.where(read, "read", "write").astype(object),
        "device": np.array([f"sd{'abcdef'[number]}" for number in device], dtype=object),
        "offset": blocks * 4096,
        "size": rng.choice([4096, 8192, 16384], size, p=[0.6, 0.3, 0.1]),
        "latency": latency,
        "process": process.astype(object),
        "file": np.array(
            [f"/srv/{name}/{number}" for name, number in zip(process, blocks % 3, strict=True)],
            dtype=object,
        ),
        "client": rng.choice(["10.0.0.1", "10.0.0.2", "10.0.0.3"], size).astype(object),
    }
    # the flusher writes for 0.3 s every 5 s
    flush = (seconds % 5 < 0.3) & (rng.random(size) < 0.3)
    table["process"][flush], table["op"][flush] = "flusher", "write"
    table["file"][flush], table["size"][flush] = "/srv/journal", 65536
    return table


def _wander(rng: np.random.Generator, steps: int, deviation: float) -> np.ndarray[Any, Any]:
    """Noise with a memory of about a second."""
    noise = rng.normal(0, deviation, steps)
    for place in range(1, steps):
        noise[place] = 0.9 * noise[place - 1] + np.sqrt(1 - 0.81) * noise[place]
    return noise


@dataclass(frozen=True)
class Fault:
    """What is injected, and what has to be named: any of these values of fields, and a quantity."""

    name: str
    inject: Callable[[Table, np.ndarray[Any, Any], np.random.Generator], None]
    named: tuple[tuple[str, str], ...]
    quantities: tuple[str, ...]
    seconds: float = SECONDS


def _slower(field: str, values: tuple[str, ...], times: float, plus: float = 0.0) -> Any:
    def inject(table: Table, when: np.ndarray[Any, Any], _: np.random.Generator) -> None:
        here = when & np.isin(table[field], values) if field else when
        table["latency"][here] = table["latency"][here] * times + plus

    return inject


def _tail(table: Table, when: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    here = when & (table["device"] == "sdc") & (rng.random(len(when)) < 0.03)
    table["latency"][here] += 50e6


def _appears(table: Table, when: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    here = when & (rng.random(len(when)) < 0.15)
    table["process"][here], table["file"][here] = "backup", "/srv/backup.tar"


def _stops(table: Table, when: np.ndarray[Any, Any], _: np.random.Generator) -> None:
    keep = ~(when & (table["process"] == "mail"))
    for name in table:
        table[name] = table[name][keep]


def _hot(table: Table, when: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    here = when & (table["device"] == "sdb")
    table["offset"][here] = rng.integers(0, 2**14, int(here.sum())) * 4096


def _sequential(table: Table, when: np.ndarray[Any, Any], _: np.random.Generator) -> None:
    here = when & (table["device"] == "sda")
    table["offset"][here] = 6 * GIB + np.arange(int(here.sum())) * 4096


def _large(table: Table, when: np.ndarray[Any, Any], _: np.random.Generator) -> None:
    table["size"][when & (table["process"] == "web")] = 131072


def _small(table: Table, when: np.ndarray[Any, Any], _: np.random.Generator) -> None:
    table["size"][when & (table["device"] == "sdf")] = 512


def _writes(table: Table, when: np.ndarray[Any, Any], _: np.random.Generator) -> None:
    table["op"][when & (table["process"] == "db")] = "write"


def _client(table: Table, when: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    table["client"][when & (rng.random(len(when)) < 0.1)] = "10.0.0.9"


FAULTS = (
    Fault("disk: +100 ms", _slower("device", ("sde",), 1, 100e6), (("device", "sde"),), ("latency",)),
    Fault("disk: 3 times slower", _slower("device", ("sdd",), 3), (("device", "sdd"),), ("latency",)),
    Fault(
        "two disks: +20 ms",
        _slower("device", ("sdb", "sdf"), 1, 20e6),
        (("device", "sdb"), ("device", "sdf")),
        ("latency",),
    ),
    Fault("disk: 3 % take 50 ms", _tail, (("device", "sdc"),), ("tail",)),
    Fault("all: twice as slow", _slower("", (), 2), (("", ""),), ("latency", "queue")),
    Fault("queue: 16 times as deep", _slower("device", ("sda",), 16), (("device", "sda"),), ("queue", "latency")),
    Fault("reads: 5 times slower", _slower("op", ("read",), 5), (("op", "read"),), ("latency",)),
    Fault("file: +10 ms", _slower("file", ("/srv/web/1",), 1, 10e6), (("file", "/srv/web/1"),), ("latency",)),
    Fault("stall of 2 s: +30 ms", _slower("device", ("sdd",), 1, 30e6), (("device", "sdd"),), ("latency",), 2.0),
    Fault("new process", _appears, (("process", "backup"), ("file", "/srv/backup.tar")), ("rate",)),
    Fault("process stops", _stops, (("process", "mail"),), ("rate",)),
    Fault("offsets: hot spot", _hot, (("device", "sdb"),), ("offset",)),
    Fault("offsets: sequential", _sequential, (("device", "sda"),), ("offset",)),
    Fault("sizes: 128 KiB", _large, (("process", "web"),), ("size",)),
    Fault("sizes: 512 B", _small, (("device", "sdf"),), ("size",)),
    Fault("process only writes", _writes, (("op", "write"), ("op", "read"), ("process", "db")), ("rate",)),
    Fault("new client", _client, (("client", "10.0.0.9"),), ("rate",)),
)  # fmt: skip


def record(table: Table, place: Path) -> Recording:
    """The table as a recording, by way of a trace."""
    order = np.argsort(table["seconds"] + table["latency"] / 1e9, kind="stable")
    done = START_NS + ((table["seconds"] + table["latency"] / 1e9) * 1e9).astype(np.int64)
    columns = {
        "time": done[order],
        "op": table["op"][order],
        "device": table["device"][order],
        "offset": table["offset"][order].astype(np.int64),
        "size": table["size"][order].astype(np.int64),
        "latency": table["latency"][order].astype(np.int64),
        "process": table["process"][order],
        "file": table["file"][order],
        "client": table["client"][order],
    }
    trace = place / "trace.csv"
    csv.write_csv(
        pa.table(columns),
        trace,
        csv.WriteOptions(include_header=False, quoting_style="none"),
    )
    ingest([Trace(trace, "csv", COLUMNS)], place / "recording", host="made-up")
    trace.unlink()
    return Recording(place / "recording")


def ask(recording: Recording) -> tuple[Oddities, float]:
    """What is odd, with the CPU seconds that it takes."""
    span = span_of(recording)
    assert span is not None
    started = time.process_time()
    return oddities(recording, ends=span), time.process_time() - started


def names(oddity: Oddity, named: tuple[tuple[str, str], ...]) -> bool:
    """Whether a finding has no other values than these, in some field."""
    subject = oddity.subject
    own = {(subject.field, value) for value in subject.values} or {("", "")}
    return own <= set(named) or any(alias in named for alias in subject.aliases)


def words(oddity: Oddity) -> str:
    """A finding in short."""
    values = "+".join(oddity.subject.values) or "all"
    return f"{values}: {', '.join(change.quantity for change in oddity.changes)}"


def judge_fault(fault: Fault, place: Path, seed: int) -> dict[str, Any]:
    """Inject a fault and ask."""
    rng = np.random.default_rng(seed)
    table = workload(rng)
    begin = float(rng.uniform(25, 45))
    when = (table["seconds"] >= begin) & (table["seconds"] < begin + fault.seconds)
    fault.inject(table, when, rng)
    answer, cpu = ask(record(table, place))
    first = answer.oddities[0] if answer.oddities else None
    return {
        "fault": fault.name,
        "first": first is not None and names(first, fault.named),
        "leads": first is not None and first.changes[0].quantity in fault.quantities,
        "off": None if first is None else (first.from_ns - START_NS) / 1e9 - begin,
        "findings": len(answer.oddities),
        "cpu": cpu,
        "words": "; ".join(words(each) for each in answer.oddities[:3]),
    }


def judge_quiet(place: Path, seed: int) -> tuple[int, int, str]:
    """(findings, series compared, the findings in short) where nothing happened."""
    answer, _ = ask(record(workload(np.random.default_rng(seed)), place))
    return len(answer.oddities), answer.compared, "; ".join(words(each) for each in answer.oddities)


def judge_real(directory: Path) -> None:
    """Print what is named of recordings of a real machine."""
    expected = json.loads((directory / "faults.json").read_text())
    for name, fault in expected.items():
        answer, cpu = ask(Recording(directory / name))
        first = answer.oddities[0] if answer.oddities else None
        named = tuple((fault["field"], value) for value in fault["values"])
        right = first is None if not fault["field"] else first is not None and names(first, named)
        off = "" if first is None else f"{(first.from_ns - fault['from_ns']) / 1e9:+.2f} s"
        shown = "; ".join(words(each) for each in answer.oddities[:4])
        print(
            f"| {name} | {'yes' if right else 'no'} | {off} | {cpu:.1f} s | {shown} |", flush=True
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", type=Path, help="recordings of a real machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", type=int, default=10, help="quiet recordings")
    parser.add_argument("--only", help="faults with this in their name")
    args = parser.parse_args()
    if args.real is not None:
        judge_real(args.real)
        return
    print("| fault | named first | by its quantity | beginning | findings | CPU | |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for number, fault in enumerate(FAULTS):
        if args.only and args.only not in fault.name:
            continue
        with tempfile.TemporaryDirectory() as place:
            row = judge_fault(fault, Path(place), 100 * args.seed + number)
        rows.append(row)
        off = "" if row["off"] is None else f"{row['off']:+.2f} s"
        print(
            f"| {row['fault']} | {'yes' if row['first'] else 'no'} | {'yes' if row['leads'] else 'no'} "
            f"| {off} | {row['findings']} | {row['cpu']:.1f} s | {row['words']} |",
            flush=True,
        )
    print(f"{sum(row['first'] for row in rows)} of {len(rows)} named first")
    for number in range(args.quiet):
        with tempfile.TemporaryDirectory() as place:
            findings, compared, shown = judge_quiet(Path(place), 10_000 + 100 * args.seed + number)
        print(f"quiet {number + 1}: {findings} findings of {compared} series {shown}", flush=True)


if __name__ == "__main__":
    main()
