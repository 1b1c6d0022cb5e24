# SPDX-License-Identifier: Apache-2.0
"""A trace to histograms: fio latency logs of 20 million lines against `wc -l`, and against a
straightforward script.

The log is made in a temporary directory (0.5 and 0.8 GB) and removed. Page cache warm. The script
reads a slice of 200 thousand lines and is scaled to as many as the log has. IOLAB_BENCH_LINES makes
the log shorter.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from pairs import paired

from iolab import _core

LINES = int(os.environ.get("IOLAB_BENCH_LINES", "20000000"))
SLICE = 200_000

SCRIPT = """
import sys, math, collections
counts = collections.Counter()
with open(sys.argv[1]) as log:
    for line in log:
        time, latency, op, size, rest = line.split(", ", 4)
        value = int(latency)
        if value < 8:
            index = value
        else:
            octave = value.bit_length() - 4
            index = ((octave + 1) << 3) + (value >> octave) - 8
        counts[int(time) // 1000, index] += 1
print(len(counts))
"""


def write_log(path: Path, lines: int, *, offsets: bool) -> None:
    """A log as fio writes it: 50 I/Os a millisecond, log-normal latencies, 8 KiB each."""
    chance = random.Random(1)
    latencies = [int(chance.lognormvariate(11.5, 1)) for _ in range(65536)]
    with path.open("w") as log:
        for start in range(0, lines, 10_000):
            rows = range(start, min(lines, start + 10_000))
            for row in rows:
                place = f"{(row * 2654435761 & 0x1FFFFFF) * 8192}, " if offsets else ""
                log.write(
                    f"{row // 50}, {latencies[row * 40503 & 65535]}, {row & 1}, 8192, {place}0\n"
                )


def count_lines(path: Path) -> None:
    subprocess.run(["wc", "-l", str(path)], stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        for offsets in (False, True):
            path = Path(folder) / ("offsets_lat.1.log" if offsets else "plain_lat.1.log")
            write_log(path, LINES, offsets=offsets)
            kind = f"{LINES:,} lines{' with offsets' if offsets else ''}, {path.stat().st_size / 1e6:.0f} MB"
            assert _core.trace_heatmap(str(path), "latency")["events"] == LINES
            for y in ("latency", "offset") if offsets else ("latency",):
                paired(
                    f"{y} map of a fio log of {kind}",
                    partial(_core.trace_heatmap, str(path), y),
                    partial(count_lines, path),
                    against="wc -l",
                )
        part = Path(folder) / "slice_lat.1.log"
        write_log(part, SLICE, offsets=False)
        script = Path(folder) / "script.py"
        script.write_text(SCRIPT)

        def run_script() -> None:
            subprocess.run(
                [sys.executable, str(script), str(part)], stdout=subprocess.DEVNULL, check=True
            )

        whole = Path(folder) / "plain_lat.1.log"
        ours, peers = [], []
        for _ in range(5):
            start = time.perf_counter()
            _core.trace_heatmap(str(whole), "latency")
            middle = time.perf_counter()
            run_script()
            ours.append(middle - start)
            peers.append((time.perf_counter() - middle) * LINES / SLICE)
        ratios = sorted(peer / our for our, peer in zip(ours, peers, strict=True))
        print(
            f"a Python script, {SLICE:,} lines scaled to {LINES:,}: {ratios[2]:.0f} x as long "
            f"(range {ratios[0]:.0f} to {ratios[-1]:.0f}, 5 pairs)"
        )
    print(
        f"most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
