# SPDX-License-Identifier: Apache-2.0
"""One I/O through the layers: the call above it, and the I/Os below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..store.read.recording import Recording
from .engine.snapshot import snapshot
from .query import OpenEvents, scan, trouble
from .single_ios import SingleIo, count_rows, events_between, find_io, read_rows

LAYERS = ("nfs", "syscall", "block")
"""Sources of one machine from the top to the bottom."""

MOST = 100
"""I/Os that are listed above, and below."""
EXAMINED = 1000
"""I/Os that overlap and are examined, of each layer."""
REACH_NS = 60_000_000_000
"""An I/O is related to others that were complete at most so long after it began or ended."""

Match = Literal["thread", "process", "time"]
"""What ties two I/Os: the same thread, the same process, or nothing but the time."""


@dataclass(frozen=True)
class RelatedIo:
    """An I/O of another layer, and what ties it to the chosen one."""

    io: SingleIo
    match: Match


@dataclass(frozen=True)
class IoLayers:
    """An I/O with those of other layers, in order of their start.

    Attributes:
        above: calls during which it was issued. below: I/Os issued during it by the same thread or
        process, and others that overlap it. above_left, below_left: how many more there are.
        elsewhere: I/Os that overlap it and belong to other calls, which are left out.
        layers: sources of the recording that are layers, from the top. notes: what is missing.
    """

    io: SingleIo
    above: tuple[RelatedIo, ...]
    below: tuple[RelatedIo, ...]
    above_left: int
    below_left: int
    elsewhere: int
    layers: tuple[str, ...]
    notes: tuple[str, ...]


def layers_of(events: Recording, key: str) -> IoLayers:
    """An I/O (by its id in a list) through the layers.

    An I/O belongs to a call of the same thread, or process, if it was issued during the call. Work
    of other threads, such as a journal's, is matched by time only: both were under way at one
    moment. It is left out if its thread issued it during another call. A call that is matched by
    time only is listed where no other call fits.
    UsageError for text that is no id, FormatError where the I/O is no longer recorded.
    """
    io = find_io(events, key)
    sources = snapshot(events).sources
    layers = tuple(name for name in LAYERS if name in sources)
    place = LAYERS.index(io.source) if io.source in LAYERS else len(LAYERS)
    above: list[RelatedIo] = []
    below: list[RelatedIo] = []
    unlisted, elsewhere = [0, 0], 0
    for name in layers:
        rank = LAYERS.index(name)
        if place == len(LAYERS) or rank == place:
            continue
        related, more = _find_related(events, io, name, is_above=rank < place)
        if rank > place:
            own = _without_others(events, io, related)
            elsewhere += len(related) - len(own)
            related = own
        (above if rank < place else below).extend(related[:MOST])
        unlisted[rank > place] += more + len(related[MOST:])
    tied = [item for item in above if item.match != "time"]
    if tied:
        above, unlisted[0] = tied, 0
    return IoLayers(
        io,
        above=_by_start(above),
        below=_by_start(below),
        above_left=unlisted[0],
        below_left=unlisted[1],
        elsewhere=elsewhere,
        layers=layers,
        notes=tuple(trouble(events)),
    )


def _by_start(related: list[RelatedIo]) -> tuple[RelatedIo, ...]:
    return tuple(sorted(related, key=lambda item: (item.io.start_ns, item.io.end_ns)))


def _find_related(
    events: Recording, io: SingleIo, source: str, *, is_above: bool
) -> tuple[list[RelatedIo], int]:
    """I/Os of a source that overlap an I/O, those that are tied to it first, and how many more
    there are."""
    ends = {"start": io.start_ns, "end": io.end_ns}
    start = "(time_ns - coalesce(CAST(latency_ns AS BIGINT), 0))"
    overlap = [f"{start} <= $end", "time_ns >= $start"]
    # what overlaps a call was issued during it, unless it began before
    issued = f"{start} {'<=' if is_above else '>='} $start"
    tied = {
        name: io.values[column]
        for name, column in (("thread", "thread"), ("process", "pid"))
        if io.values[column] is not None
    }
    columns = {"thread": "thread", "process": "pid"}
    cases = " ".join(
        f"WHEN {columns[name]} = ${name} AND {issued} THEN {place}"
        for place, name in enumerate(tied)
    )
    rank = f"CASE {cases} ELSE 2 END, " if tied else ""
    order = f"ORDER BY {rank}{start}, time_ns, offset_bytes LIMIT {EXAMINED}"

    def read(opened: OpenEvents) -> tuple[tuple[SingleIo, ...], int]:
        _, total = count_rows(opened, overlap, ends)
        return read_rows(opened, overlap, {**ends, **tied}, order), total

    question = events_between(source, io.start_ns, io.end_ns + REACH_NS)
    rows, total = scan(events, question, (), read)
    related = [RelatedIo(row, _match(*((row, io) if is_above else (io, row)))) for row in rows]
    return related, total - len(rows)


def _without_others(events: Recording, io: SingleIo, related: list[RelatedIo]) -> list[RelatedIo]:
    """Without I/Os that their threads issued during calls other than the chosen one."""
    threads = {item.io.values["thread"] for item in related if item.match == "time"} - {None}
    if not threads:
        return related
    names = ", ".join(f"{int(thread)}" for thread in sorted(threads))
    first = min(item.io.start_ns for item in related)
    last = max(item.io.end_ns for item in related)
    question = events_between(io.source, first, last + REACH_NS)
    of_threads = [f"thread IN ({names})"]
    calls: dict[int, list[SingleIo]] = {}
    for call in scan(events, question, (), lambda opened: read_rows(opened, of_threads, {})):
        calls.setdefault(call.values["thread"], []).append(call)
    return [
        item
        for item in related
        if item.match != "time"
        or not any(
            _match(call, item.io) == "thread" for call in calls.get(item.io.values["thread"], ())
        )
    ]


def _match(upper: SingleIo, lower: SingleIo) -> Match:
    """What ties two I/Os that overlap."""
    if not upper.start_ns <= lower.start_ns <= upper.end_ns:
        return "time"
    for match, column in (("thread", "thread"), ("process", "pid")):
        value = upper.values[column]
        if value is not None and value == lower.values[column]:
            return "thread" if match == "thread" else "process"
    return "time"
