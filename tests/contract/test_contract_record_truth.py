# SPDX-License-Identifier: Apache-2.0
"""What is recorded is what happened: against fio I/O by I/O, against the kernel's own counters by
class, and who did it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from support.recorded import device_in_memory, ext4_in_memory, recorded

pytestmark = [
    pytest.mark.fio,
    pytest.mark.loops,
    pytest.mark.tracing,
    pytest.mark.exclusive,
    pytest.mark.figures,
]

READER_FIELDS = (
    "reads",
    "read_merges",
    "read_sectors",
    "read_ms",
    "writes",
    "write_merges",
    "write_sectors",
    "write_ms",
)


def totals(recording: Recording, name: str) -> dict[str, int]:
    """Totals of a stack by key."""
    found = query(recording, name)
    assert isinstance(found, Stack)
    return dict(zip(found.keys, found.totals, strict=True))


def total(recording: Recording, name: str) -> int:
    found = query(recording, name)
    assert isinstance(found, Series | Stack)
    return found.total


def test_the_device_answers_within_what_fio_saw(fio: str, tmp_path: Path) -> None:
    """Each I/O of a raw device is known to both by its offset: the block layer's latency lies
    within fio's."""
    with device_in_memory(tmp_path) as node:
        log = tmp_path / "j"
        recording = recorded(
            tmp_path / "r",
            ["block", "--device", node],
            [
                fio,
                "--name=j",
                f"--filename={node}",
                "--rw=randread",
                "--bs=4k",
                "--size=64m",
                "--ioengine=psync",
                "--direct=1",
                f"--write_lat_log={log}",
                "--log_offset=1",
                f"--output={tmp_path / 'fio.json'}",
                "--output-format=json",
            ],
        )
    logged = np.loadtxt(f"{log}_lat.1.log", delimiter=",", usecols=(1, 4), dtype=np.int64)
    seen = dict(zip(logged[:, 1].tolist(), logged[:, 0].tolist(), strict=True))
    [segment] = recording.segments()
    events = pq.read_table(
        segment.path, columns=["offset_bytes", "latency_ns", "process", "op", "size_bytes"]
    ).to_pylist()
    own = [
        event
        for event in events
        if event["process"] == "fio"
        and event["size_bytes"] == 4096
        and event["offset_bytes"] in seen
    ]
    # udev or a partition scan may read the first and last blocks as well
    assert len(seen) == 16384
    assert len({event["offset_bytes"] for event in own}) == len(own) == 16384
    slower = sum(event["latency_ns"] > seen[event["offset_bytes"]] for event in own)
    block, above = (
        float(np.median(values))
        for values in ([event["latency_ns"] for event in own], list(seen.values()))
    )
    print(
        f"raw device: 16384 I/Os known to fio and the block layer by offset, {slower} of them slower in the block layer; "
        f"medians {block / 1e3:.1f} us below {above / 1e3:.1f} us"
    )
    assert slower == 0


def test_what_a_file_system_adds_is_told_by_class(fio: str, tmp_path: Path) -> None:
    """On ext4 the device sees fio's writes merged, and the journal and metadata beside them; the
    kernel counts the same."""
    with ext4_in_memory(tmp_path) as (node, point):
        stat = Path(f"/sys/block/{Path(node).name}/stat")
        before = [int(word) for word in stat.read_text().split()]
        recording = recorded(
            tmp_path / "r",
            ["block", "--device", node],
            [
                "sh",
                "-c",
                f"{fio} --name=j --directory={point} --rw=write --bs=4k --size=32m --ioengine=psync --fdatasync=64 "
                f"--output={tmp_path / 'fio.json'} --output-format=json && sync -f {point}",
            ],
        )
        after = [int(word) for word in stat.read_text().split()]
    counted = dict(
        zip(
            READER_FIELDS,
            (late - early for late, early in zip(after, before, strict=True)),
            strict=False,
        )
    )
    job = json.loads((tmp_path / "fio.json").read_text())["jobs"][0]
    asked = int(job["write"]["total_ios"])
    writes, written = total(recording, "io.ops[op=write]"), total(recording, "io.bytes[op=write]")
    flags = totals(recording, "io.ops[op=write][flags]")
    who = totals(recording, "io.ops[op=write][process]")
    journal = {process: count for process, count in who.items() if process.startswith("jbd2")}
    # the kernel flags what is metadata or journal
    data = sum(
        held
        for name, held in totals(recording, "io.bytes[op=write][flags]").items()
        if "M" not in name
    )
    print(
        f"ext4: fio made {asked} writes of 4 KiB ({asked * 4096} B); the device saw {writes} ({written} B): by process {who}, "
        f"by flags {flags}; /sys/block says {counted['writes']} writes, {counted['write_sectors'] * 512} B"
    )
    assert asked == 8192
    assert writes < asked / 2, "successive writes are merged"
    assert data == 32 << 20, "what is neither metadata nor journal is what fio wrote"
    assert sum(journal.values()) > 0, "the journal writes by itself"
    assert written > data
    assert written == counted["write_sectors"] * 512
    # an order to flush that moves no data is a flush here, and now and then a write in the kernel's
    # counters
    assert 0 <= counted["writes"] - writes <= total(recording, "io.ops[op=flush]")


LOAD = """
import ctypes, os, sys, threading, time
point, end = sys.argv[1], time.monotonic() + 3
libc = ctypes.CDLL(None)
def become(name):
    libc.prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME: a write to /proc would be a call, too
def buffered():
    become("buffered")
    with open(point + "/heap", "wb", buffering=0) as file:
        while time.monotonic() < end:
            if file.write(b"h" * 65536) and file.tell() > 32 << 20:
                file.seek(0)
            time.sleep(0.02)
def careful():
    become("careful")
    file = os.open(point + "/log", os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    while time.monotonic() < end:
        os.pwrite(file, b"l" * 4096, 0)
def cached():
    become("cached")
    with open(point + "/table", "wb", buffering=0) as file:
        file.write(b"t" * (1 << 20))
    file = os.open(point + "/table", os.O_RDONLY)
    while time.monotonic() < end:
        for place in range(0, 1 << 20, 8192):
            os.pread(file, 8192, place)
        time.sleep(0.05)
children = []
for work in (buffered, careful, cached):
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


def test_populations_of_a_mixed_load_are_told_apart(fio: str, tmp_path: Path) -> None:
    """A buffered writer, one that waits for the disk, and a reader from cache: each is a band, a
    process and a file of its own."""
    script = tmp_path / "load.py"
    script.write_text(LOAD)
    with ext4_in_memory(tmp_path) as (node, point):
        recording = recorded(
            tmp_path / "r",
            ["block", "syscall", "--device", node, "--fs", point],
            [sys.executable, script, point],
        )
        files = {
            process: totals(recording, f"file.ops[process={process}][file]")
            for process in ("buffered", "careful", "cached")
        }
        assert {process: list(held) for process, held in files.items()} == {
            "buffered": [f"{point}/heap"],
            "careful": [f"{point}/log"],
            "cached": [f"{point}/table"],
        }
    # the reader's file is written once before it is read
    reads = totals(recording, "file.ops[op=read][process]")
    assert set(reads) == {"cached"}
    # who is slow: what takes as long as the device does is the writer that waits, by process and by
    # file how fast memory is differs from machine to machine: the reader's band is where nearly all
    # of its calls are
    band = next(
        us
        for us in (1, 2, 4, 8, 16, 32)
        if totals(recording, f"file.ops[latency<{us}us][process]").get("cached", 0)
        > 0.95 * reads["cached"]
    )
    slow, fast = (
        totals(recording, f"file.ops[latency{bound}][process]")
        for bound in (">=30us", f"<{band}us")
    )
    inside, outside = (held.get("careful", 0) / sum(held.values()) for held in (slow, fast))
    device = totals(recording, "io.ops[op=write][process]")
    print(
        f"mixed load on ext4: {totals(recording, 'file.ops[process]')} system calls; of those of 30 us and more {100 * inside:.0f} % "
        f"are the synchronous writer's, of those under {band} us {100 * outside:.1f} %; the device's: {device}"
    )
    assert inside > 0.5
    assert outside < 0.01
    assert device["careful"] > 0
    assert "cached" not in device or device["cached"] < 10
