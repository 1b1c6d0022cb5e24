# SPDX-License-Identifier: Apache-2.0
"""What recording every I/O costs: a loop device in memory under io_uring reads, with and without
`iolab record`, in alternating pairs.

Twice: with 100 thousand I/Os a second offered, which leaves the CPU some room (what the recording
costs a storage-bound load), and as fast as fio can, which leaves it none (what it costs a CPU-bound
one, in proportion). Prints the change of throughput and of mean latency with its interval (log
ratios of pairs, t), whether every I/O was recorded, bytes an I/O, and the CPU time of probe and
recorder. IOLAB_BENCH_SECONDS (60), IOLAB_BENCH_PAIRS (5) and IOLAB_BENCH_RATE in the environment
make it shorter, surer or another. Needs root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from iolab.stats.means import log_mean_interval

IOLAB = Path(sys.executable).parent / "iolab"
SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "60"))
PAIRS = int(os.environ.get("IOLAB_BENCH_PAIRS", "5"))
RATE = int(os.environ.get("IOLAB_BENCH_RATE", "100000"))
SHARED = Path("/dev/shm")


def load(node: str, report: Path, rate: int) -> list[str]:
    return [
        "fio",
        "--name=load",
        f"--filename={node}",
        "--rw=randread",
        "--bs=4k",
        "--ioengine=io_uring",
        "--iodepth=32",
        "--direct=1",
        f"--runtime={SECONDS:g}",
        "--time_based",
        *([f"--rate_iops={rate}"] if rate else []),
        f"--output={report}",
        "--output-format=json",
    ]


def measured(report: Path) -> tuple[float, float, int]:
    """IOPS, mean latency in ns, and I/Os."""
    read = json.loads(report.read_text())["jobs"][0]["read"]
    return float(read["iops"]), float(read["lat_ns"]["mean"]), int(read["total_ios"])


def bare(node: str, scratch: Path, rate: int) -> tuple[float, float, int]:
    report = scratch / "bare.json"
    subprocess.run(load(node, report, rate), check=True, stdout=subprocess.DEVNULL)
    return measured(report)


def recorded(
    node: str, scratch: Path, rate: int
) -> tuple[tuple[float, float, int], dict[str, Any]]:
    """What fio measured, and the recording's status."""
    report, place = scratch / "recorded.json", scratch / "recording"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(
        [
            IOLAB,
            "record",
            "block",
            "counters",
            "--quiet",
            "--budget",
            "none",
            "--device",
            node,
            "-o",
            place,
            "--",
            *load(node, report, rate),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return measured(report), json.loads((place / "status.json").read_text())


def main() -> None:
    if os.geteuid() != 0 or shutil.which("fio") is None or shutil.which("losetup") is None:
        print("bench_record: left out: needs root, fio and losetup")
        return
    with (
        tempfile.TemporaryDirectory() as directory,
        tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as memory,
    ):
        image = Path(memory, "image")
        image.write_bytes(bytes(256 << 20))
        node = subprocess.run(
            ["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True
        ).stdout.strip()
        try:
            for rate in (RATE, 0):
                run(node, Path(directory), rate)
        finally:
            subprocess.run(["losetup", "--detach", node], check=True)


def run(node: str, scratch: Path, rate: int) -> None:
    print(f"{rate:,} I/Os a second offered" if rate else "as fast as fio can", flush=True)
    bare(node, scratch, rate)
    rates, latencies = [], []
    for pair in range(PAIRS):
        without = bare(node, scratch, rate) if pair % 2 == 0 else None
        with_it, status = recorded(node, scratch, rate)
        without = without or bare(node, scratch, rate)
        rates.append(with_it[0] / without[0])
        latencies.append(with_it[1] / without[1])
        events, lost = status["events"]["block"], status["lost"].get("block", 0)
        probe, recorder = (
            status[f"{name}_cpu_ns"] / 1e7 / status["seconds"] for name in ("probe", "recorder")
        )
        print(
            f"  pair {pair + 1}: {without[0]:,.0f} IOPS without, {with_it[0]:,.0f} with ({(rates[-1] - 1) * 100:+.2f} %); "
            f"recorded {events} of {with_it[2]}, {lost} lost; {status['bytes'] / events:.2f} bytes an I/O; "
            f"CPU of one: probe {probe:.1f} %, recorder {recorder:.1f} %",
            flush=True,
        )
    for what, ratios in (("throughput", rates), ("mean latency", latencies)):
        middle, low, high = log_mean_interval(ratios)
        words = f"  recording changes {what} by {(middle - 1) * 100:+.2f} %"
        if low is not None and high is not None:
            words += f" ({(low - 1) * 100:+.2f} to {(high - 1) * 100:+.2f} %, 95 %, {len(ratios)} pairs of {SECONDS:g} s)"
        print(words, flush=True)


if __name__ == "__main__":
    main()
