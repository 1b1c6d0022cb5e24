# SPDX-License-Identifier: Apache-2.0
"""Answers from counters: a series, a stack by part or object, or a map of how many objects were how
busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iolab.base.errors import FormatError, UsageError

from ...store.base.counts import HeatCounts
from ...store.base.grids import Grid, Linear
from ...store.read.recording import Recording
from ..answers.answers import Answer, Floats, Series, Stack
from ..engine.snapshot import Snapshot, gap_columns, lost_at, snapshot
from ..engine.windows import Window, window_of
from ..language import fields
from ..language.catalogue import LAST, Counter, Part
from ..language.fields import UTILIZATION
from ..plan import Cost, Frame, Growth, Reading, Span, Sums
from ..plan import Part as PlanPart
from ..question import SECOND, Filter, Question, Statistic
from .events import event_parts
from .readings import Shares, Spread, read, spread

PERCENT = 101
"""Buckets of a map of utilization: 0 % to 100 %."""


class Counters:
    """Samples of a recording."""

    name = "counters"

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def frame(self, question: Question) -> Frame | str:
        statistic = question.statistic
        if statistic is None or statistic.entry.counter is None:
            return "no counters of this are asked"
        samples = samples_for(self._recording, statistic, question.source)
        if samples is None:
            return "events are preferred, or no samples are there"
        ends = (*question.span, question.interval_ns, question.columns)
        window = window_of(samples, statistic.entry.counter.source, *ends)
        if question.interval_ns is None and window.interval_ns < SECOND:
            window = replace(window, interval_ns=SECOND)
        return Frame(question, window)

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        if frame.window.snap.kind != "samples":
            return "events are preferred, or no samples are there"
        return [frame.full_span]

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        """As `Tier.cost`. Readings before and after the time are read as well."""
        window = frame.window
        segments, unsealed = (
            window.snap.segments(window.source),
            window.snap.hot_of(window.source),
        )
        size = sum(segment.facts.get("bytes") or 0 for segment in segments)
        return Cost(len(segments), size + (0 if unsealed is None else unsealed.nbytes))

    def read(self, frame: Frame, spans: Sequence[Span]) -> Samples:
        return Samples(frame, spans)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[PlanPart]:
        return event_parts(frame.window)


@dataclass(frozen=True)
class Samples(Reading):
    """Samples while they are read."""

    frame: Frame
    spans: Sequence[Span]

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        statistic, window = self.frame.question.statistic, self.frame.window
        assert statistic is not None
        assert statistic.entry.counter is not None
        if not window.snap.bounds(window.source):
            return []
        breaks = window.snap.recording.breaks(window.source)
        readings = read(window, statistic.entry.counter, parted=is_parted(statistic))
        spreads = [
            spread(reading, statistic.entry.counter, parts_of(statistic), window, breaks)
            for reading in readings
        ]
        if list(self.spans) != [self.frame.full_span]:
            spreads = [within(spread, window, self.spans) for spread in spreads]
        return [Growth(tuple(spreads))]


def within(spread: Spread, window: Window, spans: Sequence[Span]) -> Spread:
    """Growth in the columns of spans alone, which begin and end with columns of a window."""
    is_within = np.zeros(window.columns, dtype=bool)
    for _, _, from_ns, until_ns in spans:
        first = (from_ns - window.base_ns) // window.interval_ns
        is_within[first : -(-(until_ns - window.base_ns) // window.interval_ns)] = True
    is_shown = is_within[spread.readings.column]
    return Spread(
        spread.object,
        {part: np.where(is_within, amount, 0.0) for part, amount in spread.amounts.items()},
        np.where(is_within, spread.over, 0.0),
        np.where(is_within, spread.covered, 0.0),
        np.where(is_within, spread.broken, 0.0),
        Shares(spread.readings.column[is_shown], spread.readings.share[is_shown]),
    )


def merge_growth(parts: Sequence[Growth]) -> Growth:
    """Growth of each object; parts are of different columns."""
    merged: dict[str, Spread] = {}
    for growth in (growth for part in parts for growth in part.spreads):
        other = merged.get(growth.object)
        merged[growth.object] = growth if other is None else _add_spreads(other, growth)
    return Growth(
        tuple(merged[name] for name in sorted(merged)),
        tuple(note for part in parts for note in part.notes),
    )


def _add_spreads(one: Spread, other: Spread) -> Spread:
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


def samples_for(recording: Recording, asked: Statistic, source: str | None) -> Snapshot | None:
    """The samples that answer a statistic, None where events do.

    Events are preferred, but those that are far from the device; a source that is named decides.
    UsageError where only counters exist and they lack a field of the question.
    """
    counter, entry = asked.entry.counter, asked.entry
    if counter is None:
        return None
    if source is not None and source != counter.source:
        if not entry.sources:
            raise UsageError(
                f"{entry.name} comes of the counters of {counter.source} alone",
                where=recording.path,
                hint=f"leave --source {source} out",
            )
        return None
    events = snapshot(recording).sources if entry.sources and source is None else []
    if any(name not in LAST for name in events):
        return None
    asks = [condition.field for condition in asked.filters] + (
        [asked.breakdown] if asked.breakdown else []
    )
    untold = [name for name in asks if name not in counter.breakdowns]
    if untold and events:
        return None
    snap = snapshot(recording, "samples")
    if counter.source not in snap.sources:
        if entry.sources and source is None:
            return None
        raise UsageError(
            f"holds no counters of {counter.source}, of which {entry.name} comes",
            where=recording.path,
            hint="iolab record counters keeps them",
        )
    if untold:
        raise UsageError(
            f"holds counters alone for {entry.name}, and these do not tell the {untold[0]}",
            where=recording.path,
            hint=f"they tell {' and '.join(counter.breakdowns)}; iolab record block keeps every I/O",
        )
    return snap


def parts_of(asked: Statistic) -> list[Part]:
    """The parts that a statistic is about."""
    counter = asked.entry.counter
    return (
        []
        if counter is None
        else [part for part in counter.parts if _is_part_shown(part, counter, asked.filters)]
    )


def is_parted(asked: Statistic) -> bool:
    """Whether it takes each object's own readings, not the machine's sum."""
    counter = asked.entry.counter
    fields = {asked.breakdown, *(condition.field for condition in asked.filters)}
    return asked.breakdown == UTILIZATION.name or (
        counter is not None and not fields.isdisjoint(counter.objects)
    )


def build(
    asked: Statistic, window: Window, spreads: Sequence[Spread], noted: tuple[str, ...]
) -> Answer:
    """The answer, from the growth of the counters of every object. noted: notes that come first."""
    counter, asked_for = asked.entry.counter, parts_of(asked)
    assert counter is not None
    parts = (
        [part for part in asked_for if any(part.key in spread.amounts for spread in spreads)]
        if spreads
        else asked_for
    )
    matching = _fill(
        counter,
        [
            counts
            for counts in spreads
            if all(
                _meets(counter.object_value(counts.object, field), asked.filters, field)
                for field in counter.objects
            )
        ],
        next((spread for spread in spreads if spread.object == counter.always), None),
    )
    named = any(
        condition.field == counter.object and condition.sign == "=" for condition in asked.filters
    )
    in_sum = (
        {spread.object for spread in matching}
        if named
        else fields.objects_in_sum(counter.object or "", (spread.object for spread in matching))
    )
    kept = [spread for spread in matching if spread.object in in_sum]
    notes = [
        *noted,
        *_notes(
            asked, counter, matching, in_sum, [part for part in asked_for if part not in parts]
        ),
    ]
    for condition in asked.filters:
        if condition.field in counter.objects:
            names = [fields.meant(condition.field, str(value)) for value in condition.values]
            existing = {
                counter.object_value(counts.object, condition.field)
                for counts in spreads
                if not counter.within or counts.object != counter.always
            }
            notes += fields.missing(condition.field, names, existing)
    if asked.breakdown == UTILIZATION.name:
        return _map(kept, window, tuple(notes))
    return _over_time(asked, counter, parts, matching, kept, window, tuple(notes))


def _is_part_shown(part: Part, counter: Counter, filters: Sequence[Filter]) -> bool:
    """Whether a part meets the conditions on all fields of parts; a hidden part
    must be named by one of them."""
    if part.hidden and not any(
        condition.sign == "=" and condition.field in counter.apart for condition in filters
    ):
        return False
    return all(_meets(counter.value(part, field), filters, field) for field in counter.apart)


def _fill(counter: Counter, found: list[Spread], always: Spread | None) -> list[Spread]:
    """Objects that did nothing are not in every reading: what each of them did is known whenever
    the one is that always is there."""
    if always is None:
        return found
    if not found:
        return [
            replace(
                always,
                object="",
                amounts={part: np.zeros_like(amount) for part, amount in always.amounts.items()},
            )
        ]
    return [
        replace(counts, over=counts.over if counter.over else always.over, covered=always.covered)
        for counts in found
    ]


def _meets(value: str, filters: Sequence[Filter], field: str | None) -> bool:
    """Whether a value meets the conditions on its field."""
    return all(
        (value in [fields.meant(field, str(word)) for word in condition.values])
        == (condition.sign == "=")
        for condition in filters
        if condition.field == field
    )


_LEFT_OUT = {
    "device": "which are partitions, stacked devices, or no disks",
    "interface": "which lead nowhere outside or by others",
    "peer": "this machine itself, which is at both ends of those connections",
}


def _notes(
    asked: Statistic,
    counter: Counter,
    found: Sequence[Spread],
    held: set[str],
    untold: Sequence[Part],
) -> tuple[str, ...]:
    notes: list[str] = []
    left_out = sorted({spread.object for spread in found} - held)
    if counter.object in _LEFT_OUT and found and (left_out or counter.object != "peer"):
        # peers may be thousands
        holds = "all others" if counter.object == "peer" else ", ".join(sorted(held))
        notes.append(
            f"the {'mean is of' if counter.mean else 'sum holds'} {holds}"
            + (f"; not {', '.join(left_out)}, {_LEFT_OUT[counter.object]}" if left_out else "")
        )
    if untold:
        notes.append(f"not reported there: {', '.join(part.key for part in untold)}")
    return tuple(notes)


def _rate(
    counter: Counter, spreads: Sequence[Spread], parts: Sequence[Part]
) -> tuple[Floats, float]:
    """(value of each column, amount over all) of some parts of some objects; nan where one of them
    has none that is known."""
    spreads = [spread for spread in spreads if any(part.key in spread.amounts for part in parts)]
    empty = np.zeros(len(spreads[0].covered)) if spreads else np.zeros(0)
    sums = [
        sum((spread.amounts[part.key] for part in parts if part.key in spread.amounts), empty)
        for spread in spreads
    ]
    unknown = (
        np.array([(spread.broken > 0) & (spread.covered <= 0) for spread in spreads]).any(axis=0)
        if spreads
        else empty > 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        if counter.mean:
            over = sum((spread.over for spread in spreads), empty)
            value: Any = np.where(over > 0, sum(sums, empty) / over, np.nan)
        else:
            each_rate = [
                np.where(spread.over > 0, amount / spread.over, 0.0)
                for spread, amount in zip(spreads, sums, strict=True)
            ]
            is_known = (
                np.array([spread.over > 0 for spread in spreads]).any(axis=0)
                if spreads
                else empty > 0
            )
            value = np.where(is_known, sum(each_rate, empty), np.nan)
    return np.where(unknown, np.nan, value), float(sum(amount.sum() for amount in sums))


def _over_time(
    asked: Statistic,
    counter: Counter,
    parts: Sequence[Part],
    found: list[Spread],
    kept: list[Spread],
    window: Window,
    notes: tuple[str, ...],
) -> Series | Stack:
    covered = max((float(spread.covered.sum()) for spread in found), default=0.0)
    # a window within one interval between readings has them at neither end
    if not found and not window.snap.bounds(counter.source):
        raise FormatError(f"holds no counters of {counter.source}", where=window.snap.place)
    values_in_sum = {
        counter.object_value(counts.object, asked.breakdown)
        for counts in kept
        if asked.breakdown in counter.objects
    }
    common: dict[str, Any] = {
        "statistic": asked,
        "unit": asked.entry.unit,
        "t0_ns": window.base_ns,
        "interval_ns": window.interval_ns,
        "first_ns": window.first_ns,
        "until_ns": window.until_ns,
        "covered_ns": round(covered * 1e9),
        "source": counter.source,
        "notes": notes,
        "losses": window.losses,
        "lost_at": lost_at(window.losses.timed, window.base_ns, window.interval_ns),
    }

    def rate_of(spreads: Sequence[Spread], chosen: Sequence[Part]) -> tuple[Floats, int, float]:
        values, amount = _rate(counter, spreads, chosen)
        if not len(values):
            return np.full(window.columns, np.nan), 0, float("nan")
        over = sum(float(spread.over.sum()) for spread in spreads) if counter.mean else covered
        return (
            values,
            round(amount) if asked.entry.additive else 0,
            amount / over if over else float("nan"),
        )

    values, total, average = rate_of(kept, parts)
    if asked.breakdown is None:
        return Series(**common, values=values, total=total, average=average)
    if asked.breakdown in counter.apart:
        rows = [
            (
                value,
                *rate_of(
                    kept, [part for part in parts if counter.value(part, asked.breakdown) == value]
                ),
            )
            for value in dict.fromkeys(counter.value(part, asked.breakdown) for part in parts)
        ]
    else:
        of_value: dict[str, list[Spread]] = {}
        for counts in found:
            value = counter.object_value(counts.object, asked.breakdown)
            of_value.setdefault(value, []).append(counts)
        rows = [(value, *rate_of(spreads, parts)) for value, spreads in of_value.items()]
        # what is made of others and did nothing is no news
        rows = [
            row
            for row in rows
            if (row[0] in values_in_sum and row[0] not in ("", counter.always)) or row[3] > 0
        ]
    rows.sort(key=lambda row: (-np.nan_to_num(row[3]), row[0]))
    return Stack(
        **common,
        keys=[row[0] for row in rows],
        values=np.array([row[1] for row in rows]).reshape(len(rows), window.columns),
        totals=[row[2] for row in rows],
        rest=None,
        rest_keys=0,
        rest_total=0,
        averages=[row[3] for row in rows],
        average=average,
        whole=total,
        adds_up=_add_up(asked, counter, parts, [row[0] for row in rows], values_in_sum),
    )


def _add_up(
    asked: Statistic, counter: Counter, parts: Sequence[Part], keys: Sequence[str], held: set[str]
) -> bool:
    """Whether the keys of a stack are parts of a whole: no partition with its disk, no total
    with its parts, no mean of several."""
    if asked.breakdown in counter.objects:
        return (
            not counter.mean
            and held.issuperset(keys)
            and (len(keys) < 2 or not any(part.hidden for part in parts))
        )
    return len(keys) < 2 or not any(part.hidden for part in parts)


def _map(kept: Sequence[Spread], window: Window, notes: tuple[str, ...]) -> HeatCounts:
    """How busy objects were between two readings, in whole percent: a count for each reading of
    each object, in the column of its end."""
    cells = np.zeros((window.columns, PERCENT), dtype=np.int64)
    for object_spread in kept:
        # a reading that comes late may tell of a little more than all the time
        percent = np.clip(
            np.floor(100 * object_spread.readings.share + 1e-9), 0, PERCENT - 1
        ).astype(np.int64)
        np.add.at(cells, (object_spread.readings.column, percent), 1)
    column, index = np.nonzero(cells)
    first = int(column.min()) if len(column) else 0
    spans = (
        ()
        if window.recorded is None
        else gap_columns(window.recorded, window.base_ns, window.interval_ns, window.columns)
    )
    t0 = window.base_ns + first * window.interval_ns
    return HeatCounts(
        "utilization",
        t0,
        window.interval_ns,
        Linear(0, 1),
        column - first,
        index,
        cells[column, index],
        events=int(cells.sum()),
        lost=window.losses.lost,
        assumptions=notes,
        lost_at=lost_at(window.losses.timed, t0, window.interval_ns),
        window=(-first, window.columns - first),
        gaps=tuple((start - first, past - first) for start, past in spans),
    )
