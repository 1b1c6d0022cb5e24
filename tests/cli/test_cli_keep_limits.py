# SPDX-License-Identifier: Apache-2.0
"""`iolab keep limits`: shown, set, refused; and taken up by the recorder that is running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.recordings.record.control import say
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.golden import Golden
from support.made_up import as_root, made_up_probe, recording_itself
from support.recordings import START, events
from support.waiting import PATIENCE, recorded_events, until


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        writer.append_events(events(200, start_ns=START, per_s=20))
    assert run(["keep", "add", str(path), "io.ops[latency]", "--backfill"]) == 0
    return path


def limits(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["keep", "limits", str(path), "--format", "json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found.pop("schema"), found.pop("kind")) == (1, "keep-limits")
    return found


def test_they_are_shown_and_set(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["keep", "limits", str(place)]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0].endswith(" of 1.00 GiB")
    assert told.out.splitlines()[1:] == [
        "CPU   5.00 % of all CPU time, over a minute",
        "1s    7 d",
        "1m    14 d",
        "1h    90 d",
    ]
    assert told.err == ""
    assert limits(
        place, capsys, "--bytes", "2g", "--cpu", "2.5%", "--for", "1s=36h", "--for", "1h=1000d"
    ) == {
        "bytes": 2 << 30,
        "cpu_share": 0.025,
        "retention": {"1s": 36 * 3600, "1m": 14 * 86400, "1h": 1000 * 86400},
        "pending": False,
        "used_bytes": sum(
            each.stat().st_size for each in place.glob("histograms/*/*.????????/*.parquet")
        ),
    }
    assert limits(place, capsys)["bytes"] == 2 << 30, "they hold"
    found = limits(place, capsys, "--bytes", "none", "--cpu", "none")
    assert (found["bytes"], found["cpu_share"], found["retention"]["1s"]) == (None, None, 36 * 3600)
    assert run(["keep", "limits", str(place), "--cpu", "7"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(" of any size")
    assert run(["keep", "list", str(place), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["statistics"][0]["tiers"][0]["keep_s"] == 36 * 3600


@pytest.mark.parametrize(
    "words",
    [
        ["--bytes", "much"],
        ["--bytes", "0"],
        ["--cpu", "0"],
        ["--cpu", "200%"],
        ["--cpu", "lots"],
        ["--for", "1s"],
        ["--for", "1s="],
        ["--for", "1d=5d"],
        ["--for", "1s=30d"],
        ["--for", "1h=9000000000d"],
        ["--for", "1s=-5d"],
        ["--for", "=5d"],
    ],
)
def test_what_can_not_be_a_limit(
    words: list[str], place: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    before = limits(place, capsys)
    assert run(["keep", "limits", str(place), *words]) == 2
    told = capsys.readouterr()
    golden("cli/keep-not-a-limit", f"$ iolab keep limits r {' '.join(words)}\n{told.err}")
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert limits(place, capsys) == before


def test_of_what_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keep", "limits", str(tmp_path)]) == 3
    RecordingWriter.create(
        tmp_path / "r", host="", clock="trace", origin={"kind": "import"}, live=False
    ).close()
    assert run(["keep", "limits", str(tmp_path / "r"), "--bytes", "none"]) == 2
    assert "do not age" in capsys.readouterr().err


def test_a_damaged_file_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "histograms/keep.json").write_text('{"kind": "keep", "schema": 1}')
    for words in ([], ["--bytes", "none"]):
        assert run(["keep", "limits", str(place), *words]) == 3
        assert "keep.json: is damaged" in capsys.readouterr().err


@pytest.mark.slow
def test_the_recorder_takes_them_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_root(monkeypatch)
    made_up_probe(tmp_path, monkeypatch, rate=200)
    path = tmp_path / "live"

    def suspended() -> int:
        recorded_events(
            path, sum(sum(segment.sources.values()) for segment in Recording(path).segments()) + 200
        )
        say(path, {"word": "cut"}, timeout=PATIENCE)
        capsys.readouterr()
        assert run(["keep", "list", str(path), "--format", "json"]) == 0
        return sum(
            row["state"] == "suspended" for row in json.loads(capsys.readouterr().out)["statistics"]
        )

    with recording_itself(path):
        until(lambda: not limits(path, capsys)["pending"], "the keeper to begin")
        limits(path, capsys, "--bytes", "1B")
        until(lambda: not limits(path, capsys)["pending"], "the limits to be taken up")
        until(lambda: suspended() == 3, "all to be suspended, one after the other")
        capsys.readouterr()
        assert run(["keep", "limits", str(path), "--bytes", "1g"]) == 0
        assert f"iolab keep resume {path} resumes them" in capsys.readouterr().err
        assert run(["keep", "resume", str(path)]) == 0
        until(lambda: suspended() == 0, "them to go on")
