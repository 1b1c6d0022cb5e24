# SPDX-License-Identifier: Apache-2.0
"""The tier of kept statistics of an archived recording."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from iolab.base.errors import UsageError

from ...archive import tables
from ...archive.recordings import ArchivedEvents
from ...archive.rollups import ArchivedStatistic
from ...archive.rollups import Part as Sums
from ..engine.engine import BY
from ..plan import Cost, Frame, Part, Span
from ..question import SECOND, Statistic, parse
from ..tiers.archive_engines import open_engine
from ..tiers.archived import ArchiveMaps, archived_recording, files_in, part_of_table, rows_of
from .coverage import Held, is_answer, sort_answers
from .files.definitions import Definition, Kept
from .files.paths import Tier
from .roll_ups import RollUpFrame, RollUpReading, RollUps


@dataclass(frozen=True)
class ArchivedHeld(Held):
    """A kept statistic of an archived recording. archived: its state there. recording: it.
    is_single: whether the recording has no other one of its name."""

    archived: ArchivedStatistic
    recording: ArchivedEvents
    is_single: bool = True

    def begin_s(self, tier: Tier) -> int:
        begin_s = super().begin_s(tier)
        deleted = self.recording.deleted.get(cast("Any", tier.name))
        if deleted is None or not deleted.through:
            return begin_s
        if not self.recording.parts(self.archived, tier.name):
            return max(begin_s, -(-self.until_ns // SECOND))
        return max(begin_s, deleted.until_ns // SECOND)

    def lost(self, tiers: Collection[Tier]) -> list[Any]:
        # the push noted them as time in which nothing was kept
        return []

    def sums(self, tiers: Sequence[Tier]) -> list[tuple[Tier, list[Sums]]]:
        """Parts of some tiers that have each segment once, of the longest tiers, by tier."""
        by_tier: list[tuple[Tier, list[Sums]]] = []
        through = 0
        for tier in sorted(tiers, key=lambda tier: -tier.seconds):
            parts = self.recording.parts(self.archived, tier.name)
            later = [part for part in parts if part.last > through]
            if later:
                by_tier.append((tier, later))
                through = later[-1].last
        return by_tier


class ArchivedRollUps(RollUps):
    """Kept statistics of an archived recording."""

    def __init__(self, recording: ArchivedEvents) -> None:
        super().__init__(recording)
        self._archived = recording

    @property
    def has_statistics(self) -> bool:
        return bool(self._archived.archived.kept)

    @property
    def maps(self) -> ArchiveMaps:
        return ArchiveMaps(self._archived)

    def find_statistics(self, asked: Statistic, source: str | None) -> list[Held]:
        return list(find_archived(self._archived, asked, source))

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        assert isinstance(frame, RollUpFrame)
        if [span] != frame.roll_up_spans:
            return None
        parts = self.parts(frame, [span])
        return Cost(sum(part.files for part in parts), sum(part.bytes or 0 for part in parts))

    def read(self, frame: Frame, spans: Sequence[Span]) -> RollUpReading:
        assert isinstance(frame, RollUpFrame)
        return ArchivedRollUpReading(frame)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        assert isinstance(frame, RollUpFrame)
        return [
            part_of_table(frame.window, tables.ROLLUPS[tier.name], f"roll-ups of {tier.name}")
            for tier, _ in statistic_of(frame).sums(frame.lengths)
            if files_in(tables.ROLLUPS[tier.name], frame.window)
        ]


class ArchivedRollUpReading(RollUpReading):
    """Roll-ups of an archive while they are read."""

    def widths(self, lengths: Sequence[Tier]) -> list[int]:
        sums = statistic_of(self._frame).sums(lengths)
        return sorted({part.width for _, parts in sums for part in parts})

    def are_rows_unique(self) -> bool:
        return False

    def ask(self, sql: str, lengths: Sequence[Tier], width: int) -> dict[str, Any]:
        statistic, window = statistic_of(self._frame), self._window
        bound: dict[str, Any] = {"statistic": statistic.archived.statistic}
        of_statistic = '"statistic" = $statistic'
        if not statistic.is_single:
            of_statistic += " AND added_ns = $added_ns"
            bound["added_ns"] = statistic.archived.added_ns
        amount = "growth" if self._frame.is_counted else "amount"
        columns = (
            f'{BY} time_ns // 1000000000 AS time_s, "index", "count", "{amount}" AS "amount", "key", '
            '"object", "part", "over", covered, broken'
        )
        with open_engine(archived_recording(window)) as engine:
            selects = []
            for tier, parts in statistic.sums(lengths):
                numbers = {part.number for part in parts if part.width == width}
                table = tables.ROLLUPS[tier.name]
                engine.view(table.name, table, rows_of(table, window, numbers) if numbers else [])
                selects.append(f"SELECT {columns} FROM {table.name} WHERE {of_statistic}")
            kept = f"({' UNION ALL '.join(selects)}) AS kept"
            return engine.ask(sql.replace("FROM kept", f"FROM {kept}"), {**self._bound, **bound})


def find_archived(
    recording: ArchivedEvents, asked: Statistic, source: str | None
) -> list[ArchivedHeld]:
    """Kept statistics of an archived recording that have the answer, as `held_of`."""
    names = [state.statistic for state in recording.statistics]
    candidates = []
    for state in recording.statistics:
        try:
            statistic = parse(state.statistic)
        except UsageError:
            continue  # a newer iolab's
        if source in (None, state.source) and is_answer(asked, statistic, state.source):
            candidates.append(
                ArchivedHeld(
                    recording.path,
                    statistic,
                    Definition(state.statistic, state.added_ns, pauses=state.left_out),
                    Kept(
                        state.added_ns,
                        state.source,
                        state.through,
                        first_ns=state.first_ns,
                        until_ns=state.until_ns,
                        begins=dict(state.begins or {}),
                    ),
                    state.source,
                    state.first_ns,
                    state.until_ns,
                    state,
                    recording,
                    names.count(state.statistic) == 1,
                )
            )
    return sort_answers(candidates, asked)


def statistic_of(frame: RollUpFrame) -> ArchivedHeld:
    statistic = frame.kept_statistic
    assert isinstance(statistic, ArchivedHeld)
    return statistic
