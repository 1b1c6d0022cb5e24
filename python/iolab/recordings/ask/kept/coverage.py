# SPDX-License-Identifier: Apache-2.0
"""Which source a kept statistic has, which kept statistic answers a question, and which of its files
have the exact sums."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from iolab.base.errors import UsageError

from ...store.base.intervals import without
from ..engine.snapshot import Snapshot, Span, clip, sessions_of
from ..language.catalogue import LAST, preference
from ..question import SECOND, Statistic, parse, same
from ..tiers.counters import is_parted
from .files.definitions import Definition, Kept, read_definitions, read_state
from .files.listed import Lost, lost_files
from .files.paths import TIERS, File, Tier, choose_files, files, folder_name


def is_counted(statistic: Statistic, source: str) -> bool:
    """Whether a source is counters."""
    counter = statistic.entry.counter
    return counter is not None and counter.source == source


def source_of(
    statistic: Statistic, wanted: str | None, events: Collection[str], samples: Collection[str]
) -> tuple[str | None, str]:
    """(the source, None where there is none of those that could answer; then why, in words)."""
    entry, counter = statistic.entry, statistic.entry.counter
    if wanted is not None:
        is_recorded = wanted in samples if is_counted(statistic, wanted) else wanted in events
        return (wanted, "") if is_recorded else (None, f"{wanted} was not recorded")
    asks = [condition.field for condition in statistic.filters] + (
        [statistic.breakdown] if statistic.breakdown else []
    )
    tells = (
        counter is not None
        and counter.source in samples
        and all(name in counter.breakdowns for name in asks)
    )
    near = [name for name in events if name not in LAST] if entry.sources else []
    if tells and counter is not None and not near:
        return counter.source, ""
    able = [
        name
        for name in (entry.sources if entry.only else preference(list(events), entry.sources))
        if name in events
    ]
    if entry.sources and able:
        return able[0], ""
    words = [*entry.sources, *([counter.source] if counter is not None else [])]
    return None, f"{' or '.join(words)} was not recorded"


@dataclass(frozen=True)
class Held:
    """A kept statistic that has the answer.

    Attributes:
        directory: of the recording. statistic: what is kept. wanted, kept: its definition and
        state. source: of both. first_ns, until_ns: the time that is in.
    """

    directory: Path
    statistic: Statistic
    wanted: Definition
    kept: Kept
    source: str
    first_ns: int
    until_ns: int

    def begin_s(self, tier: Tier) -> int:
        """The second from which on a tier has it."""
        return max(self.first_ns // SECOND, self.kept.begins.get(tier.name, 0))

    def finest_tier(self, first_ns: int) -> Tier:
        """The finest tier that goes back as far as a moment, or as anything does."""
        goal = max(first_ns // SECOND, min(self.begin_s(tier) for tier in TIERS))
        return next(tier for tier in TIERS if self.begin_s(tier) <= goal)

    def usable(self, interval_ns: int, first_ns: int, until_ns: int) -> list[Tier]:
        """Tiers with sums that fit into columns and into a window."""

        def fits(tier: Tier) -> bool:
            length = tier.seconds * SECOND
            ends = [
                time_ns
                for time_ns in (first_ns, until_ns)
                if self.first_ns < time_ns < self.until_ns
            ]
            return not any(end % length for end in (interval_ns, *ends))

        return [tier for tier in TIERS if fits(tier)]

    def files(self, tiers: Collection[Tier]) -> list[tuple[Tier, File]]:
        """Files of some tiers that hold every segment once."""
        name, lost = (
            folder_name(self.wanted.statistic),
            {segment.file.path for segment in self.lost(tiers)},
        )
        return choose_files(
            [
                (
                    tier,
                    [
                        file
                        for file in files(self.directory, tier, name, self.kept.through)
                        if file.path not in lost
                    ],
                )
                for tier in tiers
            ]
        )

    def lost(self, tiers: Collection[Tier]) -> list[Lost]:
        """Files of some tiers that are damaged or missing, and not in another one of their tier."""
        name = folder_name(self.wanted.statistic)
        lost_of_statistic = [
            lost_file
            for lost_file in lost_files(self.directory)
            if lost_file.tier in tiers
            and lost_file.file.path.parent.name == name
            and lost_file.file.last <= self.kept.through
        ]
        existing_files = {
            tier: files(self.directory, tier, name)
            for tier in {lost_file.tier for lost_file in lost_of_statistic}
        }
        return [
            lost_file
            for lost_file in lost_of_statistic
            if not any(
                lost_file.file.within(other)
                for other in existing_files[lost_file.tier]
                if other.path != lost_file.file.path
            )
        ]

    def holes(self, tiers: Collection[Tier]) -> list[Span]:
        """Spans that lost files had, and no file of another tier has."""
        lost = self.lost(tiers)
        existing = [file for _, file in self.files(tiers)] if lost else []
        return [
            (segment.first_s * SECOND, segment.until_s * SECOND)
            for segment in lost
            if segment.first_s is not None
            and segment.until_s is not None
            and not any(segment.file.within(other) for other in existing)
        ]

    def spans(self, tiers: Collection[Tier], snap: Snapshot) -> list[Span] | None:
        """When it was kept, as far as some tiers go back; None where it is unknown when it was
        recorded at all, and no file is lost."""
        sessions = sessions_of(snap, self.until_ns, self.source)
        if sessions is None:
            if not self.holes(tiers):
                return None
            sessions = [(self.first_ns, self.until_ns)]
        if not tiers:
            return []
        begin = max(self.first_ns, min(self.begin_s(tier) for tier in tiers) * SECOND)
        left_out = [
            (first, self.until_ns if until is None else until)
            for first, until in (
                *self.wanted.left_out,
                *self.kept.suspended,
                *self.kept.missed,
                *self.holes(tiers),
            )
        ]
        return clip(
            without(sessions, [span for span in left_out if span[0] < span[1]]),
            (begin, max(begin, self.until_ns)),
        )


H = TypeVar("H", bound=Held)


def held_of(directory: Path, asked: Statistic, source: str | None) -> list[Held]:
    """Kept statistics that have the answer, the best first: the same one, or for a plain sum one
    with a breakdown; of several the longest. `source`: what it must be
    made of, None for any."""
    definitions, state = read_definitions(directory), read_state(directory)
    if definitions is None or state is None:
        return []
    candidates = []
    for name, definition in definitions.statistics.items():
        kept = state.statistics.get(name)
        if (
            kept is None
            or kept.added_ns != definition.added_ns
            or kept.source is None
            or kept.first_ns is None
            or kept.until_ns is None
        ):
            continue
        try:
            statistic = parse(name)
        except UsageError:
            continue  # a newer iolab's
        if source in (None, kept.source) and is_answer(asked, statistic, kept.source):
            candidates.append(
                Held(
                    directory,
                    statistic,
                    definition,
                    kept,
                    kept.source,
                    kept.first_ns,
                    kept.until_ns,
                )
            )
    return sort_answers(candidates, asked)


def is_answer(asked: Statistic, statistic: Statistic, source: str) -> bool:
    """Whether a kept statistic of a source has the answer to another one."""
    return same(asked, statistic) or _sums_to(asked, statistic, source)


def sort_answers(candidates: Sequence[H], asked: Statistic) -> list[H]:
    """Kept statistics that have an answer, the best first."""
    return sorted(candidates, key=lambda kept: (not same(asked, kept.statistic), kept.first_ns))


def choose_kept(
    held: Sequence[Held], asked: Statistic, events: Collection[str], samples: Collection[str]
) -> Held | None:
    """The best of the source that a query would take of those that the recording still has;
    None where there is none."""
    now = source_of(asked, None, events, samples)[0]
    return next((statistic for statistic in held if now in (None, statistic.source)), None)


def _sums_to(asked: Statistic, statistic: Statistic, source: str) -> bool:
    """Whether what is kept of one statistic holds another one."""
    if (asked.group, asked.name, set(asked.filters)) != (
        statistic.group,
        statistic.name,
        set(statistic.filters),
    ):
        return False
    if is_counted(statistic, source):
        counter = statistic.entry.counter
        return counter is not None and (
            counter.object != "cpu" or is_parted(asked) == is_parted(statistic)
        )
    return asked.breakdown is None
