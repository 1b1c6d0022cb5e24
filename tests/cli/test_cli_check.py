# SPDX-License-Identifier: Apache-2.0
"""`iolab check`: exit codes, formats and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iolab.cli.main import run
from support.fio_files import job, output
from support.results_over_time import imported_weeks

SLOWER, SAME = "write.iops >= -5 %", "write.iops >= -50 %"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks of A and of B, which is 30 % slower, in turn."""
    return imported_weeks(tmp_path_factory.mktemp("check"))


def weeks(made: Path) -> list[str]:
    candidates = [str(made / f"B{number}") for number in (1, 2, 3)]
    return [*candidates, *(word for n in (1, 2, 3) for word in ("--against", str(made / f"A{n}")))]


def exit_code(*words: str) -> int:
    return run(["check", *words])


def test_every_outcome_has_an_exit_code(made: Path) -> None:
    assert exit_code(*weeks(made), "--rule", SAME) == 0
    assert exit_code(*weeks(made), "--rule", SLOWER) == 6
    assert exit_code(*weeks(made), "--rule", SAME, "--rule", SLOWER) == 6
    once = [str(made / "B1"), "--against", str(made / "A1"), "--rule", SAME]
    assert exit_code(*once) == 7
    assert exit_code(*once, "--inconclusive", "pass") == 0
    assert exit_code(*once, "--inconclusive", "fail") == 6
    assert exit_code(*once, "--rule", SLOWER, "--inconclusive", "pass") == 0
    assert exit_code(*weeks(made), "--rule", SLOWER, "--inconclusive", "pass") == 6


def test_mistakes_have_the_code_of_a_wrong_usage(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = str(made / "A1"), str(made / "B1")
    for words in (
        [first],
        [first, "--rule", SAME],
        [first, second, "--rule", SAME],
        [first, "--against", second, "--rule", "write.iops"],
        [first, "--against", second, "--rule", "write.iops >= -5"],
        [first, "--against", second, "--rule", "nothing.iops >= -5 %"],
        [first, "--against", first, "--rule", SAME],
        [first, "--against", str(made / "absent"), "--rule", SAME],
        [first, "--against", second, "--rule", SAME, "--where", "colour=red"],
    ):
        capsys.readouterr()
        assert exit_code(*words) == 2, words
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1, err
    assert exit_code(str(made), "--rule", SAME) == 3


@pytest.mark.parametrize("style", ["text", "json", "junit", "markdown"])
def test_every_format_states_the_outcome(
    made: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert exit_code(*weeks(made), "--rule", SLOWER, "--format", style) == 6
    text = capsys.readouterr().out
    assert "fail" in text
    if style == "json":
        found = json.loads(text)
        assert (found["outcome"], found["baseline"]) == ("fail", "baseline")
        assert found["differences"][0]["name"] == "fio"
        assert [cell["sessions"] for cell in found["rules"][0]["cells"]] == [[3, 3], [3, 3]]
        assert [note["code"] for note in found["notes"]] == ["unmatched"]
    elif style == "junit":
        assert ElementTree.fromstring(text).get("failures") == "2"
    else:
        assert text.index("fio-3.36") >= 0
        assert "| numjobs" in text or "numjobs=1" in text


def test_variants_of_one_study_are_checked_against_its_baseline(tmp_path: Path) -> None:
    minute = 0
    for repetition in range(1, 8):
        for variant in ("master", "patch"):
            place = tmp_path / "tree" / variant / f"rep{repetition}"
            place.mkdir(parents=True)
            rate = (1000.0 if variant == "master" else 900.0) + repetition % 3
            (place / "fio.json").write_text(output(job(iops=rate), minute=minute))
            minute += 1
    layout = "{variant}/rep{repetition:int}"
    assert (
        run(["import", str(tmp_path / "tree"), "--layout", layout, "-o", str(tmp_path / "r")]) == 0
    )
    assert exit_code(str(tmp_path / "r"), "--rule", SAME) == 0
    assert exit_code(str(tmp_path / "r"), "--rule", SLOWER) == 6
    assert exit_code(str(tmp_path / "r"), "--rule", SLOWER, "--baseline", "patch") == 0
