# SPDX-License-Identifier: Apache-2.0
"""What recording every I/O costs: a loop device in memory under io_uring reads (2 jobs of depth 16),
with and without `iolab record`, in rounds.

Three loads: 10 and 100 thousand I/Os a second offered, which leave the CPU some room (what the
recording costs a storage-bound load), and as fast as fio can, which leaves it none (what it costs a
CPU-bound one, in proportion). Prints the change of throughput and of mean latency with its interval
(log ratios of pairs, t), the CPU time of probe and recorder for one I/O, bytes an I/O, and whether
every I/O was recorded; exits with 1 where an I/O is missing.

IOLAB_BENCH_BEFORE is the `iolab` program of another state of the project: each round then records
with both, in alternating order, and the ratio of their CPU time is printed. IOLAB_BENCH_SECONDS
(60), IOLAB_BENCH_PAIRS (5) and IOLAB_BENCH_RATE (10000,100000,0; 0 is as fast as fio can) change
duration, number of rounds and loads. Needs root.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from surroundings import IOLAB, device, load, measured, missing, status

from iolab.base.stats.means import log_mean_interval

SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "60"))
PAIRS = int(os.environ.get("IOLAB_BENCH_PAIRS", "5"))
RATES = [int(rate) for rate in os.environ.get("IOLAB_BENCH_RATE", "10000,100000,0").split(",")]
BEFORE = os.environ.get("IOLAB_BENCH_BEFORE")


@dataclass(frozen=True)
class Recorded:
    """One recorded load: changes against the bare load of its round, and what the recording took."""

    throughput: float  # ratio
    latency: float  # ratio
    cpu_ns: float  # probe and recorder, for one I/O
    bytes_an_io: float
    missing: int  # I/Os of fio that the recording lacks

    def __str__(self) -> str:
        return (
            f"{(self.throughput - 1) * 100:+.2f} % IOPS, {self.cpu_ns / 1000:.2f} us of CPU and "
            f"{self.bytes_an_io:.2f} bytes an I/O, {self.missing} missing"
        )


def bare(node: str, scratch: Path, rate: int) -> tuple[float, float, int]:
    """I/Os a second, mean latency in ns, and I/Os of the load alone."""
    report = scratch / "bare.json"
    command = load(node, report, rate, SECONDS, jobs=2, depth=16)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return measured(report)


def record(
    program: Path, node: str, scratch: Path, rate: int, alone: tuple[float, float, int]
) -> Recorded:
    """The same load while `program` records it."""
    report, recording = scratch / "recorded.json", scratch / "recording"
    shutil.rmtree(recording, ignore_errors=True)
    options = ["--quiet", "--budget", "none", "--device", node, "-o", str(recording), "--"]
    subprocess.run(
        [
            program,
            "record",
            "block",
            "counters",
            *options,
            *load(node, report, rate, SECONDS, jobs=2, depth=16),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    rate_measured, latency, count = measured(report)
    facts = status(recording)
    events = facts["events"]["block"]
    return Recorded(
        rate_measured / alone[0],
        latency / alone[1],
        (facts["probe_cpu_ns"] + facts["recorder_cpu_ns"]) / events,
        facts["bytes"] / events,
        max(0, count - events) + facts["lost"].get("block", 0),
    )


def compare(node: str, scratch: Path, rate: int) -> bool:
    """Run the rounds of one load and print them; whether every I/O was recorded."""
    print(f"{rate:,} I/Os a second offered" if rate else "as fast as fio can", flush=True)
    programs = {"now": IOLAB} | ({"before": Path(BEFORE)} if BEFORE else {})
    results: dict[str, list[Recorded]] = {name: [] for name in programs}
    bare(node, scratch, rate)
    for number in range(PAIRS):
        alone = bare(node, scratch, rate)
        for name in sorted(programs, reverse=number % 2 == 1):
            results[name].append(record(programs[name], node, scratch, rate, alone))
        rows = "; ".join(f"{name}: {rounds[-1]}" for name, rounds in results.items())
        print(f"  round {number + 1}: {alone[0]:,.0f} IOPS bare; {rows}", flush=True)
    for name, rounds in results.items():
        for title, ratios in (
            ("throughput", [result.throughput for result in rounds]),
            ("mean latency", [result.latency for result in rounds]),
        ):
            middle, low, high = log_mean_interval(ratios)
            line = f"  {name}: recording changes {title} by {(middle - 1) * 100:+.2f} %"
            if low is not None and high is not None:
                line += (
                    f" ({(low - 1) * 100:+.2f} to {(high - 1) * 100:+.2f} %, 95 %, "
                    f"{len(ratios)} pairs of {SECONDS:g} s)"
                )
            print(line, flush=True)
    if BEFORE:
        ratios = [
            now.cpu_ns / then.cpu_ns
            for now, then in zip(results["now"], results["before"], strict=True)
        ]
        print(
            f"  CPU time for one I/O: {statistics.median(ratios):.2f} x before "
            f"(range {min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} pairs)",
            flush=True,
        )
    return not any(result.missing for result in results["now"])


def main() -> int:
    """Exit code."""
    if why := missing():
        print(f"bench_record: left out: {why}")
        return 0
    print(f"load of the machine: {' '.join(Path('/proc/loadavg').read_text().split()[:3])}")
    with tempfile.TemporaryDirectory() as directory, device() as node:
        complete = [compare(node, Path(directory), rate) for rate in RATES]
    return 0 if all(complete) else 1


if __name__ == "__main__":
    raise SystemExit(main())
