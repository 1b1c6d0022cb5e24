# SPDX-License-Identifier: Apache-2.0
"""Few files, of few rows: the segments of an hour become one file of each tier, the hours of a day
another; what is too old goes.

Every step can be cut short by a kill: a file is written before those that it replaces go, and into
the longer tiers before it is merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from iolab.base.files import remove

from ...store.base.layout import telling
from .files import listed, tables
from .files.paths import (
    DAY,
    TIERS,
    Content,
    File,
    Tier,
    files,
    folder,
    folder_name,
    path_of,
    replaced_files,
)
from .files.tables import About, Sums

SINGLES, MANY = 8, 64
"""Files of one hour at most; more are merged before it is over. A file's own words are half of a
minute's, so an hour in minutes takes twice the room of an hour in one. Where rows are many they
don't matter, and merging takes longer: there it may be many files."""
FEW_ROWS = 1 << 20
"""Up to so many rows of the hour, merging it takes a second at most."""
_HOUR = 3600


class Merger:
    """Merges the files of one statistic. What files say of themselves is remembered: they hardly
    ever change."""

    def __init__(self, directory: Path, statistic: str, source: str) -> None:
        """`statistic`, `source`: what the files hold."""
        self._directory, self._statistic, self._source = directory, statistic, source
        self._name = folder_name(statistic)
        self._about: dict[Path, About] = {}

    def tidy(self) -> None:
        """Remove what a kill left half done."""
        for tier in TIERS:
            place = folder(self._directory, tier, self._name)
            with telling(place, "remove what was merged"):
                for path in [
                    *(
                        replaced_file.path
                        for replaced_file in replaced_files(self._directory, tier, self._name)
                    ),
                    *place.glob(".*.tmp"),
                ]:
                    listed.drop(path)
                    remove(path)

    def merge(self, through: int) -> None:
        """Merge what can be, of segments up to `through`."""
        hours = self._hours(through)
        for hour in hours[:-1]:
            self._hour(hour)
        # the last one is not over
        if hours and len(hours[-1]) >= (
            SINGLES
            if sum(self.about(hour_file).rows for hour_file in hours[-1]) <= FEW_ROWS
            else MANY
        ):
            self._into_one(TIERS[0], hours[-1], [self._sum(hours[-1])])
        for tier in TIERS:
            self._days(tier)

    def _hours(self, through: int) -> list[list[File]]:
        """Files that follow each other, by the hour in which they begin, of segments that are not
        in the longest tier yet."""
        long = self._files(TIERS[-1])
        begin = long[-1].last if long else 0
        files_by_hour: list[tuple[int, File]] = []
        for second_file in files(self._directory, TIERS[0], self._name, through):
            if second_file.last > begin:
                # a late event does not bring an hour back that is over
                latest = files_by_hour[-1][0] if files_by_hour else 0
                files_by_hour.append(
                    (max(latest, self.about(second_file).first_s // _HOUR), second_file)
                )
        return [
            part
            for _, group in groupby(files_by_hour, key=lambda pair: pair[0])
            for part in self._split(TIERS[0], [file for _, file in group])
        ]

    def _split(self, tier: Tier, parts: Sequence[File]) -> list[list[File]]:
        """Files in groups between which no file is missing: a merged file would hide its loss."""
        missing = listed.missing_in(self._directory, tier, self._name)
        groups = [[parts[0]]]
        for before, after in pairwise(parts):
            if any(before.last < file.first and file.last < after.first for file in missing):
                groups.append([])
            groups[-1].append(after)
        return groups

    def _hour(self, hour: Sequence[File]) -> None:
        """An hour that is over: into the longer tiers, shortest first, then into one file."""
        whole_hour = File(hour[0].first, hour[-1].last, Path())
        fine = longer_sums = self._sum(hour)
        for tier in TIERS[1:]:
            longer_sums = longer_sums.longer(tier.seconds)
            if not any(whole_hour.within(file) for file in self._files(tier)):
                self._write(tier, whole_hour, [longer_sums])
        if len(hour) > 1:
            self._into_one(TIERS[0], hour, [fine])

    def _days(self, tier: Tier) -> None:
        """Hours of a day that is over, one after the other, so that never the whole of it is in
        memory."""
        merged = min(
            (merged_files[-1].last if merged_files else 0)
            for merged_files in (self._files(tier) for tier in TIERS[1:])
        )
        merged_hours = [file for file in self._files(tier) if file.last <= merged]
        days = [
            part
            for _, group in groupby(merged_hours, key=lambda each: self.about(each).first_s // DAY)
            for part in self._split(tier, list(group))
        ]
        for day, _ in pairwise(days):
            if len(day) > 1:
                width = max(self.about(hour).width for hour in day)
                self._into_one(tier, day, (tables.read(hour.path).wider(width) for hour in day))

    def age(
        self, until_s: int, keep_s: Mapping[str, int], floors: Mapping[str, int]
    ) -> dict[str, int]:
        """Remove what is older than `keep_s` before `until_s`, file by file, and all that is before
        `floors`.

        Sums of an hour that is not in the longest tier yet go with that alone: minutes and hours
        are still to be made of them. Returns by tier the second before which nothing is left, where
        that is known.
        """
        begins: dict[str, int] = {}
        least_s, pending = floors.get(TIERS[-1].name, 0), self._pending_s()
        for tier in TIERS:
            oldest, floor = (
                max(least_s, min(end_s, pending))
                for end_s in (until_s - keep_s[tier.name], floors.get(tier.name, 0))
            )
            for old_file in self._files(tier):
                about = self.about(old_file)
                end = about.last_s + tier.seconds
                if end <= max(oldest, floor):
                    self._remove([old_file])
                    begins[tier.name] = max(begins.get(tier.name, 0), end)
                elif about.first_s < floor:
                    self._cut(tier, old_file, floor)
            for file, content in listed.listed_in(self._directory, tier, self._name):
                is_old = content is not None and content.last_s + tier.seconds <= max(oldest, floor)
                if is_old and not file.path.exists():
                    listed.drop(file.path)
            if floor:
                begins[tier.name] = max(begins.get(tier.name, 0), floor)
        return begins

    def latest(self) -> dict[Tier, Content]:
        """The last file of each tier."""
        latest = {}
        for tier in TIERS:
            for file in self._files(tier)[-1:]:
                about = self.about(file)
                latest[tier] = Content(file.first, file.last, about.first_s, about.last_s)
        return latest

    def _pending_s(self) -> int:
        """The hour that is not in the longest tier yet: the second in which it begins."""
        long = self._files(TIERS[-1])
        begin = long[-1].last if long else 0
        begins_s = [self.about(file).first_s for file in self._files(TIERS[0]) if file.last > begin]
        return min(begins_s, default=2**62) // _HOUR * _HOUR

    def about(self, each: File) -> About:
        """What a file says of itself."""
        if each.path not in self._about:
            self._about[each.path] = tables.about(each.path)
        return self._about[each.path]

    def _files(self, tier: Tier) -> list[File]:
        return files(self._directory, tier, self._name)

    def _sum(self, parts: Sequence[File]) -> Sums:
        return tables.add([tables.read(part.path) for part in parts])

    def _into_one(self, tier: Tier, parts: Sequence[File], sums: Iterable[Sums]) -> None:
        self._write(tier, File(parts[0].first, parts[-1].last, Path()), sums)
        self._remove(parts)

    def _write(self, tier: Tier, whole: File, sums: Iterable[Sums]) -> None:
        listed.write(
            path_of(self._directory, tier, self._name, whole.first, whole.last),
            sums,
            self._statistic,
            self._source,
        )

    def _remove(self, gone: Sequence[File]) -> None:
        for file in gone:
            with telling(file.path, "remove what was kept"):
                listed.drop(file.path)
                remove(file.path)
            self._about.pop(file.path, None)

    def _cut(self, tier: Tier, each: File, floor: int) -> None:
        sums = tables.read(each.path)
        late = sums.table.filter(
            pa.array(np.asarray(sums.table["time_s"]) >= floor // tier.seconds * tier.seconds)
        )
        self._about.pop(each.path, None)
        if (
            listed.write(
                each.path,
                [Sums(late, sums.form, sums.width, sums.bits)],
                self._statistic,
                self._source,
            )
            is None
        ):
            self._remove([each])
