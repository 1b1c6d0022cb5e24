# SPDX-License-Identifier: Apache-2.0
"""When a recording was recording, and what it lost when: an empty column is either rest, or a gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...recording.base.counts import LOST_KINDS, LostAt, LostKind, added
from ...recording.base.intervals import joined, without
from ...recording.base.loss_log import Part, parts_of
from ...recording.read.recording import Recording
from .snapshot import Snapshot, Span, deleted_segments

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
        joined(spans),
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
    return added(lost_ats)


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
