# SPDX-License-Identifier: Apache-2.0
"""Recording the rig from here: its block layer and its system calls, on a kernel of another age,
and files of OpenZFS by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.cli.main import run as iolab
from iolab.hosts.kinds.rig import RigHost
from iolab.hosts.ssh.remote_paths import scratch_on
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.engine.snapshot import snapshot
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import How, run_study
from iolab.studies.targets.base import Permissions, RunContext
from iolab.studies.targets.zpool.options import ZpoolOptions
from iolab.studies.targets.zpool.target import ZpoolTarget
from support.acting import Listener
from support.waiting import until

pytestmark = pytest.mark.rig

STUDY = """
sources = ["block", "syscall"]
[study]
name = "recorded-rig"
repetitions = 1
[target]
kind = "zpool"
layout = "mirror:2"
devices = "/dev/disk/by-id/virtio-disk*"
[workload]
kind = "fio"
runtime = "3s"
log_ios = true
[workload.options]
rw = "randwrite"
bs = "8k"
size = "8m"
ioengine = "psync"
sync = 1
[variants.plain]
"""


READ, RECORD = 16 << 20, 8 << 10
SETTLED_NS = 8 * 10**9
"""A transaction group takes five seconds to its disks, and their readings come a second later."""


def read_until(place: Path) -> int:
    """When the ARC's counters were last read on the far side, 0 before."""
    if not (place / "recording.json").exists():
        return 0
    ends = snapshot(Recording(place), "samples").bounds("arcstats")
    return 0 if ends is None else ends[1]


def summed(recording: Recording, statistic: str) -> dict[str, int]:
    """Totals by key, of a series under ""."""
    found = query(recording, statistic)
    if isinstance(found, Series):
        return {"": found.total}
    assert isinstance(found, Stack)
    return dict(zip(found.keys, found.totals, strict=True))


def test_a_study_on_a_pool_records_every_layer(host: RigHost, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    listener = Listener()
    run_study(
        tmp_path / "study.toml",
        tmp_path / "results",
        listener=listener,
        host=host,
        clock=host.clock,
        how=How(destructive=True),
    )
    assert [run[1:] for run in listener.runs] == [("finished", "")], listener.notes
    [run] = Results(tmp_path / "results").runs
    kept = json.loads((run.evidence / "log_ios.json").read_text())
    assert kept["kept"] is None, kept
    writes = kept["events"]["write"]
    assert writes > 20
    found = run.plan.extra["recording"]
    assert found.get("problem") is None
    assert found["lost"] == {"block": 0, "syscall": 0}
    assert found["events"]["block"] > writes  # each goes to both sides of the mirror
    recording = Recording(tmp_path / "results/recordings" / host.name)
    assert not [
        loss
        for loss in recording.losses()
        if loss["kind"] in ("overrun", "gap") and loss["source"] != "fio"
    ]
    assert recording.facts.origin["host"] == host.name
    files = query(recording, "file.ops[op=write][process=fio][file]")
    assert isinstance(files, Stack)
    of_pool = [
        count
        for name, count in zip(files.keys, files.totals, strict=True)
        if name.endswith("/iolab.0.0")
    ]
    assert len(of_pool) == 1, files.keys
    assert of_pool[0] >= writes
    devices = query(recording, "io.ops[op=write][device]")
    assert isinstance(devices, Stack)
    assert len(devices.keys) == 2


def test_a_live_pool_is_seen_from_its_cache_to_its_disks(host: RigHost, tmp_path: Path) -> None:
    """A file is read twice after its pool was imported anew: from the disks, then from the ARC; a
    file is written and synced."""
    options = ZpoolOptions.model_validate(
        {
            "layout": "mirror:2",
            "devices": "/dev/disk/by-id/virtio-disk*",
            "properties": {"recordsize": "8k", "compression": "off"},
        }
    )
    target = ZpoolTarget(
        options, host, scratch_on(host, tmp_path / "scratch"), Permissions(destructive=True)
    )
    try:
        target.open(1 << 20)
        place = target.begin(RunContext("0001-aa", "cell", 1, 1 << 20))
        made = f"import os; f = open('{place.path}/twice', 'wb'); f.write(os.urandom({READ})); f.close()"
        assert host.run(["python3", "-c", made], timeout=120).exit_code == 0
        target.chill()
        recorder = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "iolab.cli",
                "record",
                "block",
                "syscall",
                "counters",
                "--host",
                host.name,
                "--duration",
                "600s",
                "-q",
                "-o",
                str(tmp_path / "r"),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: read_until(tmp_path / "r") > 0, "readings of the pool")
            load = (
                f"import os; path = '{place.path}/twice'\n"
                f"for _ in range(2):\n  f = open(path, 'rb', buffering=0)\n  while f.read({RECORD}): pass\n"
                f"g = open('{place.path}/synced', 'wb', buffering=0)\n"
                f"for _ in range(50):\n  g.write(os.urandom({RECORD}))\n  os.fsync(g.fileno())"
            )
            assert host.run(["python3", "-c", load], timeout=300).exit_code == 0
            after = host.clock.realtime_ns()
            until(
                lambda: read_until(tmp_path / "r") > after + SETTLED_NS,
                "readings from after the load",
            )
        finally:
            assert iolab(["record", "--stop", str(tmp_path / "r")]) == 0
            _, words = recorder.communicate(timeout=120)
        assert recorder.returncode == 0, words
        target.end("0001-aa")
    finally:
        target.close()
    recording = Recording(tmp_path / "r")
    accesses = summed(recording, "arc.accesses[result]")
    assert accesses["miss"] >= READ // RECORD * 0.9, (
        accesses
    )  # each record once from the disks (some may come by prefetch)
    assert accesses["hit"] >= READ // RECORD, accesses
    disks = summed(recording, "zpool.ops[vdev]")
    assert len(disks) == 2, disks
    assert sum(disks.values()) > 50
    latency = query(recording, "zpool.ops[latency]")
    assert isinstance(latency, HeatCounts)
    assert latency.total == sum(disks.values())
    assert summed(recording, "zil.commits")[""] >= 45
    files = summed(recording, "file.ops[file]")
    names = {name.rpartition("/")[2]: count for name, count in files.items()}
    assert names["twice"] >= 2 * READ // RECORD
    assert names["synced"] >= 100


def test_record_and_what_is_missing_is_one_line(
    host: RigHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "r"
    assert (
        iolab(
            [
                "record",
                "block",
                "syscall",
                "counters",
                "--host",
                host.name,
                "--duration",
                "3s",
                "-q",
                "-o",
                str(place),
            ]
        )
        == 0
    )
    assert Recording(place).facts.origin["connection"]["kind"] == "rig"
    capsys.readouterr()
    assert (
        iolab(
            [
                "record",
                "block",
                "--host",
                host.name,
                "--tracefs",
                "/nothing",
                "--duration",
                "1s",
                "-o",
                str(tmp_path / "n"),
            ]
        )
        == 5
    )
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "tracefs" in err
    assert not (tmp_path / "n").exists()
