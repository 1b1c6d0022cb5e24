# SPDX-License-Identifier: Apache-2.0
"""fio's files and folders of them, wherever results are accepted."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from support.fio_files import job, output
from support.fio_texts import HEADER, NEW, STATUS, report


def exit_code(*words: str) -> int:
    return run(list(words))


def seen(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert exit_code(*words, "--format", "json") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """before1..3.json, after1..3.json, other.json of another iodepth, and folders a, b of texts."""
    for n in range(1, 4):
        for arm, iops, minute in (("before", 1000, 2 * n), ("after", 900, 2 * n + 1)):
            text = output(job(jobs=1, iops=iops + n), minute=minute, iodepth="1", rw="write")
            (tmp_path / f"{arm}{n}.json").write_text(text)
        for folder, ios in (("a", 80_000), ("b", 88_000)):
            (tmp_path / folder).mkdir(exist_ok=True)
            text = HEADER + report(ios=ios + 100 * n, pid=n) + STATUS
            (tmp_path / folder / f"run{n}.txt").write_text(text)
    (tmp_path / "other.json").write_text(output(job(jobs=1), iodepth="4", rw="write"))
    (tmp_path / "a" / "notes.md").write_text("no result")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "baseline", "variants"),
    [
        (
            [
                "before1.json",
                "before2.json",
                "before3.json",
                "after1.json",
                "after2.json",
                "after3.json",
            ],
            "before",
            ["before", "after"],
        ),
        (["after1.json", "after2.json", "before1.json"], "after", ["after", "before1"]),
        (["before1.json", "before2.json"], "before1", ["before1", "before2"]),
        (["--as", "old=before*.json", "--as", "new=after*.json"], "old", ["old", "new"]),
        (["--as", "x=b/,y=a"], "x", ["x", "y"]),
        (["a", "b"], "a", ["a", "b"]),
        (["b", "before1.json"], "b", ["b", "before1"]),
    ],
)
def test_arms_are_as_typed(
    files: Path,
    words: list[str],
    baseline: str,
    variants: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    from iolab.cli.base.options import Arms

    names = tuple(word for word in words if "=" in word)
    paths = tuple(Path(word) for word in words if "=" not in word and word != "--as")
    opened = Arms(paths, names).open()
    assert (opened.baseline, list(opened.manifest.variants)) == (
        baseline,
        variants,
    )


def test_repetitions_are_compared_as_pairs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from iolab.cli.base.options import Arms

    opened = Arms((), ("old=before*.json", "new=after*.json")).open()
    cells = opened.compare("write.iops").cells
    assert [(cell.variant, len(cell.estimate.values)) for cell in cells] == [("old", 3), ("new", 3)]
    assert cells[1].change is not None
    assert cells[1].change.pairs == 3


def test_a_folder_is_checked_against_files(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rule", "read.iops >= -5 %"]
    against = [word for n in (1, 2, 3) for word in ("--against", f"a/run{n}.txt")]
    assert exit_code("check", "b", *against, *words) == 0
    assert exit_code("check", "a", "--against", "b", *words) in (6, 7)
    assert exit_code("check", "a", "b", *words) == 0
    assert exit_code("report", "a", "b", "-o", "report.html") == 0


def test_a_folder_is_shown_without_import(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [part["metrics"]["read.iops"] for part in seen(capsys, "show", "a")["runs"]] == [
        8010,
        8020,
        8030,
    ]


def test_standard_input_is_a_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stdin(io.TextIOWrapper):
        pass

    monkeypatch.setattr("sys.stdin", Stdin(io.BytesIO(NEW.encode())))
    (shown,) = seen(capsys, "show", "-")["runs"]
    assert (shown["verdict"]["level"], shown["metrics"]["read.iops"]) == ("OK", 8000)
    monkeypatch.setattr("sys.stdin", Stdin(io.BytesIO(b"\n")))
    assert exit_code("show", "-") == 2
    assert "standard input is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare"], "no results are given"),
        (["compare", "--as", "x=none*.json"], "no such file"),
        (["compare", "before1.json", "--as", "x=a"], "names and matches the arms"),
        (["compare", "a", "empty"], "has no fio result"),
        (["show", "empty"], "0 files looked at"),
    ],
)
def test_mistakes_are_named(
    files: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "empty").mkdir()
    assert exit_code(*words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_history_keeps_a_copy_of_fios_files(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("history", "add", "before1.json", "before2.json", "after1.json") == 0
    assert exit_code("history", "add", "a") == 0
    (files / "before1.json").unlink()
    entries = seen(capsys, "history", "list")["entries"]
    assert [entry["study"] for entry in entries] == ["0001-before1", "0001-a"]
    (files / "broken.json").write_text('{"fio version": "fio-3.1", "jobs": [')
    assert exit_code("history", "add", "broken.json") != 0
    assert len(list((files / "history" / "imported").iterdir())) == 2


@pytest.mark.parametrize(
    "words", [("show", "before1.json"), ("compare", "before1.json", "after1.json")]
)
def test_single_files_are_read_without_loading_distributions(
    files: Path, words: tuple[str, ...]
) -> None:
    code = (
        "import sys; from iolab.cli.main import run; assert run(sys.argv[1:]) == 0; "
        "print(*({'scipy.special', 'scipy.optimize', 'numpy.f2py'} & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=files, capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines()[-1:] == [""]
