"""Recording the rig from here: its block layer and its system calls, on a kernel of another age, and files of OpenZFS by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.main import run as iolab
from iolab.hosts.rig import RigHost
from iolab.recording.recording import Recording
from iolab.results.open import Results
from iolab.run.study import run_study
from iolab.statistics.answers import Stack
from iolab.statistics.query import query
from support.acting import Listener

pytestmark = pytest.mark.real

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


def test_a_study_on_a_pool_records_every_layer(host: RigHost, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    listener = Listener()
    run_study(tmp_path / "study.toml", tmp_path / "results", listener=listener, host=host, clock=host.clock, destructive=True)
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
    assert not [loss for loss in recording.losses() if loss["kind"] in ("overrun", "gap")]
    assert recording.facts.origin["host"] == host.name
    files = query(recording, "file.ops[op=write][process=fio][file]")
    assert isinstance(files, Stack)
    of_pool = [count for name, count in zip(files.keys, files.totals, strict=True) if name.endswith("/iolab.0.0")]
    assert len(of_pool) == 1, files.keys
    assert of_pool[0] >= writes
    devices = query(recording, "io.ops[op=write][device]")
    assert isinstance(devices, Stack)
    assert len(devices.keys) == 2


def test_record_and_what_is_missing_is_one_line(host: RigHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "r"
    assert iolab(["record", "block", "syscall", "counters", "--host", host.name, "--duration", "3s", "-q", "-o", str(place)]) == 0
    assert Recording(place).facts.origin["connection"]["kind"] == "rig"
    capsys.readouterr()
    assert iolab(["record", "block", "--host", host.name, "--tracefs", "/nothing", "--duration", "1s", "-o", str(tmp_path / "n")]) == 5
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "tracefs" in err
    assert not (tmp_path / "n").exists()
