# SPDX-License-Identifier: Apache-2.0
"""The cost of recording an NFS server: a client reads from memory of the server, with and without
`iolab record nfs`, in alternating pairs.

Usage: bench_nfs.py SERVER CLIENT FILE, such as bench_nfs.py rig:server rig:client /mnt/home/file. The
client has the server's export mounted, and FILE (4 MiB at least) is read by direct I/O, in blocks of
16 KiB by 4 jobs, as fast as possible. Prints the change of throughput and of mean latency with its interval
(log ratios of pairs, t), operations recorded and lost, and the CPU time of the probe.
IOLAB_BENCH_SECONDS (20) and IOLAB_BENCH_PAIRS (6) in the environment make it shorter or surer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.hosts.base.host import Host
from iolab.hosts.kinds.parse import host_named
from iolab.recording.read.recording import Recording
from iolab.statistics.answers.answers import Series
from iolab.statistics.ask.query import query
from iolab.stats.means import log_mean_interval

IOLAB = [sys.executable, "-m", "iolab.cli"]
SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "20"))
PAIRS = int(os.environ.get("IOLAB_BENCH_PAIRS", "6"))
START_SECONDS = 300


@dataclass(frozen=True)
class Load:
    """What fio measured on the client. mean_ns: of completion latency."""

    iops: float
    mean_ns: float
    reads: int


def read(client: Host, file: str) -> Load:
    words = [
        *("fio", "--name=load", f"--filename={file}", "--rw=randread", "--bs=16k", "--size=4m"),
        *("--direct=1", "--ioengine=psync", "--numjobs=4", "--group_reporting", "--time_based"),
        *(f"--runtime={SECONDS:g}", "--output-format=json"),
    ]
    answer = client.run(words, timeout=SECONDS * 10 + 60)
    if answer.exit_code:
        raise SystemExit(f"bench_nfs: fio failed on {client.name}: {answer.stderr[-200:]}")
    job = json.loads(answer.stdout)["jobs"][0]["read"]
    return Load(job["iops"], job["clat_ns"]["mean"], job["total_ios"])


def read_while_recorded(
    server: str, client: Host, file: str, place: Path
) -> tuple[Load, dict[str, Any]]:
    """The load, and the status of the recording at its end."""
    words = [*IOLAB, "record", "nfs", "--host", server, "--budget", "none", "-q", "-o", str(place)]
    recorder = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while not (place / "status.json").exists():
            if recorder.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"bench_nfs: {server} is not recorded: {' '.join(words)}")
            time.sleep(0.2)
        time.sleep(2)
        load = read(client, file)
    finally:
        subprocess.run([*IOLAB, "record", "--stop", str(place)], capture_output=True, check=False)
        recorder.wait(60)
    return load, json.loads((place / "status.json").read_text())


def main() -> None:
    if len(sys.argv) != 4:
        print("bench_nfs: left out: needs SERVER CLIENT FILE")
        return
    server, client_name, file = sys.argv[1:]
    client = host_named(client_name)
    read(client, file)
    rates, latencies = [], []
    for pair in range(PAIRS):
        without = read(client, file) if pair % 2 == 0 else None
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory, "recording")
            load, status = read_while_recorded(server, client, file, place)
            reads = query(Recording(place), "nfs.ops[op=read]")
            assert isinstance(reads, Series)
        without = without or read(client, file)
        rates.append(load.iops / without.iops)
        latencies.append(load.mean_ns / without.mean_ns)
        probe = status["probe_cpu_ns"] / 1e7 / status["seconds"]
        print(
            f"  pair {pair + 1}: {without.iops:,.1f} IOPS without, {load.iops:,.1f} with "
            f"({(rates[-1] - 1) * 100:+.1f} %); recorded {reads.total} of {load.reads}, "
            f"{sum(status['lost'].values())} lost; probe {probe:.1f} % of a CPU",
            flush=True,
        )
    for what, ratios in (("throughput", rates), ("mean latency", latencies)):
        middle, low, high = log_mean_interval(ratios)
        words = f"  recording changes {what} by {(middle - 1) * 100:+.1f} %"
        if low is not None and high is not None:
            words += f" ({(low - 1) * 100:+.1f} to {(high - 1) * 100:+.1f} %, 95 %, {PAIRS} pairs of {SECONDS:g} s)"
        print(words, flush=True)


if __name__ == "__main__":
    main()
