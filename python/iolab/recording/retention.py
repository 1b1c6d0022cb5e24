"""Limits of a recording: the oldest sealed segments go first, their default maps stay, and `recording.json` says so."""

from __future__ import annotations

from pathlib import Path

from .facts import Facts
from .layout import KINDS, SEGMENTS, map_file, replacing, sealed_file, sealed_numbers, telling
from .segments import MAP_NAMES, line_of, noted_segments, sealed_facts

STALE = 100
"""Lines about segments that are gone, beyond as many as there are segments, are kept until they are that many."""


def apply_retention(directory: Path, facts: Facts, now_ns: int) -> int:
    """Remove segments beyond the limits, by bytes of sealed files or by age of their last event. Returns how many."""
    most_bytes, most_age = facts.retention.get("bytes"), facts.retention.get("age_s")
    if most_bytes is None and most_age is None:
        return 0
    held: dict[int, dict[str, int]] = {}
    last: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for kind in KINDS:
        for number, _, each in sealed_facts(directory, kind, facts.dropped_through):
            sizes[number] = sizes.get(number, 0) + int(each["bytes"])
            if each["last_ns"] is not None:
                last[number] = max(last.get(number, each["last_ns"]), each["last_ns"])
            if kind == "events":
                held[number] = {source: int(counts["events"]) for source, counts in each["sources"].items()}
    total = sum(sizes.values())
    goes: list[int] = []
    for number in sorted(sizes):
        old = most_age is not None and number in last and last[number] < now_ns - most_age * 1_000_000_000
        if not old and (most_bytes is None or total <= most_bytes):
            break
        goes.append(number)
        total -= sizes[number]
    if not goes:
        return 0
    before = facts.dropped or {"segments": 0, "events": {}, "bytes": 0, "until_ns": None}
    events = dict(before["events"])
    for number in goes:
        for source, count in held.get(number, {}).items():
            events[source] = events.get(source, 0) + count
    times = [each for each in (before["until_ns"], *(last[number] for number in goes if number in last)) if each is not None]
    facts.dropped = {"through": goes[-1], "until_ns": max(times, default=None), "segments": before["segments"] + len(goes),
                     "events": events, "bytes": before["bytes"] + sum(sizes[number] for number in goes)}
    facts.write(directory)
    finish_dropping(directory, facts)
    return len(goes)


def finish_dropping(directory: Path, facts: Facts) -> None:
    """Remove the files of segments that `facts` say are dropped; after a kill some may be left."""
    for kind in KINDS:
        for number in sealed_numbers(directory / kind):
            if number <= facts.dropped_through:
                with telling(directory, "remove an old segment"):
                    sealed_file(directory, number, kind).unlink(missing_ok=True)
    noted = noted_segments(directory)
    live = {number: line for number, line in noted.items() if number > facts.dropped_through}
    if len(noted) > 2 * len(live) + STALE:
        with telling(directory / SEGMENTS, "shorten it"), replacing(directory / SEGMENTS) as temporary:
            temporary.write_text("".join(f"{line_of(line)}\n" for line in live.values()), encoding="utf-8")


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
