# SPDX-License-Identifier: Apache-2.0
"""Tiers of the plan for archived recordings: segment maps and events in the tables of an archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...archive import tables
from ...archive.recordings import ArchivedEvents
from ...archive.scan import DataFile
from ..answers.answers import Answer
from ..engine.windows import Window
from ..question import Question
from ..tiers import over_time
from ..tiers.archived import ArchiveTier
from .plan import Coverage, Part, Tier
from .query import Windows


def archive_tiers(recording: ArchivedEvents) -> list[Tier]:
    """What answers for an archived recording, the preferred first."""
    return [_ArchiveTables(recording, has_maps=True), _ArchiveTables(recording, has_maps=False)]


@dataclass(frozen=True)
class _ArchiveTables:
    recording: ArchivedEvents
    has_maps: bool

    @property
    def name(self) -> str:
        """As plans print it."""
        return "segment maps of the archive" if self.has_maps else "events of the archive"

    def covers(self, question: Question) -> Coverage | str:
        """See `plan.Tier`."""
        windows = Windows(self.recording, question)
        window, tier = windows.whole, ArchiveTier(self.recording)
        if self.has_maps:
            refusal = tier.refusal(tier.mapped_window(window, question), question)
            if refusal:
                return refusal

        def answer() -> Answer:
            if question.y is None:
                return _over_time(windows, window, question, tier, maps=self.has_maps)
            counts = tier.heat(window, question, maps=self.has_maps)
            return windows.with_notes(counts, window, question)

        def parts() -> Sequence[Part]:
            table = tables.SEGMENT_MAPS if self.has_maps else tables.EVENTS
            return [_part(self.name, tier.files(table, window))]

        return Coverage(answer, parts)


def _over_time(
    windows: Windows, window: Window, question: Question, tier: ArchiveTier, *, maps: bool
) -> Answer:
    statistic = question.statistic
    assert statistic is not None
    fields = (condition.field for condition in statistic.filters)
    return over_time.answer(
        statistic,
        over_time.added(tier.series(window, question, maps=maps)),
        source=window.source,
        base_ns=window.base_ns,
        interval_ns=window.interval_ns,
        columns=window.columns,
        span=window.span,
        recorded=window.recorded,
        notes=windows.notes(window, statistic.breakdown, *fields),
        losses=window.losses,
    )


def _part(name: str, files: Sequence[DataFile]) -> Part:
    times = [file.times for file in files if file.times is not None]
    is_known = bool(times) and len(times) == len(files)
    return Part(
        name,
        min(first for first, _ in times) if is_known else None,
        max(last for _, last in times) + 1 if is_known else None,
        len(files),
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
    )
