# SPDX-License-Identifier: Apache-2.0
"""Sealed segments as the keeper sees them: events and samples of one number, and the one before."""

from __future__ import annotations

from dataclasses import dataclass

from ...recording.base.layout import KINDS, Kind
from ...recording.read.recording import Recording, Segment
from ...recording.segments.segments import noted_segments, sealed_facts


@dataclass(frozen=True)
class Sealed:
    """A sealed segment; one of its kinds may be missing, not both."""

    number: int
    events: Segment | None
    samples: Segment | None

    @property
    def _held(self) -> list[Segment]:
        return [each for each in (self.events, self.samples) if each is not None]

    @property
    def first_ns(self) -> int:
        """Time of the first event or sample."""
        return min(each.first_ns for each in self._held)

    @property
    def until_ns(self) -> int:
        """After the last one."""
        return max(each.last_ns for each in self._held) + 1

    @property
    def event_sources(self) -> list[str]:
        """Sources that it has events of."""
        return sorted(
            name for name, held in (self.events.sources if self.events else {}).items() if held
        )

    @property
    def sample_sources(self) -> list[str]:
        """Sources that it has samples of."""
        return sorted(
            name for name, held in (self.samples.sources if self.samples else {}).items() if held
        )

    @property
    def labelled(self) -> bool:
        """Whether it belongs to a run, which may be read again in its place."""
        return self.events is not None and self.events.facts.get("label") is not None


def sealed_after(recording: Recording, through: int) -> list[tuple[Sealed | None, Sealed]]:
    """(the one before that belongs to no run, None where it is gone; the segment) of segments
    beyond the number `through`, ascending, without damaged files."""
    found: dict[Kind, dict[int, Segment]] = {}
    before_it, noted = through, noted_segments(recording.path)
    # what belongs to a run may stand between two readings of counters
    while noted.get(before_it, {}).get("label") is not None:
        before_it -= 1
    after = max(recording.facts.dropped_through, before_it - 2)
    for kind in KINDS:
        found[kind] = {
            number: Segment(
                number,
                path,
                "sealed",
                each["first_ns"],
                each["last_ns"],
                {source: int(counts["events"]) for source, counts in each["sources"].items()},
                each,
            )
            for number, path, each in sealed_facts(recording.path, kind, after)
            if each["first_ns"] is not None
        }
    pairs: list[tuple[Sealed | None, Sealed]] = []
    before: Sealed | None = None
    for number in sorted(found["events"].keys() | found["samples"].keys()):
        sealed = Sealed(number, found["events"].get(number), found["samples"].get(number))
        if number > through:
            pairs.append((before, sealed))
        before = before if sealed.labelled else sealed
    return pairs
