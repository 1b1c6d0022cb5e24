# SPDX-License-Identifier: Apache-2.0
"""`iolab archive`: push, list, status and fetch, as the guide shows them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import record
from support.recordings import SECOND, START, events, samples
from support.studies import import_study


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "rec"
    with RecordingWriter.create(
        path,
        host="db1",
        clock="realtime",
        origin={"kind": "record"},
        sources={"block": {}, "diskstats": {}},
        live=False,
    ) as writer:
        writer.append_events(events(300, start_ns=START, per_s=50))
        writer.append_samples(samples(6))
    return path


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(["archive", *words]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(output(capsys, *words, "--format", "json"))
    assert document["schema"] == 1
    return document


@pytest.mark.slow
def test_push_list_status_and_fetch(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, back = str(tmp_path / "archive"), tmp_path / "back"
    pushed = data(capsys, "push", str(recording), archive)
    assert (pushed["files"], pushed["present"], pushed["samples"]) == (2, 0, 6)
    listed = data(capsys, "list", archive)["recordings"]
    assert [(each["host"], each["events"]) for each in listed] == [("db1", pushed["events"])]
    tables = data(capsys, "status", archive)["tables"]
    assert tables["events"]["rows"] == 300
    assert tables["events"]["files"] == 1
    output(capsys, "fetch", archive, "--from", "1s", "--to", "3s", "-o", str(back))
    assert run(["query", str(back), "io.ops", "--format", "json"]) == 0
    first_ns, last_ns = Recording(back).span() or (0, 0)
    assert START + SECOND <= first_ns < last_ns < START + 3 * SECOND
    text = output(capsys, "list", archive)
    assert "2023-11-14T22:13:20Z" in text
    assert f"{pushed['events']:,}" in text
    assert "events" in output(capsys, "status", archive)
    assert "archived before: 2 files" in output(capsys, "push", str(recording), archive)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("list", "absent"), 3),
        (("status", "s3://bucket/x"), 2),
        (("status", "archive:/srv/archive"), 2),
        (("status", "db1:/srv/archive"), 2),
        (("status", ""), 2),
        (("status", "catalog:"), 2),
        (("push", "absent", "archive"), 3),
        (("fetch", "absent", "-o", "x"), 3),
        (("push", "absent", "archive", "--every", "never"), 2),
    ],
)
def test_mistakes_are_one_line(
    words: tuple[str, ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["archive", *words]) == code
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_without_pyiceberg_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    assert run(["archive", "list", str(tmp_path)]) == 2
    assert "iolab[archive]" in capsys.readouterr().err


@pytest.mark.slow
def test_the_program_of_the_guide_reads_an_archive(
    recording: Path, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = str(tmp_path / "archive")
    output(capsys, "push", str(recording), archive)
    guide = (root / "docs/guides/archive.md").read_text("utf-8")
    program = re.search(r"```python\n(.*?)```", guide, re.DOTALL)
    assert program is not None
    # few made-up reads are that slow
    text = program[1].replace("10000000", "1000")
    done = subprocess.run(
        [sys.executable, "-c", text, archive], capture_output=True, text=True, check=True
    )
    assert all(line.startswith("db1 ") for line in done.stdout.splitlines())
    assert done.stdout


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    """An archive of two hosts with 300 rows of I/Os each."""
    from iolab.recordings.archive import Archive, push

    archive = Archive.open(str(tmp_path / "archive"), create=True)
    for seed, host in enumerate(("db1", "db2")):
        with RecordingWriter.create(
            tmp_path / host,
            host=host,
            clock="realtime",
            origin={"kind": "record"},
            sources={"block": {}},
            live=False,
        ) as writer:
            writer.append_events(events(300, seed, start_ns=START, per_s=50))
        push(tmp_path / host, archive)
    return f"archive:{archive.url}"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(list(words)) == 0
    return capsys.readouterr().out


def test_an_archive_is_asked_as_a_path(
    fleet: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_host = json.loads(asked(capsys, "query", fleet, "io.ops[host]", "--format", "json"))
    assert {row["key"] for row in by_host["keys"]} == {"db1", "db2"}
    totals = {
        host: json.loads(asked(capsys, "query", str(tmp_path / host), "io.ops", "--format", "json"))
        for host in ("db1", "db2")
    }
    assert {row["key"]: row["total"] for row in by_host["keys"]} == {
        host: answer["total"] for host, answer in totals.items()
    }
    maps = json.loads(asked(capsys, "query", fleet, "io.ops[latency][host]", "--format", "json"))
    assert maps["kind"] == "hosts"
    assert [item["kind"] for item in maps["hosts"]] == ["heat", "heat"]
    table = asked(capsys, "query", fleet, "io.ops[op][host]", "--format", "csv")
    assert table.splitlines()[0] == "host,time_s,op,value"
    whose = json.loads(
        asked(capsys, "who", fleet, "io.ops[latency]", "--range", "1ms..", "--format", "json")
    )
    assert "host" in {item["field"] for item in whose["dimensions"]}
    plans = json.loads(asked(capsys, "query", fleet, "io.ops", "--explain", "--format", "json"))
    assert [plan["host"] for plan in plans["recordings"]] == ["db1", "db2"]
    for words in (["io.ops"], ["io.ops[host]"], ["io.ops[latency][host]"], ["io.ops", "--explain"]):
        assert asked(capsys, "query", fleet, *words)


def test_heat_maps_of_an_archive(
    fleet: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(capsys, "heatmap", fleet, "--where", "host=db1,db2,op=read", "--screen", "text")
    asked(capsys, "heatmap", fleet, "--where", "host=db2", "-o", str(tmp_path / "db2.html"))
    assert (tmp_path / "db2.html").stat().st_size > 10_000
    # a field of a condition has other values, which are no parts of the map
    asked(
        capsys, "heatmap", fleet, "--where", "host=db2,op=read", "-o", str(tmp_path / "read.html")
    )
    assert (tmp_path / "read.html").stat().st_size > 10_000


def test_outliers_are_ranked(fleet: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = fleet.removeprefix("archive:")
    ranked = data(capsys, "outliers", url)["hosts"]
    assert [item["host"] for item in ranked] in (["db1", "db2"], ["db2", "db1"])
    assert 0 < ranked[0]["distance"] < 0.2
    assert output(capsys, "outliers", url, "io.ops[size]").count("\n") == 3


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ["query", "ARCHIVE", "io.ops[host=db9]"]),
        (2, ["query", "ARCHIVE", "io.ops[host>db1]"]),
        (2, ["query", "ARCHIVE", "io.ops", "--follow"]),
        (2, ["query", "archive:", "io.ops"]),
        (2, ["query", "ARCHIVE", "io.ops", "--from", "1h"]),
        (3, ["query", "archive:/nowhere", "io.ops"]),
        (2, ["heatmap", "ARCHIVE", "--where", "host=db9"]),
        (2, ["archive", "outliers", "ARCHIVE", "io.ops"]),
    ],
)
def test_questions_that_an_archive_refuses(
    fleet: str, capsys: pytest.CaptureFixture[str], code: int, words: list[str]
) -> None:
    is_url = words[0] == "archive"
    name = fleet.removeprefix("archive:") if is_url else fleet
    assert run([word.replace("ARCHIVE", name) for word in words]) == code
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("iolab: ")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder of two recordings, and a file that is none."""
    (tmp_path / "hosts").mkdir()
    for seed, host in enumerate(("db1", "<b>db2")):
        record(tmp_path / "hosts" / str(seed), host=host, seed=seed)
    (tmp_path / "hosts" / "notes.txt").write_text("no recording")
    return str(tmp_path / "hosts")


def test_a_folder_of_recordings_is_asked_as_an_archive_is(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    by_host = json.loads(asked(capsys, "query", folder, "io.ops[host]", "--format", "json"))
    totals = {
        host: json.loads(asked(capsys, "query", f"{folder}/{seed}", "io.ops", "--format", "json"))
        for seed, host in enumerate(("db1", "<b>db2"))
    }
    assert {row["key"]: row["total"] for row in by_host["keys"]} == {
        host: answer["total"] for host, answer in totals.items()
    }
    maps = json.loads(asked(capsys, "query", folder, "io.ops[latency][host]", "--format", "json"))
    assert {item["host"] for item in maps["hosts"]} == {"db1", "<b>db2"}
    whose = json.loads(
        asked(capsys, "who", folder, "io.ops[latency]", "--range", "1ms..", "--format", "json")
    )
    assert "host" in {item["field"] for item in whose["dimensions"]}
    plans = json.loads(asked(capsys, "query", folder, "io.ops", "--explain", "--format", "json"))
    assert [plan["recording"] for plan in plans["recordings"]] == ["0", "1"]
    assert asked(capsys, "query", folder, "io.ops", "--explain")
    assert asked(capsys, "heatmap", folder, "--where", "host=db1,op=read", "--screen", "text")
    whole = asked(capsys, "heatmap", folder, "--screen", "text").splitlines()[0]
    single = asked(capsys, "heatmap", f"{folder}/0", "--screen", "text").splitlines()[0]
    assert whole != single
    ranked = data(capsys, "outliers", folder)["hosts"]
    assert {item["host"] for item in ranked} == {"db1", "<b>db2"}


def test_a_damaged_recording_of_a_folder_is_named(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(folder) / "0" / "recording.json").write_text("{")
    for words in (
        ["query", folder, "io.ops"],
        ["who", folder, "io.ops[latency]", "--range", "1ms.."],
        ["heatmap", folder, "--screen", "text"],
    ):
        assert run(words) == 0
        [note] = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
        assert note.startswith("note: 0 is left out: ")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ["query", "FOLDER", "io.ops[host=db9]"]),
        (2, ["query", "FOLDER", "io.ops", "--follow"]),
        (2, ["ios", "FOLDER"]),
        (2, ["query", "FOLDER", "io.ops", "--engine", "duckdb"]),
        (2, ["query", "FOLDER", "io.utilization"]),
        (2, ["query", "FOLDER/0", "io.ops[host]"]),
        (3, ["query", "EMPTY", "io.ops[host]"]),
        (3, ["heatmap", "EMPTY"]),
        (2, ["heatmap", "FOLDER", "--where", "host=db9"]),
        (2, ["heatmap", "FOLDER/0", "--where", "host=db1"]),
        (2, ["heatmap", "FOLDER", "--where", "rack=r1"]),
        (2, ["archive", "outliers", "FOLDER", "--within", "rack"]),
        (3, ["archive", "outliers", "EMPTY"]),
    ],
)
def test_questions_that_a_folder_refuses(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int, words: list[str]
) -> None:
    (tmp_path / "empty").mkdir()
    names = {"FOLDER": folder, "EMPTY": str(tmp_path / "empty")}
    for name, path in names.items():
        words = [word.replace(name, path) for word in words]
    assert run(words) == code
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("iolab: ")


@pytest.mark.slow
def test_results_are_pushed_with_their_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from iolab.recordings.archive import Archive, tables
    from iolab.studies.results.open.results import Results

    results, url = import_study(tmp_path, 1, 1000), str(tmp_path / "archive")
    expected = sorted(
        (run.id, run.variant, name, observation.value)
        for run in Results(results).runs
        for name, observation in run.observations.items()
    )

    def push() -> dict[str, Any]:
        pushed = data(capsys, "push", str(results), url)
        assert [item["events"] > 0 for item in pushed["recordings"]] == [is_first]
        rows: dict[str, Any] = pushed["observations"]
        return rows

    is_first = True
    observations = push()
    assert (observations["rows"], observations["replaced"]) == (len(expected), 0)
    is_first = False
    archive = Archive.open(url)

    def archived() -> list[tuple[Any, ...]]:
        lines = archive.read(tables.OBSERVATIONS).to_pylist()
        names = ("run", "variant", "metric", "value")
        assert {line["results"] for line in lines} == {observations["results"]}
        return sorted(tuple(line[name] for name in names) for line in lines)

    assert archived() == expected
    snapshots = len(archive.table(tables.OBSERVATIONS).snapshots())
    # the same again: nothing is written
    assert push() == observations
    assert len(archive.table(tables.OBSERVATIONS).snapshots()) == snapshots
    # another reading of the same evidence replaces the rows
    archive.commit(tables.OBSERVATIONS, lambda change: change.delete(f"run == '{expected[0][0]}'"))
    assert 0 < push()["replaced"] < len(expected)
    assert archived() == expected
    assert run(["archive", "push", str(results), url, "--every", "1s"]) == 2
