# SPDX-License-Identifier: Apache-2.0
"""A check: rules for the changes of a comparison, each of which passes, fails or is inconclusive.

Both outcomes are findings. A rule passes where tests show for every cell that its bound is kept,
and fails where a test shows for one cell that it is not kept. Everything else is inconclusive.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.metrics import Metric
from iolab.base.stats.arrays import Floats
from iolab.base.stats.blocks import MeanInterval, t_intervals
from iolab.base.stats.margins import (
    MarginTest,
    blocks_for_share,
    holm,
    permutation_margin,
    sessions_needed,
    share_margin,
    sign_flip_margin,
    sign_margin,
    t_margin,
    unseen_share,
)
from iolab.base.stats.sequential import Look
from iolab.base.stats.sessions import SessionInterval, session_interval

from ...results.evidence.model import Run
from ..arms import ArmRuns, arm_runs, is_asymmetric
from ..axes import Layout, Where, axis_text, choose, select
from ..cells import ArmCell, Pairing, collect, pair, scale_of
from ..compare import ALPHA, baseline_of, metric_of
from ..load.achieved import with_achieved
from ..model import (
    AGAIN,
    CONFOUNDED,
    NOT_ALTERNATING,
    TAIL,
    UNBALANCED,
    Difference,
    Key,
    Warning,
)
from ..remarks import order_notes, shared_luck_notes
from ..several import differences_of, unmatched_of
from . import planning
from .rules import Rule

Outcome = Literal["pass", "fail", "inconclusive"]
Unit = Literal["blocks", "sessions", "results"]

LEAST_WORST = 6
"""Blocks at least for a rule on the worst of them, which then says something about more than 60 % of
all blocks."""

LEAST_SESSIONS = 3
"""Sessions of each arm that are advised where an arm has a single one."""

MISSING, NO_PAIRS, ONE_BLOCK, ZERO = "missing", "no-pairs", "one-block", "zero"
FAILURES, LOSSES = "failures", "losses"
"""Reasons why a cell that would pass does not: the variant lost more runs to errors or missing I/O
than the baseline; the arms lost different runs."""
SHORT_HISTORY, NO_LOOK = "short-history", "no-look"
NO_BLOCKS, FEW_BLOCKS = "no-blocks", "few-blocks"
"""Reasons without a test. The variant lacks the cell; no block counts on both sides; a single block
has no noise. A value of zero has no ratio; a history has too few results since its last change. A
study with sequentially decided blocks has not reached its first look. A rule on single blocks needs
arms that took turns; it has too few blocks."""


@dataclass(frozen=True)
class CellOutcome:
    """A rule in one cell of one variant.

    Attributes:
        factors: the cell.
        change: estimate as `model.Change` has it, None without one.
        low, high: its two-sided interval at 1 - 2 alpha, or at twice the level of the look. Where
        normal noise is assumed, the rule passes in this cell exactly where the interval is inside
        the bounds.
        p_pass, p_fail: p values of the tests for "kept" and "not kept"; p_fail_adjusted: the latter
        after Holm's correction over all cells of all rules. Of a sequential study, p values hold
        over all looks (repeated p values). None where no test was made.
        count: blocks, or sessions of each arm (the smaller number) where `sessions` is not None.
        unit: of `count` and `more`: blocks, sessions of each arm, or results of the checked version
        (against a history). more: how many further ones, at which a change of the estimated size
        would be decided with 80 % power; None where decided, not known or above 1000.
        reason: code of the reason why no test was made.
    """

    factors: dict[str, object]
    variant: str
    outcome: Outcome
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p_pass: float | None = None
    p_fail: float | None = None
    p_fail_adjusted: float | None = None
    count: int = 0
    sessions: tuple[int, int] | None = None
    unit: Unit = "blocks"
    more: int | None = None
    reason: str | None = None

    @property
    def unseen(self) -> float | None:
        """Where the rule passes, the share of runs that may have a trouble which no block (or
        session) shows, at 95 %."""
        return unseen_share(self.count) if self.outcome == "pass" else None


@dataclass(frozen=True)
class RuleOutcome:
    """A rule over all cells: the worst outcome of its cells."""

    rule: Rule
    metric: Metric
    cells: tuple[CellOutcome, ...]

    @property
    def outcome(self) -> Outcome:
        """`fail` where one cell fails, `pass` where all pass."""
        return _worst([cell.outcome for cell in self.cells])


@dataclass(frozen=True)
class RunFinding:
    """What the runs say apart from their numbers.

    Attributes:
        code: `failures`, `losses` or `suspect`. outcome: of the check at best.
    """

    code: str
    outcome: Outcome
    variant: str
    text: str


@dataclass(frozen=True)
class Check:
    """All rules of a check.

    Attributes:
        alpha: upper limit of the chance that the check passes although a rule is broken in a cell,
        and of the chance that it fails although none is.
        differences: of the environments of arms from several
        results. notes: what else must be known. look: of a study with a number of blocks that was
        decided sequentially; runs after it are left out. arms: the runs of each arm, the baseline
        first. findings: what they say.
    """

    rules: tuple[RuleOutcome, ...]
    baseline: str
    variants: tuple[str, ...]
    alpha: float
    differences: tuple[Difference, ...] = ()
    notes: tuple[Warning, ...] = ()
    look: Look | None = None
    arms: tuple[ArmRuns, ...] = ()
    findings: tuple[RunFinding, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """`fail` where a rule or a finding fails, `pass` where all pass."""
        rules, findings = (
            [rule.outcome for rule in self.rules],
            [finding.outcome for finding in self.findings],
        )
        return _worst([*rules, *findings])


def judge_runs(
    arms: Sequence[ArmRuns], *, allowed_failures: int = 0, suspect: Outcome = "pass"
) -> tuple[RunFinding, ...]:
    """What the runs of the arms say, the baseline's first.

    An arm that loses more runs than the baseline to errors or missing I/O fails. Other losses that
    differ between the arms leave the check inconclusive: those that count may be the better runs of
    one arm. Both hold for differences above `allowed_failures`. `suspect` is the outcome where any
    run is SUSPECT.
    """
    findings = []
    baseline, *others = arms
    for arm in others:
        more = arm.failures - baseline.failures
        if more > allowed_failures:
            findings.append(
                RunFinding(
                    FAILURES,
                    "fail",
                    arm.variant,
                    f"{arm.variant} lost {arm.failures} of {arm.planned} runs to errors or missing I/O, "
                    f"{baseline.variant} {baseline.failures} of {baseline.planned}",
                )
            )
        elif (
            is_asymmetric(baseline, arm)
            and max(abs(more), abs(len(arm.lost) - len(baseline.lost)), 1) > allowed_failures
        ):
            findings.append(
                RunFinding(
                    LOSSES,
                    "inconclusive",
                    arm.variant,
                    f"the arms lost different runs: {arm.variant} {len(arm.lost)} of {arm.planned}, "
                    f"{baseline.variant} {len(baseline.lost)} of {baseline.planned}",
                )
            )
    counted = sum(arm.counted for arm in arms)
    number = sum(sum(arm.suspect.values()) for arm in arms)
    if number:
        codes = Counter[str]()
        for arm in arms:
            codes.update(arm.suspect)
        listed = ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
        findings.append(
            RunFinding("suspect", suspect, "", f"{number} of {counted} runs are SUSPECT ({listed})")
        )
    return tuple(findings)


def with_findings(
    rules: Sequence[RuleOutcome], findings: Sequence[RunFinding]
) -> tuple[RuleOutcome, ...]:
    """Rules of which no cell passes for a variant that lost runs: the runs that count may be the
    better ones."""
    worst: dict[str, RunFinding] = {
        finding.variant: finding for finding in findings if finding.code in (FAILURES, LOSSES)
    }
    return tuple(
        dataclasses.replace(
            rule,
            cells=tuple(
                dataclasses.replace(
                    cell, outcome=worst[cell.variant].outcome, reason=worst[cell.variant].code
                )
                if cell.outcome == "pass" and cell.variant in worst
                else cell
                for cell in rule.cells
            ),
        )
        for rule in rules
    )


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    if "fail" in outcomes:
        return "fail"
    return "pass" if outcomes and all(outcome == "pass" for outcome in outcomes) else "inconclusive"


@dataclass(frozen=True)
class Evidence:
    """The change of one cell.

    Attributes:
        interval: of the change. pairing: its values. exact: whether no distribution is assumed.
        is_history: whether the first arm is a history, from which the variation between sessions is
        known: the second arm needs a single session, and the first `LEAST_SESSIONS`.
    """

    interval: MeanInterval | SessionInterval
    pairing: Pairing
    exact: bool
    is_history: bool = False

    @property
    def reason(self) -> str | None:
        """Code of the reason why there is no test."""
        if self.pairing.is_tail:
            return TAIL
        if self.is_history and self.baseline_sessions < LEAST_SESSIONS:
            return SHORT_HISTORY
        if isinstance(self.interval, SessionInterval):
            if self.interval.is_within:
                return CONFOUNDED
            if not self.pairing.is_alternating:
                return NOT_ALTERNATING
            is_balanced = self.is_history or len(set(self.interval.sessions)) == 1
            return UNBALANCED if self.exact and not is_balanced else None
        return ONE_BLOCK if self.interval.n < 2 else None

    @property
    def baseline_sessions(self) -> int:
        """Sessions of the first arm; 0 where blocks are the unit."""
        return self.interval.sessions[0] if isinstance(self.interval, SessionInterval) else 0

    def test(self, bound: float) -> MarginTest:
        """One-sided tests of the change against a bound."""
        interval = self.interval
        if isinstance(interval, SessionInterval):
            assert interval.df is not None
            assert interval.error is not None
            error = interval.error
            if self.exact or error <= 1e-10 * abs(interval.mean - bound) or error == 0:
                assert self.pairing.sessions is not None
                first, second = (
                    [float(np.mean(values)) for values in arm.values()]
                    for arm in self.pairing.sessions
                )
                return permutation_margin(first, second, bound)
            return t_margin(interval.mean, error, interval.df, bound)
        if self.exact:
            return sign_flip_margin(self.pairing.differences, bound)
        if interval.equal:
            return sign_margin(interval.mean, interval.n, bound)
        assert interval.sd is not None
        assert interval.df is not None
        return t_margin(interval.mean, interval.sd / math.sqrt(interval.n), interval.df, bound)

    def more(self, distance: float, level: float) -> int | None:
        """Further blocks, or sessions of each arm, at which a one-sided test at `level` finds that
        distance from the bound with 80 % power."""
        if self.is_history:
            assert isinstance(self.interval, SessionInterval)
            if not self.interval.sd:
                return None
            first, second = self.interval.sessions
            needed = sessions_needed(distance, self.interval.sd, first, level)
            return None if needed is None else max(1, needed - second)
        if isinstance(self.interval, SessionInterval):
            basis = planning.basis_of_sessions(self.interval)
        else:
            basis = planning.Basis(self.interval, self.pairing.differences, self.exact)
        if basis is None:
            return None
        shifted = dataclasses.replace(
            basis, interval=dataclasses.replace(basis.interval, mean=distance)
        )
        # a two-sided test at twice the level has the power of the one-sided one
        needed = planning.blocks_needed(shifted, min(2 * level, 0.5))
        return None if needed is None else needed - basis.interval.n


@dataclass(frozen=True)
class ZeroEvidence:
    """A cell with values of zero, which have no logarithm: the change of the arithmetic means, of
    which there is no test."""

    change: float


Place = tuple[dict[str, object], str]


def check(
    runs: Sequence[Run],
    rules: Sequence[Rule],
    *,
    baseline: str | None = None,
    ignore: Sequence[str] = (),
    where: Where | None = None,
    alpha: float = ALPHA,
    notes: Sequence[Warning] = (),
    look: Look | None = None,
    allowed_failures: int = 0,
    suspect: Outcome = "pass",
) -> Check:
    """Check the changes of every variant against the baseline.

    Args:
        runs: as `compare.compare` takes them; baseline, ignore, where: likewise.
        alpha: of the check as a whole, see `Check`; with a look, that of its design.
        look: the last look of a sequential study. Only its blocks count, and tests have its level.
        allowed_failures, suspect: see `judge_runs`.

    A cell passes where a one-sided t test at alpha rejects "the change is at the bound or beyond
    it" (both of two tests for `within`). The check passes where every cell of every rule does. Such
    an intersection needs no correction. A cell fails where the opposite test rejects after Holm's
    correction over all cells of all rules. A rule on a percentile of the blocks has exact tests of
    the share of blocks that break it; one on the worst block is decided by the measured blocks.
    Blocks, sessions, pooling and exact tests are those of the comparison; with a single session of
    an arm there is no test.

    Raises UsageError where there is no rule, no run, no variant, or a rule's metric was not
    measured.
    """
    if not rules:
        raise UsageError(
            "no rule is given", where="--rule", hint="write --rule 'write.iops >= -5 %'"
        )
    selected = with_achieved(select(runs, where or {}))
    if not selected:
        raise UsageError("no run meets the conditions", where="--where")
    variants = list(
        dict.fromkeys(
            run.variant
            for run in selected
            if run.variant != "?" and not run.variant.endswith(AGAIN)
        )
    )
    base = baseline_of(baseline, variants, runs)
    compared = [variant for variant in variants if variant != base]
    if not compared:
        raise UsageError(
            f"'{base}' is the only variant: there is nothing to check",
            hint="--against RESULTS names the baseline",
        )
    level, counted = alpha, selected
    if look is not None:
        alpha, level = look.design.alpha, look.level
        counted = [run for run in selected if not look.number or run.plan.block <= look.blocks]
    checked = [
        (rule, metric, _evidence(counted, metric, base, compared, ignore, level))
        for rule in rules
        for metric in (metric_of(rule.metric, selected),)
    ]
    outcomes = judge(checked, alpha, look)
    luck_notes = dict.fromkeys(
        note for _, metric, cells in checked for note in _shared_luck(metric, cells)
    )
    pairings = [
        evidence.pairing
        for _, _, cells in checked
        for _, evidence in cells
        if isinstance(evidence, Evidence)
    ]
    notes = [*notes, *luck_notes, *order_notes(pairings)]
    arms = arm_runs(counted, (base, *compared))
    has_several = len({run.results for run in selected}) > 1
    unmatched = (
        [cell for cell in unmatched_of(selected) if base not in cell.variants]
        if has_several
        else []
    )
    if unmatched:
        listed = "; ".join(
            axis_text(cell.factors.keys(), tuple(cell.factors.values())) for cell in unmatched[:4]
        )
        more = f" and {len(unmatched) - 4} more" if len(unmatched) > 4 else ""
        notes = [
            *notes,
            Warning("unmatched", f"{base} lacks cells, which are not checked: {listed}{more}"),
        ]
    findings = judge_runs(arms, allowed_failures=allowed_failures, suspect=suspect)
    return Check(
        with_findings(outcomes, findings),
        base,
        tuple(compared),
        alpha,
        differences_of(selected) if has_several else (),
        tuple(notes),
        look,
        arms,
        findings,
    )


def judge(
    checked: Sequence[tuple[Rule, Metric, Sequence[tuple[Place, Evidence | ZeroEvidence | str]]]],
    alpha: float,
    look: Look | None = None,
) -> tuple[RuleOutcome, ...]:
    """Decide rules by the evidence of their cells; a text is the reason for the lack of evidence.

    With a look, p values become repeated p values before they are corrected and compared with
    alpha: a sequential test for each intersection of hypotheses (Maurer & Bretz 2013, "Multiple
    testing in group sequential trials using graphical approaches").
    """
    tested = [
        [
            _test_cell(rule.bounds(metric), metric, factors, variant, evidence, look)
            if rule.share is None
            else _test_share(rule, metric, factors, variant, evidence, alpha, look)
            for (factors, variant), evidence in cells
        ]
        for rule, metric, cells in checked
    ]
    adjusted = holm([cell.p_fail for cells in tested for cell in cells])
    tests = max(1, sum(p is not None for p in adjusted))
    remaining = iter(adjusted)
    return tuple(
        RuleOutcome(
            rule,
            metric,
            tuple(
                _decide(cell, next(remaining), rule, metric, evidence, alpha, tests)
                for cell, (_, evidence) in zip(cells, evidences, strict=True)
            ),
        )
        for (rule, metric, evidences), cells in zip(checked, tested, strict=True)
    )


def _evidence(
    runs: Sequence[Run],
    metric: Metric,
    base: str,
    variants: Sequence[str],
    ignore: Sequence[str],
    alpha: float,
) -> list[tuple[Place, Evidence | ZeroEvidence | str]]:
    """Of every cell of the baseline and every variant its evidence, or the reason for its
    absence."""
    axes = choose(runs, Layout(ignore=ignore))
    names = (*axes.tables, *axes.rows, *axes.cols)
    arms = collect(runs, metric, axes)
    places = list(dict.fromkeys(key[:3] for key in arms))
    cells: list[tuple[Place, Evidence | ZeroEvidence | str]] = []
    for variant in variants:
        pairings = {
            place: pair(arms.get((*place, base)), arms.get((*place, variant)), metric)
            for place in places
        }
        paired = {
            place: pairing
            for place, pairing in pairings.items()
            if pairing.has_change and pairing.sessions is None
        }
        confidence = 1 - 2 * alpha
        intervals: Mapping[tuple[Key, Key, Key], MeanInterval | SessionInterval] = dict(
            zip(
                paired,
                t_intervals(
                    [pairing.differences for pairing in paired.values()],
                    confidence=confidence,
                    blocks=[pairing.blocks for pairing in paired.values()],
                ),
                strict=True,
            )
        ) | {
            place: session_interval(
                *(list(arm.values()) for arm in pairing.sessions), confidence=confidence
            )
            for place, pairing in pairings.items()
            if pairing.sessions is not None
        }
        for place, pairing in pairings.items():
            if (*place, base) not in arms:
                continue
            factors = {
                **axes.fixed,
                **dict(zip(names, (*place[0], *place[1], *place[2]), strict=True)),
            }
            evidence: Evidence | ZeroEvidence | str
            if place in intervals:
                evidence = Evidence(intervals[place], pairing, metric.assumption != "normal")
            else:
                evidence = _absence(arms.get((*place, variant)), pairing)
            if pairing.zero and pairing.zero_change is not None:
                evidence = ZeroEvidence(pairing.zero_change)
            cells.append(((factors, variant), evidence))
    return cells


def _shared_luck(
    metric: Metric, cells: Sequence[tuple[Place, Evidence | ZeroEvidence | str]]
) -> list[Warning]:
    by_variant: dict[str, list[Pairing]] = {}
    for (_, variant), evidence in cells:
        if isinstance(evidence, Evidence):
            by_variant.setdefault(variant, []).append(evidence.pairing)
    return shared_luck_notes(metric, by_variant)


def _absence(variant: ArmCell | None, pairing: Pairing) -> str:
    if variant is None:
        return MISSING
    return ZERO if pairing.zero else NO_PAIRS


def _test_cell(
    bounds: tuple[float | None, float | None],
    metric: Metric,
    factors: dict[str, object],
    variant: str,
    evidence: Evidence | ZeroEvidence | str,
    look: Look | None,
) -> CellOutcome:
    """The cell with its p values, before the correction."""
    if look is not None and not look.number:
        return CellOutcome(factors, variant, "inconclusive", reason=NO_LOOK)
    if isinstance(evidence, str):
        return CellOutcome(factors, variant, "inconclusive", reason=evidence)
    if isinstance(evidence, ZeroEvidence):
        low, _ = bounds
        is_lost = evidence.change <= -1 and low is not None
        return CellOutcome(
            factors,
            variant,
            "fail" if is_lost else "inconclusive",
            evidence.change,
            reason=None if is_lost else ZERO,
        )
    interval, back = evidence.interval, scale_of(metric)
    sessions = interval.sessions if isinstance(interval, SessionInterval) else None
    cell = CellOutcome(
        factors,
        variant,
        "inconclusive",
        back(interval.mean),
        None if interval.low is None else back(interval.low),
        None if interval.high is None else back(interval.high),
        unit="results" if evidence.is_history else "blocks" if sessions is None else "sessions",
        count=min(sessions) if sessions is not None else getattr(interval, "n", 0),
        sessions=sessions,
        reason=evidence.reason,
    )
    if evidence.reason == TAIL:
        return dataclasses.replace(cell, low=None, high=None)
    if evidence.reason is not None:
        return cell
    low, high = bounds
    tests = [
        *([] if low is None else [evidence.test(low)]),
        *([] if high is None else [_mirror(evidence.test(high))]),
    ]
    p_pass, p_fail = max(test.above for test in tests), min(test.below for test in tests)
    if look is not None:
        p_pass, p_fail = look.repeated_p(p_pass), look.repeated_p(p_fail)
    return dataclasses.replace(cell, p_pass=p_pass, p_fail=min(1.0, len(tests) * p_fail))


def _test_share(
    rule: Rule,
    metric: Metric,
    factors: dict[str, object],
    variant: str,
    evidence: Evidence | ZeroEvidence | str,
    alpha: float,
    look: Look | None,
) -> CellOutcome:
    """A rule on a percentile of the changes of single blocks, by the share of blocks that break it.
    Or on the worst block, which is a statement on the measured blocks without a test."""
    share = rule.share
    assert share is not None
    mean = _test_cell(rule.bounds(metric), metric, factors, variant, evidence, look)
    if not isinstance(evidence, Evidence) or (mean.reason not in (None, ONE_BLOCK)):
        return mean
    differences = np.sort(evidence.pairing.differences)
    cell = dataclasses.replace(mean, low=None, high=None, p_pass=None, p_fail=None, reason=None)
    if not len(differences):
        return dataclasses.replace(cell, reason=NO_BLOCKS)
    low, _ = rule.bounds(metric)
    broken = _count_broken(differences, rule, metric)
    count, back = len(differences), scale_of(metric)
    place = max(0, math.ceil(share * count) - 1)
    value = differences[place] if low is not None else differences[count - 1 - place]
    cell = dataclasses.replace(cell, change=back(float(value)), count=count)
    if share == 0:
        if broken:
            return dataclasses.replace(cell, outcome="fail")
        if count < LEAST_WORST:
            return dataclasses.replace(cell, reason=FEW_BLOCKS, more=LEAST_WORST - count)
        return dataclasses.replace(cell, outcome="pass")
    test = share_margin(broken, count, share)
    # the levels of looks are those of sums: for shares the error is divided by the looks
    looks = 1 if look is None else len(look.design.looks)
    return dataclasses.replace(
        cell, p_pass=min(1.0, looks * test.above), p_fail=min(1.0, looks * test.below)
    )


def _count_broken(differences: Floats, rule: Rule, metric: Metric) -> int:
    """How many blocks break the bound of a rule."""
    low, high = rule.bounds(metric)
    below = 0 if low is None else int(np.sum(differences < low))
    return below + (0 if high is None else int(np.sum(differences > high)))


def _mirror(test: MarginTest) -> MarginTest:
    return MarginTest(test.below, test.above)


def _decide(
    cell: CellOutcome,
    adjusted: float | None,
    rule: Rule,
    metric: Metric,
    evidence: Evidence | ZeroEvidence | str,
    alpha: float,
    tests: int,
) -> CellOutcome:
    p_pass = cell.p_pass
    if not isinstance(evidence, Evidence) or p_pass is None or adjusted is None:
        more = cell.more
        if cell.reason == CONFOUNDED:
            more = max(1, LEAST_SESSIONS - cell.count)
        return dataclasses.replace(cell, more=more)
    cell = dataclasses.replace(cell, p_fail_adjusted=adjusted)
    if adjusted <= alpha:
        return dataclasses.replace(cell, outcome="fail")
    if p_pass <= alpha:
        return dataclasses.replace(cell, outcome="pass")
    low, high = rule.bounds(metric)
    if rule.share is not None:
        broken = _count_broken(evidence.pairing.differences, rule, metric)
        needed = blocks_for_share(broken, rule.share, alpha)
        return dataclasses.replace(
            cell,
            reason=FEW_BLOCKS if needed is not None else None,
            more=None if needed is None else max(1, needed - cell.count),
        )
    mean = evidence.interval.mean
    above = math.inf if low is None else mean - low
    below = math.inf if high is None else high - mean
    nearest = min(above, below)
    level = alpha if nearest > 0 else alpha / tests
    return dataclasses.replace(cell, more=evidence.more(abs(nearest), level))
