# SPDX-License-Identifier: Apache-2.0
"""What benchmarks of recording share: a block device in memory, fio's load on it, the recorder and
its probe as processes, a service."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

IOLAB = Path(sys.executable).parent / "iolab"
SHARED = Path("/dev/shm")
_URL = re.compile(r"(http://127\.0\.0\.1:\d+)/\?token=([\w-]+)")
_TICK = os.sysconf("SC_CLK_TCK")


def missing() -> str | None:
    """Why nothing can be recorded here, None where it can."""
    lacking = [name for name in ("fio", "losetup") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking:
        return f"needs root, fio and losetup{f' ({lacking} are missing)' if lacking else ''}"
    return None


@contextlib.contextmanager
def device(size: int = 256 << 20) -> Iterator[str]:
    """The node of a loop device in memory."""
    with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as memory:
        image = Path(memory, "image")
        image.write_bytes(bytes(size))
        node = subprocess.run(
            ["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True
        ).stdout.strip()
        try:
            yield node
        finally:
            subprocess.run(["losetup", "--detach", node], check=True)


def load(
    node: str,
    report: Path,
    rate: int,
    seconds: float,
    *,
    mixed: bool = False,
    jobs: int = 1,
    depth: int = 32,
) -> list[str]:
    """fio's command line: random reads of 4 KiB (or reads and writes); `rate` is the I/Os a second
    of all jobs, 0 for as many as fio can."""
    share = rate // jobs
    return [
        "fio",
        "--name=load",
        f"--filename={node}",
        "--rw=randrw" if mixed else "--rw=randread",
        "--bs=4k",
        "--ioengine=io_uring",
        f"--numjobs={jobs}",
        "--group_reporting",
        f"--iodepth={depth}",
        "--direct=1",
        f"--runtime={seconds:g}",
        "--time_based",
        *(
            [f"--rate_iops={share // 2},{share // 2}" if mixed else f"--rate_iops={share}"]
            if rate
            else []
        ),
        f"--output={report}",
        "--output-format=json",
    ]


def measured(report: Path) -> tuple[float, float, int]:
    """I/Os a second, mean latency in ns, and I/Os of fio's report; reads and writes together."""
    job = json.loads(report.read_text())["jobs"][0]
    both = [job[way] for way in ("read", "write") if job[way]["total_ios"]]
    count = sum(each["total_ios"] for each in both)
    return (
        sum(each["iops"] for each in both),
        sum(each["lat_ns"]["mean"] * each["total_ios"] for each in both) / count,
        count,
    )


def status(recording: Path) -> dict[str, Any]:
    """What the recorder says of its recording; empty before it says anything."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((recording / "status.json").read_text())
        return found
    return {}


def memory(pid: int) -> int:
    """Resident bytes of a process, shared ones left out; 0 where it is gone."""
    with contextlib.suppress(OSError):
        held = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(held[1]) - int(held[2])) * os.sysconf("SC_PAGE_SIZE")
    return 0


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far; 0 where it is gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK
    return 0.0


def probe_of(recorder: int) -> int | None:
    """The probe that a recorder started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, rest = path.read_text().rpartition(")")
            if (
                head.partition("(")[2].startswith("iolab-probe")
                and int(rest.split()[1]) == recorder
            ):
                return int(path.parent.name)
    return None


def until(met: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for something, and return it."""
    limit = time.monotonic() + seconds
    while not (found := met()):
        if time.monotonic() > limit:
            raise SystemExit(f"waited {seconds:g} s for {what}")
        time.sleep(0.05)
    return found


def begin_recording(
    recording: Path, node: str, more: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """`iolab record` of a device; on return it records."""
    before = status(recording).get("pid")
    recorder = subprocess.Popen(
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
            recording,
            *more,
        ],
        stderr=subprocess.DEVNULL,
    )
    until(
        lambda: (
            status(recording).get("pid") not in (None, before) and (recording / "control").exists()
        ),
        60,
        "the recorder",
    )
    return recorder


def serve(recording: Path) -> tuple[subprocess.Popen[str], str, str]:
    """`iolab view` of a recording: the process, its address and its token."""
    service = subprocess.Popen(
        [IOLAB, "view", "--port", "0", recording],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert service.stdout is not None
    found = _URL.search(service.stdout.readline())
    if found is None:
        raise SystemExit("iolab view does not serve: run 'make setup', which builds the page")
    return service, found[1], found[2]
