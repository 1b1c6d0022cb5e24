# SPDX-License-Identifier: Apache-2.0
"""Why results, or one of their variants, can't be compared, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.verdict import Level
from iolab.studies.compare.model import Comparison
from iolab.studies.results.evidence.model import Run

from ..model.cover_payload import Obstacle, ObstacleReason
from ..words.phrases import count_text

MOST_REASONS = 4
"""Reasons with a line of their own, most frequent first."""
MOST_RUNS = 3
"""Runs named for a reason."""

_LOAD = "The load failed. Read fio's messages in the evidence of a run, and repair target or job."
REMEDIES = {
    "job-error": "Read fio's error in the evidence of a run. ENOSPC: give the target more space.",
    "io-errors": "The storage returned errors. Read the kernel's log and replace the device.",
    "exit-code": _LOAD,
    "failed": _LOAD,
    "interrupted": "The study was stopped during these runs.",
    "runtime": "Read in the evidence of a run why the load ended at another time than requested.",
    "monitor-missing": "A source recorded nothing. Check its permissions with `iolab doctor`.",
    "monitor-dead": "A source ended early. Check its permissions with `iolab doctor`.",
    "littles-law": "The results contain more I/O than the concurrency allows: check jobs and depth.",
    "job-count": "The results have another number of jobs than planned: check the job file.",
    "same-build": "Both variants ran the same build: check [builds], and that modules are reloaded.",
    "wrong-build": "Another build than requested ran: check [builds], and that modules are reloaded.",
    "client-failed": "A client failed. Check that it is reachable and has fio.",
}
"""What to do about a reason, by its code."""
ELSE = "Read the evidence of such a run."


def obstacles(
    comparisons: Sequence[Comparison], runs: Sequence[Run], *, is_running: bool = False
) -> list[Obstacle]:
    """What prevents the comparison of all arms, or of some; empty where each arm has a run that
    counts. Published numbers and results of one arm are no obstacle.

    Args:
        comparisons: of the metrics that lead the report.
        runs: all runs.
        is_running: whether the study is being run: what no arm has yet is to come, no obstacle.
    """
    if is_running:
        return []
    if not runs:
        return [
            Obstacle(
                text="Nothing can be compared: there is no run.",
                reasons=[],
                remedy="Run the study: `iolab run STUDY`.",
            )
        ]
    lost = [run for run in runs if run.verdict.level is Level.INVALID]
    if len(lost) == len(runs):
        many = f"all {len(runs)} runs are" if len(runs) > 1 else "the only run is"
        return [_obstacle(f"Nothing can be compared: {many} INVALID.", lost)]
    by_variant: dict[str, list[Run]] = {}
    for run in runs:
        by_variant.setdefault(run.variant, []).append(run)
    baseline = comparisons[0].baseline if comparisons else next(iter(by_variant))
    statements = []
    for variant, members in by_variant.items():
        if any(run.verdict.level is not Level.INVALID for run in members):
            continue
        subject = f"{variant} can't be compared"
        if variant == baseline or len(by_variant) == 2:
            subject = "Nothing can be compared"
        role = "the baseline " if variant == baseline else ""
        many = f"all {len(members)} runs" if len(members) > 1 else "the only run"
        verb = "are" if len(members) > 1 else "is"
        statements.append(
            _obstacle(f"{subject}: {many} of {role}{variant} {verb} INVALID.", members)
        )
    if not statements and not comparisons:
        text = "Nothing can be compared: no run that counts has a number."
        statements.append(_obstacle(text, lost))
    elif not statements and lost and len(by_variant) > 1:
        cells = [cell for comparison in comparisons for cell in comparison.cells]
        if all(cell.change is None for cell in cells):
            text = "Nothing can be compared: no cell has runs of both arms that count."
            statements.append(_obstacle(text, lost))
    return statements


def _obstacle(text: str, runs: Sequence[Run]) -> Obstacle:
    """The statement with the reasons of its runs."""
    by_code: dict[str, list[tuple[Run, str]]] = {}
    for run in runs:
        texts = {
            reason.code: reason.text
            for reason in reversed(run.verdict.reasons)
            if reason.level is Level.INVALID
        }
        for code, words in texts.items():
            by_code.setdefault(code, []).append((run, words))
    ordered = sorted(by_code.items(), key=lambda item: -len(item[1]))
    reasons = [
        ObstacleReason(
            code=code,
            count=f"{len(members)} of {count_text(len(runs), 'run')}",
            text=members[0][1],
            runs=[run.id for run, _ in members[:MOST_RUNS]],
            more=max(0, len(members) - MOST_RUNS),
            remedy=REMEDIES.get(code, ELSE),
        )
        for code, members in ordered[:MOST_REASONS]
    ]
    more = len(ordered) - len(reasons)
    remedy = (
        "Repair the cause. `iolab run STUDY --resume` repeats runs that failed; else run the study "
        "again with another `-o`."
    )
    if more > 0:
        remedy = f"{count_text(more, 'more reason')} below. {remedy}"
    return Obstacle(text=text, reasons=reasons, remedy=remedy)
