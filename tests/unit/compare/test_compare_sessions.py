# SPDX-License-Identifier: Apache-2.0
"""Arms that did not take turns: sessions as the unit of repetition, and no significance from one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from iolab.base.errors import UsageError
from iolab.base.stats.sessions import least_permutation_p, permutation_p, session_interval
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import CONFOUNDED, Change, Comparison
from iolab.studies.compare.render.csv import CsvRenderer
from iolab.studies.compare.render.json import JsonRenderer
from iolab.studies.compare.render.markdown import MarkdownRenderer
from iolab.studies.compare.render.text import TextRenderer
from iolab.studies.results.evidence.model import Run
from support.runs import run
from support.simulated_sessions import share_significant

MINUTE = 60 * 10**9
DAY = 1440 * MINUTE


def at(
    variant: str,
    value: float,
    minute: int,
    *,
    results: str = "",
    status: str = "imported",
    boot: str = "",
    **more: Any,
) -> Run:
    """A run of a minute."""
    made = run(variant, value, **more)
    name = f"{results}/{made.id}"
    return replace(
        made,
        plan=replace(made.plan, status=status, run=name),
        window=(minute * MINUTE, (minute + 1) * MINUTE),
        results=results,
        boot=boot,
    )


def imported(order: str, change: float = 1.3, noise: float = 0.01, seed: int = 1) -> list[Run]:
    """Runs of the arms A and B, a minute each, in that order."""
    random = np.random.default_rng(seed)
    seen = {"A": 0, "B": 0}
    runs = []
    for minute, arm in enumerate(order):
        seen[arm] += 1
        value = 1000 * (change if arm == "B" else 1.0) * math.exp(random.normal(0, noise))
        runs.append(at(arm, value, minute, block=seen[arm], numjobs=1))
    return runs


def days(
    order: str, change: float = 1.0, day: float = 0.05, seed: int = 1, cells: int = 1, **more: Any
) -> list[Run]:
    """A results directory of five repetitions per letter, each on a day of its own."""
    random = np.random.default_rng(seed)
    runs = []
    for number, arm in enumerate(order):
        luck = random.normal(0, day)
        for load in range(cells):
            for block in range(1, 6):
                level = 1000 * (change if arm == "B" else 1.0)
                value = level * math.exp(luck + random.normal(0, 0.01))
                minute = number * 1440 + load * 5 + block
                runs.append(
                    at(
                        arm,
                        value,
                        minute,
                        results=f"{arm}{number}",
                        block=block,
                        numjobs=load,
                        **more,
                    )
                )
    return runs


def the_change(comparison: Comparison) -> Change:
    changes = [cell.change for cell in comparison.cells if cell.change is not None]
    assert len(changes) == 1
    return changes[0]


def codes(comparison: Comparison) -> set[str]:
    return {warning.code for warning in comparison.warnings}


@pytest.mark.parametrize("order", ["AAAAABBBBB", "AAAAAABBBBBB", "BBBBBBAAAAAA"])
def test_an_import_of_one_arm_after_the_other_is_never_significant(order: str) -> None:
    found = compare(imported(order), "write.iops", baseline="A")
    change = the_change(found)
    assert change.value == pytest.approx(0.3, abs=0.02)
    assert (change.reason, change.sessions) == (CONFOUNDED, (1, 1))
    assert (change.decided, change.p, change.q, change.excluded) == (False, None, None, None)
    assert change.low is not None
    assert 0.25 < change.low < change.value
    assert CONFOUNDED in codes(found)
    assert found.detectable is None


@pytest.mark.parametrize("order", ["ABBABAAB" * 2, "ABABABABABAB"])
def test_an_import_whose_arms_took_turns_finds_a_true_change(order: str) -> None:
    change = the_change(compare(imported(order), "write.iops"))
    assert (change.sessions, change.reason, change.decided) == (None, None, True)
    assert change.pairs == order.count("A")


def test_an_import_in_stretches_is_compared_by_its_stretches() -> None:
    change = the_change(compare(imported("AABBAABBAABBAABB"), "write.iops"))
    assert (change.sessions, change.decided) == ((4, 4), True)
    assert change.p_exact == pytest.approx(2 / 70)


def test_times_that_are_not_known_are_a_note() -> None:
    runs = [replace(each, window=None) for each in imported("AAAAAABBBBBB")]
    found = compare(runs, "write.iops")
    assert the_change(found).sessions is None
    assert "order-unknown" in codes(found)


def test_blocks_of_a_study_run_here_stay_pairs_whatever_was_run_again() -> None:
    runs = [
        replace(each, plan=replace(each.plan, status="finished")) for each in imported("AAAABBBB")
    ]
    change = the_change(compare(runs, "write.iops"))
    assert (change.sessions, change.pairs, change.decided) == (None, 4, True)


def test_two_results_are_confounded_with_time_however_many_runs_they_have() -> None:
    found = compare(days("AB", change=1.5, day=0.0), "write.iops")
    change = the_change(found)
    assert (change.reason, change.decided, change.sessions) == (CONFOUNDED, False, (1, 1))
    assert change.value == pytest.approx(0.5, abs=0.03)


def test_a_boot_is_a_session_in_several_results() -> None:
    runs = days("AAABBB", status="finished", boot="same")
    assert the_change(compare(runs, "write.iops")).sessions == (1, 1)
    runs = days("ABABAB", status="finished", boot="same")
    assert the_change(compare(runs, "write.iops")).sessions == (3, 3)
    runs = [replace(each, boot=each.results) for each in days("AAABBB", status="finished")]
    found = compare(runs, "write.iops")
    assert the_change(found).sessions == (3, 3)
    assert "not-alternating" in codes(found)


def test_three_sessions_of_each_arm_find_a_change_larger_than_days_differ() -> None:
    found = compare(days("ABABAB", change=1.5, day=0.01), "write.iops")
    change = the_change(found)
    assert (change.sessions, change.decided, change.pairs) == ((3, 3), True, 3)
    assert change.p_exact == pytest.approx(0.1)
    assert "not-alternating" not in codes(found)


def test_a_summary_takes_one_value_per_session() -> None:
    once = compare(days("AB", cells=3), "write.iops").summaries[0].change
    assert once is not None
    assert (once.low, once.reason) == (None, CONFOUNDED)
    often = compare(days("ABABAB", cells=3), "write.iops").summaries[0].change
    assert often is not None
    assert often.sessions == (3, 3)
    assert often.df is not None
    assert 2 <= often.df <= 3
    assert often.low is not None


def test_a_run_that_is_invalid_leaves_alone() -> None:
    from iolab.base.verdict import Level

    runs = days("ABABAB")
    runs[0] = at("A", 1.0, 1, results="A0", block=1, numjobs=0, level=Level.INVALID)
    found = compare(runs, "write.iops")
    assert (the_change(found).dropped, the_change(found).sessions) == (1, (3, 3))
    assert [warning.text for warning in found.warnings if warning.code == "dropped"] == [
        "1 run left out: INVALID, or without a run of the other arm"
    ]


def test_unmatched_cells_are_listed_and_not_compared() -> None:
    runs = [*days("AB", cells=2), at("A", 900.0, 99, results="A0", numjobs=8)]
    found = compare(runs, "write.iops")
    assert [(cell.variants, cell.factors) for cell in found.unmatched] == [(("A",), {"numjobs": 8})]
    assert "unmatched cell, in A only: numjobs=8" in TextRenderer().render(found)
    shown = json.loads(JsonRenderer().render(found))
    assert shown["unmatched"] == [{"variants": ["A"], "factors": {"numjobs": 8}}]


def test_results_without_a_common_cell_are_refused() -> None:
    runs = [
        at("A", 1.0, 1, results="A", numjobs=1),
        at("B", 1.0, 2, results="B", numjobs=2),
    ]
    with pytest.raises(UsageError, match="no cell in common"):
        compare(runs, "write.iops")


@pytest.mark.parametrize(
    ("base", "differences"),
    [
        ("/lab/{}/scratch", []),
        ("/lab/{}/scratch-2", []),
        ("/mnt/same", []),
        ("/mnt/same/iolab-{1:012x}", []),
        (
            "/mnt/{}",
            [("fio option directory", {"A": ("/mnt/A",), "B": ("/mnt/B",)})],
        ),
    ],
)
def test_the_directory_that_was_made_for_a_run_is_not_a_difference(
    base: str, differences: list[tuple[str, dict[str, tuple[str, ...]]]]
) -> None:
    runs = [
        replace(run, options={"directory": f"{parent}/{run.evidence.name}"})
        for run in days("AB")
        for parent in [base.format(run.variant, ord(run.variant))]
    ]
    comparison = compare(runs, "write.iops")
    assert [(item.name, item.values) for item in comparison.differences] == differences


def test_what_differs_in_the_environment_is_the_first_that_is_shown() -> None:
    runs = [
        replace(
            each,
            environment={"kernel": "6.1" if each.variant == "A" else "6.6", "cpu": "8 x same"},
            options={"bs": "4k" if each.variant == "A" else "8k", "name": each.variant},
        )
        for each in days("AB")
    ]
    found = compare(runs, "write.iops")
    assert [(each.name, each.values) for each in found.differences] == [
        ("kernel", {"A": ("6.1",), "B": ("6.6",)}),
        ("fio option bs", {"A": ("4k",), "B": ("8k",)}),
    ]
    assert TextRenderer().render(found).splitlines()[:3] == [
        "environments differ:",
        "  kernel: A 6.1; B 6.6",
        "  fio option bs: A 4k; B 8k",
    ]
    assert MarkdownRenderer().render(found).startswith("environments differ:")
    assert json.loads(JsonRenderer().render(found))["differences"][0] == {
        "name": "kernel",
        "values": {"A": ["6.1"], "B": ["6.6"]},
    }


def test_every_format_states_the_reason() -> None:
    found = compare(days("AB"), "write.iops")
    text = TextRenderer().render(found)
    assert "within session only" in text
    assert "repeat each arm in at least 3 sessions, alternating" in text
    assert "confounded with time" in MarkdownRenderer().render(found)
    change = json.loads(JsonRenderer().render(found))["cells"][1]["change"]
    assert (change["reason"], change["sessions"], change["decided"]) == (CONFOUNDED, [1, 1], False)
    lines = CsvRenderer().render(found).splitlines()
    assert lines[0].endswith("sessions_baseline,sessions_variant,reason")
    assert lines[2].endswith(f"1,1,{CONFOUNDED}")


def test_permutation_of_sessions_counts_all_assignments() -> None:
    assert permutation_p([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20)
    assert permutation_p([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert permutation_p([1.0], [1.0]) == 1.0
    many = permutation_p(np.arange(12.0), np.arange(12.0) + 100)
    assert 0 < many < 1e-3


def test_the_interval_of_sessions_is_that_of_two_samples() -> None:
    random = np.random.default_rng(3)
    first, second = random.normal(0, 1, 4), random.normal(0.5, 1, 5)
    found = session_interval([[each] for each in first], [[each] for each in second])
    expected = stats.ttest_ind(second, first, equal_var=False)
    error = (found.mean) / expected.statistic
    df = min(expected.df, 4.5)
    assert found.error == pytest.approx(error)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(expected.statistic), df))
    assert found.high == pytest.approx(found.mean + error * stats.t.ppf(0.975, df))
    assert found.df == pytest.approx(df)
    assert (found.sessions, found.is_within) == ((4, 5), False)
    assert found.p_exact is None
    alike = session_interval(
        [[each] for each in first], [[each] for each in second], is_stationary=True
    )
    assert alike.p == pytest.approx(stats.ttest_ind(second, first).pvalue)
    assert alike.p_exact is not None
    assert (alike.df, alike.sessions) == (7, (4, 5))


@pytest.mark.parametrize(
    ("sessions", "noise"), [((3, 9), (0.10, 0.02)), ((2, 10), (0.10, 0.02)), ((3, 3), (0.1, 0.02))]
)
def test_sessions_of_unequal_noise_raise_few_false_alarms(
    sessions: tuple[int, int], noise: tuple[float, float]
) -> None:
    """Student's test had 31 % and 46 % with 3 against 9 and 2 against 10 sessions."""
    assert share_significant(sessions, noise, 1000) <= 0.09


def test_unequal_numbers_of_sessions_have_no_permutation_test() -> None:
    found = compare(days("BABBABBBBBBB", day=0.02), "write.iops", baseline="A")
    change = the_change(found)
    assert (change.sessions, change.p_exact, change.reason) == ((2, 10), None, None)
    assert "unbalanced-sessions" in codes(found)
    assert "few-sessions" not in codes(found)
    found = compare(days("ABABABABAB", day=0.02), "write.iops")
    assert not {"unbalanced-sessions", "few-sessions"} & set(codes(found))
    found = compare(days("ABABAB", day=0.02), "write.iops")
    assert [warning.text for warning in found.warnings if warning.code == "few-sessions"] == [
        "3 sessions of each arm: p of the permutation test can't fall below 0.1, and Welch's t "
        "interval over session means decides"
    ]
    assert least_permutation_p((2, 10)) == pytest.approx(1 / 66)
    assert least_permutation_p((4, 4)) == pytest.approx(2 / 70)


def test_sessions_that_are_all_equal_are_decided_by_permutation() -> None:
    found = session_interval([[1.0]] * 4, [[2.0]] * 4)
    assert found.p == found.p_exact == pytest.approx(2 / 70)


@pytest.mark.figures
@pytest.mark.parametrize("day", [0.01, 0.05, 0.10])
@pytest.mark.slow
def test_days_that_differ_raise_no_more_false_alarms_than_stated(day: float) -> None:
    """A/A studies of two trees of five runs each, and of several trees of each arm."""
    once = [
        the_change(compare(days("AB", day=day, seed=seed), "write.iops")) for seed in range(100)
    ]
    assert not any(change.decided for change in once)
    studies = 4000
    random = np.random.default_rng(11)
    most = float(stats.binom.ppf(0.999, studies, 0.05)) / studies
    shown = []
    for sessions in (2, 3, 5):
        alarms = missed = 0
        for _ in range(studies):
            first, second = (
                random.normal(0, day, (sessions, 1)) + random.normal(0, 0.01, (sessions, 5))
                for _ in range(2)
            )
            found = session_interval(list(first), list(second))
            assert found.p is not None
            assert found.low is not None
            assert found.high is not None
            alarms += found.p <= 0.05
            missed += not found.low <= 0 <= found.high
        shown.append(f"{sessions} sessions {alarms / studies:.1%}")
        assert alarms / studies <= most
        assert missed / studies <= most
    print(
        f"A/A, days differ by {day:.0%}: of an arm with 1 session 0.0% significant (100 studies), "
        f"{', '.join(shown)} ({studies} studies each)"
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_comparison_decides_by_the_interval_of_sessions(seed: int) -> None:
    change = the_change(compare(days("ABABAB", seed=seed), "write.iops"))
    assert change.low is not None
    assert change.high is not None
    assert change.decided == (not change.low <= 0 <= change.high)
