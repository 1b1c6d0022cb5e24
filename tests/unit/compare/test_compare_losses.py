# SPDX-License-Identifier: Apache-2.0
"""Runs that die, do no I/O, are SUSPECT, have no time, or are copies: what a comparison and a check
say of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from iolab.cli.main import run
from support.fio_files import idle, job, output

RULE = ("--rule", "write.iops >= -5 %")
Change = Callable[[dict[str, Any]], None]
"""Of a fio document."""


def healthy(document: dict[str, Any]) -> None:
    """Nothing is changed."""


def with_error(document: dict[str, Any]) -> None:
    """A run that died with EIO."""
    document["jobs"][0]["error"] = 5


def without_io(document: dict[str, Any]) -> None:
    """A run without any I/O."""
    document["jobs"][0]["write"] = document["jobs"][0]["read"] = idle()


def without_writes(document: dict[str, Any]) -> None:
    """A run of a mixed load that only read."""
    document["jobs"][0]["write"] = idle()


def without_time(document: dict[str, Any]) -> None:
    """A run that does not state when it ran."""
    for name in ("timestamp", "timestamp_ms", "time"):
        document.pop(name)


def put_runs(
    tree: Path,
    arms: Mapping[str, Sequence[Change]],
    *,
    minutes: Callable[[str, int], int] = lambda arm, block: 2 * block + (arm == "B"),
    speed: float = 1.0,
    rw: str = "randrw",
) -> Path:
    """Results of arms, one run a block, in turn unless `minutes` says otherwise, with 0.5 % noise."""
    for arm, changes in arms.items():
        for block, change in enumerate(changes):
            rate = 4000 * (1 + 0.005 * ((7 * block + 3 * (arm == "B")) % 5 - 2))
            rate *= speed if arm == "B" else 1
            entry = job(jobs=1, iops=rate)
            if rw == "randrw":
                entry["read"] = entry["write"]
            document = json.loads(output(entry, minute=minutes(arm, block), rw=rw))
            change(document)
            place = tree / arm / f"rep{block + 1}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(document))
    return tree


def checked(
    tree: Path, out: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any]]:
    """Exit code and document of a check of imported results."""
    if not out.exists():
        layout = "{variant}/rep{repetition:int}.json"
        assert run(["import", str(tree), "--layout", layout, "-o", str(out)]) == 0
    capsys.readouterr()
    code = run(["check", str(out), "--baseline", "A", *RULE, *options, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


SOUND: list[Change] = [healthy] * 6


@pytest.mark.parametrize(
    ("first", "second", "options", "code", "findings"),
    [
        (SOUND, SOUND, [], 0, []),
        (SOUND, [with_error] * 3 + SOUND[:3], [], 6, ["failures"]),
        (SOUND, [without_io] * 3 + SOUND[:3], [], 6, ["failures"]),
        (SOUND, [without_writes] * 3 + SOUND[:3], [], 6, ["failures"]),
        (SOUND, [with_error, *SOUND[:5]], [], 6, ["failures"]),
        (SOUND, [with_error, *SOUND[:5]], ["--allow-failures", "1"], 0, []),
        (SOUND, [with_error] * 2 + SOUND[:4], ["--allow-failures", "1"], 6, ["failures"]),
        ([with_error] * 2 + SOUND[:4], SOUND, [], 7, ["losses"]),
        ([with_error, *SOUND[:5]], [with_error, *SOUND[:5]], [], 0, []),
        (SOUND, [with_error] * 6, [], 6, ["failures"]),
    ],
    ids=[
        "sound", "errors", "no I/O", "no writes", "one error", "one is allowed", "more than allowed",
        "the baseline fails more", "both fail alike", "all failed",
    ],
)  # fmt: skip
def test_lost_runs_decide_a_check(
    first: list[Change],
    second: list[Change],
    options: list[str],
    code: int,
    findings: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": first, "B": second})
    found, document = checked(tree, tmp_path / "out", capsys, *options)
    assert (found, [finding["code"] for finding in document["findings"]]) == (code, findings)
    for arm, changes in zip(document["arms"], (first, second), strict=True):
        assert arm["planned"] == 6
        invalid = sum(change in (with_error, without_io) for change in changes)
        assert arm["counted"] == 6 - invalid
        assert len(arm["lost"]) == sum(change is not healthy for change in changes)


@pytest.mark.parametrize("style", ["text", "markdown", "json", "junit"])
def test_every_format_names_the_lost_runs(
    style: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": SOUND, "B": [with_error] * 3 + SOUND[:3]})
    checked(tree, tmp_path / "out", capsys)
    assert run(["check", str(tmp_path / "out"), "--baseline", "A", *RULE, "--format", style]) == 6
    text = capsys.readouterr().out
    assert "B lost 3 of 6 runs to errors or missing I/O" in text
    assert "EIO" in text
    if style == "junit":
        assert ElementTree.fromstring(text).get("failures") == "2"
    if style == "text":
        assert text.splitlines()[0].startswith("fail: 1 rule; B lost 3 of 6 runs")
    for form in ("text", "markdown", "json"):
        assert run(["compare", str(tmp_path / "out"), "--baseline", "A", "--format", form]) == 0
        assert "EIO" in capsys.readouterr().out


@pytest.mark.parametrize("change", [without_writes, without_io])
def test_no_throughput_is_a_loss_of_100_percent(
    change: Change, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": SOUND, "B": [change] * 6})
    code, document = checked(tree, tmp_path / "out", capsys)
    [cell] = document["rules"][0]["cells"]
    assert (code, cell["outcome"], cell["change"]) == (6, "fail", -100)
    arguments = ["--baseline", "A", "--metric", "write.iops", "--format", "json"]
    assert run(["compare", str(tmp_path / "out"), *arguments]) == 0
    compared = json.loads(capsys.readouterr().out)
    [stated] = [cell["change"] for cell in compared["cells"] if cell["change"] is not None]
    assert stated["value"] == -100
    assert not stated["decided"]


def test_runs_without_io_are_part_of_the_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": SOUND, "B": [without_io] * 3 + SOUND[:3]})
    code, document = checked(tree, tmp_path / "out", capsys)
    [cell] = document["rules"][0]["cells"]
    assert (code, cell["outcome"]) == (6, "inconclusive")
    assert cell["change"] == pytest.approx(-50, abs=1)


def test_no_rule_passes_for_a_variant_that_lost_more_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": SOUND, "B": [with_error] * 3 + SOUND[:3]})
    _, document = checked(tree, tmp_path / "out", capsys)
    [rule] = document["rules"]
    assert (rule["outcome"], rule["cells"][0]["reason"]) == ("fail", "failures")


def test_a_load_that_was_not_to_write_lost_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": SOUND, "B": SOUND}, rw="randwrite")
    code, document = checked(tree, tmp_path / "out", capsys)
    assert code == 0
    assert not any(arm["lost"] for arm in document["arms"])


@pytest.mark.parametrize(("outcome", "code"), [("pass", 0), ("inconclusive", 7), ("fail", 6)])
def test_suspect_runs_are_in_the_first_line(
    outcome: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_text(document: dict[str, Any]) -> None:
        """A CPU that was busy all the time."""
        document["jobs"][0]["usr_cpu"] = document["jobs"][0]["sys_cpu"] = 49.5

    tree = put_runs(tmp_path / "tree", {"A": [with_text] * 6, "B": [with_text] * 6})
    found, document = checked(tree, tmp_path / "out", capsys, "--suspect", outcome)
    [finding] = document["findings"]
    assert (found, finding["code"], finding["outcome"]) == (code, "suspect", outcome)
    assert [sum(arm["suspect"].values()) for arm in document["arms"]] == [6, 6]
    run(["check", str(tmp_path / "out"), "--baseline", "A", *RULE])
    assert "12 of 12 runs are SUSPECT" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("missing", [1, 3, 5])
def test_known_times_decide_the_order(
    missing: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """AAAAAABBBBBB is sequential, whatever some runs do not say."""
    tree = put_runs(
        tmp_path / "tree",
        {"A": [without_time] * missing + SOUND[missing:], "B": SOUND},
        minutes=lambda arm, block: block + 100 * (arm == "B"),
        speed=1.1,
    )
    code, document = checked(tree, tmp_path / "out", capsys)
    assert code == 7
    assert document["rules"][0]["cells"][0]["reason"] == "confounded-with-time"
    [note] = [note["text"] for note in document["notes"] if note["code"] == "order-unknown"]
    assert note.startswith(f"{missing} of 12 runs do not state when they ran")


def test_times_that_do_not_contradict_leave_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = put_runs(tmp_path / "tree", {"A": [without_time, *SOUND[:5]], "B": SOUND}, speed=1.1)
    code, document = checked(tree, tmp_path / "out", capsys)
    assert (code, document["rules"][0]["cells"][0]["n"]) == (0, 6)


def test_copies_are_one_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = put_runs(tmp_path / "tree", {"A": [healthy], "B": [healthy]}, speed=1.025)
    for arm in "AB":
        document = json.loads((tree / arm / "rep1.json").read_text())
        for copy in range(2, 7):
            (tree / arm / f"rep{copy}.json").write_text(json.dumps(document, indent=copy))
    code, document = checked(tree, tmp_path / "out", capsys)
    assert (code, document["rules"][0]["cells"][0]["n"]) == (7, 1)


@pytest.mark.parametrize(
    ("case", "code", "reason"),
    [
        ("eio", 6, "failures"),
        ("zerowrites", 6, "zero"),
        ("onemissing", 7, "confounded-with-time"),
        ("copies", 7, "one-block"),
    ],
)
def test_known_cases(
    case: str,
    code: int,
    reason: str | None,
    cases: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, document = checked(cases / "verdicts" / case, tmp_path / "out", capsys)
    assert (found, document["rules"][0]["cells"][0]["reason"]) == (code, reason)
