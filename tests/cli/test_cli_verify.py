# SPDX-License-Identifier: Apache-2.0
"""`iolab verify` on recordings: what it finds, what it repairs, what it exits with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.recordings.store.base.layout import SEGMENTS, map_file, sealed_file
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(3):
            writer.append_events(
                events(500, number, start_ns=START + 10 * number * SECOND, per_s=100)
            )
            writer.seal()
    return tmp_path / "r"


def test_a_whole_recording(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(recording)]) == 0
    out = capsys.readouterr().out
    assert "recording, 15 files" in out
    assert out.endswith("no damage\n")
    assert run(["verify", str(recording), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["unverified"], told["findings"]) == ("recording", 0, [])


def test_what_can_be_derived_is_repaired_and_nothing_is_removed(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {place: place.read_bytes() for place in recording.rglob("*.parquet")}
    os.truncate(sealed_file(recording, 2, "events"), 3000)
    map_file(recording, 1, "io.latency").unlink()
    place = map_file(recording, 3, "io.size")
    place.write_bytes(bytes([place.read_bytes()[0] ^ 1]) + place.read_bytes()[1:])
    lines = (recording / SEGMENTS).read_text().splitlines(keepends=True)
    (recording / SEGMENTS).write_text("".join([lines[0].replace("500", "501", 1), *lines[1:]]))
    assert run(["verify", str(recording), "--format", "json"]) == 1
    found = {each["path"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert found["events/000002.parquet"]["kind"] == "damaged"
    assert "2023-11-14 22:13:30.000 UTC" in found["events/000002.parquet"]["lost"]
    assert "block" in found["events/000002.parquet"]["lost"]
    assert not found["events/000002.parquet"]["is_derived"]
    assert found["histograms/1s/io.size/000003.parquet"]["is_derived"]
    assert {"events/000001.parquet", "segments.jsonl"} <= found.keys()
    assert run(["verify", str(recording), "--repair"]) == 1, "events that are lost stay so"
    capsys.readouterr()
    assert run(["verify", str(recording), "--repair", "--format", "json"]) == 1
    [left] = [
        each
        for each in json.loads(capsys.readouterr().out)["findings"]
        if not each["is_repaired"] and not each["path"].endswith("io.latency/000001.parquet")
    ]
    assert left["path"] == "events/000002.parquet"
    assert (
        map_file(recording, 3, "io.size").read_bytes() == whole[map_file(recording, 3, "io.size")]
    )
    assert sealed_file(recording, 2, "events").stat().st_size == 3000
    assert (recording / f"{SEGMENTS}.damaged").exists(), "the damaged lines are evidence"
    assert len(Recording(recording).segments()) == 2


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path)]) in (2, 3)
    assert capsys.readouterr().err.count("\n") == 1


def test_who_can_repair_a_directory_of_another_user_is_named(
    recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    map_file(recording, 2, "io.size").unlink()
    assert run(["verify", str(recording)]) == 1
    assert capsys.readouterr().out.endswith("can be rebuilt: iolab verify --repair\n")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert run(["verify", str(recording)]) == 1
    assert capsys.readouterr().out.endswith(
        f"iolab verify --repair, run by its owner: {recording} belongs to another user\n"
    )
