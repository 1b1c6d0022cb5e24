# SPDX-License-Identifier: Apache-2.0
"""What recording and following cost together: 100 thousand reads a second offered to a device in
memory, bare and recorded with four statistics kept and followed over the service's stream, in
alternating pairs.

Prints the change of throughput with its interval (log ratios of pairs, t), the CPU time of probe,
recorder and service as a share of one processor, how many answers came over the stream, and whether
every I/O was recorded; exits with 1 where one was lost. IOLAB_BENCH_SECONDS (60), IOLAB_BENCH_PAIRS
(5) and IOLAB_BENCH_RATE (100000) in the environment make it shorter, surer or another. Needs root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from surroundings import (
    begin_recording,
    cpu_seconds,
    device,
    load,
    measured,
    missing,
    probe_of,
    serve,
    status,
)

from iolab.base.stats.means import log_mean_interval

SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "60"))
PAIRS = int(os.environ.get("IOLAB_BENCH_PAIRS", "5"))
RATE = int(os.environ.get("IOLAB_BENCH_RATE", "100000"))
FOLLOWED = ("io.ops[op]", "io.bytes[process]", "io.ops[latency]", "io.ops[offset]")


class Follower(threading.Thread):
    """Reads the stream until the service ends; counts answers by statistic and those that were
    refused."""

    def __init__(self, address: str, token: str) -> None:
        super().__init__(daemon=True)
        words = urlencode([("statistic", name) for name in FOLLOWED])
        self._request = urllib.request.Request(
            f"{address}/api/v1/stream?{words}", headers={"Authorization": f"Bearer {token}"}
        )
        self.answers: dict[str, int] = {}
        self.refused = 0

    def run(self) -> None:
        """Read."""
        try:
            with urllib.request.urlopen(self._request, timeout=120) as stream:
                for line in stream:
                    if line.startswith(b"data:"):
                        self._take(json.loads(line[5:]))
        except OSError:
            return

    def _take(self, data: Any) -> None:
        if not isinstance(data, dict):
            return
        if data.get("error") or data.get("problem"):
            self.refused += 1
        elif "statistic" in data:
            self.answers[data["statistic"]] = self.answers.get(data["statistic"], 0) + 1


def bare(node: str, scratch: Path) -> tuple[float, float, int]:
    """What fio measured."""
    report = scratch / "bare.json"
    subprocess.run(load(node, report, RATE, SECONDS), check=True, stdout=subprocess.DEVNULL)
    return measured(report)


def followed(
    node: str, scratch: Path
) -> tuple[tuple[float, float, int], dict[str, float], dict[str, Any], Follower]:
    """What fio measured, CPU seconds while it ran, the recorder's last words, and what came over
    the stream."""
    report, place = scratch / "followed.json", scratch / "recording"
    shutil.rmtree(place, ignore_errors=True)
    recorder = begin_recording(
        place, node, [word for name in FOLLOWED for word in ("--statistic", name)]
    )
    service, address, token = serve(place)
    follower = Follower(address, token)
    try:
        follower.start()
        pids = {
            "probe": probe_of(recorder.pid) or 0,
            "recorder": recorder.pid,
            "service": service.pid,
        }
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        subprocess.run(load(node, report, RATE, SECONDS), check=True, stdout=subprocess.DEVNULL)
        spent = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    finally:
        service.terminate()
        service.communicate()
        recorder.send_signal(2)
        recorder.wait()
    follower.join(10)
    return measured(report), spent, status(place), follower


def main() -> int:
    """Exit code."""
    why = missing()
    if why:
        print(f"bench_live: left out: {why}")
        return 0
    rates, whole = [], True
    print(f"{RATE:,} reads a second offered; followed: {', '.join(FOLLOWED)}", flush=True)
    with tempfile.TemporaryDirectory() as directory, device() as node:
        bare(node, Path(directory))
        for pair in range(PAIRS):
            without = bare(node, Path(directory)) if pair % 2 == 0 else None
            with_it, spent, told, follower = followed(node, Path(directory))
            without = without or bare(node, Path(directory))
            rates.append(with_it[0] / without[0])
            events, lost = told["events"].get("block", 0), told["lost"].get("block", 0)
            whole = whole and lost == 0 and events >= with_it[2]
            shares = ", ".join(
                f"{name} {seconds / SECONDS * 100:.1f} %" for name, seconds in spent.items()
            )
            print(
                f"  pair {pair + 1}: {without[0]:,.0f} IOPS without, {with_it[0]:,.0f} with ({(rates[-1] - 1) * 100:+.2f} %); "
                f"recorded {events} of {with_it[2]}, {lost} lost; CPU of one: {shares}; "
                f"answers {sum(follower.answers.values())} to {len(follower.answers)} statistics, {follower.refused} refused",
                flush=True,
            )
    middle, low, high = log_mean_interval(rates)
    words = f"  recording and following change throughput by {(middle - 1) * 100:+.2f} %"
    if low is not None and high is not None:
        words += f" ({(low - 1) * 100:+.2f} to {(high - 1) * 100:+.2f} %, 95 %, {len(rates)} pairs of {SECONDS:g} s)"
    print(words + ("" if whole else "; I/Os WERE LOST"), flush=True)
    return 0 if whole else 1


if __name__ == "__main__":
    raise SystemExit(main())
