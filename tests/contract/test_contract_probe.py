# SPDX-License-Identifier: Apache-2.0
"""What the probe must do: every I/O once, losses counted, nothing left behind, one clear line where
it cannot work."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.probe import (
    PROBE,
    ROOT,
    TRACEFS,
    Events,
    Probe,
    events_of,
    instances_of,
    need_probe,
    need_tracing,
    number_of,
)
from support.recorded import device_in_memory
from support.waiting import PATIENCE

FAKES = ROOT / "tests/data/tracefs"


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    need_probe()
    options = {"stdin": subprocess.DEVNULL, **options}
    return subprocess.run(
        [str(PROBE), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


def refused(ran: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    """It ended so, with one line that holds these words, and wrote no frame."""
    assert (ran.returncode, ran.stdout) == (code, "")
    assert words in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the probe, at a place that everyone can reach, as a user without rights."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    copy = Path("/dev/shm") / f"iolab-probe-{os.getpid()}"
    shutil.copy(need_probe(), copy)
    try:
        copy.chmod(0o755)
        return subprocess.run(
            [str(copy), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            user=65534,
            check=False,
        )
    finally:
        copy.unlink()


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    with device_in_memory(tmp_path, 256 << 20) as node:
        yield node


def load(fio: str, device: str, *options: str) -> dict[str, Any]:
    """fio's job on a device."""
    arguments = [
        "--name=load",
        f"--filename={device}",
        "--output-format=json",
        "--direct=1",
        "--size=100%",
        *options,
    ]
    ran = subprocess.run(
        [fio, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return dict(json.loads(ran.stdout)["jobs"][0])


def paired(events: Events) -> Any:
    return ~np.isnan(events["latency_ns"])


@pytest.mark.fio
@pytest.mark.loops
@pytest.mark.tracing
def test_every_io_of_a_device_once(fio: str, device: str) -> None:
    probe = Probe.start("--source", "block", "--source", "counters", "--device", number_of(device))
    began = time.time_ns()
    job = load(
        fio,
        device,
        "--rw=randrw",
        "--bs=4k",
        "--iodepth=16",
        "--ioengine=libaio",
        "--time_based",
        "--runtime=2",
    )
    ended = time.time_ns()
    assert probe.stop() == 0, probe.words()
    assert probe.torn == 0
    events = events_of(probe)
    for op in ("read", "write"):
        own = events["op"] == op
        assert int(own.sum()) == job[op]["total_ios"]
        assert (
            float(np.nansum(events["latency_ns"][own]))
            < job[op]["clat_ns"]["mean"] * job[op]["total_ios"]
        )
    # a few met another I/O at the same place in flight, and then no latency is better than a wrong
    # one
    assert paired(events).mean() > 0.99
    data = np.isin(events["op"], ["read", "write"])
    assert set(events["device"]) == {Path(device).name}
    assert set(events["process"][paired(events) & data]) == {"fio"}
    assert set(events["size_bytes"][data]) == {4096.0}
    assert events["time_ns"].min() >= began - 1e9
    assert events["time_ns"].max() <= ended + 1e9
    assert probe.of("end")[0]["lost"] == {"block": 0}
    assert [frame for frame in probe.of("loss") if frame["loss_kind"] == "overrun"] == []
    tick = probe.of("tick")[-1]
    assert tick["events"] == {"block": len(events)}
    assert tick["cpu_ns"] > 0
    assert tick["rss_bytes"] > 0
    hello = probe.of("hello")[0]
    assert hello["realtime_ns"] < hello["from_ns"] <= events["time_ns"].min() + 1e9
    # of one moment, however long telling takes
    assert {
        round(
            (
                each["realtime_ns"]
                - each["monotonic_ns"]
                - hello["realtime_ns"]
                + hello["monotonic_ns"]
            )
            / 1e9
        )
        for each in probe.of("tick")
    } == {0}
    # a machine may have no file system on a device of its own
    sources = {frame["source"] for frame in probe.of("samples")}
    assert sources - {
        "filesystems",
        "tcp",
        "arcstats",
        "zil",
        "txgs",
        "nfs-client",
        "smb-client",
    } == {
        "diskstats",
        "cpu",
        "memory",
        "network",
    }
    assert any(frame["process"] == "fio" for frame in probe.of("process"))
    assert instances_of(probe.process.pid) == []


@pytest.mark.fio
@pytest.mark.loops
@pytest.mark.tracing
def test_rings_that_overrun_count_their_loss_and_invent_no_latency(fio: str, device: str) -> None:
    probe = Probe.start("--source", "block", "--device", number_of(device), "--ring-kib", "8")
    job = load(
        fio,
        device,
        "--rw=randread",
        "--bs=4k",
        "--iodepth=16",
        "--ioengine=libaio",
        "--time_based",
        "--runtime=2",
    )
    assert probe.stop() == 0, probe.words()
    lost = [frame for frame in probe.of("loss") if frame["loss_kind"] == "overrun"]
    assert sum(frame["count"] for frame in lost) == probe.of("end")[0]["lost"]["block"] > 0
    assert all(frame["from_ns"] < frame["until_ns"] for frame in lost)
    events = events_of(probe)
    assert 0 < len(events) < job["read"]["total_ios"]
    known = events["latency_ns"][paired(events)]
    assert known.size == 0 or known.max() <= job["read"]["clat_ns"]["max"]
    assert instances_of(probe.process.pid) == []


@pytest.mark.loops
@pytest.mark.tracing
def test_errors_flushes_and_discards_are_told_apart(device: str) -> None:
    probe = Probe.start("--source", "block", "--device", number_of(device))
    subprocess.run(["blkdiscard", "--offset", "0", "--length", "1M", device], check=True)
    subprocess.run(
        [
            "dd",
            "if=/dev/zero",
            f"of={device}",
            "bs=64k",
            "count=4",
            "oflag=direct",
            "conv=fsync",
            "status=none",
        ],
        check=True,
    )
    # what lies beyond the end of the file cannot be read any more
    image = Path(f"/sys/block/{Path(device).name}/loop/backing_file").read_text().strip()
    os.truncate(image, 128 << 20)
    with Path(device).open("rb", buffering=0) as disk:
        os.posix_fadvise(disk.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with pytest.raises(OSError, match="Input/output"):
            os.pread(disk.fileno(), 4096, 200 << 20)
    assert probe.stop() == 0
    events = events_of(probe)
    counted = {op: int((events["op"] == op).sum()) for op in ("write", "trim", "flush")}
    assert counted == {"write": 4, "trim": 1, "flush": 1}
    assert events["size_bytes"][events["op"] == "trim"] == [1 << 20]
    assert np.isnan(events["size_bytes"][events["op"] == "flush"]).all()
    failed = events["error"] == "EIO"
    assert failed.any()
    assert set(events["op"][failed]) == {"read"}
    assert set(events["error"][~failed]) == {None}


@pytest.mark.tracing
@pytest.mark.parametrize("way", ["input closed", "stop", "SIGTERM", "SIGINT", "output closed"])
def test_every_way_to_end_leaves_nothing(way: str) -> None:
    need_tracing()
    probe = Probe.start("--source", "block")
    pid = probe.process.pid
    assert len(instances_of(pid)) == 1
    assert probe.process.stdin is not None
    assert probe.process.stdout is not None
    if way == "stop":
        probe.process.stdin.write(b"hello\nstop\n")
        probe.process.stdin.flush()
    elif way.startswith("SIG"):
        probe.process.send_signal(getattr(signal, way))
    elif way == "output closed":
        # the reader's thread holds its end; a probe that has no reader from the start shows the
        # same
        probe.stop()
        quiet = subprocess.Popen(
            [str(PROBE), "--source", "block"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert quiet.stdout is not None
        assert quiet.stdin is not None
        assert quiet.stderr is not None
        quiet.stdout.read(16)
        quiet.stdout.close()
        quiet.wait(timeout=PATIENCE)
        assert instances_of(quiet.pid) == []
        quiet.stdin.close()
        quiet.stderr.close()
        return
    else:
        probe.process.stdin.close()
    assert probe.ended() == 0
    assert probe.of("end")[0]["reason"] == ("signal" if way.startswith("SIG") else way)
    assert instances_of(pid) == []


@pytest.mark.tracing
@pytest.mark.exclusive
def test_what_a_killed_probe_leaves_the_next_one_removes() -> None:
    need_tracing()
    killed = Probe.start("--source", "block")
    killed.process.kill()
    killed.ended()
    assert len(instances_of(killed.process.pid)) == 1
    alive = Probe.start("--source", "block")
    next_one = Probe.start("--source", "block")
    assert instances_of(killed.process.pid) == []
    assert len(instances_of(alive.process.pid)) == 1, "only those of the dead"
    assert (alive.stop(), next_one.stop()) == (0, 0)


@pytest.mark.fio
@pytest.mark.loops
@pytest.mark.tracing
def test_a_process_can_be_left_out(fio: str, device: str) -> None:
    quiet = subprocess.Popen(
        [
            "sh",
            "-c",
            f"read go; exec dd if={device} of=/dev/null bs=4k count=50 iflag=direct status=none",
        ],
        stdin=subprocess.PIPE,
    )
    probe = Probe.start(
        "--source", "block", "--device", number_of(device), "--exclude-pid", str(quiet.pid)
    )
    quiet.communicate(b"go\n")
    subprocess.run(
        ["dd", f"if={device}", "of=/dev/null", "bs=4k", "count=7", "iflag=direct", "status=none"],
        check=True,
    )
    assert probe.stop() == 0
    assert len(events_of(probe)) == 7


def test_words_for_what_makes_no_sense() -> None:
    for arguments, words in [
        ((), "nothing to record"),
        (("--source", "disk"), "no source 'disk'"),
        (("--shell", "x"), "unknown argument"),
        (("--source", "block", "--device", "sda"), "MAJOR:MINOR"),
    ]:
        ran = run(*arguments)
        refused(ran, 2, words)


def test_no_such_device() -> None:
    ran = run("--source", "block", "--device", "4000:77")
    refused(ran, 4, "no block device 4000:77")


def test_no_tracefs(tmp_path: Path) -> None:
    ran = run("--source", "block", "--tracefs", str(tmp_path))
    refused(ran, 4, "tracefs is not mounted")


def test_not_root() -> None:
    need_tracing()
    refused(as_nobody("--source", "block"), 3, "root")


@pytest.mark.parametrize("kernel", ["linux-6.18", "linux-6.1", "linux-6.1-64k-pages"])
def test_a_kernel_without_a_tracepoint(tmp_path: Path, kernel: str) -> None:
    shutil.copytree(FAKES / kernel, tmp_path, dirs_exist_ok=True)
    said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)
    assert said["sources"]["block"] == {"available": True, "words": []}
    shutil.rmtree(tmp_path / "events/block/block_split")
    said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)
    assert said["sources"]["block"]["available"]
    assert "block_split" in said["sources"]["block"]["words"][0]
    shutil.rmtree(tmp_path / "events/block/block_rq_issue")
    said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)
    assert not said["sources"]["block"]["available"]
    ran = run("--source", "block", "--tracefs", str(tmp_path))
    refused(ran, 4, "no tracepoint block:block_rq_issue")


def test_the_nfs_server_that_is_not_loaded_is_said(tmp_path: Path) -> None:
    shutil.copytree(FAKES / "linux-6.1-nfsd", tmp_path, dirs_exist_ok=True)
    said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)["sources"]["nfs"]
    assert said["available"]
    assert "nfsd_commit_start" in said["words"][0]
    shutil.rmtree(tmp_path / "events/nfsd/nfsd_read_io_done")
    refused(run("--source", "nfs", "--tracefs", str(tmp_path)), 4, "too old")
    shutil.rmtree(tmp_path / "events/nfsd")
    said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)["sources"]["nfs"]
    assert not said["available"]
    assert len(said["words"]) == 1
    assert "modprobe nfsd" in said["words"][0]
    refused(run("--source", "nfs", "--tracefs", str(tmp_path)), 4, "modprobe nfsd")


def test_a_tracepoint_of_another_form_is_named_with_a_remedy(tmp_path: Path) -> None:
    shutil.copytree(FAKES / "linux-6.1-nfsd", tmp_path, dirs_exist_ok=True)
    optional = tmp_path / "events/nfsd/nfsd_read_err/format"
    optional.write_text(optional.read_text().replace("u32 fh_hash", "u32 handle"))
    broken = tmp_path / "events/nfsd/nfsd_write_err/format"
    broken.write_bytes(b"\xff\x00")
    said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)["sources"]["nfs"]
    assert said["available"]
    assert [sum(name in word for word in said["words"]) for name in ("read_err", "write_err")] == [
        1,
        1,
    ]
    needed = tmp_path / "events/sunrpc/svc_process/format"
    for text, words in [
        (needed.read_text().replace("char[] addr", "char[] peer"), "no field addr"),
        ("", f"{needed}: "),
    ]:
        needed.write_text(text)
        said = json.loads(run("--check", "--tracefs", str(tmp_path)).stdout)["sources"]["nfs"]
        assert not said["available"]
        ran = run("--source", "nfs", "--tracefs", str(tmp_path))
        refused(ran, 4, words)
        refused(ran, 4, "record without")
        assert [ran.stderr.strip()] == [f"iolab-probe: {word}" for word in said["words"]]


def test_lockdown() -> None:
    """A locked-down kernel shows tracefs and refuses to let anybody read in it."""
    place = Path("/dev/shm") / f"iolab-tracefs-{os.getpid()}"
    shutil.copytree(FAKES / "linux-6.18", place)
    try:
        (place / "events/block/block_rq_issue/format").chmod(0)
        refused(as_nobody("--source", "block", "--tracefs", str(place)), 3, "locked down")
    finally:
        shutil.rmtree(place)


def test_check_says_what_there_is() -> None:
    said = json.loads(run("--check").stdout)
    assert said["root"] == (os.geteuid() == 0)
    assert said["sources"]["counters"]["available"]
    assert said["sources"]["block"]["available"] or said["sources"]["block"]["words"]
    assert TRACEFS.exists() or said["tracefs"] is None
