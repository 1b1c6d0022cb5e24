"""Counters and events of the same load on a loop device: they agree within 1 %."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.errors import RunError
from iolab.recorder.program import probe_path
from iolab.recording.recording import Recording
from iolab.statistics.answers import Stack
from iolab.statistics.query import query

SECOND = 10**9

pytestmark = pytest.mark.real


@pytest.fixture
def device(fio: str, tmp_path: Path) -> Iterator[str]:
    """A loop device of 64 MiB in memory where that is to be had."""
    if os.geteuid() != 0:
        pytest.skip("recording block needs root")
    try:
        found = subprocess.run([probe_path(), "--check"], capture_output=True, text=True, check=False)
    except RunError as error:
        pytest.skip(str(error))
    if found.returncode or not json.loads(found.stdout)["sources"]["block"]["available"]:
        pytest.skip(f"this machine's kernel can't be traced: {found.stderr.strip()}")
    if not os.access("/dev/loop-control", os.W_OK) or shutil.which("losetup") is None:
        pytest.skip("no loop devices")
    shared = Path("/dev/shm")
    image = (shared if os.access(shared, os.W_OK) else tmp_path) / f"iolab-test-{os.getpid()}-{time.monotonic_ns()}.img"
    image.write_bytes(b"\0" * (64 << 20))
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        image.unlink()
        pytest.skip(f"no loop device can be attached: {made.stderr.strip()}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=False)
    with contextlib.suppress(OSError):
        image.unlink()


@pytest.mark.figures
def test_counters_and_events_agree(device: str, fio: str, tmp_path: Path) -> None:
    # a second of rest on both sides, so that the load lies between two readings
    load = f"sleep 1.5; {fio} --name=j --filename={device} --rw=randrw --bssplit=4k/70:16k/30 --ioengine=io_uring --iodepth=8 --direct=1 " \
           "--runtime=4 --time_based=1 --output=/dev/null; sleep 1.5"
    done = subprocess.run([sys.executable, "-m", "iolab.cli", "record", "block", "counters", "-q", "--device", device, "-o",
                           str(tmp_path / "r"), "--", "sh", "-c", load], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    recording, name = Recording(tmp_path / "r"), device.removeprefix("/dev/")
    assert [loss for loss in recording.losses() if loss["kind"] == "overrun"] == []
    for statistic in (f"io.ops[device={name}][device]", f"io.bytes[device={name}][op]"):
        events, counters = (query(recording, statistic, interval_ns=SECOND, source=source) for source in ("block", "diskstats"))
        assert isinstance(events, Stack)
        assert isinstance(counters, Stack)
        seen = dict(zip(events.keys, events.totals, strict=True))
        read = {key: total for key, total in zip(counters.keys, counters.totals, strict=True) if total}
        assert sum(seen.values()) > 1000
        assert read == pytest.approx({key: total for key, total in seen.items() if total}, rel=0.01)
        print(f"{statistic.split('[')[0]} by events and by counters: " + ", ".join(
            f"{key} {seen[key]:,} and {read[key]:,} ({100 * (read[key] / seen[key] - 1):+.3f} %)" for key in sorted(read)))
