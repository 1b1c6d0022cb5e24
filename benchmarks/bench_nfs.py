# SPDX-License-Identifier: Apache-2.0
"""The cost of recording an NFS server: a client reads from memory of the server, without a recording,
with `iolab record nfs`, and with the same without names of files, in alternating order.

Usage: bench_nfs.py SERVER CLIENT FILE, such as bench_nfs.py rig:server rig:client /mnt/home/file. The
client has the server's export mounted, and FILE (4 MiB at least) is read by direct I/O, in blocks of
16 KiB by 4 jobs, as fast as possible. Without names, the server refuses groups of fanotify
(`fs.fanotify.max_user_groups` is 0 meanwhile): that needs root there, and nothing else that watches
files may start. The former value is restored however the benchmark ends. Prints the change of
throughput and of mean latency with its interval (log ratios of rounds, t), operations recorded and
lost, and the CPU time of the probe, its start included.

A rig that was started with --count-instructions is both server and client best (a network namespace
has the mount): its clock does not depend on other work of the machine that runs it.
IOLAB_BENCH_SECONDS (20) and IOLAB_BENCH_PAIRS (6) in the environment make it shorter or surer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.stats.means import log_mean_interval
from iolab.hosts.base.host import Host, text_or_none
from iolab.hosts.kinds.parse import host_named
from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording

IOLAB = [sys.executable, "-m", "iolab.cli"]
SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "20"))
ROUNDS = int(os.environ.get("IOLAB_BENCH_PAIRS", "6"))
NOT, BARE, NAMED = ARMS = ("no recording", "without names", "with names")
GROUPS = "/proc/sys/fs/fanotify/max_user_groups"
START_SECONDS = 300
HOLD = """
before=$(cat "$1") || exit 1
sleep 1000000 &
trap 'echo "$before" > "$1"; kill $!' EXIT
trap 'exit 0' TERM HUP INT
echo "$2" > "$1" && wait
"""
"""Set a file to a value until the end of the process."""


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
    limit = f"{START_SECONDS + SECONDS * 10 + 60:g}s"
    words = [
        *(*IOLAB, "record", "nfs", "--host", server, "--budget", "none", "-q"),
        *("--duration", limit, "-o", str(place)),
    ]
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


@contextmanager
def setting(host: Host, path: str, value: str) -> Iterator[None]:
    """A setting of the host's kernel has this value. A process of the host holds it, and restores
    the former value when it is ended, or when this program or the connection ends: also by SIGKILL.
    """
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        process = host.start(
            ["sh", "-c", HOLD, "sh", path, value],
            cwd=place,
            stdout=place / "out",
            stderr=place / "err",
        )
        try:
            while text_or_none(host, path) != value:
                if process.wait(0.1) is not None:
                    raise SystemExit(f"bench_nfs: {path} cannot be set on {host.name}")
            yield
        finally:
            process.end()


def measure(arm: str, server: Host, client: Host, file: str) -> Load:
    """The load of an arm. SystemExit where the names of files are not as in the arm."""
    if arm == NOT:
        return read(client, file)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()), "recording")
        if arm == BARE:
            stack.enter_context(setting(server, GROUPS, "0"))
        load, status = read_while_recorded(server.name, client, file, place)
        reads = query(Recording(place), "nfs.ops[op=read][file]")
        assert isinstance(reads, Stack)
    named = sum(
        total for key, total in zip(reads.keys, reads.totals, strict=True) if key.startswith("/")
    )
    if (named > 0) == (arm == BARE):
        raise SystemExit(f"bench_nfs: {named} of {reads.total} reads have a name in '{arm}'")
    print(
        f"    {arm}: recorded {reads.total} of {load.reads}, {named} with a name, "
        f"{sum(status['lost'].values())} lost; "
        f"probe {status['probe_cpu_ns'] / 1e3 / max(1, reads.total):.2f} us of CPU a read",
        flush=True,
    )
    return load


def main() -> None:
    if len(sys.argv) != 4:
        print("bench_nfs: left out: needs SERVER CLIENT FILE")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    server, client = host_named(sys.argv[1]), host_named(sys.argv[2])
    file = sys.argv[3]
    read(client, file)
    loads: dict[str, list[Load]] = {arm: [] for arm in ARMS}
    for number in range(ROUNDS):
        # each arm is first, second and third equally often
        turn = number % len(ARMS)
        order = (*ARMS[turn:], *ARMS[:turn])
        for arm in order if number // len(ARMS) % 2 == 0 else order[::-1]:
            loads[arm].append(measure(arm, server, client, file))
        print(
            f"  round {number + 1}: "
            + ", ".join(f"{arm} {loads[arm][-1].iops:,.1f} IOPS" for arm in ARMS),
            flush=True,
        )
    for arm, base in ((NAMED, NOT), (BARE, NOT), (NAMED, BARE)):
        for what, field in (("throughput", "iops"), ("mean latency", "mean_ns")):
            ratios = [
                getattr(one, field) / getattr(other, field)
                for one, other in zip(loads[arm], loads[base], strict=True)
            ]
            middle, low, high = log_mean_interval(ratios)
            words = f"  {arm} against {base}: {what} {(middle - 1) * 100:+.1f} %"
            if low is not None and high is not None:
                words += f" ({(low - 1) * 100:+.1f} to {(high - 1) * 100:+.1f} %, 95 %, {ROUNDS} rounds of {SECONDS:g} s)"
            print(words, flush=True)


if __name__ == "__main__":
    main()
