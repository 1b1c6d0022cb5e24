# SPDX-License-Identifier: Apache-2.0
"""Opening results by what a notebook has at hand: a path, or its text."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest

import iolab
from iolab.api import Opened
from iolab.base.errors import ResultsError
from iolab.cli.main import run
from iolab.output.report.assemble import assemble
from iolab.studies.results.open.cache import evidence_key
from iolab.studies.results.open.multi_host import Hosts, write_hosts
from iolab.studies.results.open.results import Results
from support.fio_files import job, output


def test_a_path_may_be_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "tree/old/rep1"
    place.mkdir(parents=True)
    (place / "fio.json").write_text(output(job(iops=1000)))
    assert (
        run(
            [
                "import",
                str(tmp_path / "tree"),
                "--layout",
                "{variant}/rep{repetition:int}",
                "-o",
                str(tmp_path / "both/here"),
            ]
        )
        == 0
    )
    write_hosts(tmp_path / "both", Hosts({"here": "local"}))
    monkeypatch.chdir(tmp_path)
    for text, ids in (("both/here", ["0001"]), ("both", ["here/0001"])):
        opened = Results(text)
        assert opened.path == Path(text)
        assert [each.id[: len(ids[0])] for each in opened.runs] == ids
        assert [each.id for each in opened.runs] == [each.id for each in Results(Path(text)).runs]
        assert opened.series(opened.runs[0].id) == Results(Path(text)).series(opened.runs[0].id)
    with pytest.raises(ResultsError, match="not a results directory"):
        Results("nothing")


def test_an_environment_that_changes_between_runs_is_shown_with_all_its_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for repetition in (1, 2):
        place = tmp_path / f"tree/old/rep{repetition}"
        place.mkdir(parents=True)
        (place / "fio.json").write_text(output(job(iops=1000 + repetition)))
    words = ["--layout", "{variant}/rep{repetition:int}", "-o", str(tmp_path / "out")]
    assert run(["import", str(tmp_path / "tree"), *words]) == 0
    first = {"kernel": "6.1", "memory": "4 GiB"}
    (tmp_path / "out/environment.json").write_text(json.dumps({"fingerprint": first}))
    for directory, kernel in zip(
        sorted((tmp_path / "out/runs").iterdir()), ("6.1", "6.12"), strict=True
    ):
        plan = json.loads((directory / "run.json").read_text())
        del plan["files"], plan["sha256"]
        (directory / "run.json").write_text(json.dumps({**plan, "schema": 1}))
        text = json.dumps({"schema": 1, "fingerprint": {**first, "kernel": kernel}})
        (directory / "environment.json").write_text(text)
    capsys.readouterr()
    assert run(["show", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "  kernel: 6.1, 6.12\n" in out
    assert "  memory: 4 GiB\n" in out


PLAN = {"schema": 1, "run": "0002-ab", "variant": "old", "factors": {}}
ODD_PLANS: tuple[dict[str, Any], ...] = (
    {"host": 5},
    {"jobs": "x"},
    {"factors": []},
    {"factors": {"a": []}},
    {"runtime": [1]},
    {"exit_code": "x"},
    {"tools": {"fio": 3}},
    {"extra": None},
    {"command": [1]},
    {"repetition": True},
    {"block": 2**40},
    {"window": [0, 10**400]},
    {"window": [0, math.inf]},
    {"more": 1},
)


@pytest.mark.parametrize(
    "plan",
    [
        None,
        "{}",
        "",
        "[",
        "[" * 100_000,
        *(json.dumps(PLAN | wrong) for wrong in ODD_PLANS),
    ],
)
def test_a_run_that_was_killed_is_shown_each_time(
    plan: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for repetition in (1, 2, 3):
        place = tmp_path / f"tree/old/rep{repetition}"
        place.mkdir(parents=True)
        (place / "fio.json").write_text(output(job(jobs=1, iops=1000 + repetition)))
    out = tmp_path / "out"
    assert (
        run(
            [
                "import",
                str(tmp_path / "tree"),
                "--layout",
                "{variant}/rep{repetition:int}",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    [killed] = out.glob("runs/0002-*/run.json")
    killed.unlink()
    if plan is not None:
        killed.write_text(plan)
    first, again = Results(out), Results(out)
    for opened in (first, again):
        assert [each.verdict.level.value for each in opened.runs] == ["OK", "INVALID", "OK"]
        assert opened.runs[1].verdict.has("no-plan")
        assert (opened.runs[1].variant, opened.series(opened.runs[1].id)) == ("?", ())
    assert again.runs == first.runs
    assert run(["compare", str(out)]) == run(["show", str(out)]) == 0
    for words in ((), ("--format", "markdown"), ("--format", "json")):
        capsys.readouterr()
        assert run(["compare", str(out), *words]) == 0
        printed = capsys.readouterr().out
        assert opened.runs[1].id in printed
        assert "run.json" in printed
    [warning] = json.loads(printed)["warnings"][-1:]
    assert (warning["code"], opened.runs[1].id in warning["text"]) == ("unreadable-run", True)
    reopened = iolab.open(out)
    assert isinstance(reopened, Opened)
    [noted] = [
        warning
        for warning in reopened.compare("write.iops").warnings
        if warning.code == "unreadable-run"
    ]
    assert "run.json" in noted.text
    payload, _ = assemble(opened)
    trusted = [sentence.text for sentence in payload.summary[-1].sentences]
    assert any(opened.runs[1].id in text and "run.json" in text for text in trusted)


def test_a_run_that_has_no_file_yet_comes_and_goes(tmp_path: Path) -> None:
    place = tmp_path / "tree/old/rep1"
    place.mkdir(parents=True)
    (place / "fio.json").write_text(output(job(jobs=1, iops=1000)))
    out = tmp_path / "out"
    assert (
        run(
            [
                "import",
                str(tmp_path / "tree"),
                "--layout",
                "{variant}/rep{repetition:int}",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    assert len(Results(out).runs) == 1
    (out / "runs/0002-aaaaaaaa").mkdir()
    assert [each.verdict.level.value for each in Results(out).runs] == ["OK", "INVALID"]
    (out / "runs/0002-aaaaaaaa").rmdir()
    assert len(Results(out).runs) == 1


def test_what_is_read_only_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "tree/old/rep1"
    place.mkdir(parents=True)
    (place / "fio.json").write_text(output(job(jobs=1, iops=1000)))
    out = tmp_path / "out"
    assert (
        run(
            [
                "import",
                str(tmp_path / "tree"),
                "--layout",
                "{variant}/rep{repetition:int}",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    for cache in out.glob("*.parquet"):
        cache.unlink()

    def refused(*_: Any, **__: Any) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as read_only:
        read_only.setattr(pq, "write_table", refused)
        read_only.setattr(Path, "unlink", refused)
        opened = Results(out)
        assert [each.id[:4] for each in opened.runs] == ["0001"]
    assert not list(out.glob("*.parquet"))
    assert Results(out).runs == opened.runs
    assert len(list(out.glob("*.parquet"))) == 3


def test_the_key_of_caches_covers_the_code_that_derives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []
    real = os.walk

    def walk(place: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for folder, below, names in real(place):
            folders.append(Path(folder))
            yield folder, below, names

    monkeypatch.setattr(os, "walk", walk)
    evidence_key(tmp_path)
    package = Path(iolab.__file__).parent
    assert {
        package / "formats",
        package / "studies/results" / "derive",
        package / "base/stats",
    } <= {*folders}
    assert not any(folder.name == "__pycache__" for folder in folders)


@pytest.mark.parametrize("command", ["show", "compare"])
def test_numbers_are_printed_the_same_with_and_without_a_cache(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    for arm in ("old", "new"):
        for repetition in (1, 2):
            place = tmp_path / f"tree/{arm}/rep{repetition}"
            place.mkdir(parents=True)
            (place / "fio.json").write_text(output(job(iops=1000 + repetition)))
    assert run(["import", str(tmp_path / "tree"), "-o", str(results)]) == 0
    for cache in (*results.glob("*.parquet"), results / "caches.json"):
        cache.unlink()
    printed = []
    for _ in range(2):
        capsys.readouterr()
        assert run([command, str(results), "--format", "json"]) == 0
        printed.append(capsys.readouterr().out)
        assert (results / "observations.parquet").exists()
    assert printed[0] == printed[1]
