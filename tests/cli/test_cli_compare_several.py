# SPDX-License-Identifier: Apache-2.0
"""`iolab compare A B`: results directories as arms, and mistakes with them as one line each."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.studies.results.evidence.files import read_plan, write_plan
from support.fio_files import job, output
from support.results_over_time import WEEK, imported_weeks


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_weeks(tmp_path_factory.mktemp("several"))


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(["compare", *words]) == 0
    return capsys.readouterr().out


def failing(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["compare", *words])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return code, err


def changes(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell["change"] for cell in document["cells"] if cell["change"] is not None]


def test_two_results_are_two_arms_and_nothing_is_significant(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(shown(capsys, str(made / "A1"), str(made / "B1"), "--format", "json"))
    assert (found["baseline"], found["variants"]) == ("A1", ["A1", "B1"])
    assert len(changes(found)) == 2
    for change in changes(found):
        assert change["value"] == pytest.approx(-30, abs=1)
        assert (change["reason"], change["decided"]) == ("confounded-with-time", False)
    assert found["differences"] == [
        {"name": "fio", "values": {"A1": ["fio-3.33"], "B1": ["fio-3.36"]}}
    ]
    assert not {"dropped", "without"} & {warning["code"] for warning in found["warnings"]}
    assert found["unmatched"] == [{"variants": ["B1"], "factors": {"numjobs": 8}}]


@pytest.mark.parametrize("style", ["text", "markdown", "csv"])
def test_every_format_writes_two_results(
    made: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, str(made / "A1"), str(made / "B1"), "--format", style)
    assert "confounded" in text
    if style == "csv":
        assert text.count("confounded-with-time") == 2
    else:
        assert text.startswith("environments differ:")
        assert "unmatched cell, in B1 only: numjobs=8" in text.replace("\\", "")


def test_a_matrix_of_two_metrics_shows_the_environment_first(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metric = "write.iops@write.lat.mean"
    text = shown(capsys, str(made / "A1"), str(made / "B1"), "--metric", metric)
    assert text.startswith("environments differ:")


def test_results_of_one_name_repeat_an_arm(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{name}{number}" for number in (1, 2, 3) for name in "AB"]
    arms = ",".join(f"{'old' if name[0] == 'A' else 'new'}={name}" for name in names)
    places = [str(made / name) for name in names]
    found = json.loads(shown(capsys, *places, "--as", arms, "--format", "json"))
    assert (found["baseline"], found["variants"]) == ("old", ["old", "new"])
    for change in changes(found):
        assert (change["sessions"], change["reason"], change["decided"]) == ([3, 3], None, True)
        assert change["p_exact"] == pytest.approx(0.1)


def test_studies_of_several_variants_match_by_their_names(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, name in enumerate(("old", "new")):
        minutes = itertools.count(number * WEEK)
        for repetition, variant in itertools.product("123", ("master", "patch")):
            place = tmp_path / "trees" / name / variant / f"rep{repetition}"
            place.mkdir(parents=True)
            (place / "fio.json").write_text(
                output(job(iops=1000.0 + next(minutes) % 7), minute=next(minutes), ioengine="psync")
            )
        words = [
            "import",
            str(tmp_path / "trees" / name),
            "--layout",
            "{variant}/rep{repetition:int}",
        ]
        assert run([*words, "-o", str(tmp_path / name)]) == 0
    for more in ([], ["--match", "variant"]):
        found = json.loads(
            shown(capsys, str(tmp_path / "old"), str(tmp_path / "new"), *more, "--format", "json")
        )
        assert found["variants"] == ["old", "new"]
        assert [cell["factors"]["study_variant"] for cell in found["cells"]] == [
            "master",
            "master",
            "patch",
            "patch",
        ]


def test_a_boot_is_read_from_the_environment_of_runs(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three trees of each arm in turn on one boot, one after the other, are one session."""
    names = ["A1", "A2", "A3", "B1", "B2", "B3"]
    minutes = itertools.count()
    for name in names:
        shutil.copytree(made / name, tmp_path / name)
        for run_dir in sorted((tmp_path / name / "runs").iterdir()):
            data = json.loads((run_dir / "fio.json").read_text())
            data["timestamp_ms"] = 1_700_000_000_000 + 60_000 * next(minutes)
            environment = json.dumps({"schema": 1, "fingerprint": {}, "facts": {"boot_id": "b"}})
            (run_dir / "fio.json").write_text(json.dumps(data))
            (run_dir / "environment.json").write_text(environment)
            plan = read_plan(run_dir)
            write_plan(run_dir, plan, durable=False)
    arms = ",".join(f"{name[0]}={name}" for name in names)
    places = [str(tmp_path / name) for name in names]
    found = json.loads(shown(capsys, *places, "--as", arms, "--format", "json"))
    assert {tuple(change["sessions"]) for change in changes(found)} == {(1, 1)}


def test_mistakes_are_one_line(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = str(made / "A1"), str(made / "B1")
    assert "is given twice" in failing(capsys, first, f"{first}/")[1]
    assert "is given twice" in failing(capsys, first, f"{first}/manifest.json")[1]
    assert "is no directory of this comparison" in failing(capsys, first, second, "--as", "a=A9")[1]
    assert "does not name an arm" in failing(capsys, first, second, "--as", "A1")[1]
    assert "two names" in failing(capsys, first, second, "--as", "a=A1,b=A1")[1]
    assert "only arm" in failing(capsys, first, second, "--as", "a=A1,a=B1")[1]
    assert "several results" in failing(capsys, first, "--as", "a=A1")[1]
    assert "--knee" in failing(capsys, first, second, "--knee")[1]
    assert "no such file" in failing(capsys, first, str(tmp_path / "absent"))[1]
    (tmp_path / "empty").mkdir()
    assert "not a results directory" in failing(capsys, first, str(tmp_path / "empty"))[1]
    (tmp_path / "recording").mkdir()
    (tmp_path / "recording" / "recording.json").write_text("{}")
    assert (
        "compares a recording or trace with another one"
        in failing(capsys, first, str(tmp_path / "recording"))[1]
    )
    fio = next((made / "trees" / "B1").rglob("fio.json"))
    assert "only results directories" in failing(capsys, first, str(fio))[1]
    assert "no variant 'C'" in failing(capsys, first, second, "--baseline", "C")[1]
    shutil.copytree(made / "A1", tmp_path / "copy")
    assert "holds the same runs" in failing(capsys, first, str(tmp_path / "copy"))[1]
    (tmp_path / "other").mkdir()
    shutil.copytree(made / "B1", tmp_path / "other" / "A1")
    assert "two directories are named 'A1'" in failing(capsys, first, str(tmp_path / "other/A1"))[1]


def test_a_damaged_second_result_is_one_line_or_a_note(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "B1", tmp_path / "B1")
    manifest = tmp_path / "B1" / "manifest.json"
    whole = manifest.read_text()
    manifest.write_text(whole[:100])
    code, line = failing(capsys, str(made / "A1"), str(tmp_path / "B1"))
    assert (code, str(manifest) in line) == (3, True)
    manifest.write_text(whole)
    runs = sorted((tmp_path / "B1" / "runs").iterdir())
    (runs[0] / "run.json").write_text("[")
    (runs[1] / "fio.json").write_text("\x1b[31m{")
    text = shown(capsys, str(made / "A1"), str(tmp_path / "B1"))
    assert runs[0].name in text
    assert "\x1b" not in text


def test_names_of_directories_are_escaped(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = tmp_path / "\x1b[31mred"
    shutil.copytree(made / "B1", hostile)
    assert "\x1b" not in shown(capsys, str(made / "A1"), str(hostile))
    assert "\x1b" not in failing(capsys, str(made / "A1"), str(hostile), "--as", "x=\x1b[31m")[1]


def test_fio_results_of_one_cell_have_a_row_for_each_main_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, rate in (("before", 1000), ("after", 1500)):
        (tmp_path / f"{name}.json").write_text(output(job(iops=rate), minute=rate))
    paths = [str(tmp_path / "before.json"), str(tmp_path / "after.json")]
    table = [line.split()[0] for line in shown(capsys, *paths).splitlines() if "  " in line]
    assert table[:2] == ["metric", "write.iops"]
    assert len(table) > 4
    assert not any(name.startswith("write.iops:") for name in table)
    # a metric that is named has its table alone
    assert shown(capsys, *paths, "--metric", "write.bw").startswith("write.bw: ")
    assert json.loads(shown(capsys, *paths, "--format", "json"))["metric"]["name"] == "write.iops"


def test_a_sweep_ends_with_a_sentence_for_each_main_metric(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, str(made / "A1"), str(made / "B1"))
    _, _, summary = text.partition("summary of the main metrics")
    assert len(summary.splitlines()) > 2
    assert not {"\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"} & set(summary)
    assert "summary of" not in shown(
        capsys, str(made / "A1"), str(made / "B1"), "--rows", "numjobs"
    )
