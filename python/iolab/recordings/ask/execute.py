# SPDX-License-Identifier: Apache-2.0
"""Answers by plan: read the sums of each tier, merge them, build the answer.

Answers also have losses, and times without a recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from ..store.base.counts import HeatCounts, alike
from ..store.base.counts import merge as merge_counts
from ..store.base.grids import Grid, Linear, LogLinear
from ..store.read.trace import BITS
from .answers.answers import Answer, Floats, Series, Stack
from .engine.cells import BUCKETS, covering, most_keys
from .engine.engine import int64s
from .engine.snapshot import Span, gap_columns, lost_at
from .engine.windows import Window, field_of
from .kept.files.paths import BITS as COARSE_BITS
from .plan import Bounds, Frame, Growth, Numbers, Plan, Sums, Tier, TooCoarseError, plan
from .question import Question, columns_of


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
        return build(frame, sums)
    statistic = frame.question.statistic
    assert statistic is not None
    # loads what answers from events do not need
    from .tiers.counters import build as build_growth

    return build_growth(statistic, frame.window, sums.spreads, (*frame.notes, *sums.notes))


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
        from .tiers.counters import merge_growth

        return merge_growth(growth)
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


def build(frame: Frame, sums: Numbers | HeatCounts) -> Answer:
    """The answer of a frame, from sums of events."""
    if isinstance(sums, Numbers):
        return _over_time(frame, sums)
    if frame.recorded is None:
        return sums
    counts, entry = sums, frame.question.entry
    if (
        entry is not None
        and entry.octaves
        and not frame.is_coarse
        and isinstance(counts.grid, LogLinear)
    ):
        counts = counts.coarser(steps=counts.grid.bits)
    notes = list(frame.notes)
    if frame.is_coarse and isinstance(counts.grid, LogLinear):
        notes.append(f"{2**counts.grid.bits} buckets an octave")
    return _with_facts(counts, frame.window, bool(frame.question.filters), tuple(notes))


def _with_facts(
    counts: HeatCounts, window: Window, conditional: bool, notes: tuple[str, ...]
) -> HeatCounts:
    """Counts with what was lost and when nothing was recorded."""
    losses = window.losses
    columns = columns_of(window.first_ns, window.until_ns - 1, window.interval_ns)
    shift = (window.base_ns - counts.t0_ns) // window.interval_ns
    gaps = (
        ()
        if window.recorded is None
        else gap_columns(window.recorded, window.base_ns, window.interval_ns, columns)
    )
    return replace(
        counts,
        lost=losses.lost,
        damaged=losses.damaged,
        unpaired=losses.unpaired,
        conditional=conditional,
        averaged=_is_averaged(window),
        assumptions=notes,
        window=(shift, columns + shift),
        gaps=tuple((first + shift, past + shift) for first, past in gaps),
        lost_at=lost_at(losses.timed, counts.t0_ns, window.interval_ns),
    )


def _is_averaged(window: Window) -> bool:
    """Whether imported rows are means of windows, not I/Os."""
    facts = window.snap.recording.facts.sources.get(window.source)
    return isinstance(facts, dict) and bool(facts.get("averaged"))


def _over_time(frame: Frame, numbers: Numbers) -> Series | Stack:
    """A series, or a stack if the statistic has a breakdown."""
    statistic, sums = frame.question.statistic, numbers.rows
    assert statistic is not None
    axis = numbers.axis or frame.window
    recorded = None if numbers.axis else frame.window.recorded
    losses = None if numbers.axis else frame.window.losses
    base_ns, interval_ns, columns, span = axis.base_ns, axis.interval_ns, axis.columns, axis.span
    notes = (*frame.notes, *numbers.notes)
    column, amount = int64s(sums["c"]), int64s(sums["n"])
    without_size = int(int64s(sums["lacking"]).sum())
    if without_size:
        notes = (*notes, f"{without_size} I/Os without a size add nothing")
    seconds = _seconds(recorded, base_ns, interval_ns, columns)
    lengths = (
        span[1] - span[0] if recorded is None else sum(until - first for first, until in recorded)
    )
    if statistic.breakdown is not None and statistic.breakdown in _UNKNOWN:
        notes = (
            *notes,
            *_unknown_part(statistic.breakdown, statistic.entry.measure, sums["k"], amount),
        )
    common: dict[str, Any] = {
        "statistic": statistic,
        "unit": statistic.entry.unit,
        "t0_ns": base_ns,
        "interval_ns": interval_ns,
        "first_ns": span[0],
        "until_ns": span[1],
        "covered_ns": lengths,
        "source": axis.source,
        "notes": notes,
        "losses": losses,
        "lost_at": lost_at(losses.timed if losses is not None else (), base_ns, interval_ns),
    }
    if statistic.breakdown is None:
        return Series(
            **common, values=_spread(column, amount, columns) / seconds, total=int(amount.sum())
        )
    masked = np.ma.getmaskarray(sums["k"])
    named: dict[str, int] = {}
    names, places = np.unique(np.ma.filled(sums["k"], "").astype(str)[~masked], return_inverse=True)
    totals = (
        np.bincount(places, weights=amount[~masked], minlength=len(names))
        if len(names)
        else np.zeros(0)
    )
    order = np.lexsort((names, -totals))
    named = {str(names[place]): place for place in order}
    rows = np.zeros((len(names), columns), dtype=np.int64)
    np.add.at(rows, (places, column[~masked]), amount[~masked])
    has_others = "every" in sums and len(sums["every"])
    other_keys = int(int64s(sums["every"]).max()) - len(names) if has_others else 0
    return Stack(
        **common,
        keys=list(named),
        values=rows[order] / seconds,
        totals=[int(total) for total in rows.sum(axis=1)[order]],
        rest=_spread(column[masked], amount[masked], columns) / seconds if other_keys else None,
        rest_keys=other_keys,
        rest_total=int(amount[masked].sum()),
    )


_UNKNOWN = {
    "file": "",
    "user": ", of connections that smbstatus did not report in time, or of Samba itself",
    "share": ", of files without a name or of Samba itself, or before the first answer of testparm",
}
"""Fields of which a part may be unknown, with the reasons; without a reason only where another part
is known."""


def _unknown_part(field: str, measure: str, keys: Any, amount: Any) -> tuple[str, ...]:
    """How much is unknown of a field."""
    missing = np.ma.filled(keys, "").astype(str) == field_of(field).missing
    unknown, whole_sum = int(amount[missing].sum()), int(amount.sum())
    if not unknown or (unknown == whole_sum and not _UNKNOWN[field]):
        return ()
    share = 100 * unknown / whole_sum
    number = f"{share:.3g}" if share >= 0.001 else "less than 0.001"
    what = "bytes" if measure == "bytes" else "calls"
    return (f"unknown {field}: {number} % of {what}{_UNKNOWN[field]}",)


def _spread(column: Any, amount: Any, columns: int) -> Floats:
    """Sums by column."""
    sums = np.zeros(columns, dtype=np.int64)
    np.add.at(sums, column, amount)
    return sums.astype(float)


def _seconds(
    recorded: tuple[Span, ...] | None, base_ns: int, interval_ns: int, columns: int
) -> Floats:
    """Seconds of each column that were recorded: nan where none was. All of it where that is unknown.

    At least a tenth of the column, so that a sliver at an end does not make a peak of the few I/Os
    in it.
    """
    if recorded is None:
        return np.full(columns, interval_ns / 1e9)
    covered_ns = np.zeros(columns)
    for first, until in recorded:
        start, end = (first - base_ns) // interval_ns, (until - 1 - base_ns) // interval_ns
        covered_ns[start : end + 1] += interval_ns
        covered_ns[start] -= first - (base_ns + start * interval_ns)
        covered_ns[end] -= base_ns + (end + 1) * interval_ns - until
    return np.where(covered_ns > 0, np.maximum(covered_ns, interval_ns / 10), np.nan) / 1e9
