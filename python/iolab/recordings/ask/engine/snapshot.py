# SPDX-License-Identifier: Apache-2.0
"""The content of a recording at one moment: every event is either sealed or not sealed, or was deleted
and has default maps only.

It says when the recording was made, and what it lost when: an empty column is either rest, or a gap.

It also says which fields the events of a source have, and why not the others: a question may name any field,
but what none of them has is answered with `unknown` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from iolab.base.errors import FormatError, UsageError

from ...store.base.counts import LOST_KINDS, LostAt, LostKind, sum_losses
from ...store.base.intervals import join, without
from ...store.base.layout import Kind
from ...store.base.loss_log import Part, parts_of
from ...store.read.recording import Recording
from ...store.read.trace import Trace
from ..language.catalogue import OF_EVENTS, Entry, preference
from ..language.fields import FIELDS

if TYPE_CHECKING:
    import pyarrow as pa

    from ...store.catalogue import Catalogue
    from ...store.read.recording import Recording, Segment
    from ...store.segments.hot import UnsealedRows

Span = tuple[int, int]
"""From (ns) up to, not including, until (ns)."""


@dataclass(frozen=True)
class Snapshot:
    """What a recording held.

    Attributes:
        recording: it, frozen. sealed: its sealed segments with events. hot: events that are not sealed yet,
        None where there are none. kind: what its rows are, where they are not events.
    """

    recording: Recording
    sealed: tuple[Segment, ...]
    hot: UnsealedRows | None
    kind: Kind = "events"

    @property
    def place(self) -> Path:
        """The recording's directory."""
        return self.recording.path

    @cached_property
    def lost(self) -> list[Mapping[str, Any]]:
        """What damaged or missing files held, as losses."""
        return self.recording.unreadable(self.kind)

    @cached_property
    def sources(self) -> list[str]:
        """Sources of events, by name; those that were recorded and had nothing to tell included."""
        names = {
            name for segment in self.sealed for name, events in segment.sources.items() if events
        }
        if self.hot is not None:
            names |= set(self.hot.sources)
        names |= {segment["source"] for segment in self.lost if segment["source"]}
        if self.kind == "events":
            if not names:
                # where all events were deleted, their maps answer
                names = set(deleted_segments(self).has_source)
            names |= quiet(self.recording)
        return sorted(names)

    def segments(self, source: str, window: Span | None = None) -> list[Segment]:
        """Sealed segments with events of a source, in a window of time."""
        return [
            segment
            for segment in self.sealed
            if segment.sources.get(source)
            and (window is None or (segment.first_ns < window[1] and segment.last_ns >= window[0]))
        ]

    def hot_of(self, source: str, window: Span | None = None) -> pa.Table | None:
        """Hot events of a source, None where there are none. See `UnsealedRows.of`."""
        return None if self.hot is None else self.hot.of(source, window)

    def bounds(self, source: str) -> Span | None:
        """(first, last) time of the events of a source, as far as segments tell their sources
        apart; None without events."""
        ends = [(segment.first_ns, segment.last_ns) for segment in self.segments(source)]
        hot = None if self.hot is None else self.hot.bounds(source)
        if hot is not None:
            ends.append(hot)
        return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None


def quiet(recording: Recording) -> set[str]:
    """Sources of events that were recorded, of which none was removed: that they have nothing to
    tell is an answer. None where it is not known when they were recorded."""
    facts = recording.facts
    if not facts.sessions:
        return set()
    removed = (facts.dropped or {}).get("events", {})
    imported = {
        name
        for name, about in facts.sources.items()
        if isinstance(about, dict) and "format" in about
    }
    return {
        name
        for name in facts.sources
        if name in OF_EVENTS and name not in imported and not removed.get(name)
    }


def snapshot(recording: Recording, kind: Kind = "events") -> Snapshot:
    """The recording's events or samples at one moment: now, or when it was frozen."""
    frozen = recording.frozen()
    sealed, hot = frozen.snapshot(kind)
    return Snapshot(frozen, tuple(sealed), hot, kind)


def choose(
    sources: Sequence[str], entry: Entry | None, wanted: str | None, place: Any
) -> tuple[str, list[str]]:
    """(the source that answers, notes on the choice). UsageError where none can, FormatError where
    nothing was recorded."""
    if wanted is not None:
        if wanted not in sources:
            raise UsageError(
                f"holds no events of '{wanted}'",
                where=place,
                hint=f"there are {', '.join(sources) or 'none'}",
            )
        return wanted, []
    if entry and not entry.sources:
        raise UsageError(
            f"{entry.name} comes of counters, not of events",
            where=place,
            hint="iolab record counters keeps them",
        )
    preferred = entry.sources if entry else ("block",)
    if entry and entry.only:
        available = [name for name in preferred if name in sources]
        if not available:
            raise UsageError(
                f"holds no events of {' or '.join(preferred)}, which {entry.name} counts",
                where=place,
                hint=f"it holds events of {', '.join(sources)}"
                if sources
                else "nothing was recorded there",
            )
        return available[0], []
    if not sources:
        raise FormatError("holds no events", where=place)
    first, *other_sources = preference(list(sources), preferred)
    return first, [
        f"{first} events; source {' or '.join(other_sources)} has the others"
    ] if other_sources else []


MOST = 4
"""Recordings of which deleted segments are remembered."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DeletedSegments:
    """Segments without events that have a default map, ascending by number.

    Attributes:
        numbers, first_ns, last_ns: of each. has_source: by source, whether they had its events.
    """

    numbers: Integers
    first_ns: Integers
    last_ns: Integers
    has_source: Mapping[str, npt.NDArray[np.bool_]]

    def within(self, span: Span) -> list[int]:
        """Numbers of those that meet a window."""
        numbers: list[int] = self.numbers[
            (self.first_ns < span[1]) & (self.last_ns >= span[0])
        ].tolist()
        return numbers

    def later_than(self, number: int) -> set[int]:
        """Numbers beyond another one."""
        return set(self.numbers[self.numbers > number].tolist())

    def first_ns_of(self, number: int) -> int:
        """The first time of one of them."""
        return int(self.first_ns[np.searchsorted(self.numbers, number)])

    def span(self, source: str) -> Span | None:
        """(first, last) ns of a source; None where there is nothing of it."""
        has_source = self.has_source.get(source)
        if has_source is None or not has_source.any():
            return None
        return int(self.first_ns[has_source].min()), int(self.last_ns[has_source].max())


_deleted: dict[Path, tuple[Catalogue, DeletedSegments]] = {}


def deleted_segments(snap: Snapshot) -> DeletedSegments:
    """Deleted segments of which maps remain; those without a readable line count for nothing."""
    catalogue = snap.recording.catalogue()
    latest = _deleted.get(snap.place)
    if latest is None or latest[0] is not catalogue:
        latest = _deleted[snap.place] = catalogue, _find_deleted(catalogue)
        while len(_deleted) > MOST:
            _deleted.pop(next(iter(_deleted)), None)
    return latest[1]


def _find_deleted(catalogue: Catalogue) -> DeletedSegments:
    lines, through = catalogue.segments.lines, catalogue.facts.dropped_through
    numbers = sorted(number for number in catalogue.maps.get("io.latency", ()) if number <= through)
    segments = [
        (number, line["first_ns"], line["last_ns"], line.get("sources", {}))
        for number in numbers
        if isinstance((line := lines.get(number, {})).get("first_ns"), int)
        and isinstance(line.get("last_ns"), int)
    ]
    names = {source for *_, sources in segments for source in sources}
    number, first, last = (
        np.array([segment[place] for segment in segments], dtype=np.int64) for place in range(3)
    )
    has_source = {
        name: np.array([name in sources for *_, sources in segments], dtype=bool) for name in names
    }
    return DeletedSegments(number, first, last, has_source)


_KINDS: Mapping[str, LostKind] = {
    "overrun": "lost",
    "missed": "lost",
    "damaged": "damaged",
    "unpaired": "unpaired",
}
"""Kinds of losses as they are noted, and as answers tell them; others are no records that an answer
lacks."""

TimedPart: TypeAlias = tuple[LostKind, int, int, int | None]
"""Kind, from, until (ns), and how much; None: unknown."""


@dataclass(frozen=True)
class Losses:
    """What was lost within a window: records dropped, damaged, and unmatched issue or completion
    events; and what of it has a time. `unknown`: which of the three are more than that, by an unknown
    number."""

    lost: int
    damaged: int
    unpaired: int
    timed: tuple[TimedPart, ...]
    unknown: frozenset[str] = frozenset()

    @property
    def sums(self) -> dict[LostKind, int]:
        """How many of each kind."""
        return {"lost": self.lost, "damaged": self.damaged, "unpaired": self.unpaired}


def covered_spans(snap: Snapshot, last_ns: int, source: str | None = None) -> list[Span] | None:
    """Spans in which it recorded a source, or any where none is named, and has its events,
    ascending and apart; None where that is unknown, as of imported traces."""
    spans = sessions_of(snap, last_ns, source)
    dropped = snap.recording.facts.dropped
    if spans and dropped:
        # what retention dropped was recorded, but can't be seen any more
        kept = min(
            (segment.first_ns for segment in snap.sealed),
            default=dropped.get("until_ns") or last_ns,
        )
        return clip(spans, (kept, max(kept, spans[-1][1])))
    return spans


def sessions_of(snap: Snapshot, last_ns: int, source: str | None = None) -> list[Span] | None:
    """Spans in which it recorded a source, or any where none is named, with those of events that
    retention removed; None where that is unknown.

    A session without an end lasts until after `last_ns`, or until its writer last reported,
    though nothing came. To close a session in order took a while after its last event.
    """
    facts = snap.recording.facts
    spans = []
    for place, session in enumerate(facts.sessions, 1):
        first, until = session.get("from_ns"), session.get("until_ns")
        if isinstance(first, int):
            end = max(last_ns + 1, first)
            written_ns = snap.recording.told_ns() if place == len(facts.sessions) else None
            if until is None:
                until = max(end, written_ns or 0)
            elif written_ns is not None and first < written_ns < until:
                until = max(written_ns, min(end, until))
            spans.append((first, until))
    if not spans:
        # it is unknown when an import was recorded; where something of it is lost, from when to
        # when it has something
        lost_spans = [
            (segment["from_ns"], segment["until_ns"])
            for segment in snap.lost
            if None not in (segment["from_ns"], segment["until_ns"])
        ]
        if not lost_spans:
            return None
        earlier = np.sort(deleted_segments(snap).first_ns)
        first = min(
            [
                *(begin for begin, _ in lost_spans),
                *(segment.first_ns for segment in snap.sealed),
                *earlier[:1].tolist(),
            ]
        )
        spans = [(first, max([last_ns + 1, *(end for _, end in lost_spans)]))]
    return without(
        join(spans),
        [
            (first, until)
            for first, until in snap.recording.holes(snap.kind, source)
            if first < until
        ],
    )


def begun_ns(recording: Recording) -> int | None:
    """When its recording began, though nothing came yet; None where that is unknown."""
    return min(
        (
            first
            for session in recording.facts.sessions
            if (first := session.get("from_ns")) is not None
        ),
        default=None,
    )


def behind_ns(recording: Recording) -> int | None:
    """Until when the current session has recorded, where that is before the end of an earlier
    session: the clock was set back. None where times continue."""
    *earlier, last = recording.facts.sessions or [{}]
    ends = [until for session in earlier if (until := session.get("until_ns")) is not None]
    first = last.get("from_ns")
    if not ends or first is None or last.get("until_ns") is not None or first >= max(ends):
        return None
    now = max(first, recording.told_ns() or first)
    return now if now < max(ends) else None


def losses_of(snap: Snapshot, source: str, window: Span, cut: bool, interval_ns: int) -> Losses:
    """What was lost of a source within a window; a loss that names no time or no source counts
    always, as does any where the window is not `cut` out of more. Columns of `interval_ns` tell how
    finely the losses of a minute are divided."""
    sums: dict[LostKind, int] = dict.fromkeys(LOST_KINDS, 0)
    # of an imported trace it is only known that something was lost between its ends
    facts: Any = snap.recording.facts.sources.get(source)
    live = not (isinstance(facts, dict) and "format" in facts)
    timed: list[TimedPart] = []
    unknown: set[str] = set()
    for loss in snap.recording.losses():
        group = _KINDS.get(loss["kind"])
        if (
            group is None
            or loss["source"] not in (source, "")
            or loss.get("of", snap.kind) != snap.kind
        ):
            continue
        if "of" in loss and loss["until_ns"] is None:
            # it is unknown until when a damaged file had rows
            loss = {
                **loss,
                "from_ns": window[0] if loss["from_ns"] is None else loss["from_ns"],
                "until_ns": window[1],
            }
        if loss["from_ns"] is None or loss["until_ns"] is None:
            sums[group] += loss["count"] or 0
            unknown |= {group} if loss["count"] is None else set()
            continue
        within = _within(loss, window, interval_ns)
        sums[group] += sum(count or 0 for *_, count in within) if cut else loss["count"] or 0
        unknown |= {group} if loss["count"] is None and (within or not cut) else set()
        if live or "of" in loss:
            timed += [(group, *part) for part in within]
    return Losses(**sums, timed=tuple(timed), unknown=frozenset(unknown))


def _within(loss: Mapping[str, Any], window: Span, interval_ns: int) -> list[Part]:
    """The part of a loss in a window: if it lasts longer, the share of its time in whole
    records that add up."""
    if loss["until_ns"] < window[0] or loss["from_ns"] >= window[1]:
        return []
    is_within = loss["from_ns"] >= window[0] and loss["until_ns"] <= window[1]
    apart = not is_within or loss["from_ns"] // interval_ns != loss["until_ns"] // interval_ns
    parts: list[Part] = []
    for first, until, count in (
        parts_of(loss) if apart else [(loss["from_ns"], loss["until_ns"], loss["count"])]
    ):
        until = max(until, first + 1)
        low, high = max(first, window[0]), min(until, window[1])
        if low < high:
            share = (
                None
                if count is None
                else count * (high - first) // (until - first)
                - count * (low - first) // (until - first)
            )
            parts.append((low, high, share))
    return parts


def clip(spans: Iterable[Span], window: Span) -> list[Span]:
    """The parts of spans in a window."""
    return [
        (max(first, window[0]), min(until, window[1]))
        for first, until in spans
        if max(first, window[0]) < min(until, window[1])
    ]


def lost_at(timed: Iterable[TimedPart], t0_ns: int, interval_ns: int) -> tuple[LostAt, ...]:
    """What was lost in which column; a loss that lasts is spread evenly over its time, in whole
    records that add up."""
    lost_ats: list[LostAt] = []
    for kind, first, until, count in timed:
        start, end = (first - t0_ns) // interval_ns, (until - 1 - t0_ns) // interval_ns
        counted = 0
        for column in range(start, end + 1):
            past = min(until, t0_ns + (column + 1) * interval_ns)
            share = (count or 0) * (past - first) // (until - first) - counted
            counted += share
            if share or count is None:
                lost_ats.append((column, kind, share))
    return sum_losses(lost_ats)


def gap_columns(
    spans: Sequence[Span], t0_ns: int, interval_ns: int, columns: int
) -> tuple[tuple[int, int], ...]:
    """Runs of columns (first, one past the last), of `columns` from t0 on, in which nothing was
    recorded at all."""
    columns_span = (t0_ns, t0_ns + columns * interval_ns)
    gaps = []
    for first, until in without([columns_span], spans):
        start, past = -(-(first - t0_ns) // interval_ns), (until - t0_ns) // interval_ns
        if start < past:
            gaps.append((start, past))
    return tuple(gaps)


Told: TypeAlias = Mapping[str, tuple[str, ...]]
"""Source to the fields that its events hold; a source that is not in it may hold all."""

_CALLS = ("op", "process", "pid", "thread", "error", "flags", "latency", "offset", "size")

_RECORDED = {
    "block": (*_CALLS, "device", "queue"),
    "syscall": (*_CALLS, "file", "mount", "client", "share", "user"),
    "nfs": (
        "op",
        "procedure",
        "version",
        "client",
        "file",
        "thread",
        "error",
        "flags",
        "latency",
        "offset",
        "size",
    ),
}
"""What the probe reports of each I/O."""

_TRACED = ("op", "device", "process", "file", "job", "client", "latency", "offset", "size")
_OF_DISKS = ("op", "device", "process", "latency", "offset", "size")
_FORMATS = {
    "fio": ("op", "job", "latency", "offset", "size"),
    "biosnoop": _OF_DISKS,
    "blkparse": _OF_DISKS,
    "blktrace": _OF_DISKS,
}
"""What the native readers can find in a trace, and in those of some sources."""

_ELSEWHERE = {
    "device": "io.ops",
    "queue": "io.ops",
    "file": "file.ops",
    "mount": "file.ops",
    "job": "app.ops",
    "client": "nfs.ops",
}
"""Statistics that tell a field, where their source was recorded."""


def told_by(
    opened: Trace | Recording, sources: Iterable[str], has: Iterable[str] | None = None
) -> Told:
    """What is known of these sources. `has`: the fields of a trace's summary, where that was made.

    A source that a recording says nothing about is not known to lack anything.
    """
    if isinstance(opened, Trace):
        return {
            source: _FORMATS.get(source, _TRACED) if has is None else ("op", *has)
            for source in sources
        }
    fields = {}
    for source in sources:
        about = opened.facts.sources.get(source)
        if about is None:
            continue
        if "columns" in about:
            fields[source] = tuple(
                field.name for field in FIELDS.values() if field.column in ("op", *about["columns"])
            )
        elif "format" in about:
            fields[source] = _FORMATS.get(source, _TRACED)
        elif source in _RECORDED:
            fields[source] = _RECORDED[source]
    return fields


def fields_of(fields: Iterable[str], source: str, told: Told) -> tuple[str, ...]:
    """Those of the fields that a source's events hold."""
    return tuple(field for field in fields if source not in told or field in told[source])


def missing_fields(
    entry: Entry | None, fields: Iterable[str], source: str, told: Told
) -> dict[str, str]:
    """Why a source's events don't have a field, by the field; fields that they have are absent."""
    return {
        field: _why_not(entry, field, source)
        for field in fields
        if source in told and field not in told[source]
    }


def _why_not(entry: Entry | None, field: str, source: str) -> str:
    if field == "client" and source not in _RECORDED:
        return "only a table with a column of that name has the client"
    other = _ELSEWHERE.get(field, "")
    own = entry is not None and other.partition(".")[0] == entry.name.partition(".")[0]
    elsewhere = f"; {other} has it, where it was recorded" if other and not own else ""
    return f"{source} events have no {field}{elsewhere}"
