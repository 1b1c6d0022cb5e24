# SPDX-License-Identifier: Apache-2.0
"""Counters and events of the same load on a loop device: they agree within 1 %."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from support.recorded import device_in_memory
from support.waiting import PATIENCE

SECOND = 10**9

pytestmark = [pytest.mark.fio, pytest.mark.loops, pytest.mark.tracing]


@pytest.fixture
def device(fio: str, tmp_path: Path) -> Iterator[str]:
    with device_in_memory(tmp_path) as node:
        yield node


@pytest.mark.figures
def test_counters_and_events_agree(device: str, fio: str, tmp_path: Path) -> None:
    # two seconds of rest on both sides, so that the load lies between two readings
    load = (
        f"sleep 2.5; {fio} --name=j --filename={device} --rw=randrw --bssplit=4k/70:16k/30 --ioengine=io_uring --iodepth=8 --direct=1 "
        "--runtime=4 --time_based=1 --output=/dev/null; sleep 2.5"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "iolab.cli",
            "record",
            "block",
            "counters",
            "-q",
            "--budget",
            "none",
            "--device",
            device,
            "-o",
            str(tmp_path / "r"),
            "--",
            "sh",
            "-c",
            load,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    recording, name = Recording(tmp_path / "r"), device.removeprefix("/dev/")
    assert [loss for loss in recording.losses() if loss["kind"] == "overrun"] == []
    for statistic in (f"io.ops[device={name}][device]", f"io.bytes[device={name}][op]"):
        events, counters = (
            query(recording, statistic, interval_ns=SECOND, source=source)
            for source in ("block", "diskstats")
        )
        assert isinstance(events, Stack)
        assert isinstance(counters, Stack)
        seen = dict(zip(events.keys, events.totals, strict=True))
        read = {
            key: total for key, total in zip(counters.keys, counters.totals, strict=True) if total
        }
        assert sum(seen.values()) > 1000
        assert read == pytest.approx({key: total for key, total in seen.items() if total}, rel=0.01)
        print(
            f"{statistic.split('[')[0]} by events and by counters: "
            + ", ".join(
                f"{key} {seen[key]:,} and {read[key]:,} ({100 * (read[key] / seen[key] - 1):+.3f} %)"
                for key in sorted(read)
            )
        )
