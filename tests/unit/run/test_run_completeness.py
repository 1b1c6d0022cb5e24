# SPDX-License-Identifier: Apache-2.0
"""How much of a study is there, as its readers are told: by show, compare and the report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.api import open_results
from iolab.base.verdict import Level
from iolab.cli.main import run
from iolab.hosts.kinds.fake import FakeHost
from iolab.output.report.cover.obstacles import obstacles
from iolab.output.server.reports.studies import stamp_of, study_facts
from iolab.studies.results.evidence.completeness import Standing
from iolab.studies.results.evidence.files import run_directories
from iolab.studies.results.evidence.journal import FILE, checked_line
from iolab.studies.results.evidence.lock import lock
from iolab.studies.results.open.multi_host import Hosts, write_hosts
from iolab.studies.results.open.results import Results

Do = Callable[..., Path]
TO_COME = "3 of 8 planned runs are there, 5 to come: iolab run --resume continues a study that ended early"


def killed_after(out: Path, number: int) -> None:
    """The results as a kill leaves them that came when that many runs had ended."""
    runs = list(run_directories(out))
    for each in runs[number:]:
        shutil.rmtree(each)
    lines = (out / FILE).read_text().splitlines(keepends=True)
    last = next(
        place
        for place, line in enumerate(lines)
        if '"finished", "time_ns"' in line and runs[number - 1].name in line
    )
    (out / FILE).write_text("".join(lines[: last + 1]))


def test_a_finished_study_has_all_its_runs(do: Do) -> None:
    found = Results(do()).standing
    assert found == Standing(8, 0)
    assert found.words() == []


def test_runs_to_come_are_told_wherever_the_study_is_read(
    do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    out = do()
    killed_after(out, 3)
    opened = open_results(out)
    assert opened.standing == Standing(8, 5)
    assert opened.standing.words() == [TO_COME]
    assert TO_COME in [warning.text for warning in opened.compare("write.iops").warnings]
    assert run(["show", str(out)]) == 0
    assert f"\nmissing   {TO_COME}\n" in capsys.readouterr().out
    assert run(["show", str(out), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["standing"] == {
        "planned": 8,
        "to_come": 5,
        "gone": [],
        "unknown": [],
        "damaged": [],
        "is_running": False,
    }
    assert run(["compare", str(out)]) == 0
    assert f"note: {TO_COME}" in capsys.readouterr().out
    assert run(["compare", str(out), "--knee"]) == 0
    assert f"note: {TO_COME}" in capsys.readouterr().out
    assert run(["compare", str(out), "--knee", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [
        {"code": "unfinished", "text": TO_COME}
    ]


def test_a_study_that_is_running_is_called_running_and_its_open_run_is_not_judged(do: Do) -> None:
    out = do()
    runs = list(run_directories(out))
    for run_dir in runs[1:]:
        shutil.rmtree(run_dir)
    (runs[0] / "fio.json").unlink()
    lines = (out / FILE).read_text().splitlines(keepends=True)
    started = next(
        place for place, line in enumerate(lines) if '"started"' in line and runs[0].name in line
    )
    (out / FILE).write_text("".join(lines[: started + 1]))
    words = ["the study is running: 0 of 8 planned runs are there, 8 to come"]
    with lock(out):
        running = Results(out)
        assert running.standing == Standing(8, 8, is_running=True)
        assert [running.standing.words(), running.runs] == [words, []]
        facts = study_facts(out)
        assert [facts.state, facts.missing, facts.levels, facts.sentences] == [
            "read",
            words,
            {},
            [],
        ]
        stamp = stamp_of(out)
        assert obstacles([], [], is_running=True) == []
    # its process was killed: what it left is judged again
    killed = Results(out)
    assert [item.verdict.level for item in killed.runs] == [Level.INVALID]
    assert killed.standing is not None
    assert not killed.standing.is_running
    assert stamp_of(out) != stamp
    assert [sentence.code for sentence in study_facts(out).sentences] == ["obstacle"]


def test_a_finished_run_whose_evidence_is_gone_is_named(do: Do) -> None:
    out = do()
    runs = list(run_directories(out))
    shutil.rmtree(runs[2])
    assert Results(out).standing == Standing(8, 0, (runs[2].name,))
    write_hosts(out.parent, Hosts({out.name: "local"}))
    both = Results(out.parent).standing
    assert both is not None
    assert both.words() == [
        f"1 finished run of 8 is missing with all evidence: {out.name}/{runs[2].name}"
    ]


def test_results_without_any_run_say_so_and_have_no_report(
    do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    out = do()
    shutil.rmtree(out / "runs")
    assert run(["show", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "verdicts  none: no run is there" in shown
    assert "8 finished runs of 8 are missing with all evidence" in shown
    assert run(["report", str(out)]) != 0
    assert "holds no run" in capsys.readouterr().err
    assert not (out / "report.html").exists()


def test_what_was_set_aside_counts_as_to_come(do: Do, host: FakeHost) -> None:
    out = do()
    [last] = list(run_directories(out))[-1:]
    shutil.rmtree(last)
    with (out / FILE).open("a") as file:
        file.write(
            checked_line(
                {"event": "aside", "run": last.name}, (out / FILE).read_text().count("\n") + 1
            ).decode()
        )
    assert Results(out).standing == Standing(8, 1)


@pytest.mark.parametrize(
    "line",
    ["[" * 100_000, json.dumps({"event": "planned", "run": "9" * 5000 + "-x"}), "\x00", "1e999"],
    ids=["deep", "long", "nothing", "number"],
)
def test_a_damaged_line_costs_itself(line: str, do: Do) -> None:
    out = do()
    killed_after(out, 3)
    with (out / FILE).open("a") as file:
        file.write(f"{line}\n")
    found = Results(out).standing
    assert found is not None
    assert (found.planned, found.to_come) == (8, 5)
    number = (out / FILE).read_bytes().count(b"\n")
    changed = f"{FILE} is damaged: 1 line changed or missing, the first is line {number}"
    assert found.damaged == (
        (changed,) if line.endswith("}") else ()
    )  # others are as a kill leaves them


def test_without_a_journal_that_can_be_read_nobody_knows_what_is_missing(
    do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    out = do()
    (out / FILE).unlink()
    (out / FILE).mkdir()
    words = f"whether all planned runs are there is not known: {out / FILE}: can't be read: is a directory, not a regular file"
    assert run(["show", str(out)]) == 0
    assert f"\nmissing   {words}\n" in capsys.readouterr().out
    assert run(["compare", str(out)]) == 0
    assert f"note: {words}" in capsys.readouterr().out
    write_hosts(out.parent, Hosts({out.name: "local"}))
    both = Results(out.parent).standing
    assert both is not None
    assert (both.planned, both.words()) == (0, [words])


@pytest.mark.parametrize(
    "name", ["run.json", "environment.json", "target.json", "marks.jsonl", "log_ios.json"]
)
def test_a_damaged_file_of_a_run_is_no_harm_to_others(
    name: str, do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    out = do()
    others = {each.id: each.verdict for each in Results(out).runs[1:]}
    (next(run_directories(out)) / name).write_text("[" * 100_000 + "\n")
    assert run(["show", str(out), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 8
    assert {each.id: each.verdict for each in Results(out).runs[1:]} == others


@pytest.mark.parametrize("name", ["manifest.json", "hosts.json"])
def test_what_says_what_it_is_must_be_whole(
    name: str, do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    out = do()
    (out / name).write_text("[" * 100_000)
    assert run(["show", str(out)]) == 3
    assert "nested too deep" in capsys.readouterr().err
