# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before the numbers of the cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from iolab.base.verdict import Level
from iolab.studies.compare.model import SYNCS_APART, SYNCS_DIFFER
from iolab.studies.results.evidence.model import Run

from ..model.statements import Sentence
from ..words.phrases import count_text, list_text

STATED_ELSEWHERE = {"invalid", "suspect", "one-pair", SYNCS_APART}
"""Codes of statements that sentences, titles and the line of verdicts already make."""


def cover_cautions(
    runs: Sequence[Run], sessions: Sequence[Sentence], trust: Sequence[Sentence], most: int = 2
) -> list[Sentence]:
    """How the arms were measured, the verdicts with their reasons in a word, and at most `most`
    statements that weaken the numbers. A difference of syncs comes first."""
    verdicts = [item for item in trust if item.code == "verdicts"]
    cautions = [
        item
        for item in trust
        if item.tone == "caution" and item.code not in STATED_ELSEWHERE and item.code != "verdicts"
    ]
    cautions.sort(key=lambda item: item.code != SYNCS_DIFFER)
    if {run.verdict.level for run in runs} & {Level.SUSPECT, Level.INVALID}:
        text = f"Of {count_text(len(runs), 'run')}: {_levels_text(runs)}."
        verdicts = [Sentence(text=text, code="verdicts")]
    confounded = [item for item in sessions if item.tone == "caution"]
    return [*confounded, *verdicts, *cautions[:most]]


def _levels_text(runs: Sequence[Run]) -> str:
    """`31 OK, 5 SUSPECT (stall in 5)`."""
    parts = []
    for level in sorted(Level, key=lambda level: level.rank):
        of_level = [run for run in runs if run.verdict.level is level]
        codes = Counter(
            code
            for run in of_level
            for code in {reason.code for reason in run.verdict.reasons if reason.level is level}
        )
        listed = list_text([f"{code} in {number}" for code, number in codes.most_common()], 3)
        is_named = listed and level in (Level.SUSPECT, Level.INVALID)
        if of_level:
            parts.append(f"{len(of_level)} {level.value}{f' ({listed})' if is_named else ''}")
    return ", ".join(parts)
