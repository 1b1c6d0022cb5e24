# SPDX-License-Identifier: Apache-2.0
"""Mistakes of users, one clear line each, with the exit code that commands.md promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iolab.cli.main import run
from support.fio_files import job, output

TABLE = (
    "variant,numjobs,metric,value,unit\nmaster,1,write.iops,100,1/s\nproject,1,write.iops,120,1/s\n"
)


@pytest.fixture
def results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    assert (
        run(["import", "--table", str(tmp_path / "table.csv"), "-o", str(tmp_path / "results")])
        == 0
    )
    capsys.readouterr()
    return tmp_path / "results"


def failing(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = run(list(args))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return code, err


def test_a_file_that_is_not_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert failing(capsys, "show", str(tmp_path / "notes.txt")) == (
        3,
        f"iolab: {tmp_path}/notes.txt: is not a fio result; fio's JSON, terse and normal output are one\n",
    )
    code, line = failing(capsys, "compare", str(tmp_path))
    assert (code, "is neither a fio result nor" in line) == (2, True)
    code, line = failing(capsys, "report", str(tmp_path / "absent"))
    assert (code, "no such file or directory" in line) == (2, True)


def test_a_layout_that_matches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    assert (
        "0 files looked at"
        in failing(capsys, "import", str(tmp_path / "tree"), "-o", str(tmp_path / "r"))[1]
    )
    (tmp_path / "tree" / "a" / "b" / "fio.json").write_text(output(job(jobs=1)))
    (tmp_path / "tree" / "c.json").write_text(output(job(jobs=1)))
    code, line = failing(
        capsys,
        "import",
        str(tmp_path / "tree"),
        "--layout",
        "{variant}/x-{numjobs:int}",
        "-o",
        str(tmp_path / "r"),
    )
    assert code == 2
    assert "matches nothing below the tree; a path at that depth is 'a/b'" in line


def test_a_table_without_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text(TABLE.replace(",unit", "").replace(",1/s", ""))
    code, line = failing(
        capsys, "import", "--table", str(tmp_path / "t.csv"), "-o", str(tmp_path / "r")
    )
    assert code == 3
    assert f"{tmp_path}/t.csv:1: the table has no column 'unit'" in line


def test_a_baseline_that_is_not_there(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failing(capsys, "compare", str(results), "--baseline", "mastr")
    assert (
        code,
        "there is no variant 'mastr' to be the baseline; variants are master, project" in line,
    ) == (2, True)


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "{results}", "--metric", "write.bw"],
        ["compare", "{results}", "--rows", "disks"],
        ["compare", "{results}", "--format", "yaml"],
        ["compare", "{results}", "--where", "numjobs"],
        ["compare"],
        ["frobnicate"],
        ["import", "-o", "x"],
        ["import", "{results}", "--host", "h", "-o", "x"],
        ["catalog", "planets"],
        ["compare", "{results}", "--precision", "x"],
        ["compare", "{results}", "--metric", "write.iops@write.iops", "--format", "benchstat"],
        ["compare", "{results}", "--confidence", "nan"],
        ["compare", "{results}", "--confidence", "1"],
    ],
)
def test_wrong_usage(results: Path, capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    code, line = failing(capsys, *(arg.replace("{results}", str(results)) for arg in args))
    assert code == 2
    assert line.startswith("iolab")


def test_a_wrong_option_of_iolab_itself_names_iolab_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--frobnicate"]) == 2
    assert capsys.readouterr().err.startswith("iolab: No such option")


def test_a_study_that_is_not_there_or_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failing(capsys, "run", str(tmp_path / "absent.toml"))
    assert (code, "absent.toml" in line) in {(2, True), (4, True)}
    (tmp_path / "s.toml").write_text('[study\nname = "x"')
    code, line = failing(capsys, "run", str(tmp_path / "s.toml"))
    assert code == 4
    assert f"{tmp_path}/s.toml:1" in line


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    from iolab.base.errors import UsageError

    with pytest.raises(UsageError):
        run(["--debug", "show", str(tmp_path / "absent")])


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(results: Path) -> None:
    command = f"{sys.executable} -m iolab.cli show {results} --format json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("0\n")
    assert "Traceback" not in done.stderr
