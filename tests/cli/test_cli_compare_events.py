# SPDX-License-Identifier: Apache-2.0
"""`iolab compare` of two recordings or traces: what is printed, and every mistake as one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest
from support.golden import Golden


def trace(path: Path, latency_us: int, process: str = "fio", count: int = 4000) -> Path:
    lines = [
        f"{place},{latency_us + place % 7},8192,{'write' if place % 4 == 0 else 'read'},{process}\n"
        for place in range(count)
    ]
    path.write_text("time:ms,latency:us,size:bytes,op,process\n" + "".join(lines))
    return path


def test_two_traces(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    monkeypatch.chdir(tmp_path)
    trace(Path("before.csv"), 100)
    trace(Path("after.csv"), 900, "cp")
    assert run(["compare", "before.csv", "after.csv"]) == 0
    golden("compare-events", capsys.readouterr().out)


def test_recordings_of_one_name_have_their_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = []
    for latency, day in ((100, "monday"), (100, "tuesday")):
        place = tmp_path / day / "rec"
        place.parent.mkdir()
        ingest(Trace(trace(tmp_path / f"{day}.csv", latency)), place)
        places.append(str(place))
    assert run(["compare", *places]) == 0
    out = capsys.readouterr().out
    assert all(place in out for place in places)
    assert "equal shares of" in out
    assert run(["compare", *places, "--format", "json", "--where", "op=write"]) == 0
    document = json.loads(capsys.readouterr().out)
    (of_source,) = document["of"]
    assert document["kind"] == "difference"
    assert of_source["events"] == [1000, 1000]
    assert {part["op"] for part in of_source["measures"]} == {"write"}


def test_names_of_others_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = trace(tmp_path / "a.csv", 100, "evil\x1b[2J")
    second = trace(tmp_path / "b.csv", 100, "fio")
    assert run(["compare", str(first), str(second)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t.csv"], "compares two recordings or traces"),
        (["t.csv", "t.csv", "t.csv"], "compares two recordings or traces"),
        (["t.csv", "."], ". is neither"),
        (
            ["t.csv", "t.csv", "--metric", "write.iops"],
            "no other options than --where and --format",
        ),
        (["t.csv", "t.csv", "--windows"], "no other options than --where and --format"),
        (["t.csv", "t.csv", "--knee"], "no other options than --where and --format"),
        (["t.csv", "t.csv", "--limits"], "no other options than --where and --format"),
        (["t.csv", "t.csv", "--published", "p.csv"], "no other options than --where and --format"),
        (["t.csv", "t.csv", "--as", "a=t.csv"], "no other options than --where and --format"),
        (["t.csv", "t.csv", "--precision", "3"], "no other options than --where and --format"),
        (["t.csv", "t.csv", "--format", "csv"], "not as csv"),
        (["t.csv", "t.csv", "--where", "nothing=1"], "nothing"),
        (["t.csv", "empty.csv"], "empty.csv: has no I/Os"),
        (["t.csv", "t.csv", "--where", "process=dd"], "t.csv: has no I/Os that meet"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    trace(Path("t.csv"), 100)
    Path("empty.csv").write_text("time:ms,latency:us,size:bytes,op,process\n")
    assert run(["compare", *arguments]) in (2, 3)
    captured = capsys.readouterr()
    assert not captured.out
    assert words in captured.err
    assert len(captured.err.splitlines()) == 1
