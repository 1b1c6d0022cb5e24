# SPDX-License-Identifier: Apache-2.0
"""Answers by plan: read the sums of each tier, merge them, build the answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from ..recording.base.counts import HeatCounts, alike
from ..recording.base.counts import merge as merge_counts
from ..recording.base.grids import Grid, Linear, LogLinear
from ..recording.read.trace import BITS
from .answers import build
from .answers.answers import Answer
from .engine.cells import BUCKETS, covering, most_keys
from .engine.engine import int64s
from .kept.files.paths import BITS as COARSE_BITS
from .plan import Frame, Plan, Tier, TooCoarseError, plan
from .question import Question
from .sums import Bounds, Growth, Numbers, Sums
from .tiers import counters
from .tiers.readings import Shares, Spread


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


def fit(frame: Frame, bounds: Sequence[Bounds], *, is_finest: bool) -> Grid | None:
    """Equal buckets that hold all values, as a scan of all events would choose them. None if finer
    buckets are needed than the sums have. is_finest: nothing finer exists of some of the I/Os, so
    that buckets may be as wide."""
    question = frame.question
    width = max((bound.width for bound in bounds), default=1)
    if frame.is_coarse:
        return Linear(0, width)
    low, high, buckets = question.low, question.high, question.buckets or BUCKETS
    if (low or 0) % width or (high or 0) % width:
        return None
    first = None if low is None else low // width
    past = None if high is None else high // width
    if low is not None and high is not None:
        exact = covering(low, high - 1, buckets)
        if exact.width < width:
            return Linear(low, width) if is_finest else None
        return exact
    ends = [end // width for bound in bounds if bound.ends is not None for end in bound.ends]
    shown_ends = [end for end in ends if (first or 0) <= end and (past is None or end < past)]
    if not shown_ends and width > 1:
        return Linear(0, width)
    least = first if first is not None else min(shown_ends, default=0)
    most = past - 1 if past is not None else max(shown_ends, default=0)
    grid = covering(least, max(least, most), buckets)
    is_finer_due = grid.width == 1 and width > 1 and 2 * (most - least) - 1 < buckets
    if is_finer_due and not is_finest:
        return None
    return Linear(grid.low * width, grid.width * width)


def merge(frame: Frame, parts: Sequence[Sums], grid: Grid | None) -> Sums:
    """The sums of all parts. `grid`: equal buckets that they have."""
    question = frame.question
    counts = [part for part in parts if isinstance(part, HeatCounts)]
    if counts or (question.y is not None and not parts):
        return _merge_counts(frame, counts, grid)
    growth = [part for part in parts if isinstance(part, Growth)]
    if growth or (frame.recorded is not None and frame.window.snap.kind == "samples"):
        return _merge_growth(growth)
    return _merge_numbers(frame, [part for part in parts if isinstance(part, Numbers)])


def _merge_counts(frame: Frame, parts: list[HeatCounts], grid: Grid | None) -> HeatCounts:
    question = frame.question
    if not parts:
        assert question.y is not None
        assert grid is not None
        none, window = np.zeros(0, dtype=np.int64), frame.window
        columns = (window.base_ns, window.interval_ns)
        parts = [HeatCounts(question.y, *columns, grid, none, none, none, question.weight)]
    if frame.is_coarse:
        # roll-ups do not count I/Os that conditions leave out
        parts = [replace(_coarsen(part), filtered=0) for part in parts]
    if len({part.grid for part in parts if len(part.count)}) > 1:
        parts = alike(parts)
    counts = merge_counts(parts)
    while (
        frame.is_coarse
        and isinstance(counts.grid, Linear)
        and len(counts.index)
        and int(counts.index.max() - counts.index.min()) >= BUCKETS
    ):
        counts = counts.coarser(steps=1)
    return counts


def _coarsen(counts: HeatCounts) -> HeatCounts:
    if not isinstance(counts.grid, LogLinear):
        return counts
    return counts.coarser(steps=counts.grid.bits - COARSE_BITS)


def _merge_numbers(frame: Frame, parts: list[Numbers]) -> Numbers:
    breakdown = frame.question.breakdown
    if len(parts) == 1 and not (frame.is_coarse and breakdown is not None):
        return parts[0]
    none = np.zeros(0, dtype=np.int64)
    empty = {
        "c": none,
        "k": np.ma.array(none.astype(object), mask=True),
        "n": none,
        "lacking": none,
    }
    concatenate: Any = np.ma.concatenate
    rows = {
        name: concatenate([part.rows[name] for part in parts]) if parts else column
        for name, column in empty.items()
    }
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return Numbers(rows if breakdown is None else _limit(rows, frame.window.columns), notes)


def _limit(rows: dict[str, Any], columns: int) -> dict[str, Any]:
    """Sums of the largest keys apart, of all others without a key; `every` is how many there are."""
    rest = np.ma.getmaskarray(rows["k"])
    keys, places = np.unique(np.ma.filled(rows["k"], "").astype(str), return_inverse=True)
    totals = np.bincount(places[~rest], weights=int64s(rows["n"])[~rest], minlength=len(keys))
    largest = np.argsort(-totals, kind="stable")[: most_keys(columns)]
    is_small = np.ones(len(keys), dtype=bool)
    is_small[largest] = False
    named = len(np.unique(places[~rest]))
    return {
        **rows,
        "k": np.ma.array(np.ma.getdata(rows["k"]), mask=rest | is_small[places]),
        "every": np.full(len(rest), named + bool(rest.any())),
    }


def _merge_growth(parts: Sequence[Growth]) -> Growth:
    """Growth of each object; parts are of different columns."""
    merged: dict[str, Spread] = {}
    for spread in (spread for part in parts for spread in part.spreads):
        other = merged.get(spread.object)
        merged[spread.object] = spread if other is None else _add(other, spread)
    return Growth(
        tuple(merged[name] for name in sorted(merged)),
        tuple(note for part in parts for note in part.notes),
    )


def _add(one: Spread, other: Spread) -> Spread:
    amounts = dict(one.amounts)
    for part, amount in other.amounts.items():
        amounts[part] = amounts[part] + amount if part in amounts else amount
    return Spread(
        one.object,
        amounts,
        one.over + other.over,
        one.covered + other.covered,
        one.broken + other.broken,
        Shares(
            np.concatenate([one.readings.column, other.readings.column]),
            np.concatenate([one.readings.share, other.readings.share]),
        ),
    )
