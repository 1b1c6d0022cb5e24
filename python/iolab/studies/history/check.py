# SPDX-License-Identifier: Apache-2.0
"""New results against a history: rules for the change from the level since the last change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.metrics import Metric, of, share_beyond
from iolab.base.stats.sessions import session_interval

from ..compare.arms import ArmRuns, arm_runs
from ..compare.axes import axis_text
from ..compare.cells import Pairing, SessionValues
from ..compare.model import Difference, Warning
from ..compare.rules.check import (
    MISSING,
    ZERO,
    Check,
    Evidence,
    Outcome,
    Place,
    judge,
    judge_runs,
    with_findings,
)
from ..compare.rules.rules import Rule
from ..results.open.results import Results
from .changes import ALPHA, Course, find_changes, meets
from .render import trend_text
from .store import Entry, History, manifest_digest, rows_of, series_name, start_of

HISTORY, CHECKED = "history", "checked"
"""The baseline arm, and a variant without a name."""


def check_history(
    history: History,
    results: Sequence[Results],
    rules: Sequence[Rule],
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    alpha: float = ALPHA,
    notes: Sequence[Warning] = (),
    allowed_failures: int = 0,
    suspect: Outcome = "pass",
) -> Check:
    """Check new results against the results of a history before them.

    The baseline of each cell are its values since its last significant change, a session each. The
    variation between sessions is known from them, so that one new session is enough. This assumes
    that the history has no trend since its last change.

    Args:
        results: of the version that is checked; several are sessions of it. Where they are entries
        of the history, these are left out of the baseline.
        allowed_failures, suspect: see `judge_runs`. Of the history, runs that were lost are not
        known: each one of the checked results counts.

    Raises UsageError where there is no rule, or a rule's metric was not measured.
    """
    if not rules:
        raise UsageError(
            "no rule is given", where="--rule", hint="write --rule 'write.iops >= -5 %'"
        )
    own = {manifest_digest(checked) for checked in results}
    start = min(map(start_of, results))
    earlier = [
        entry
        for entry in history.entries
        if entry.manifest not in own and entry.measured_ns < start
    ]
    if not earlier:
        raise UsageError(
            "has no results before those that are checked",
            where=history.path,
            hint="iolab history add RESULTS",
        )
    numbers = {entry.number for entry in earlier}
    values: dict[tuple[str, str], list[float]] = {}
    units: dict[str, str] = {}
    for directory in results:
        for row in rows_of(0, directory):
            values.setdefault((row.metric, row.series), []).append(row.value)
            units[row.metric] = row.unit
    checked, new_cells = [], dict[str, None]()
    trends = dict[Warning, None]()
    for rule in rules:
        if rule.metric not in units:
            raise UsageError(
                f"the results do not have the metric '{rule.metric}'",
                where="--rule",
                hint=f"there are {', '.join(sorted(units)[:8])}",
            )
        metric = of(rule.metric, units[rule.metric])
        cells: list[tuple[Place, Evidence | str]] = []
        names = set()
        for course in find_changes(history, [metric], where=where):
            name = series_name(course.series.variant, course.series.factors)
            names.add(name)
            trends |= dict.fromkeys(_trend_notes(course))
            baseline_values = _baseline(course, numbers)
            if baseline_values:
                place = (course.series.factors, course.series.variant or CHECKED)
                cells.append(
                    (
                        place,
                        _evidence(metric, baseline_values, values.get((metric.name, name)), alpha),
                    )
                )
        new_cells |= dict.fromkeys(
            name for name_of, name in values if name_of == metric.name and name not in names
        )
        checked.append((rule, metric, cells))
    runs = [
        run
        for directory in results
        for run in directory.runs
        if meets(run.variant, run.factors, where or {})
    ]
    arms = arm_runs(runs, tuple(dict.fromkeys(run.variant for run in runs)))
    findings = tuple(
        dict.fromkeys(
            finding
            for arm in arms
            for finding in judge_runs(
                (ArmRuns(HISTORY, 0, 0, {}, ()), arm),
                allowed_failures=allowed_failures,
                suspect=suspect,
            )
        )
    )
    # a history of results without variants has a single, unnamed one
    unnamed = [replace(finding, variant=CHECKED) for finding in findings]
    return Check(
        with_findings(judge(checked, alpha), (*unnamed, *findings)),
        HISTORY,
        tuple(dict.fromkeys(variant for *_, cells in checked for (_, variant), _ in cells)),
        alpha,
        _differences(earlier[-1], results),
        (
            *(Warning("damaged-index", text) for text in history.notes),
            *notes,
            *trends,
            *_unmatched_notes(new_cells, where or {}),
        ),
        arms=arms,
        findings=findings,
    )


def _baseline(course: Course, numbers: set[int]) -> list[float]:
    """Values since the last change that was before the checked results."""
    places = [place for place, number in enumerate(course.series.entries) if number in numbers]
    first = 0
    for finding in course.findings:
        place = course.series.entries.index(finding.after.number)
        if places and place <= places[-1]:
            first = place
    return [float(course.series.values[place]) for place in places if place >= first]


def _evidence(
    metric: Metric, before: Sequence[float], after: Sequence[float] | None, alpha: float
) -> Evidence | str:
    if after is None:
        return MISSING
    if metric.change == "ratio":
        if min(*before, *after) <= 0:
            return ZERO
        before, after = np.log(before).tolist(), np.log(after).tolist()
    interval = session_interval(
        [[value] for value in before],
        [[value] for value in after],
        confidence=1 - 2 * alpha,
        is_stationary=True,
    )
    sessions: tuple[SessionValues, SessionValues] = (
        {(place,): [value] for place, value in enumerate(before)},
        {(place,): [value] for place, value in enumerate(after)},
    )
    pairing = Pairing(
        np.empty(0),
        (),
        0,
        sessions=sessions,
        is_by_sessions=True,
        is_tail=share_beyond(metric.name) == 0,
    )
    return Evidence(interval, pairing, metric.assumption != "normal", is_history=True)


def _differences(last: Entry, results: Sequence[Results]) -> tuple[Difference, ...]:
    """Facts in which the checked results differ from the last results of the history."""
    facts: dict[str, dict[str, None]] = {}
    for directory in results:
        for run in directory.runs:
            for name, value in run.environment.items():
                facts.setdefault(name, {})[value] = None
    return tuple(
        Difference(name, {HISTORY: (last.environment[name],), CHECKED: tuple(texts)})
        for name, texts in facts.items()
        if name in last.environment and "; ".join(texts) != last.environment[name]
    )


def _trend_notes(course: Course) -> list[Warning]:
    """That a series has a trend, which the check assumes not to be there."""
    if course.trend is None:
        return []
    factors = course.series.factors
    cell = axis_text(factors.keys(), tuple(factors.values()))
    text = (
        f"{course.metric.name}{f' at {cell}' if cell else ''}: {trend_text(course, course.trend)} in "
        "the history; its mean is no level to compare with; measure both versions in turn "
        "(--against)"
    )
    return [Warning("trend", text)]


def _unmatched_notes(
    names: Mapping[str, None], where: Mapping[str, Sequence[str]]
) -> list[Warning]:
    cells = [json.loads(name) for name in names]
    listed = [
        axis_text(cell["factors"].keys(), tuple(cell["factors"].values())) or "no factors"
        for cell in cells
        if meets(cell["variant"], cell["factors"], where)
    ]
    if not listed:
        return []
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    text = f"the history lacks cells, which are not checked: {'; '.join(listed[:4])}{more}"
    return [Warning("unmatched", text)]
