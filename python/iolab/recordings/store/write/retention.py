# SPDX-License-Identifier: Apache-2.0
"""Limits of a recording: the oldest sealed segments go first, their default maps stay for longer,
and `recording.json` says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.base.files import remove

from ..base.layout import KINDS, MAPS, SEGMENTS, map_file, sealed_file, sealed_numbers, telling
from ..base.metadata import Facts
from ..ledger import rewrite
from ..segments.segments import (
    MAP_NAMES,
    map_paths,
    note_dropped,
    note_segment,
    noted_segments,
    read_list,
    remove_leftovers,
    sealed_facts,
)

MAP_AGE_S = 90 * 86400
"""So long default maps stay where segments have an age at which they go, unless it says more."""

MAP_SHARE, LEAST_MAP_BYTES = 10, 16 << 20
"""Where segments have a limit of bytes, default maps of deleted ones take one part in so
many of it; at least so much."""

STALE = 100
"""Lines about deleted segments, beyond as many as there are segments, are kept until they are
that many."""


@dataclass(frozen=True)
class _Held:
    """A sealed segment: bytes of its files, its last event or sample, I/Os by source.

    `mapped`: whether it has default maps. `seen`: monotonic second at which it was first there,
    minus infinity before anything was looked at.
    """

    bytes: int
    last_ns: int | None
    events: Mapping[str, int]
    mapped: bool
    seen: float


@dataclass(frozen=True)
class _Map:
    """Default maps of a deleted segment: their bytes, and the span of its events."""

    bytes: int
    first_ns: int
    last_ns: int


class Retention:
    """Applies a recording's limits. Its writer holds one: what was looked at once, of a hundred
    thousand files after months, is not looked at again.

    Attributes:
        archived: all segments up to this number are archived; None: there is no archive, and age
        counts for all. drops_archived: whether these are deleted.
    """

    def __init__(self, directory: Path, shrinks: Callable[[str], None] = lambda _: None) -> None:
        """`shrinks` is called with a file's name before it becomes shorter."""
        self._directory, self._shrinks = directory, shrinks
        self._held: dict[int, _Held] = {}
        self._unsure: frozenset[int] = frozenset()
        self._maps: dict[int, _Map] | None = None
        self._looked = False
        self._spent: list[int] | None = None
        self.archived: int | None = None
        self.drops_archived = False

    def apply(
        self, facts: Facts, now_ns: int, halves: Collection[int] = (), monotonic: float = 0.0
    ) -> int:
        """Remove segments beyond the limits, by bytes of sealed files or by age of their last
        event, then default maps of such beyond theirs. Returns how many segments. ResultsError
        where the disk refuses: `facts` then say what holds, and the next call continues.

        Args:
            now_ns: the time that has come, by the clock of the events. halves: numbers of
            segments that were sealed in part. monotonic: seconds; what came to be there within the
                age goes by no age, though a clock that was set ahead makes it old.
        """
        with telling(self._directory, "apply its limits"):
            return self._apply(facts, now_ns, halves, monotonic)

    def _apply(self, facts: Facts, now_ns: int, halves: Collection[int], monotonic: float) -> int:
        if self._spent is not None:
            self._remove(facts)
        most_bytes, most_age = facts.retention.get("bytes"), facts.retention.get("age_s")
        drops = self.archived if self.drops_archived else None
        if (most_bytes, most_age, drops) == (None, None, None) and not _maps_due(facts, now_ns):
            return 0
        segments = self._look(facts, halves, monotonic)
        total = sum(segment.bytes for segment in segments.values())
        goes: dict[int, _Held] = {}
        for number in sorted(segments):
            candidate = segments[number]
            old = (drops is not None and number <= drops) or (
                most_age is not None
                and (self.archived is None or number <= self.archived)
                and candidate.last_ns is not None
                and (
                    candidate.last_ns < now_ns - most_age * 1_000_000_000
                    and monotonic - candidate.seen >= most_age
                )
            )
            if not old and (most_bytes is None or total <= most_bytes):
                break
            goes[number] = candidate
            total -= candidate.bytes
        if not goes and not _maps_due(facts, now_ns):
            return 0
        self._note(goes)
        maps, lines = self._known_maps(facts), noted_segments(self._directory)
        before = None if facts.dropped is None else dict(facts.dropped)
        try:
            if goes:
                _count(facts, goes)
            spent = self._old_maps(facts, goes, maps, lines, now_ns)
            facts.write(self._directory)
        except (OSError, ResultsError):
            facts.dropped = before
            raise
        for number in goes:
            del segments[number]
        self._spent = spent
        self._remove(facts)
        return len(goes)

    def _remove(self, facts: Facts) -> None:
        """Remove what `facts` say is deleted. What is refused is tried again later."""
        maps, spent = self._known_maps(facts), self._spent or []
        while spent:
            _remove_maps(self._directory, spent[0])
            maps.pop(spent.pop(0), None)
        finish_dropping(self._directory, facts, maps, self._shrinks)
        self._spent = None

    def _look(self, facts: Facts, halves: Collection[int], monotonic: float) -> dict[int, _Held]:
        """Segments that are there: those that are new are looked at, and those again that were half
        sealed or could not be read."""
        present = {
            number
            for kind in KINDS
            for number in sealed_numbers(self._directory / kind)
            if number > facts.dropped_through
        }
        seen_before = {
            number: self._held[number].seen for number in self._unsure & self._held.keys()
        }
        for number in self._held.keys() - (present - self._unsure):
            del self._held[number]
        unsure = set(halves)
        new: dict[int, _Held] = {}
        for kind in KINDS:
            for number, _, facts_of_file in sealed_facts(
                self._directory, kind, facts.dropped_through, self._held.keys()
            ):
                if "damaged" in facts_of_file:
                    unsure.add(number)
                so_far = new.get(
                    number,
                    _Held(
                        0,
                        None,
                        {},
                        False,
                        seen_before.get(number, monotonic if self._looked else -math.inf),
                    ),
                )
                events = so_far.events
                if kind == "events":
                    events = {
                        source: int(counts["events"])
                        for source, counts in facts_of_file["sources"].items()
                    }
                last = max(
                    (at for at in (so_far.last_ns, facts_of_file["last_ns"]) if at is not None),
                    default=None,
                )
                new[number] = _Held(
                    so_far.bytes + int(facts_of_file["bytes"]),
                    last,
                    events,
                    so_far.mapped or "offset_width" in facts_of_file,
                    so_far.seen,
                )
        self._held |= new
        self._unsure, self._looked = frozenset(unsure), True
        return self._held

    def _note(self, goes: Mapping[int, _Held]) -> None:
        """The line alone says what a map is of, once its segment is deleted."""
        lines = noted_segments(self._directory)
        missing = {
            number for number, segment in goes.items() if segment.mapped and number not in lines
        }
        if missing:
            for number, _, facts_of_file in sealed_facts(
                self._directory, "events", min(missing) - 1
            ):
                if number in missing:
                    with telling(self._directory / SEGMENTS, "add a line"):
                        note_segment(self._directory, number, facts_of_file)

    def _known_maps(self, facts: Facts) -> dict[int, _Map]:
        """Default maps of deleted segments, ascending. What a kill left of some, which
        answers nothing, is removed."""
        if self._maps is None:
            lines = noted_segments(self._directory)
            maps: dict[int, _Map] = {}
            for number in sorted(_numbers_of_maps(self._directory, facts)):
                map_of_segment = _map(self._directory, number, lines)
                if map_of_segment is not None:
                    maps[number] = map_of_segment
                elif not _says_nothing(self._directory, lines):
                    _remove_maps(self._directory, number)
            if not _says_nothing(self._directory, lines):
                content = read_list(self._directory).content
                remove_leftovers(self._directory, content, facts.dropped_through)
            self._maps = maps
        return self._maps

    def list_mapped(self, facts: Facts) -> set[int]:
        """Numbers of deleted segments with default maps; of joined ones the last."""
        with telling(self._directory, "apply its limits"):
            return set(self._known_maps(facts))

    def note_joined(self, facts: Facts, line: Mapping[str, Any]) -> None:
        """Count joined maps instead of those of the single segments."""
        first, last = line["joined"], line["number"]
        maps = {
            number: heat_map
            for number, heat_map in self._known_maps(facts).items()
            if not first <= number <= last
        }
        maps[last] = _Map(line["maps"], line["first_ns"], line["last_ns"])
        self._maps = dict(sorted(maps.items()))

    def _old_maps(
        self,
        facts: Facts,
        goes: Mapping[int, _Held],
        maps: dict[int, _Map],
        noted: Mapping[int, Mapping[str, Any]],
        now_ns: int,
    ) -> list[int]:
        """Segments with maps to delete, which `facts` then say: those beyond the limits, the
        oldest first. Takes in those of segments that go now."""
        most_bytes, most_age = map_limits(facts)
        useless = []
        for number in goes:
            map_of_segment = _map(self._directory, number, noted)
            if map_of_segment is not None:
                maps[number] = map_of_segment
            elif not _says_nothing(self._directory, noted):
                useless.append(number)
        total, last, spent = sum(heat_map.bytes for heat_map in maps.values()), 0, []
        first: int | None = None
        for number, heat_map in maps.items():
            old = most_age is not None and heat_map.last_ns < now_ns - most_age * 1_000_000_000
            if not old and (most_bytes is None or total <= most_bytes):
                first = heat_map.first_ns
                break
            spent.append(number)
            total, last = total - heat_map.bytes, max(last, heat_map.last_ns)
        assert facts.dropped is not None
        if spent:
            facts.dropped["maps_until_ns"] = max(facts.dropped.get("maps_until_ns", 0), last)
        facts.dropped["maps_from_ns"] = first
        return [*useless, *spent]


def _count(facts: Facts, goes: Mapping[int, _Held]) -> None:
    """Add segments that go to what `facts` say is dropped."""
    before = facts.dropped or {"segments": 0, "events": {}, "bytes": 0, "until_ns": None}
    events = dict(before["events"])
    for segment in goes.values():
        for source, count in segment.events.items():
            events[source] = events.get(source, 0) + count
    times = [
        at
        for at in (before["until_ns"], *(segment.last_ns for segment in goes.values()))
        if at is not None
    ]
    facts.dropped = {
        **before,
        "through": max(goes),
        "until_ns": max(times, default=None),
        "segments": before["segments"] + len(goes),
        "events": events,
        "bytes": before["bytes"] + sum(segment.bytes for segment in goes.values()),
    }


def map_limits(facts: Facts) -> tuple[int | None, int | None]:
    """(bytes, seconds) up to which default maps of deleted segments are kept; None for no
    limit."""
    most_bytes, most_age = facts.retention.get("bytes"), facts.retention.get("age_s")
    share = None if most_bytes is None else max(most_bytes // MAP_SHARE, LEAST_MAP_BYTES)
    age = None if most_age is None else max(most_age, MAP_AGE_S)
    return facts.retention.get("maps_bytes", share), facts.retention.get("maps_age_s", age)


def _maps_due(facts: Facts, now_ns: int) -> bool:
    """Whether the oldest map of those that are left is too old, as far as `facts` tell."""
    first, age = (facts.dropped or {}).get("maps_from_ns"), map_limits(facts)[1]
    return first is not None and age is not None and bool(first < now_ns - age * 1_000_000_000)


def _numbers_of_maps(directory: Path, facts: Facts) -> set[int]:
    """Deleted segments with a map; of joined ones the last."""
    single = {
        number
        for name in MAP_NAMES
        for number in sealed_numbers(directory / MAPS / name)
        if number <= facts.dropped_through
    }
    return single | read_list(directory).content.firsts.keys()


def _map(directory: Path, number: int, noted: Mapping[int, Mapping[str, Any]]) -> _Map | None:
    """Default maps of a deleted segment; None where they answer nothing: without a line, or
    the one by latency."""
    line = noted.get(number, {})
    if line.get("last_ns") is None or not map_paths(directory, line, number)[0].exists():
        return None
    return _Map(
        line.get("maps") or _map_bytes(directory, number),
        int(line["first_ns"]),
        int(line["last_ns"]),
    )


def _says_nothing(directory: Path, noted: Mapping[int, Mapping[str, Any]]) -> bool:
    """Whether the file of lines has no valid line: no reason to remove all maps."""
    return not noted and (directory / SEGMENTS).exists()


def _map_bytes(directory: Path, number: int) -> int:
    paths = [map_file(directory, number, name) for name in MAP_NAMES]
    return sum(path.stat().st_size for path in paths if path.exists())


def _remove_maps(directory: Path, number: int) -> None:
    line = noted_segments(directory).get(number, {})
    with telling(directory, "remove old maps"):
        for path in map_paths(directory, line, number):
            remove(path)


def finish_dropping(
    directory: Path,
    facts: Facts,
    maps: Collection[int] | None = None,
    shrinks: Callable[[str], None] = lambda _: None,
) -> None:
    """Remove the files of segments that `facts` say are dropped; after a kill some may be left. The
    lines of those are shortened as long as there are maps, then removed.

    `maps`: numbers of such segments that have maps, None where they are to be looked for.
    `shrinks`: see `Retention`.
    """
    for kind in KINDS:
        for number in sealed_numbers(directory / kind):
            if number <= facts.dropped_through:
                with telling(directory, "remove an old segment"):
                    remove(sealed_file(directory, number, kind))
    content = read_list(directory).content
    lines, written = content.lines, len(content.lines) + content.replaced
    live = {number: line for number, line in lines.items() if number > facts.dropped_through}
    if written <= 2 * len(live) + STALE:
        return
    mapped = _numbers_of_maps(directory, facts) if maps is None else maps
    short = sum(1 for number in mapped if "maps" in lines.get(number, {}))
    if written - short > 2 * len(live) + STALE:
        old = [
            _shorten_line(directory, number, lines[number])
            for number in sorted(lines.keys() & set(mapped))
        ]
        shrinks(SEGMENTS)
        with telling(directory / SEGMENTS, "shorten it"):
            rewrite(directory / SEGMENTS, [*old, *live.values()])


def _shorten_line(directory: Path, number: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """What the maps of a deleted segment need to be read: number, span, sources, width of
    offsets, and their bytes."""
    if "joined" in line:
        return dict(line)
    return {
        "number": number,
        **{name: line.get(name) for name in ("first_ns", "last_ns", "offset_width")},
        "sources": {source: {} for source in line.get("sources", {})},
        "maps": line.get("maps") or _map_bytes(directory, number),
        **({"lost": line["lost"]} if "lost" in line else {}),
        **{
            name: {map_name: values.get(map_name) for map_name in MAP_NAMES}
            for name in ("bytes", "digests")
            if isinstance(values := line.get(name), dict)
        },
    }


def drop_label(directory: Path, facts: Facts, label: str) -> int:
    """Remove the sealed segments of a label with their maps. Returns how many."""
    segments = segments_of_label(directory, facts, label)
    for number, _ in segments:
        with telling(directory, "remove a segment"):
            note_dropped(directory, number)
            for name in MAP_NAMES:
                remove(map_file(directory, number, name))
            for kind in KINDS:
                remove(sealed_file(directory, number, kind))
    return len(segments)


def segments_of_label(
    directory: Path, facts: Facts, label: str
) -> list[tuple[int, Mapping[str, Any]]]:
    """Numbers and facts of the sealed segments of events of a label."""
    return [
        (number, segment)
        for number, _, segment in sealed_facts(directory, "events", facts.dropped_through)
        if segment.get("label") == label
    ]
