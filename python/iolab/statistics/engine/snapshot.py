# SPDX-License-Identifier: Apache-2.0
"""The content of a recording at one moment: every event is either sealed or not sealed, or was deleted
and has default maps only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import FormatError, UsageError
from ...recording.base.layout import Kind
from ..language.catalogue import OF_EVENTS, Entry, preference

if TYPE_CHECKING:
    import pyarrow as pa

    from ...recording.catalogue import Catalogue
    from ...recording.read.recording import Recording, Segment
    from ...recording.segments.unsealed import UnsealedRows


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
