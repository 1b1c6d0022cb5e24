# SPDX-License-Identifier: Apache-2.0
"""Studies that end once their rules are decided, with a fio whose IOPS are made up. No time
passes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.api import Opened
from iolab.base.errors import RunError, StudyError, UsageError
from iolab.cli.main import run as iolab
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.resuming.interrupts import Interrupts
from support.acting import Listener, set_rates, study_text
from support.extremes import LONGEST_QUEUE
from support.report_page import page_data
from support.resuming import Do, Killed, names

RULE = "write.iops within 10 %"
ONE_CELL = {"numjobs": ("1",)}


def measured(host: FakeHost, change: float, noise: float = 0.005) -> None:
    """Let fio measure 1000 IOPS, and `change` times that with `sync=dsync`."""

    def rate(text: str, number: int) -> float:
        random = np.random.default_rng(number)
        return 1000 * (change if "dsync" in text else 1.0) * math.exp(random.normal(0, noise))

    set_rates(host, rate)


def until(rule: str = RULE, at_most: int = 6) -> Changes:
    return Changes(only=ONE_CELL, until=(rule,), at_most=at_most)


def looks(out: Path) -> list[dict[str, Any]]:
    return [event for event in read_journal(out)[0] if event["event"] == "look"]


@pytest.mark.parametrize(("change", "outcome"), [(1.0, "pass"), (0.7, "fail")])
def test_a_study_ends_with_the_look_that_decides(
    do: Do, host: FakeHost, heard: Listener, change: float, outcome: str
) -> None:
    measured(host, change)
    out = do(changes=until())
    [look] = looks(out)
    assert (look["look"], look["blocks"], look["outcome"]) == (1, 3, outcome)
    assert look["rules"] == {RULE: outcome}
    assert len(names(out)) == 6
    assert heard.end is not None
    assert (heard.end.finished, heard.end.remaining) == (6, 0)
    kinds = [event["event"] for event in read_journal(out)[0]]
    assert (kinds.count("planned"), kinds[-1]) == (6, "closed")
    standing = Opened(out).standing
    assert standing is not None
    assert (standing.planned, standing.to_come) == (6, 0)
    before = len(host.started)
    do(resume=True)
    assert len(host.started) == before
    assert len(looks(out)) == 1


def test_an_undecided_study_ends_at_its_last_look(do: Do, host: FakeHost, heard: Listener) -> None:
    measured(host, 0.9, noise=0.05)
    out = do(changes=until())
    assert [look["blocks"] for look in looks(out)] == [3, 4, 5, 6]
    assert {look["outcome"] for look in looks(out)} == {"inconclusive"}
    assert len(names(out)) == 12
    assert heard.notes[-1].endswith("undecided, and no further look")
    kinds = [event["event"] for event in read_journal(out)[0]]
    assert (kinds.count("planned"), kinds[-1]) == (12, "closed")


@pytest.mark.parametrize("killed_at", [2, 7, 12])
def test_a_killed_study_goes_on_with_the_same_boundaries(
    do: Do, host: FakeHost, tmp_path: Path, killed_at: int
) -> None:
    measured(host, 0.9, noise=0.05)
    whole = do(output=tmp_path / "whole", changes=until())
    work = host.programs["fio"].work
    assert work is not None
    begun = len(host.started)

    def killed(command: Sequence[str], directory: Path) -> None:
        if len(host.started) - begun == killed_at:
            raise Killed
        work(command, directory)

    host.programs["fio"].work = killed
    with pytest.raises(Killed):
        do(changes=until())
    host.programs["fio"].work = work
    out = do(resume=True)
    kept = [
        {key: look[key] for key in ("look", "blocks", "level", "outcome")} for look in looks(out)
    ]
    assert kept == [
        {key: look[key] for key in ("look", "blocks", "level", "outcome")} for look in looks(whole)
    ]
    assert names(out) == names(whole)


def test_a_study_killed_before_its_look_is_looked_at_when_resumed(
    do: Do, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.studies.run.resuming.looks import Looks

    measured(host, 1.0)
    take = Looks.take

    def killed(self: Looks) -> None:
        raise Killed

    monkeypatch.setattr(Looks, "take", killed)
    with pytest.raises(Killed):
        do(changes=until())
    monkeypatch.setattr(Looks, "take", take)
    out = do(resume=True)
    assert [look["outcome"] for look in looks(out)] == ["pass"]
    assert len(names(out)) == 6


def test_a_stopped_study_says_what_is_to_come(do: Do, host: FakeHost) -> None:
    measured(host, 0.9, noise=0.05)
    stops = Interrupts()

    class Impatient(Listener):
        def end_run(self, run: Any, *words: Any) -> None:
            if run.number == 7:
                stops.press()

    out = do(changes=until(), listener=Impatient(), interrupts=stops)
    standing = Opened(out).standing
    assert standing is not None
    assert (standing.planned, standing.to_come) == (8, 1)


def test_other_rules_than_at_the_beginning_are_refused(do: Do, host: FakeHost) -> None:
    measured(host, 1.0)
    do(changes=until())
    with pytest.raises(UsageError, match="these results were begun with"):
        do(resume=True, changes=until(at_most=8))


def test_a_metric_that_no_run_has_ends_the_study(do: Do, host: FakeHost, tmp_path: Path) -> None:
    measured(host, 1.0)
    with pytest.raises(RunError, match="after block 3"):
        do(changes=until("read.iops within 5 %"))
    assert len(names(tmp_path / "out")) == 6


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        (Changes(until=("write.iops",)), "is not a rule"),
        (Changes(until=("write.iops within 5 ms",)), "are in %"),
        (Changes(until=("write.iopz within 5 %",)), "no metric is called"),
        (Changes(until=(RULE,), repetitions=4), "decides the number of blocks"),
        (Changes(until=(RULE,), variants=("plain",)), "needs a variant"),
        (Changes(until=(f"{LONGEST_QUEUE.name} within 5 %",), at_most=4), "can never decide"),
        (Changes(until=("write.lat.max within 5 %",)), "never tested"),
        (Changes(at_most=4), "rules"),
    ],
)
def test_what_cannot_be_decided_is_refused(study: Path, changes: Changes, wrong: str) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(study, changes)
    assert wrong in str(refused.value)


def test_a_file_may_say_when_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(study_text(extra='\n[until]\nrules = "write.iops 5 %"\nat_most = 12\n'))
    loaded = load_study(path)
    assert loaded.until is not None
    assert loaded.repetitions == loaded.until.at_most == 12
    assert [str(rule) for rule in loaded.until.rules] == ["write.iops within 5 %"]
    assert loaded.as_data()["until"]["looks"] == [3, 5, 8, 10, 12]
    again = load_study(path, Changes(at_most=16))
    assert again.repetitions == 16
    assert Changes.from_data(again.changes.as_data()) == again.changes


@pytest.fixture
def passed(do: Do, host: FakeHost) -> Path:
    measured(host, 1.0)
    return do(changes=until())


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = iolab([*words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_check_takes_the_rules_and_the_level_of_the_look(
    passed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = answer(capsys, "check", str(passed))
    assert (code, found["outcome"]) == (0, "pass")
    assert found["look"] == {
        "look": 1,
        "looks": [3, 4, 5, 6],
        "blocks": 3,
        "level": looks(passed)[0]["level"],
        "spending": "pocock",
    }
    assert [rule["rule"] for rule in found["rules"]] == [RULE]
    code, found = answer(capsys, "check", str(passed), "--rule", "write.iops >= -20 %")
    assert (code, found["look"]["look"]) == (0, 1)
    assert iolab(["check", str(passed), "--alpha", "0.01"]) == 2


def test_intervals_of_a_check_are_those_of_the_look(
    passed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = answer(capsys, "check", str(passed))
    [cell] = found["rules"][0]["cells"]
    level = found["look"]["level"]
    assert level < 0.05
    manifest = passed / "manifest.json"
    data = json.loads(manifest.read_text())
    assert data["study"]["until"]["looks"] == [3, 4, 5, 6]
    from iolab.studies.compare.rules.check import check
    from iolab.studies.compare.rules.rules import parse_rule

    plain = check(Opened(passed).runs, [parse_rule(RULE)], alpha=level).rules[0].cells[0]
    assert plain.low is not None
    assert plain.high is not None
    assert cell["low"] == pytest.approx(100 * plain.low)
    assert cell["high"] == pytest.approx(100 * plain.high)


def test_results_say_that_their_size_was_decided_sequentially(
    passed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [note] = [note for note in Opened(passed).notes if note.code == "sequential"]
    assert "pass at look 1 of 4, after 3 of at most 6 blocks" in note.text
    capsys.readouterr()
    assert iolab(["show", str(passed)]) == 0
    assert note.text in capsys.readouterr().out
    code, shown = answer(capsys, "show", str(passed))
    assert (code, shown["until"]["at_most"]) == (0, 6)
    assert iolab(["compare", str(passed)]) == 0
    assert note.text in capsys.readouterr().out
    page = passed.parent / "report.html"
    assert iolab(["report", str(passed), "-o", str(page)]) == 0
    sentences = page_data(page.read_text())["cover"]
    # a sentence begins with a capital
    assert note.text[1:] in str(sentences)


def test_a_check_before_the_first_look_is_inconclusive(
    do: Do, host: FakeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(host, 1.0)
    stops = Interrupts()

    class Impatient(Listener):
        def end_run(self, run: Any, *words: Any) -> None:
            if run.number == 5:
                stops.press()

    out = do(changes=until(), listener=Impatient(), interrupts=stops)
    code, found = answer(capsys, "check", str(out))
    assert (code, found["look"]["look"]) == (7, 0)
    assert {cell["reason"] for cell in found["rules"][0]["cells"]} == {"no-look"}


@pytest.mark.parametrize(
    "damage",
    [
        {"rules": []},
        {"rules": ["write.iops >"], "looks": [3], "alpha": 0.05, "spending": "pocock"},
        {"rules": ["write.iops 5 %"], "looks": [3, 2], "alpha": 0.05, "spending": "pocock"},
        {"rules": ["write.iops 5 %"], "looks": "x", "alpha": 0.05, "spending": "pocock"},
        {"rules": ["write.iops 5 %"], "looks": [3], "alpha": 2, "spending": "pocock"},
        {"rules": ["write.iops 5 %"], "looks": [3], "alpha": 0.05, "spending": "none"},
        [],
        "soon",
    ],
)
def test_a_damaged_plan_is_one_line(
    passed: Path, damage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from iolab.studies.results.evidence.manifest import read_manifest, write_manifest

    manifest = read_manifest(passed)
    study = {**(manifest.study or {}), "until": damage}
    write_manifest(passed, manifest.model_copy(update={"study": study}))
    capsys.readouterr()
    assert iolab(["check", str(passed)]) == 3
    assert capsys.readouterr().err.count("\n") == 1
