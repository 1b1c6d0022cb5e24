"""Limits of a recording: the oldest sealed segments go first, their default maps stay for longer, and `recording.json` says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .facts import Facts
from .layout import KINDS, MAPS, SEGMENTS, map_file, replacing, sealed_file, sealed_numbers, telling
from .segments import MAP_NAMES, line_of, note_segment, noted_segments, sealed_facts

MAP_AGE_S = 90 * 86400
"""So long default maps stay where segments have an age at which they go, unless it says more."""

MAP_SHARE, LEAST_MAP_BYTES = 10, 16 << 20
"""Where segments have a limit of bytes, default maps of those that are gone take one part in so many of it; at least so much."""

STALE = 100
"""Lines about segments that are gone, beyond as many as there are segments, are kept until they are that many."""


def apply_retention(directory: Path, facts: Facts, now_ns: int) -> int:
    """Remove segments beyond the limits, by bytes of sealed files or by age of their last event, then default maps of such beyond
    theirs. Returns how many segments."""
    most_bytes, most_age = facts.retention.get("bytes"), facts.retention.get("age_s")
    if most_bytes is None and most_age is None and not _maps_due(facts, now_ns):
        return 0
    noted = noted_segments(directory)
    found: dict[int, dict[str, Any]] = {}
    held: dict[int, dict[str, int]] = {}
    last: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for kind in KINDS:
        for number, _, each in sealed_facts(directory, kind, facts.dropped_through):
            sizes[number] = sizes.get(number, 0) + int(each["bytes"])
            if each["last_ns"] is not None:
                last[number] = max(last.get(number, each["last_ns"]), each["last_ns"])
            if kind == "events":
                found[number] = each
                held[number] = {source: int(counts["events"]) for source, counts in each["sources"].items()}
    total = sum(sizes.values())
    goes: list[int] = []
    for number in sorted(sizes):
        old = most_age is not None and number in last and last[number] < now_ns - most_age * 1_000_000_000
        if not old and (most_bytes is None or total <= most_bytes):
            break
        goes.append(number)
        total -= sizes[number]
    if not goes and not _maps_due(facts, now_ns):
        return 0
    # what a map is of is told by the line alone, once its segment is gone
    for number in goes:
        if number not in noted and "offset_width" in found.get(number, {}):
            with telling(directory / SEGMENTS, "add a line"):
                note_segment(directory, number, found[number])
    if goes:
        _count(facts, goes, held, last, sizes)
    spent = _old_maps(directory, facts, now_ns)
    facts.write(directory)
    for number in spent:
        _remove_maps(directory, number)
    finish_dropping(directory, facts)
    return len(goes)


def _count(facts: Facts, goes: list[int], held: dict[int, dict[str, int]], last: dict[int, int], sizes: dict[int, int]) -> None:
    """Add segments that go to what `facts` say is dropped."""
    before = facts.dropped or {"segments": 0, "events": {}, "bytes": 0, "until_ns": None}
    events = dict(before["events"])
    for number in goes:
        for source, count in held.get(number, {}).items():
            events[source] = events.get(source, 0) + count
    times = [each for each in (before["until_ns"], *(last[number] for number in goes if number in last)) if each is not None]
    facts.dropped = {**before, "through": goes[-1], "until_ns": max(times, default=None), "segments": before["segments"] + len(goes),
                     "events": events, "bytes": before["bytes"] + sum(sizes[number] for number in goes)}


def map_limits(facts: Facts) -> tuple[int | None, int | None]:
    """(bytes, seconds) up to which default maps of segments that are gone are kept; None for no limit."""
    most_bytes, most_age = facts.retention.get("bytes"), facts.retention.get("age_s")
    share = None if most_bytes is None else max(most_bytes // MAP_SHARE, LEAST_MAP_BYTES)
    age = None if most_age is None else max(most_age, MAP_AGE_S)
    return facts.retention.get("maps_bytes", share), facts.retention.get("maps_age_s", age)


def _maps_due(facts: Facts, now_ns: int) -> bool:
    """Whether the oldest map of those that are left is too old, as far as `facts` tell."""
    first, age = (facts.dropped or {}).get("maps_from_ns"), map_limits(facts)[1]
    return first is not None and age is not None and bool(first < now_ns - age * 1_000_000_000)


def _numbers_of_maps(directory: Path, facts: Facts) -> set[int]:
    """Segments that are gone and have a map."""
    return {number for name in MAP_NAMES for number in sealed_numbers(directory / MAPS / name) if number <= facts.dropped_through}


def _old_maps(directory: Path, facts: Facts, now_ns: int) -> list[int]:
    """Segments whose maps are to go, which `facts` then say: those beyond the limits, the oldest first, and those whose maps answer
    nothing, as what a kill left of them has no line or no map by latency."""
    noted, (most_bytes, most_age) = noted_segments(directory), map_limits(facts)
    whole = set(sealed_numbers(directory / MAPS / MAP_NAMES[0]))
    every = sorted(_numbers_of_maps(directory, facts))
    goes = [number for number in every if number not in noted or number not in whole or noted[number].get("last_ns") is None]
    stay = [number for number in every if number not in set(goes)]
    sizes = {number: noted[number].get("maps") or _map_bytes(directory, number) for number in stay}
    total, many = sum(sizes.values()), 0
    for number in stay:
        old = most_age is not None and noted[number]["last_ns"] < now_ns - most_age * 1_000_000_000
        if not old and (most_bytes is None or total <= most_bytes):
            break
        many += 1
        total -= sizes[number]
    assert facts.dropped is not None
    if many:
        facts.dropped["maps_until_ns"] = max(facts.dropped.get("maps_until_ns", 0), *(noted[number]["last_ns"] for number in stay[:many]))
    facts.dropped["maps_from_ns"] = noted[stay[many]]["first_ns"] if stay[many:] else None
    return sorted([*goes, *stay[:many]])


def _map_bytes(directory: Path, number: int) -> int:
    paths = [map_file(directory, number, name) for name in MAP_NAMES]
    return sum(path.stat().st_size for path in paths if path.exists())


def _remove_maps(directory: Path, number: int) -> None:
    """The one by latency first: without it the others count no more."""
    with telling(directory, "remove old maps"):
        for name in MAP_NAMES:
            map_file(directory, number, name).unlink(missing_ok=True)


def finish_dropping(directory: Path, facts: Facts) -> None:
    """Remove the files of segments that `facts` say are dropped; after a kill some may be left. The lines of those are shortened as long
    as there are maps, then removed."""
    for kind in KINDS:
        for number in sealed_numbers(directory / kind):
            if number <= facts.dropped_through:
                with telling(directory, "remove an old segment"):
                    sealed_file(directory, number, kind).unlink(missing_ok=True)
    noted = noted_segments(directory)
    live = {number: line for number, line in noted.items() if number > facts.dropped_through}
    mapped = _numbers_of_maps(directory, facts) if len(noted) > len(live) else set()
    short = sum(1 for number in mapped if "maps" in noted.get(number, {}))
    if len(noted) - short > 2 * len(live) + STALE:
        old = [_shortened(directory, number, noted[number]) for number in sorted(mapped & noted.keys())]
        with telling(directory / SEGMENTS, "shorten it"), replacing(directory / SEGMENTS) as temporary:
            temporary.write_text("".join(f"{line_of(line)}\n" for line in [*old, *live.values()]), encoding="utf-8")


def _shortened(directory: Path, number: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """What the maps of a segment that is gone need to be read: number, span, sources, width of offsets, and their bytes."""
    return {"number": number, **{name: line.get(name) for name in ("first_ns", "last_ns", "offset_width")},
            "sources": {source: {} for source in line.get("sources", {})}, "maps": line.get("maps") or _map_bytes(directory, number)}


def drop_label(directory: Path, facts: Facts, label: str) -> int:
    """Remove the sealed segments of a label with their maps. Returns how many."""
    numbers = [number for number, _, each in sealed_facts(directory, "events", facts.dropped_through) if each.get("label") == label]
    for number in numbers:
        with telling(directory, "remove a segment"):
            for name in MAP_NAMES:
                map_file(directory, number, name).unlink(missing_ok=True)
            for kind in KINDS:
                sealed_file(directory, number, kind).unlink(missing_ok=True)
    return len(numbers)
