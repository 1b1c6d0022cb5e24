"""What recording every I/O costs: a loop device in memory under io_uring reads, with and without `iolab record`, in alternating pairs.

Prints the change of throughput with its interval (log ratios of pairs, t), whether every I/O was recorded, bytes an I/O, and the CPU
time of probe and recorder. SECONDS (60) and PAIRS (5) in the environment make it shorter or surer. Needs root.
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
SECONDS = float(os.environ.get("SECONDS", "60"))
PAIRS = int(os.environ.get("PAIRS", "5"))
SHARED = Path("/dev/shm")


def load(node: str, report: Path) -> list[str]:
    return ["fio", "--name=load", f"--filename={node}", "--rw=randread", "--bs=4k", "--ioengine=io_uring", "--iodepth=32", "--direct=1",
            f"--runtime={SECONDS:g}", "--time_based", f"--output={report}", "--output-format=json"]


def measured(report: Path) -> tuple[float, int]:
    """IOPS and I/Os."""
    read = json.loads(report.read_text())["jobs"][0]["read"]
    return float(read["iops"]), int(read["total_ios"])


def bare(node: str, scratch: Path) -> float:
    report = scratch / "bare.json"
    subprocess.run(load(node, report), check=True, stdout=subprocess.DEVNULL)
    return measured(report)[0]


def recorded(node: str, scratch: Path) -> tuple[float, int, dict[str, Any]]:
    """IOPS, I/Os that fio counted, and the recording's status."""
    report, place = scratch / "recorded.json", scratch / "recording"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([IOLAB, "record", "block", "counters", "--quiet", "--budget", "none", "--device", node, "-o", place, "--",
                    *load(node, report)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return *measured(report), json.loads((place / "status.json").read_text())


def main() -> None:
    if os.geteuid() != 0 or shutil.which("fio") is None or shutil.which("losetup") is None:
        print("bench_record: left out: needs root, fio and losetup")
        return
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as memory:
        image = Path(memory, "image")
        image.write_bytes(bytes(256 << 20))
        node = subprocess.run(["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True).stdout.strip()
        try:
            run(node, Path(directory))
        finally:
            subprocess.run(["losetup", "--detach", node], check=True)


def run(node: str, scratch: Path) -> None:
    bare(node, scratch)
    ratios = []
    for pair in range(PAIRS):
        without = bare(node, scratch) if pair % 2 == 0 else 0.0
        rate, ios, status = recorded(node, scratch)
        if pair % 2:
            without = bare(node, scratch)
        ratios.append(rate / without)
        events, lost = status["events"]["block"], status["lost"].get("block", 0)
        probe, recorder = (status[f"{name}_cpu_ns"] / 1e7 / status["seconds"] for name in ("probe", "recorder"))
        print(f"pair {pair + 1}: {without:,.0f} IOPS without, {rate:,.0f} with ({(ratios[-1] - 1) * 100:+.2f} %); "
              f"recorded {events} of {ios}, {lost} lost; {status['bytes'] / events:.2f} bytes an I/O; "
              f"CPU of one: probe {probe:.1f} %, recorder {recorder:.1f} %",
              flush=True)
    middle, low, high = log_mean_interval(ratios)
    words = f"recording changes throughput by {(middle - 1) * 100:+.2f} %"
    if low is not None and high is not None:
        words += f" ({(low - 1) * 100:+.2f} to {(high - 1) * 100:+.2f} %, 95 %, {len(ratios)} pairs of {SECONDS:g} s)"
    print(words)


if __name__ == "__main__":
    main()
