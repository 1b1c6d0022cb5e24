# SPDX-License-Identifier: Apache-2.0
"""Rules for changes: what passes, fails and is inconclusive, with errors at the stated rates."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from iolab.base.errors import UsageError
from iolab.base.metrics import of
from iolab.base.stats.margins import (
    holm,
    permutation_margin,
    share_margin,
    sign_flip_margin,
    sign_margin,
    t_margin,
)
from iolab.base.verdict import Level
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import CONFOUNDED, NOT_ALTERNATING
from iolab.studies.compare.render.check import REASONS, as_json, headline, render_check
from iolab.studies.compare.rules.check import NO_BLOCKS, ONE_BLOCK, Check, Outcome, check
from iolab.studies.compare.rules.rules import Rule, parse_rule
from iolab.studies.results.evidence.model import Run
from support.depth import depth
from support.runs import run, study


def gate(runs: list[Run], *rules: str, alpha: float = 0.05) -> Check:
    return check(runs, [parse_rule(text) for text in rules], alpha=alpha)


def weeks(order: str, change: float = 1.0, spread: float = 0.01, seed: int = 1) -> list[Run]:
    """A results directory of three repetitions per letter, each in a week of its own."""
    random = np.random.default_rng(seed)
    runs = []
    for week, arm in enumerate(order):
        luck = random.normal(0, spread)
        for block in (1, 2, 3):
            level = 1000 * (change if arm == "B" else 1.0)
            made = run(arm, level * math.exp(luck + random.normal(0, 0.005)), block=block, jobs=1)
            start = (week * 10080 + block) * 60 * 10**9
            runs.append(
                replace(
                    made,
                    plan=replace(made.plan, run=f"{arm}{week}/{made.id}", status="imported"),
                    window=(start, start + 10**9),
                    results=f"{arm}{week}",
                )
            )
    return runs


@pytest.mark.parametrize(
    ("text", "metric", "low", "high"),
    [
        ("write.iops >= -5 %", "write.iops", math.log(0.95), None),
        ("read.clat.p99 <= +10%", "read.clat.p99", None, math.log(1.1)),
        ("write.iops≥3%", "write.iops", math.log(1.03), None),
        ("write.iops within 5 %", "write.iops", math.log(0.95), math.log(1.05)),
        ("device.util <= 3 points", "device.util", None, 0.03),
        ("stall.seconds <= +500 ms", "stall.seconds", None, 0.5),
    ],
)
def test_rules_are_bounds(text: str, metric: str, low: float | None, high: float | None) -> None:
    rule = parse_rule(text)
    assert rule.metric == metric
    assert rule.bounds(of(metric)) == (
        None if low is None else pytest.approx(low),
        None if high is None else pytest.approx(high),
    )
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["", "write.iops", "write.iops > 5 %", "write.iops >= x %", ">= 5 %"]
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rule"):
        parse_rule(text)


@pytest.mark.parametrize(
    "text",
    [
        "write.iops >= -5",
        "write.iops >= -100 %",
        "write.iops within -5 %",
        "device.util <= 3 %",
        "stall.seconds <= 3 MiB",
        "write.iops <= 3 ms",
    ],
)
def test_bounds_in_other_units_are_refused(text: str) -> None:
    rule = parse_rule(text)
    with pytest.raises(UsageError) as refused:
        rule.bounds(of(rule.metric))
    assert refused.value.where == "--rule"


def test_one_sided_tests_are_those_of_scipy() -> None:
    values = np.random.default_rng(2).normal(0.02, 0.02, 8)
    error = float(np.std(values, ddof=1)) / math.sqrt(8)
    found = t_margin(float(values.mean()), error, 7, -0.05)
    flips = sign_flip_margin(values, 0.01)
    above = stats.ttest_1samp(values, -0.05, alternative="greater").pvalue
    below = stats.ttest_1samp(values, -0.05, alternative="less").pvalue
    assert [found.above, found.below] == pytest.approx([above, below])
    signs = np.array(list(itertools.product((-1, 1), repeat=8)))
    sums = signs @ np.abs(values - 0.01)
    total = float((values - 0.01).sum())
    assert flips.above == pytest.approx(np.mean(sums >= total - 1e-12))
    assert flips.below == pytest.approx(np.mean(sums <= total + 1e-12))
    assert (sign_margin(0.1, 5, 0.0).above, sign_margin(0.1, 5, 0.0).below) == (1 / 32, 1.0)
    assert permutation_margin([1, 2, 3], [4, 5, 6], 0.0).above == pytest.approx(1 / 20)
    assert permutation_margin([1, 2, 3], [4, 5, 6], 10.0).below == pytest.approx(1 / 20)


def test_holm_is_that_of_its_paper() -> None:
    p_values = [0.01, None, 0.04, 0.03, 0.005]
    expected = [0.03, None, 0.06, 0.06, 0.02]
    assert holm(p_values) == [None if p is None else pytest.approx(p) for p in expected]
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([math.nan])


def test_an_equal_variant_passes_a_slower_one_fails_and_noise_is_inconclusive() -> None:
    rule = "write.iops >= -5 %"
    assert gate(study(1.0, blocks=8, noise=0.01), rule).outcome == "pass"
    assert gate(study(0.85, blocks=8, noise=0.01), rule).outcome == "fail"
    noisy = gate(study(0.97, blocks=3, noise=0.2), rule)
    assert noisy.outcome == "inconclusive"
    assert all(cell.p_pass is not None for cell in noisy.rules[0].cells)


def test_equivalence_needs_both_tests() -> None:
    assert gate(study(1.0, blocks=8, noise=0.01), "write.iops within 5 %").outcome == "pass"
    assert gate(study(1.2, blocks=8, noise=0.01), "write.iops within 5 %").outcome == "fail"
    assert gate(study(1.2, blocks=8, noise=0.01), "write.iops >= -5 %").outcome == "pass"


def test_a_rule_passes_exactly_where_the_interval_is_inside_its_bounds() -> None:
    for seed in range(30):
        [rule] = gate(study(0.96, blocks=5, noise=0.02, seed=seed), "write.iops within 5 %").rules
        for cell in rule.cells:
            assert cell.low is not None
            assert cell.high is not None
            assert (cell.outcome == "pass") == (cell.low > -0.05 and cell.high < 0.05)


def test_the_worst_rule_is_the_outcome() -> None:
    found = gate(study(0.85, blocks=8, noise=0.01), "write.iops >= -20 %", "write.iops >= -5 %")
    assert [rule.outcome for rule in found.rules] == ["pass", "fail"]
    assert headline(found) == "fail: 2 rules (1 failed, 1 passed)"


def test_the_advised_blocks_decide_four_times_out_of_five() -> None:
    """Of a variant that is 2 % slower, with a margin of 5 %."""
    few = gate(study(0.98, blocks=3, noise=0.03, loads=(1,), seed=4), "write.iops >= -5 %")
    [cell] = few.rules[0].cells
    assert cell.outcome == "inconclusive"
    assert cell.more is not None
    assert cell.change is not None
    blocks = cell.count + cell.more
    # the study as its estimate has it
    noise = 0.0
    random = np.random.default_rng(3)
    interval = (
        compare(study(0.98, blocks=3, noise=0.03, loads=(1,), seed=4), "write.iops").cells[1].change
    )
    assert interval is not None
    assert interval.low is not None
    half = math.log1p(interval.value) - math.log1p(interval.low)
    noise = half * math.sqrt(3) / float(stats.t.ppf(0.975, 2))
    samples = random.normal(math.log1p(cell.change), noise, (4000, blocks))
    p = stats.ttest_1samp(samples, math.log(0.95), axis=1, alternative="greater").pvalue
    assert 0.77 <= float(np.mean(p <= 0.05)) <= 0.9


def test_one_session_of_an_arm_is_inconclusive_whatever_the_change() -> None:
    for change in (0.5, 1.0, 2.0):
        [cell] = gate(weeks("AB", change), "write.iops >= -5 %").rules[0].cells
        assert (cell.outcome, cell.reason, cell.more) == ("inconclusive", CONFOUNDED, 2)
        assert (cell.p_pass, cell.p_fail) == (None, None)


def test_sessions_in_turn_are_decided_and_others_are_not() -> None:
    assert gate(weeks("ABABAB", 1.0), "write.iops >= -5 %").outcome == "pass"
    assert gate(weeks("ABABAB", 0.8), "write.iops >= -5 %").outcome == "fail"
    [cell] = gate(weeks("AAABBB", 0.8), "write.iops >= -5 %").rules[0].cells
    assert (cell.outcome, cell.reason) == ("inconclusive", NOT_ALTERNATING)


def test_cells_that_a_variant_lacks_do_not_pass() -> None:
    runs = [
        each
        for each in study(1.0, blocks=8, noise=0.01)
        if each.variant == "master" or each.factors["numjobs"] != 4
    ]
    found = gate(runs, "write.iops >= -5 %")
    assert found.outcome == "inconclusive"
    assert [cell.reason for cell in found.rules[0].cells] == [None, None, "missing"]
    more = [*runs, run("project", 1.0, numjobs=64)]
    assert len(gate(more, "write.iops >= -5 %").rules[0].cells) == 3


def test_invalid_runs_and_single_blocks_do_not_pass() -> None:
    runs = [run(arm, 100.0, level=Level.INVALID) for arm in ("a", "b")]
    assert gate(runs, "write.iops >= -5 %").rules[0].cells[0].reason == "no-pairs"
    runs = [run(arm, 100.0) for arm in ("a", "b")]
    assert gate(runs, "write.iops >= -5 %").rules[0].cells[0].reason == "one-block"


def test_equal_values_are_decided_by_the_sign_test() -> None:
    for blocks, outcome in ((4, "inconclusive"), (5, "pass")):
        runs = [run(arm, 100.0, block=block) for block in range(blocks) for arm in ("a", "b")]
        found = gate(runs, "write.iops >= -5 %")
        assert found.outcome == outcome
    runs = [run(arm, 100.0, block=block) for block in range(4) for arm in ("a", "b")]
    assert gate(runs, "write.iops >= -5 %").rules[0].cells[0].more == 1


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(UsageError, match="no rule"):
        check(study(), [])
    with pytest.raises(UsageError, match="no run has the metric"):
        gate(study(), "write.iopz >= -5 %")
    with pytest.raises(UsageError, match="only variant"):
        gate([run("a", 1.0)], "write.iops >= -5 %")


def test_json_has_every_cell() -> None:
    found = as_json(gate(study(0.9, blocks=8, noise=0.01), "write.iops >= -5 %"))
    assert (found["kind"], found["outcome"]) == ("check", "fail")
    cells = json.loads(json.dumps(found))["rules"][0]["cells"]
    assert [cell["factors"] for cell in cells] == [{"numjobs": 1}, {"numjobs": 2}, {"numjobs": 4}]
    assert all(cell["change"] == pytest.approx(-10, abs=2) for cell in cells)


@pytest.mark.parametrize(
    ("inconclusive", "counts"),
    [("inconclusive", (0, 3)), ("fail", (3, 0)), ("pass", (0, 0))],
)
def test_junit_counts_inconclusive_cells_as_told(
    inconclusive: Outcome, counts: tuple[int, int]
) -> None:
    found = gate(study(0.95, blocks=2, noise=0.3), "write.iops >= -5 %")
    suites = ElementTree.fromstring(render_check(found, "junit", inconclusive=inconclusive))
    suite, runs = suites
    assert (runs.get("name"), runs.get("tests"), runs.get("failures")) == ("runs", "1", "0")
    assert (suites.tag, suite.tag, suite.get("tests")) == ("testsuites", "testsuite", "3")
    assert (int(suite.get("failures", "")), int(suite.get("skipped", ""))) == counts
    assert len(suite.findall("testcase/failure")) == counts[0]
    assert len(suite.findall("testcase/skipped")) == counts[1]


def test_names_cannot_break_out_of_a_format() -> None:
    runs = [
        replace(each, plan=replace(each.plan, factors={"media": "<img src=x>|\x1b[31m"}))
        for each in study(1.0, blocks=8, noise=0.01, loads=(1,))
    ]
    found = gate(runs, "write.iops >= -5 %")
    assert "\x1b" not in render_check(found, "junit")
    ElementTree.fromstring(render_check(found, "junit"))
    text = render_check(found, "markdown")
    assert "<img" not in text
    rows = [line for line in text.splitlines() if line.startswith("| media")]
    assert [row.count(" | ") for row in rows] == [6]


def test_what_all_undecided_cells_need_is_said_once() -> None:
    result = gate(study(1.0, blocks=1, noise=0.01), "write.iops >= -5 %")
    reason = REASONS[ONE_BLOCK]
    assert len(result.rules[0].cells) > 1
    for style in ("text", "markdown"):
        assert render_check(result, style).count(reason) == 1
    [cell] = gate(study(1.0, blocks=1, noise=0.01, loads=(1,)), "write.iops >= -5 %").rules[0].cells
    assert cell.reason == ONE_BLOCK


@pytest.mark.figures
@pytest.mark.parametrize("blocks", [3, 5, 10])
@pytest.mark.slow
def test_gates_pass_and_fail_wrongly_no_more_often_than_stated(blocks: int) -> None:
    """Studies of 3 cells with 2 % noise per run and a margin of 5 %: all equal, one cell exactly at
    the margin and the others equal, all at the margin, and all 10 % worse."""
    studies = depth(200, 1000)
    most = float(stats.binom.ppf(0.999, studies, 0.05)) / studies
    shown = []
    for name, changes in {
        "equal": (1.0, 1.0, 1.0),
        "a cell at the margin": (1.0, 0.95, 1.0),
        "all at the margin": (0.95, 0.95, 0.95),
        "all 10 % worse": (0.9, 0.9, 0.9),
    }.items():
        counts = {"pass": 0, "fail": 0, "inconclusive": 0}
        for seed in range(studies):
            runs = [
                replace(
                    each,
                    observations={
                        "write.iops": replace(
                            each.observations["write.iops"],
                            value=each.observations["write.iops"].value
                            * (
                                changes[int(math.log2(each.factors["numjobs"]))]
                                if each.variant == "project"
                                else 1.0
                            ),
                        )
                    },
                )
                for each in study(1.0, blocks=blocks, noise=0.02, seed=seed)
            ]
            counts[gate(runs, "write.iops >= -5 %").outcome] += 1
        rates = {outcome: count / studies for outcome, count in counts.items()}
        shown.append(
            f"{name}: {rates['pass']:.1%} pass, {rates['fail']:.1%} fail, "
            f"{rates['inconclusive']:.1%} inconclusive"
        )
        if name == "equal":
            assert rates["fail"] <= most
        elif name == "all 10 % worse":
            assert rates["pass"] <= 0.005
        else:
            assert rates["pass"] <= most
            assert rates["fail"] <= most
    print(f"gates at -5 %, {blocks} blocks, 3 cells ({studies} studies each): {'; '.join(shown)}")


@pytest.mark.figures
def test_sessions_that_drift_are_called_different_only_where_they_alternate() -> None:
    """A drift of 1 % per session, 1 % between sessions, no difference of the arms."""
    studies = 4000
    random = np.random.default_rng(7)
    shown = {}
    for order in ("AAABBB", "ABABAB"):
        place = np.array([letter == "B" for letter in order])
        means = random.normal(0, 0.01, (studies, 6)) + 0.01 * np.arange(6)
        p = stats.ttest_ind(means[:, place], means[:, ~place], axis=1).pvalue
        shown[order] = float(np.mean(p <= 0.05))
    assert shown["ABABAB"] <= 0.05 < shown["AAABBB"]
    alternating = compare(weeks("AAABBB", 0.5), "write.iops").cells[1].change
    assert alternating is not None
    assert (alternating.reason, alternating.p, alternating.decided) == (
        NOT_ALTERNATING,
        None,
        False,
    )
    print(
        "drift of 1 % per session, no difference of the arms: a t test over 3 sessions each calls "
        f"{shown['AAABBB']:.1%} different in AAABBB, {shown['ABABAB']:.1%} in ABABAB ({studies} studies)"
    )


def test_a_rule_is_written_as_it_is_read() -> None:
    assert str(Rule("write.iops", ">=", -5.0, "%")) == "write.iops >= -5 %"
    assert str(Rule("read.clat.p99", "<=", 10.0, "%")) == "read.clat.p99 <= +10 %"


def blocks_of(changes: list[float], cells: int = 1) -> list[Run]:
    """Pairs of runs with these changes, as fractions."""
    return [
        run(arm, 1000.0 * (1.0 if arm == "a" else 1 + change), block=block, jobs=jobs)
        for block, change in enumerate(changes, 1)
        for jobs in range(1, cells + 1)
        for arm in ("a", "b")
    ]


@pytest.mark.parametrize(
    ("rule", "good", "bad", "outcome", "more"),
    [
        ("write.iops p10 >= -5 %", 28, 0, "inconclusive", 1),
        ("write.iops p10 >= -5 %", 29, 0, "pass", None),
        ("write.iops p10 >= -5 %", 44, 1, "inconclusive", 1),
        ("write.iops p10 >= -5 %", 45, 1, "pass", None),
        ("write.iops p10 >= -5 %", 5, 1, "inconclusive", 40),
        ("write.iops p10 >= -5 %", 4, 2, "inconclusive", 55),
        ("write.iops p10 >= -5 %", 3, 3, "fail", None),
        ("write.iops p50 >= -5 %", 5, 0, "pass", None),
        ("write.iops p90 <= -5 %", 0, 29, "pass", None),
        ("write.iops min >= -5 %", 5, 0, "inconclusive", 1),
        ("write.iops min >= -5 %", 6, 0, "pass", None),
        ("write.iops min >= -5 %", 60, 1, "fail", None),
        ("write.iops max <= +5 %", 6, 1, "pass", None),
    ],
)
def test_a_rule_on_single_blocks_counts_those_that_break_it(
    rule: str, good: int, bad: int, outcome: Outcome, more: int | None
) -> None:
    found = gate(blocks_of([0.01] * good + [-0.3] * bad), rule)
    (cell,) = found.rules[0].cells
    assert (cell.outcome, cell.more, cell.count) == (outcome, more, good + bad)
    assert str(found.rules[0].rule) == rule
    assert render_check(found, "text")


@pytest.mark.parametrize("blocks", [10, 29, 60])
def test_rules_on_a_share_of_blocks_err_at_most_as_often_as_stated(blocks: int) -> None:
    """Stalls in a tenth of the blocks are at the bound of p10: passing and failing both err."""
    random = np.random.default_rng(8)
    counts = {"pass": 0, "fail": 0, "inconclusive": 0}
    for _ in range(2000):
        broken = int(random.binomial(blocks, 0.1))
        test = share_margin(broken, blocks, 0.1)
        counts["pass"] += test.above <= 0.05
        counts["fail"] += test.below <= 0.05
    assert counts["pass"] / 2000 <= 0.06
    assert counts["fail"] / 2000 <= 0.06


def test_rare_stalls_pass_a_rule_on_the_mean_and_not_one_on_the_blocks() -> None:
    changes = [0.06] * 26 + [-0.3] * 4
    rules = ("write.iops >= -5 %", "write.iops p10 >= -5 %", "write.iops min >= -5 %")
    outcomes = [rule.outcome for rule in gate(blocks_of(changes), *rules).rules]
    assert outcomes == ["pass", "inconclusive", "fail"]


def test_every_pass_states_what_could_be_unseen_and_the_guarantee_its_assumptions() -> None:
    found = gate(study(change=1.0), "write.iops >= -5 %")
    (rule,) = found.rules
    assert rule.outcome == "pass"
    assert [cell.unseen for cell in rule.cells] == [pytest.approx(1 - 0.05 ** (1 / 6))] * 3
    for style in ("text", "markdown", "junit"):
        assert (
            "a trouble in up to 39 % of runs (95 %), which none of 6 blocks shows"
            in render_check(found, style)
        )
    assert "if blocks (or sessions) are independent and of one distribution" in render_check(
        found, "text"
    )
    cells = as_json(found)["rules"][0]["cells"]
    assert {cell["unseen"] for cell in cells} == {rule.cells[0].unseen}
    undecided = gate(study(blocks=2), "write.iops >= +19 %").rules[0].cells[0]
    assert (undecided.outcome, undecided.unseen) == ("inconclusive", None)


def test_a_rule_on_blocks_needs_arms_that_took_turns() -> None:
    found = gate(weeks("ABABABAB"), "write.iops p10 >= -5 %")
    assert [cell.reason for cell in found.rules[0].cells] == [NO_BLOCKS]
    assert found.outcome == "inconclusive"


@pytest.mark.parametrize(
    "text",
    [
        "write.iops min <= 5 %",
        "write.iops max >= 5 %",
        "write.iops p10 within 5 %",
        "write.iops p10 5 %",
        "write.iops p70 >= 5 %",
        "write.iops p10 <= 5 %",
        "write.iops p0 >= 5 %",
        "write.iops p100 >= 5 %",
        "write.iops median >= 5 %",
    ],
)
def test_rules_on_blocks_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rule(text)
