# SPDX-License-Identifier: Apache-2.0
"""The content of a recording at one moment: every event is either sealed or not sealed, or was deleted
and has default maps only."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import FormatError, UsageError
from ...recording.base import layout
from ...recording.base.layout import Kind
from ...recording.ledger import Line
from ..language.catalogue import OF_EVENTS, Entry, preference

if TYPE_CHECKING:
    import pyarrow as pa

    from ...recording.read.recording import Recording, Segment


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
    hot: pa.Table | None
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
        held = {
            name for segment in self.sealed for name, events in segment.sources.items() if events
        }
        if self.hot is not None:
            held |= {str(name) for name in self.hot["source"].unique().to_pylist()}
        held |= {each["source"] for each in self.lost if each["source"]}
        return sorted(held | (quiet(self.recording) if self.kind == "events" else set()))

    def segments(self, source: str, window: Span | None = None) -> list[Segment]:
        """Sealed segments with events of a source, in a window of time."""
        return [
            each
            for each in self.sealed
            if each.sources.get(source)
            and (window is None or (each.first_ns < window[1] and each.last_ns >= window[0]))
        ]

    def hot_of(self, source: str) -> pa.Table | None:
        """Hot events of a source, None where there are none."""
        if self.hot is None:
            return None
        import pyarrow.compute as pc

        found = self.hot.filter(pc.equal(self.hot["source"].cast("string"), source))
        return found if found.num_rows else None

    def bounds(self, source: str) -> Span | None:
        """(first, last) time of the events of a source, as far as segments tell their sources
        apart; None without events."""
        ends = [(each.first_ns, each.last_ns) for each in self.segments(source)]
        hot = self.hot_of(source)
        if hot is not None:
            import pyarrow.compute as pc

            found = pc.min_max(hot["time_ns"]).as_py()
            ends.append((found["min"], found["max"]))
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
        held = [name for name in preferred if name in sources]
        if not held:
            raise UsageError(
                f"holds no events of {' or '.join(preferred)}, which {entry.name} counts",
                where=place,
                hint=f"it holds events of {', '.join(sources)}"
                if sources
                else "nothing was recorded there",
            )
        return held[0], []
    if not sources:
        raise FormatError("holds no events", where=place)
    first, *others = preference(list(sources), preferred)
    return first, [f"{first} events; source {' or '.join(others)} has the others"] if others else []


FRESH_NS = 10**9
"""A folder that changed so short a time ago may change again without its time telling: what is seen
of it then is not remembered."""
MOST = 4
"""Recordings that are remembered."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Gone:
    """Ascending by number. numbers; first_ns, last_ns: of their events. of: by source, whether they
    have events of it."""

    numbers: Integers
    first_ns: Integers
    last_ns: Integers
    of: Mapping[str, npt.NDArray[np.bool_]]

    def within(self, span: Span) -> list[int]:
        """Numbers of those that meet a window."""
        found: list[int] = self.numbers[
            (self.first_ns < span[1]) & (self.last_ns >= span[0])
        ].tolist()
        return found

    def span(self, source: str) -> Span | None:
        """(first, last) ns of a source; None where there is nothing of it."""
        held = self.of.get(source)
        if held is None or not held.any():
            return None
        return int(self.first_ns[held].min()), int(self.last_ns[held].max())


_held: dict[Path, tuple[tuple[int, ...], Gone]] = {}
_guard = threading.Lock()


def gone(snap: Snapshot) -> Gone:
    """What is known of them; those without a readable line count for nothing."""
    catalogue = snap.recording.catalogue()
    through, lines = catalogue.facts.dropped_through, catalogue.segments
    folder = snap.place / layout.MAPS / "io.latency"
    try:
        status = folder.stat()
    except OSError:
        return _made({}, [])
    # a repair rebuilds the list: more of its lines can be read then
    list_inode = _inode(snap.place / layout.SEGMENTS)
    seen = (status.st_ino, status.st_mtime_ns, through, lines.damaged, list_inode)
    with _guard:
        held = _held.pop(folder, None)
        if held is None or held[0] != seen:
            held = (
                seen,
                _made(
                    lines.lines,
                    [number for number in layout.sealed_numbers(folder) if number <= through]
                    if through
                    else [],
                ),
            )
        if time.time_ns() - status.st_mtime_ns > FRESH_NS:
            _held[folder] = held
            while len(_held) > MOST:
                del _held[next(iter(_held))]
        return held[1]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _made(lines: Mapping[int, Line], numbers: list[int]) -> Gone:
    told = [
        (number, line["first_ns"], line["last_ns"], line.get("sources", {}))
        for number in numbers
        if isinstance((line := lines.get(number, {})).get("first_ns"), int)
        and isinstance(line.get("last_ns"), int)
    ]
    names = {source for *_, sources in told for source in sources}
    first, last = (np.array([each[place] for each in told], dtype=np.int64) for place in (1, 2))
    return Gone(
        np.array([each[0] for each in told], dtype=np.int64),
        first,
        last,
        {name: np.array([name in sources for *_, sources in told], dtype=bool) for name in names},
    )
