# SPDX-License-Identifier: Apache-2.0
"""Answers by plan: read the sums of each tier, merge them, build the answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ..recording.base.grids import Grid, LogLinear
from ..recording.read.trace import BITS
from .answers import build
from .answers.answers import Answer
from .merge import fit, merge
from .plan import Frame, Plan, Tier, TooCoarseError, plan
from .question import Question
from .sums import Growth, Sums
from .tiers import counters


def execute(question: Question, tiers: Sequence[Tier]) -> Answer:
    """The answer. If the sums of a tier turn out to be too coarse, a second plan leaves it out."""
    while True:
        best_plan = plan(question, tiers)
        try:
            return _answer(best_plan.frame, read(best_plan))
        except TooCoarseError as error:
            tiers = [tier for tier in tiers if tier.name != error.tier]


def _answer(frame: Frame, sums: Sums) -> Answer:
    """The answer of a frame, from sums of events or of counters."""
    if not isinstance(sums, Growth):
        return build.build(frame, sums)
    statistic = frame.question.statistic
    assert statistic is not None
    return counters.build(statistic, frame.window, sums.spreads, (*frame.notes, *sums.notes))


def _has_deleted(chosen: Plan) -> bool:
    """Whether sums of segments without events are read, of which nothing finer exists."""
    if chosen.frame.recorded is None:
        return False
    deleted = chosen.frame.window.snap.recording.facts.dropped_through
    return any(span.first <= deleted for step in chosen.steps for span in step.spans)


def read(chosen: Plan) -> Sums:
    """The merged sums of a plan."""
    frame = chosen.frame
    question = frame.question
    if frame.recorded is not None:
        _ = frame.window.columns  # too many are refused before anything is read
    with ExitStack() as stack:
        readings = [
            (step.tier, stack.enter_context(step.tier.read(frame, step.spans)))
            for step in chosen.steps
        ]
        grid: Grid | None = None
        if question.y is not None:
            grid = LogLinear(BITS)
            if question.y == "offset" or question.buckets is not None:
                bounds = {tier.name: reading.bounds() for tier, reading in readings}
                all_bounds = [part for parts in bounds.values() for part in parts]
                fitted = fit(frame, all_bounds, is_finest=_has_deleted(chosen))
                if fitted is None:
                    widths = {
                        name: max((part.width for part in parts), default=1)
                        for name, parts in bounds.items()
                    }
                    raise TooCoarseError(max(widths, key=widths.__getitem__))
                grid = fitted
        parts = [part for _, reading in readings for part in reading.sums(grid)]
    return merge(frame, parts, grid)
