# SPDX-License-Identifier: Apache-2.0
"""`iolab report A B` and `iolab.open("a", "b")`: several results directories as arms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import iolab
from iolab.api import OpenedSeveral
from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.output.report.page import html
from iolab.studies.compare.model import CONFOUNDED
from support.report_page import page_data
from support.results_over_time import imported_weeks

ARMS = "old=A1,new=B1,old=A2,new=B2,old=A3,new=B3"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_weeks(tmp_path_factory.mktemp("several"))


@pytest.fixture(autouse=True)
def bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page script that stands in for the built one."""
    monkeypatch.setattr(html, "bundle_file", lambda name: f"/* {name} */")


def report(made: Path, names: str, *words: str) -> dict[str, Any]:
    output = made / "report.html"
    places = [str(made / name) for name in names.split()]
    assert run(["report", *places, *words, "-o", str(output)]) == 0
    return page_data(output.read_text())


def test_two_results_begin_with_their_environments_and_are_confounded(made: Path) -> None:
    found = report(made, "A1 B1")
    assert [variant["name"] for variant in found["variants"]] == ["A1", "B1"]
    tables = {table["title"]: table for table in found["sessions"]["tables"]}
    assert list(tables) == ["Environments differ", "Results in order of time", "Unmatched cells"]
    assert tables["Environments differ"]["rows"] == [["fio", "fio-3.33", "fio-3.36"]]
    assert [row[:3] for row in tables["Results in order of time"]["rows"]] == [
        ["A1", "A1", "6"],
        ["B1", "B1", "9"],
    ]
    assert tables["Unmatched cells"]["rows"] == [["numjobs=8", "B1"]]
    sentences = [sentence["text"] for sentence in found["sessions"]["sentences"]]
    assert "(fio)" in sentences[0]
    assert sum(text.startswith("Confounded with time") for text in sentences) == 1
    for part in found["summary"][:-1]:
        assert all("confounded with time" in sentence["text"] for sentence in part["sentences"])
    cells = [
        cell
        for section in found["sections"]
        for table in section["tables"]
        for row in table["rows"]
        for cell in row["cells"]
        if cell and cell["decided"]
    ]
    assert cells == []
    assert page_data((made / "report.html").read_text(), "iolab-details")["runs"][0]["links"]


def test_sessions_in_turn_are_tested_and_say_so(made: Path) -> None:
    found = report(made, "A1 B1 A2 B2 A3 B3", "--as", ARMS)
    assert [variant["name"] for variant in found["variants"]] == ["old", "new"]
    texts = [sentence["text"] for sentence in found["sessions"]["sentences"]]
    assert any("3 against 3 sessions" in text for text in texts)
    assert not any("Confounded" in text for text in texts)
    assert found["summary"][0]["title"] == "new against old"
    assert "significantly lower in 2 of 2 cells" in found["summary"][0]["sentences"][0]["text"]


def test_no_break_spaces_of_the_report_are_shown_as_spaces(made: Path) -> None:
    text = json.dumps(report(made, "A1 B1"), ensure_ascii=False)
    assert "\xa0%" in text
    assert "\\\\xa0" not in text
    assert "\\xa0" not in (made / "report.html").read_text()


@pytest.mark.slow
def test_charts_of_several_results(made: Path, tmp_path: Path) -> None:
    places = [str(made / name) for name in ("A1", "B1")]
    assert run(["report", *places, "--charts", str(tmp_path / "charts")]) == 0
    assert (tmp_path / "charts" / "write-iops-over-numjobs.csv").exists()


def test_mistakes_of_a_report_are_one_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = str(made / "A1"), str(made / "B1")
    for words in ([first, first], [first, second, "--as", "a=A9"], [first, "--as", "a=A1"]):
        capsys.readouterr()
        assert run(["report", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_an_import_of_one_arm_after_the_other_states_it(tmp_path: Path) -> None:
    from support.fio_files import job, output

    for minute in range(6):
        place = tmp_path / "tree" / ("old" if minute < 3 else "new") / f"rep{minute % 3 + 1}"
        place.mkdir(parents=True)
        (place / "fio.json").write_text(output(job(iops=1000.0 + minute), minute=minute))
    layout = "{variant}/rep{repetition:int}"
    assert (
        run(["import", str(tmp_path / "tree"), "--layout", layout, "-o", str(tmp_path / "r")]) == 0
    )
    assert run(["report", str(tmp_path / "r")]) == 0
    found = page_data((tmp_path / "r" / "report.html").read_text())["sessions"]
    assert (found["title"], found["tables"]) == ("Sessions", [])
    assert found["sentences"][0]["text"].startswith("Confounded with time")


def test_open_takes_several_results_as_arms(made: Path) -> None:
    two = iolab.open(made / "A1", made / "B1")
    assert isinstance(two, OpenedSeveral)
    assert "variants A1, B1" in repr(two)
    changes = [cell.change for cell in two.compare("write.iops").cells if cell.change is not None]
    assert [change.reason for change in changes] == [CONFOUNDED, CONFOUNDED]
    assert two.chart.iops().to_csv().count("\n") > 2
    run_id = two.runs[0].id
    assert two.run(run_id) is two.runs[0]
    assert two.home(two.runs[0]) == made / "A1"
    assert len(two.series(run_id)) == len(iolab.open(made / "A1").series(run_id.partition("/")[2]))  # type: ignore[union-attr]
    names = [made / name for name in ("A1", "B1", "A2", "B2", "A3", "B3")]
    arms = {"old": names[::2], "new": names[1::2]}
    six = iolab.open(names[0], *names[1:], arms=arms)
    assert isinstance(six, OpenedSeveral)
    sessions = [cell.change for cell in six.compare("write.iops").cells if cell.change is not None]
    assert {change.sessions for change in sessions} == {(3, 3)}
    with pytest.raises(UsageError, match="several results"):
        iolab.open(made / "A1", arms={"old": made / "A1"})  # type: ignore[call-overload]
