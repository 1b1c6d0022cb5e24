# SPDX-License-Identifier: Apache-2.0
"""`iolab history`: results over time, and since when they changed."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.studies.history.store import History
from support.fio_files import job, output

STUDIES, CHANGED = 24, 15
"""Results, of which those from the sixteenth on are 20 % slower at one of two loads."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("history")
    random = np.random.default_rng(2)
    for study in range(STUDIES):
        for repetition in (1, 2):
            for jobs in (1, 8):
                place = base / "trees" / f"n{study:02d}" / f"rep{repetition}" / f"jobs{jobs}"
                place.mkdir(parents=True)
                slow = 0.8 if study >= CHANGED and jobs == 8 else 1.0
                rate = 1000.0 * jobs * slow * float(np.exp(random.normal(0, 0.01)))
                text = output(
                    job(jobs=jobs, iops=rate),
                    minute=study * 1440 + repetition * 10 + jobs,
                    numjobs=str(jobs),
                )
                if study >= CHANGED:
                    text = text.replace("fio-3.33", "fio-3.36")
                (place / "fio.json").write_text(text)
        results = str(base / f"n{study:02d}")
        tree = str(base / "trees" / f"n{study:02d}")
        layout = "rep{repetition:int}/jobs{numjobs:int}"
        assert run(["import", tree, "--layout", layout, "-o", results]) == 0
    # not in order of time
    for study in sorted(range(STUDIES), key=lambda study: (study * 7) % STUDIES):
        words = ["history", "add", str(base / f"n{study:02d}"), "--history", str(base / "h")]
        assert run([*words, "--revision", f"r{study}", "--tag", f"night={study}"]) == 0
    return base


def history(*words: str) -> int:
    return run(["history", *words])


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert history(*words) == 0
    return capsys.readouterr().out


def found(capsys: pytest.CaptureFixture[str], directory: Path, *words: str) -> dict[str, Any]:
    text = shown(capsys, "show", "--history", str(directory), *words, "--format", "json")
    document: dict[str, Any] = json.loads(text)
    return document


def test_entries_are_in_order_of_time(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(shown(capsys, "list", "--history", str(made / "h"), "--format", "json"))
    assert [entry["revision"] for entry in document["entries"]] == [
        f"r{study}" for study in range(STUDIES)
    ]
    assert document["entries"][3]["tags"] == {"night": "3"}
    assert shown(capsys, "list", "--history", str(made / "h")).count("\n") == STUDIES + 1


def test_a_change_is_found_at_its_result_and_nothing_else(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = found(capsys, made / "h", "--metric", "write.iops")
    assert [series["factors"] for series in document["series"]] == [{"numjobs": 1}, {"numjobs": 8}]
    one, eight = document["series"]
    assert one["changes"] == []
    [change] = eight["changes"]
    assert change["change"] == pytest.approx(-20, abs=1.5)
    assert change["low"] < -20 < change["high"]
    assert change["revisions"] == [f"r{CHANGED - 1}", f"r{CHANGED}"]
    assert (change["improves"], change["unit"]) == (False, "%")
    assert {"name": "fio", "before": "fio-3.33", "after": "fio-3.36"} in change["environment"]


def test_text_and_csv_have_the_change(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["show", "--history", str(made / "h"), "--metric", "write.iops"]
    text = shown(capsys, *words)
    assert text.startswith("write.iops")
    assert f"between r{CHANGED - 1} " in text
    assert "▁" in text
    rows = list(csv.DictReader(io.StringIO(shown(capsys, *words, "--format", "csv"))))
    assert len(rows) == 2 * STUDIES
    assert [row["revision"] for row in rows if row["change"]] == [f"r{CHANGED}"]
    one = found(capsys, made / "h", "--where", "numjobs=1")
    assert {series["factors"]["numjobs"] for series in one["series"]} == {1}


def flipped(data: bytes) -> bytes:
    """A value of the first metric changed."""
    return data[:30] + bytes([data[30] ^ 4]) + data[31:]


@pytest.mark.slow
def test_the_index_is_rebuilt_from_the_results(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made, tmp_path / "copy")
    directory = tmp_path / "copy" / "h"
    before = found(capsys, directory)
    (directory / "index.parquet").unlink()
    assert found(capsys, directory) == before
    for damaged in (b"damaged", flipped((directory / "index.parquet").read_bytes())):
        (directory / "index.parquet").write_bytes(damaged)
        assert found(capsys, directory) == {
            **before,
            "notes": ["index.parquet was damaged and is rebuilt from the results"],
        }
        assert found(capsys, directory) == before
    (directory / "changes.json").write_text("damaged")
    assert found(capsys, directory) == before
    assert history("rebuild", "--history", str(directory)) == 0
    assert found(capsys, directory) == before


@pytest.mark.slow
def test_values_of_missing_results_stay(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made, tmp_path / "copy")
    directory = tmp_path / "copy" / "h"
    before = found(capsys, directory)
    shutil.rmtree(tmp_path / "copy" / "n03")
    capsys.readouterr()
    assert history("rebuild", "--history", str(directory)) == 1
    assert "n03" in capsys.readouterr().err
    assert found(capsys, directory) == before
    (directory / "index.parquet").unlink()
    after = found(capsys, directory)
    assert len(after["series"][0]["entries"]) == STUDIES - 1


def test_mistakes_are_one_line(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, directory = str(made / "n00"), str(made / "h")
    for code, words in (
        (2, ["add", first, "--history", directory]),
        (2, ["add", first, "--history", str(tmp_path / "new"), "--tag", "x"]),
        (2, ["add", str(tmp_path), "--history", str(tmp_path / "new")]),
        (3, ["list", "--history", str(tmp_path / "absent")]),
        (3, ["show", "--history", str(tmp_path / "absent")]),
        (2, ["show", "--history", directory, "--metric", "nothing"]),
        (2, ["show", "--history", directory, "--where", "numjobs=3"]),
    ):
        capsys.readouterr()
        assert history(*words) == code, words
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1, err
    assert not (tmp_path / "new").exists()


def test_a_damaged_list_is_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "h", tmp_path / "h")
    file = tmp_path / "h" / "history.json"
    whole = file.read_text()
    for content in ("{", whole.replace('"r3"', '"r4"', 1), "[]"):
        file.write_text(content)
        capsys.readouterr()
        assert history("list", "--history", str(tmp_path / "h")) == 3
        assert "history.json" in capsys.readouterr().err


def test_an_entry_that_the_index_lacks_is_read(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "copy")
    directory = tmp_path / "copy" / "h"
    index = (directory / "index.parquet").read_bytes()
    tree = tmp_path / "tree" / "rep1" / "jobs1"
    tree.mkdir(parents=True)
    (tree / "fio.json").write_text(output(job(iops=1000.0), minute=STUDIES * 1440))
    layout = "rep{repetition:int}/jobs{numjobs:int}"
    late = tmp_path / "copy" / "late"
    assert run(["import", str(tmp_path / "tree"), "--layout", layout, "-o", str(late)]) == 0
    assert history("add", str(late), "--history", str(directory)) == 0
    (directory / "index.parquet").write_bytes(index)
    assert len(History(directory).series("write.iops")[0].entries) == STUDIES + 1


@pytest.mark.parametrize("command", ["report", "show"])
def test_a_history_given_as_results_names_the_commands_that_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "history.json").write_text('{"schema": 1, "entries": []}')
    assert run([command, str(tmp_path)]) == UsageError.exit_code
    error = capsys.readouterr().err
    assert f"iolab view {tmp_path}" in error
    assert f"iolab history show --history {tmp_path}" in error
