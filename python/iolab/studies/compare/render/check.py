# SPDX-License-Identifier: Apache-2.0
"""A check as text, Markdown for pull requests, JSON, and JUnit XML for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from iolab.base.untrusted_text import json_text, markdown, visible

from ..arms import runs_text
from ..axes import axis_text
from ..model import CONFOUNDED, NOT_ALTERNATING, TAIL, UNBALANCED
from ..rules.check import (
    FAILURES,
    FEW_BLOCKS,
    LOSSES,
    MISSING,
    NO_BLOCKS,
    NO_LOOK,
    NO_PAIRS,
    ONE_BLOCK,
    SHORT_HISTORY,
    ZERO,
    CellOutcome,
    Check,
    Outcome,
    RuleOutcome,
)
from .grids import grid
from .json import plain
from .words import change_number, change_unit, opening_lines, signed_change, signed_text

MOST_CELLS = 20
"""Cells of a rule that text and Markdown list."""

REASONS = {
    CONFOUNDED: "confounded with time (an arm has a single session)",
    NOT_ALTERNATING: "all sessions of one arm were before those of the other",
    TAIL: "the tail of the sample, with fewer than ten I/Os beyond it, is not tested",
    UNBALANCED: "the exact test needs as many sessions of one arm as of the other",
    SHORT_HISTORY: "fewer than 3 results since the last change",
    MISSING: "the variant has no run of this cell",
    NO_PAIRS: "no block has a valid run of both arms",
    ONE_BLOCK: "a single block: no noise is known",
    ZERO: "a value is zero: no test",
    NO_BLOCKS: "a rule on single blocks needs arms that took turns",
    FEW_BLOCKS: "too few blocks to know the share of bad ones",
    FAILURES: "the variant lost more runs to errors or missing I/O",
    LOSSES: "the arms lost different runs",
    NO_LOOK: "the blocks of the first look are not complete",
}
"""Why a cell has no test, by code."""

_UNITS = {
    "blocks": "blocks",
    "sessions": "sessions of each arm, in turn",
    "results": "results of this version",
}

_HEAD = ["cell", "variant", "outcome", "change", "interval", "n", "needs"]


def render_check(check: Check, style: str, *, inconclusive: Outcome = "inconclusive") -> str:
    """The check in a format (`text`, `markdown`, `json`, `junit`), with a final newline.
    `inconclusive` is what an inconclusive rule counts as."""
    if style == "json":
        return json_text(as_json(check), indent=1) + "\n"
    if style == "junit":
        return _junit(check, inconclusive)
    return _markdown(check) if style == "markdown" else _text(check)


def headline(check: Check) -> str:
    """`fail: 3 rules (1 failed, 2 passed)`, or `pass: 1 rule; 24 of 24 runs are SUSPECT (stall 24)`."""
    return "; ".join([_rules_line(check), *(finding.text for finding in check.findings)])


def _rules_line(check: Check) -> str:
    counts = {
        outcome: sum(rule.outcome == outcome for rule in check.rules)
        for outcome in ("fail", "inconclusive", "pass")
    }
    words = {"fail": "failed", "inconclusive": "inconclusive", "pass": "passed"}
    listed = ", ".join(f"{count} {words[name]}" for name, count in counts.items() if count)
    if len(check.rules) == 1:
        [rule] = check.rules
        own = "" if rule.outcome == check.outcome else f" ({words[rule.outcome]})"
        return f"{check.outcome}: 1 rule{own}"
    return f"{check.outcome}: {len(check.rules)} rules ({listed})"


def _text(check: Check) -> str:
    opening = opening_lines(check)
    lines = [*opening, *([""] if opening else []), headline(check)]
    for rule in check.rules:
        lines += ["", _rule_line(rule)]
        lines += grid([_HEAD, *_rows(rule)], left=(0, 1, 2, 6)) if rule.cells else []
        lines += _rest(rule)
    return "\n".join([*lines, "", *_closing(check)]) + "\n"


def _markdown(check: Check) -> str:
    signs = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}
    lines = [f"### {signs[check.outcome]} {headline(check)}", ""]
    for rule in check.rules:
        lines += [f"**{signs[rule.outcome]} {markdown(_rule_line(rule))}**", ""]
        lines += [f"| {' | '.join(_HEAD)} |", "|---|---|---|---:|---:|---:|---|"]
        lines += [f"| {' | '.join(map(markdown, row))} |" for row in _rows(rule)]
        lines.append("")
        for line in _rest(rule):
            lines += [markdown(line), ""]
    opening = opening_lines(check)
    if opening:
        lines += [opening[0], "", *(f"- {markdown(line.strip())}" for line in opening[1:]), ""]
    lines += [f"- {markdown(line)}" for line in _closing(check)]
    return "\n".join(lines) + "\n"


def _rule_line(rule: RuleOutcome) -> str:
    counts = [
        f"{sum(cell.outcome == outcome for cell in rule.cells)} {outcome}"
        for outcome in ("fail", "inconclusive", "pass")
        if any(cell.outcome == outcome for cell in rule.cells)
    ]
    listed = f" (cells: {', '.join(counts)})" if len(rule.cells) > 1 else ""
    return f"{rule.outcome}: {rule.rule}{listed}"


def cell_lines(check: Check) -> list[str]:
    """A line for each rule: its decisive cell with change and interval, as
    `write.iops -20.1 % [-21.0, -19.2], fail`."""
    lines = []
    for rule in check.rules:
        text = f"{rule.metric.name} {rule.outcome}"
        if rule.cells:
            cell = _cells_to_list(rule)[0]
            change = "" if cell.change is None else f" {signed_change(cell.change, rule, None)}"
            places = ", ".join(filter(None, (cell.variant, _cell_name(cell))))
            text = f"{rule.metric.name}{change} {_interval(cell, rule)}".rstrip()
            text += f", {cell.outcome} ({places})"
        lines.append(text)
    return lines


def _cells_to_list(rule: RuleOutcome) -> list[CellOutcome]:
    """Cells that did not pass first; passed ones only where there is room."""
    rank = {"fail": 0, "inconclusive": 1, "pass": 2}
    return sorted(rule.cells, key=lambda cell: rank[cell.outcome])[:MOST_CELLS]


def _rest(rule: RuleOutcome) -> list[str]:
    more = len(rule.cells) - MOST_CELLS
    lines = [f"and {more} more cells (--format json has them all)"] if more > 0 else []
    need = _common_need(rule)
    if need:
        lines.append(f"inconclusive: {need}")
    if rule.outcome == "pass" and rule.cells:
        lines.append(_unseen_text(max(rule.cells, key=lambda cell: cell.unseen or 0.0)))
    return lines


def _unseen_text(cell: CellOutcome) -> str:
    """`unseen: a trouble in up to 39 % of runs (95 %), which none of 6 blocks shows`."""
    unit = {"blocks": "blocks", "sessions": "sessions", "results": "results"}[cell.unit]
    share = f"{100 * (cell.unseen or 0.0):.2g} %"
    if cell.count == 1:
        return (
            f"unseen: a trouble in up to {share} of runs (95 %), which a single one does not show"
        )
    return f"unseen: a trouble in up to {share} of runs (95 %), which none of {cell.count} {unit} shows"


def _common_need(rule: RuleOutcome) -> str:
    """What all inconclusive cells need, where it is the same for several; else ""."""
    needs = [_needs(cell) for cell in rule.cells if cell.outcome == "inconclusive"]
    return needs[0] if len(needs) > 1 and len(set(needs)) == 1 else ""


def _rows(rule: RuleOutcome) -> list[list[str]]:
    has_common_need = bool(_common_need(rule))
    return [
        [
            _cell_name(cell) or "all",
            cell.variant,
            cell.outcome,
            "" if cell.change is None else signed_change(cell.change, rule, None),
            _interval(cell, rule),
            _count(cell),
            "" if has_common_need else _needs(cell),
        ]
        for cell in _cells_to_list(rule)
    ]


def _cell_name(cell: CellOutcome) -> str:
    return axis_text(cell.factors.keys(), tuple(cell.factors.values()))


def _interval(cell: CellOutcome, rule: RuleOutcome) -> str:
    if cell.low is None or cell.high is None:
        return ""
    low, high = (change_number(end, rule) for end in (cell.low, cell.high))
    digits = 1 if max(abs(low), abs(high)) < 1000 else 0
    return f"[{signed_text(low, digits)}, {signed_text(high, digits)}]"


def _count(cell: CellOutcome) -> str:
    if cell.sessions is not None:
        return f"{cell.sessions[0]} against {cell.sessions[1]} sessions"
    return str(cell.count)


def _needs(cell: CellOutcome) -> str:
    """What would decide an inconclusive cell."""
    if cell.reason == FAILURES:
        return REASONS[FAILURES]
    if cell.outcome != "inconclusive":
        return ""
    unit = _UNITS[cell.unit]
    if cell.reason is not None:
        advice = f"; at least {cell.more} more {unit}" if cell.more is not None else ""
        return f"{REASONS[cell.reason]}{advice}"
    return f"about {cell.more} more {unit}" if cell.more is not None else f"more than 1000 {unit}"


def _closing(check: Check) -> list[str]:
    level = f"{100 * check.alpha:g} %"
    confidence = f"{100 - 200 * check.alpha:g} % intervals"
    if check.look is not None:
        confidence += ", widened for all looks"
    return [
        *([runs_text(check.arms)] if check.arms else []),
        *_look_lines(check),
        f"against {check.baseline}; {confidence}. The chance that the check passes "
        f"although a rule is broken in a cell is at most {level}, that it fails although none is at most {level}, "
        "if blocks (or sessions) are independent and of one distribution",
        *(f"note: {note.text}" for note in check.notes),
    ]


def _look_lines(check: Check) -> list[str]:
    look = check.look
    if look is None:
        return []
    looks, most = len(look.design.looks), look.design.looks[-1]
    if not look.number:
        return [
            f"sequential: no look yet; the first of {looks} is at {look.design.looks[0]} blocks"
        ]
    return [
        f"sequential: look {look.number} of {looks}, at {look.blocks} of at most {most} blocks"
        + (", the last" if look.is_last else "")
    ]


def as_json(check: Check) -> dict[str, Any]:
    """The check as plain data; changes in the unit of `unit`."""
    return {
        "schema": 1,
        "kind": "check",
        "outcome": check.outcome,
        "baseline": check.baseline,
        "variants": list(check.variants),
        "alpha": check.alpha,
        "rules": [
            {
                "rule": str(rule.rule),
                "metric": rule.metric.name,
                "unit": change_unit(rule),
                "outcome": rule.outcome,
                "cells": [_cell_json(cell, rule) for cell in rule.cells],
            }
            for rule in check.rules
        ],
        "differences": [
            {
                "name": difference.name,
                "values": {arm: list(texts) for arm, texts in difference.values.items()},
            }
            for difference in check.differences
        ],
        "arms": [arm.as_data() for arm in check.arms],
        "findings": [asdict(finding) for finding in check.findings],
        "notes": [{"code": note.code, "text": note.text} for note in check.notes],
        "look": None
        if check.look is None
        else {
            "look": check.look.number,
            "looks": list(check.look.design.looks),
            "blocks": check.look.blocks,
            "level": check.look.level,
            "spending": check.look.design.spending,
        },
    }


def _cell_json(cell: CellOutcome, rule: RuleOutcome) -> dict[str, Any]:
    def end(value: float | None) -> float | None:
        return None if value is None else change_number(value, rule)

    return {
        "factors": plain(cell.factors),
        "variant": cell.variant,
        "outcome": cell.outcome,
        "change": end(cell.change),
        "low": end(cell.low),
        "high": end(cell.high),
        "p_pass": cell.p_pass,
        "p_fail": cell.p_fail,
        "p_fail_adjusted": cell.p_fail_adjusted,
        "n": cell.count,
        "sessions": None if cell.sessions is None else list(cell.sessions),
        "more": cell.more,
        "unseen": cell.unseen,
        "reason": cell.reason,
    }


def _junit(check: Check, inconclusive: Outcome) -> str:
    """A suite per rule, a case per cell and variant. Inconclusive cells are skipped, or what
    `inconclusive` says."""
    suites = ElementTree.Element("testsuites", name="iolab check")
    for rule in check.rules:
        counts = _junit_counts(rule.cells, inconclusive)
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=visible(str(rule.rule)),
            tests=str(len(rule.cells)),
            failures=str(counts["fail"]),
            errors="0",
            skipped=str(counts["inconclusive"]),
        )
        for cell in rule.cells:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=visible(str(rule.rule)),
                name=visible(f"{cell.variant} {_cell_name(cell)}".rstrip()),
            )
            words = visible(_junit_words(cell, rule))
            outcome = inconclusive if cell.outcome == "inconclusive" else cell.outcome
            if outcome == "fail":
                ElementTree.SubElement(case, "failure", message=words, type=cell.outcome)
            elif outcome == "inconclusive":
                ElementTree.SubElement(case, "skipped", message=words)
            else:
                ElementTree.SubElement(case, "system-out").text = words
    if check.arms:
        _junit_runs(suites, check, inconclusive)
    for name in ("tests", "failures", "errors", "skipped"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, "unicode", xml_declaration=True) + "\n"


def _junit_runs(suites: ElementTree.Element, check: Check, inconclusive: Outcome) -> None:
    """A suite of its own for the runs: a case per finding, or a single case with the counts."""
    outcomes = [
        inconclusive if finding.outcome == "inconclusive" else finding.outcome
        for finding in check.findings
    ]
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name="runs",
        tests=str(len(outcomes) or 1),
        failures=str(outcomes.count("fail")),
        errors="0",
        skipped=str(outcomes.count("inconclusive")),
    )
    for outcome, code, name, text in [
        (outcome, finding.code, f"{finding.code} {finding.variant}".rstrip(), finding.text)
        for outcome, finding in zip(outcomes, check.findings, strict=True)
    ] or [("pass", "", "counted", runs_text(check.arms))]:
        case = ElementTree.SubElement(suite, "testcase", classname="runs", name=visible(name))
        if outcome == "fail":
            ElementTree.SubElement(case, "failure", message=visible(text), type=code)
        elif outcome == "inconclusive":
            ElementTree.SubElement(case, "skipped", message=visible(text))
        ElementTree.SubElement(case, "system-out").text = visible(
            text if text == runs_text(check.arms) else f"{text}; {runs_text(check.arms)}"
        )


def _junit_counts(cells: Sequence[CellOutcome], inconclusive: Outcome) -> dict[str, int]:
    outcomes = [inconclusive if cell.outcome == "inconclusive" else cell.outcome for cell in cells]
    return {name: outcomes.count(name) for name in ("fail", "inconclusive")}


def _junit_words(cell: CellOutcome, rule: RuleOutcome) -> str:
    change = "" if cell.change is None else signed_change(cell.change, rule, None)
    parts = [cell.outcome, f"{change} {_interval(cell, rule)}".strip(), _needs(cell)]
    if cell.outcome == "pass":
        parts.append(_unseen_text(cell))
    return "; ".join(part for part in parts if part)
