# SPDX-License-Identifier: Apache-2.0
"""`iolab import` and the commands that take fio's files as they are: what a stranger sees."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path

import pytest
from pyarrow import parquet

from iolab import open as open_path
from iolab.api import Opened
from iolab.cli.main import run
from support.fio_files import iostat, job, output


def _done(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[str, str]:
    assert run(list(map(str, args))) == 0
    out, err = capsys.readouterr()
    return out, err


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two arms, two depths, two repetitions; notes, readings of the whole, a result elsewhere."""
    place = tmp_path / "tree"
    cells = itertools.product(("stock", "tuned"), (1, 8), (1, 2))
    for number, (variant, depth, repetition) in enumerate(cells):
        folder = place / variant / f"run{repetition}"
        folder.mkdir(parents=True, exist_ok=True)
        entry = job(jobs=1, iops=1000.0 * depth + number, latency_ns=1e6)
        (folder / f"qd{depth}.json").write_text(
            output(entry, rw="write", ioengine="libaio", iodepth=str(depth))
        )
        (folder / "iostat.txt").write_text(iostat([(800.0, 50.0)] * 10))
    (place / "README.md").write_text("about\n")
    return place


def test_an_import_prints_its_layout_and_counts(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = _done(capsys, "import", tree, "-o", tmp_path / "out")
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("imported 8 runs into")
    assert (
        lines[1]
        == "layout, inferred: --layout '{variant}/run{repetition:int}/qd{iodepth:int}.json'"
    )
    assert lines.pop() == f"next: iolab compare {tmp_path}/out"
    assert lines[2:] == [
        "files: 13",
        "       8 fio results, each one run or more",
        "       4 readings or logs that belong to no single result, such as stock/run1/iostat.txt, stock/run2/iostat.txt",
        "       1 not recognised, such as README.md",
    ]
    assert "baseline" in _done(capsys, "show", tmp_path / "out")[0]
    _, again = _done(
        capsys, "import", tree, *shlex.split(lines[1].partition(": ")[2]), "-o", tmp_path / "again"
    )
    assert again.splitlines()[1:-1] == [lines[1].replace("layout, inferred", "layout"), *lines[2:]]
    tables = [
        json.loads(_done(capsys, "compare", tmp_path / name, "--format", "json")[0])
        for name in ("out", "again")
    ]
    assert tables[0] == tables[1]


def test_an_import_as_json(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = _done(
        capsys,
        "import",
        tree,
        "--layout",
        "{variant}/run1/*.json",
        "--format",
        "json",
        "-o",
        tmp_path / "out",
    )
    found = json.loads(out)
    assert (found["kind"], found["runs"], found["inferred"]) == ("import", 4, False)
    assert found["files"]["unmatched"]["count"] == 4
    assert found["unmatched_layouts"] == ["{variant}/run{repetition:int}/qd{iodepth:int}.json"]
    assert "4 fio results that no layout matches: no runs, such as" in err
    assert (
        "the unmatched results would be taken by --layout '{variant}/run{repetition:int}/qd{iodepth:int}.json'"
        in err
    )
    assert (
        "note: runs of one cell differ in what fio echoed, so they are not repetitions: 'iodepth' became a factor (1, 8)"
        in err
    )


def test_one_file_of_a_kind_is_counted_in_the_singular(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in tree.rglob("*.json"):
        if file.parent.parent.name == "tuned" or (file.parent.name, file.name) not in (
            ("run1", "qd1.json"),
            ("run2", "qd1.json"),
        ):
            file.unlink()
    (tree / "stock/run2/iostat.txt").unlink()
    _, err = _done(
        capsys, "import", tree, "--layout", "{variant}/run1/*.json", "-o", tmp_path / "out"
    )
    assert "       1 fio result, one run or more\n" in err
    assert "       1 fio result that no layout matches: no run, such as stock/run2/qd1.json" in err
    assert "the unmatched result would be taken by" in err


def test_two_fio_results_and_nothing_else(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tree / "stock/run1/qd1.json", tree / "tuned/run1/qd8.json"
    before = sorted(tree.rglob("*"))
    out, err = _done(capsys, "compare", first, second)
    assert "qd1" in out
    assert "no interval" in out
    assert "one run per cell: no interval, and no change can be distinguished from noise" in out
    assert "variants differ in fio's iodepth (qd1: 1, qd8: 8)" in out
    assert not err
    assert "1 run, imported files" in _done(capsys, "show", first)[0]
    _done(capsys, "report", first, "-o", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert sorted(tree.rglob("*")) == before
    opened = open_path(first, second)
    assert isinstance(opened, Opened)
    assert opened.manifest.variants == ["qd1", "qd8"]


def test_a_unit_of_logs_is_recorded(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _done(capsys, "import", tree, "--log-unit", "us", "-o", tmp_path / "out")
    opened = open_path(tmp_path / "out")
    assert isinstance(opened, Opened)
    assert {one.plan.extra["log_latency_unit"] for one in opened.runs} == {"us"}


@pytest.mark.parametrize(("unit", "expected_ns"), [("us", 400_000_000), ("ns", 400_000)])
def test_the_unit_of_a_latency_log_holds_for_the_recording(
    tmp_path: Path, unit: str, expected_ns: int
) -> None:
    log = tmp_path / "fio_lat.1.log"
    log.write_text("".join(f"{ms}, 400000, 0, 4096\n" for ms in range(1000, 3000, 500)))
    recording = tmp_path / "recording"
    assert run(["import", str(log), "--log-unit", unit, "-o", str(recording)]) == 0
    segment = parquet.read_table(next(recording.rglob("events/*.parquet")))
    assert segment.column("latency_ns").to_pylist() == [expected_ns] * 4


def test_columns_that_no_event_has_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "trace.csv"
    table.write_text("time_us,latency_us,colour,size_bytes\n1,10,red,4096\n2,20,blue,4096\n")
    _, err = _done(capsys, "import", table, "-o", tmp_path / "out")
    assert any(line.startswith("note: ") and "colour" in line for line in err.splitlines())


def test_the_unit_of_a_log_that_has_no_latency_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "fio_bw.1.log"
    log.write_text("".join(f"{ms}, 400000, 0, 4096\n" for ms in range(1000, 3000, 500)))
    assert run(["import", str(log), "--log-unit", "us", "-o", str(tmp_path / "out")]) == 2
    assert "--log-unit" in capsys.readouterr().err


def test_a_bound_of_an_archive_is_a_size(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tree)
    assert run(["import", archive, "--max-size", "4k", "-o", str(tmp_path / "out")]) == 3
    assert "holds more than 4096 bytes unpacked; --max-size allows more" in capsys.readouterr().err
    _done(capsys, "import", archive, "-o", tmp_path / "out")
