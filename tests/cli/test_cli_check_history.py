# SPDX-License-Identifier: Apache-2.0
"""`iolab check --history`: a new result against the level since the last change."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from iolab.base.stats.margins import sessions_needed, t_margin
from iolab.base.stats.sessions import session_interval
from iolab.cli.main import run
from support.fio_files import job, output

NIGHTS, CHANGED = 20, 10
RULE = "write.iops >= -5 %"


def imported(base: Path, name: str, night: int, rates: dict[int, float], fio: str = "3.33") -> Path:
    """Results of one night: two repetitions of each load."""
    for repetition in (1, 2):
        for jobs, rate in rates.items():
            place = base / "trees" / name / f"rep{repetition}" / f"jobs{jobs}"
            place.mkdir(parents=True)
            text = output(
                job(jobs=jobs, iops=rate + repetition),
                minute=night * 1440 + repetition * 10 + jobs,
                numjobs=str(jobs),
            )
            (place / "fio.json").write_text(text.replace("fio-3.33", f"fio-{fio}"))
    words = ["--layout", "rep{repetition:int}/jobs{numjobs:int}", "-o", str(base / name)]
    assert run(["import", str(base / "trees" / name), *words]) == 0
    return base / name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty nights, of which the second half is 20 % slower at one of two loads; 1 % noise."""
    base = tmp_path_factory.mktemp("nights")
    random = np.random.default_rng(5)
    for night in range(NIGHTS):
        slow = 0.8 if night >= CHANGED else 1.0
        rates = {
            jobs: 1000.0 * jobs * (slow if jobs == 8 else 1) * math.exp(random.normal(0, 0.01))
            for jobs in (1, 8)
        }
        results = imported(base, f"n{night}", night, rates)
        assert run(["history", "add", str(results), "--history", str(base / "h")]) == 0
    for name, rates in {
        "same": {1: 1000.0, 8: 6400.0},
        "slower": {1: 1000.0, 8: 5700.0},
        "between": {1: 955.0, 8: 6400.0},
        "less": {8: 6400.0},
        "more": {1: 1000.0, 8: 6400.0, 64: 9000.0},
    }.items():
        imported(base, name, NIGHTS + 1, rates, fio="3.36")
    return base


def checked(
    made: Path, capsys: pytest.CaptureFixture[str], *names: str, code: int, rule: str = RULE
) -> dict[str, Any]:
    capsys.readouterr()
    words = [*(str(made / name) for name in names), "--history", str(made / "h")]
    assert run(["check", *words, "--rule", rule, "--format", "json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_result_at_the_level_since_the_last_change_passes(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(made, capsys, "same", code=0)
    one, eight = found["rules"][0]["cells"]
    assert (one["sessions"], eight["sessions"]) == ([NIGHTS, 1], [NIGHTS - CHANGED, 1])
    assert abs(eight["change"]) < 2
    assert found["differences"] == [
        {"name": "fio", "values": {"history": ["fio-3.33"], "checked": ["fio-3.36"]}}
    ]


def test_a_slower_result_fails_in_its_cell(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = checked(made, capsys, "slower", code=6)["rules"][0]["cells"]
    assert [cell["outcome"] for cell in cells] == ["pass", "fail"]


def test_a_result_near_the_bound_says_how_many_more_are_needed(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = checked(made, capsys, "between", code=7)["rules"][0]["cells"]
    assert cells[0]["outcome"] == "inconclusive"
    assert cells[0]["more"] >= 1


def test_cells_that_are_missing_do_not_pass_and_new_ones_are_noted(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = checked(made, capsys, "less", code=7)["rules"][0]["cells"]
    assert [cell["reason"] for cell in cells] == ["missing", None]
    found = checked(made, capsys, "more", code=0)
    assert [note["code"] for note in found["notes"]] == ["unmatched"]


def test_a_result_of_the_history_is_checked_against_those_before_it(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(made, capsys, f"n{CHANGED}", code=6)
    assert found["rules"][0]["cells"][1]["sessions"] == [CHANGED, 1]
    found = checked(made, capsys, "n2", code=7)
    assert {cell["reason"] for cell in found["rules"][0]["cells"]} == {"short-history"}


def test_mistakes_are_one_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, history = str(made / "same"), ["--history", str(made / "h")]
    for words in (
        [results, *history],
        [results, *history, "--rule", RULE, "--against", str(made / "n1")],
        [results, *history, "--rule", RULE, "--baseline", "x"],
        [results, *history, "--rule", "nothing.iops >= -5 %"],
        [results, *history, "--rule", RULE, "--where", "numjobs=77"],
        [str(made / "n0"), *history, "--rule", RULE],
    ):
        capsys.readouterr()
        assert run(["check", *words]) == 2, words
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.figures
@pytest.mark.parametrize("nights", [5, 20])
def test_one_night_against_a_history_errs_as_stated(nights: int) -> None:
    """One new session at the bound, equal, and twice as far, 2 % between sessions."""
    studies, random = 4000, np.random.default_rng(nights)
    bound, most = math.log(0.95), float(stats.binom.ppf(0.999, studies, 0.05)) / studies
    shown = []
    for name, change in (("equal", 0.0), ("at -5 %", bound), ("at -10 %", 2 * bound)):
        passed = failed = 0
        for _ in range(studies):
            before = random.normal(0, 0.02, (nights, 1))
            after = [[random.normal(change, 0.02)]]
            interval = session_interval(list(before), after, is_stationary=True)
            assert interval.sd is not None
            assert interval.df == nights - 1
            error = interval.sd * math.sqrt(1 / nights + 1)
            test = t_margin(interval.mean, error, interval.df, bound)
            passed += test.above <= 0.05
            failed += test.below <= 0.05
        shown.append(f"{name}: {passed / studies:.1%} pass, {failed / studies:.1%} fail")
        if name == "at -5 %":
            assert passed / studies <= most
            assert failed / studies <= most
    print(f"one night against {nights}, 2 % between nights, rule >= -5 %: {'; '.join(shown)}")


def test_the_advised_sessions_decide_four_times_out_of_five() -> None:
    needed = sessions_needed(0.02, 0.02, 20, 0.05)
    assert needed is not None
    random = np.random.default_rng(1)
    before = random.normal(0, 0.02, (4000, 20))
    after = random.normal(0.02, 0.02, (4000, needed))
    p = stats.ttest_ind(after, before, axis=1, alternative="greater").pvalue
    assert 0.77 <= float(np.mean(p <= 0.05)) <= 0.9
    assert sessions_needed(0.001, 0.02, 20, 0.05) is None
