# SPDX-License-Identifier: Apache-2.0
"""Answers from exact sums of events, with losses and times without a recording."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...recording.base.counts import HeatCounts
from ...recording.base.grids import LogLinear
from ..engine.coverage import gap_columns, lost_at
from ..engine.engine import int64s
from ..engine.snapshot import Span
from ..engine.windows import Window
from ..language.conditions import field_of
from ..plan import Frame
from ..question import columns_of
from ..sums import Numbers
from .answers import Answer, Floats, Series, Stack


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
    lacking = int(int64s(sums["lacking"]).sum())
    if lacking:
        notes = (*notes, f"{lacking} I/Os without a size add nothing")
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
    what = "bytes" if measure == "bytes" else "calls"
    return (f"unknown {field}: {share:.3g} % of {what}{_UNKNOWN[field]}",)


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
