# SPDX-License-Identifier: Apache-2.0
"""Delete rows of an archive by age: events and samples first, segment maps and roll-ups later, so that
old time is answered by coarser rows.

As in a recording, the oldest segments are deleted first. The table `deleted` says so in a commit of
its own before a row is deleted. Questions then use the maps, and the next call completes an
interrupted deletion. Lines of `segments` remain, so that no push adds the rows again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

from iolab.base.errors import UsageError

from . import tables
from .faults import explain_errors
from .maintenance import ChangedError, delete_files, read_files
from .rollups import Parts, last_of, parse_statistics, read_parts, replaced_parts
from .scan import DataFile, file_of
from .store import Archive, ArchivedRecording, expressions
from .tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

Tier = Literal["events", "maps", "1s", "1m", "1h"]
TIERS: tuple[Tier, ...] = get_args(Tier)
"""What is deleted by age. Samples are deleted with the events."""

LASTING: Sequence[tuple[Tier, ...]] = (("events", "maps"), ("1s", "1m", "1h"))
"""Tiers of which a later one has the sums of the earlier ones, and stays at least as long."""

TABLES: Mapping[str, tuple[Table, ...]] = {
    "events": (tables.EVENTS, tables.SAMPLES),
    "maps": (tables.COARSE_MAPS, tables.SEGMENT_MAPS),
    **{tier: (table,) for tier, table in tables.ROLLUPS.items()},
}

FILES = 64
"""Data files that are replaced in one commit."""
KINDS = 64
"""Statistics of recordings of which rows are deleted in one commit."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Removed:
    """What was deleted of a table by age.

    Attributes:
        recordings, segments: of which rows were deleted, for the first time. rows: deleted now.
        skipped: data files that another writer changed meanwhile; the next deletion takes them.
    """

    recordings: int = 0
    segments: int = 0
    rows: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Deleted:
    """What age deleted of a recording.

    Attributes:
        through: of the segments up to this number. until_ns: end of the last one.
        unmapped: numbers of segments that had no map of latencies when their events were deleted.
    """

    through: int = 0
    until_ns: int = 0
    unmapped: frozenset[int] = frozenset()


def check_ages(ages: Mapping[str, int]) -> None:
    """UsageError where a tier is unknown, or longer rows are deleted before shorter ones."""
    for tier, age_ns in ages.items():
        if tier not in TIERS:
            raise UsageError(
                f"there is no tier '{tier}'", where="--for", hint=f"there are {', '.join(TIERS)}"
            )
        if age_ns < 1:
            raise UsageError("an age is more than 0", where=f"--for {tier}")
    for tiers in LASTING:
        for shorter, longer in pairwise(tiers):
            if longer in ages and shorter not in ages:
                raise UsageError(
                    f"{longer} is deleted after {shorter}",
                    where="--for",
                    hint=f"name an age of {shorter} as well",
                )
            if shorter in ages and ages[shorter] > ages.get(longer, ages[shorter]):
                raise UsageError(f"{longer} is kept at least as long as {shorter}", where="--for")


def delete_by_age(
    archive: Archive,
    ages: Mapping[str, int],
    now_ns: int | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Removed]:
    """Delete the rows of segments of which the last row is older than the age of its tier in ns.
    Returns what was deleted, by table. Recordings with a clock of their own have no age.

    UsageError as `check_ages`. ResultsError where a table can't be read or written: the next call
    continues.
    """
    check_ages(ages)
    now = time.time_ns() if now_ns is None else now_ns
    archive.add_missing_tables()
    done: dict[str, Removed] = {}
    for tier in TIERS:
        if tier not in ages:
            continue
        before = read_deleted(archive)[tier]
        through, segments = _note(archive, tier, now - ages[tier], before, ages)
        for table in TABLES[tier]:
            rows, skipped = _delete_rows(archive, table, through, progress)
            done[table.name] = Removed(len(segments), sum(segments.values()), rows, skipped)
    return done


def delete_replaced(archive: Archive) -> dict[str, Removed]:
    """Delete roll-ups of which a merged file has all segments. Returns what was deleted, by table.

    Rows are deleted before their lines in `rollup_parts`: the next call completes an interrupted
    one, and no answer has these rows meanwhile. ResultsError where a table can't be read or written.
    """
    recordings = [item for item in archive.recordings() if item.kept]
    kinds_by_tier: dict[str, list[_Replaced]] = {}
    if recordings:
        parts_of = read_parts(archive, [item.recording for item in recordings])
        for item in recordings:
            for kind in _find_replaced(item, parts_of.get(item.recording, {}), archive.url):
                kinds_by_tier.setdefault(kind.tier, []).append(kind)
    done: dict[str, Removed] = {}
    for tier, kinds in kinds_by_tier.items():
        if tier not in tables.ROLLUPS:
            continue  # a newer iolab's
        rows = 0
        table = tables.ROLLUPS[tier]
        for group in _groups(kinds):
            rows += archive.replace(
                table, _any_of([kind.rows() for kind in group]), table.columns.empty_table()
            )
            archive.replace(
                tables.ROLLUP_PARTS,
                _any_of([kind.lines() for kind in group]),
                tables.ROLLUP_PARTS.columns.empty_table(),
            )
        done[table.name] = Removed(
            len({kind.recording for kind in kinds}), sum(len(kind.numbers) for kind in kinds), rows
        )
    return done


@dataclass(frozen=True)
class _Replaced:
    """Numbers of the parts of a statistic that a merged file replaced."""

    recording: str
    statistic: str
    added_ns: int
    tier: str
    numbers: tuple[int, ...]

    def rows(self) -> Any:
        """Their rows in the table of the tier."""
        of = expressions()
        return of.And(
            of.EqualTo("recording", self.recording),
            of.EqualTo("statistic", self.statistic),
            of.EqualTo("added_ns", self.added_ns),
            of.In("segment", self.numbers),
        )

    def lines(self) -> Any:
        """Their lines in `rollup_parts`."""
        of = expressions()
        return of.And(self.rows(), of.EqualTo("tier", self.tier))


def _find_replaced(item: ArchivedRecording, parts: Parts, url: str) -> Iterator[_Replaced]:
    through = {
        (state.statistic, state.added_ns): state.through
        for state in parse_statistics(item.kept, url)
    }
    for (statistic, added_ns, tier), listed in parts.items():
        numbers = replaced_parts(listed, through.get((statistic, added_ns), 0))
        if numbers:
            yield _Replaced(
                item.recording, statistic, added_ns, tier, tuple(part.number for part in numbers)
            )


def _groups(kinds: Sequence[_Replaced]) -> Iterator[Sequence[_Replaced]]:
    for first in range(0, len(kinds), KINDS):
        yield kinds[first : first + KINDS]


def _any_of(conditions: Sequence[Any]) -> Any:
    return conditions[0] if len(conditions) == 1 else expressions().Or(*conditions)


def read_deleted(
    archive: Archive, keys: Sequence[str] | None = None
) -> dict[Tier, dict[str, Deleted]]:
    """What age deleted, by tier and key of the recording. keys: None for all."""
    where = None if keys is None else expressions().In("recording", keys)
    deleted: dict[Tier, dict[str, Deleted]] = {tier: {} for tier in TIERS}
    for row in archive.read_if_present(tables.DELETED, where).to_pylist():
        # a newer iolab may have more tiers
        if row["tier"] in deleted:
            deleted[row["tier"]][row["recording"]] = Deleted(
                row["through"], row["until_ns"], frozenset(json.loads(row["unmapped"]))
            )
    return deleted


def _note(
    archive: Archive,
    tier: Tier,
    until_ns: int,
    before: Mapping[str, Deleted],
    ages: Mapping[str, int],
) -> tuple[dict[str, int], dict[str, int]]:
    """Note what is to be deleted. Returns the last number by recording, with those of earlier
    deletions, and how many segments are new."""
    hosts = {item.recording: item.host for item in archive.recordings() if item.clock == "realtime"}
    ends = _ends(archive, tier, ages)
    new: dict[str, Deleted] = {}
    segments: dict[str, int] = {}
    for key in hosts:
        previous = before.get(key, Deleted())
        through, last_ns = previous.through, previous.until_ns
        numbers: list[int] = []
        for number in sorted(number for number in ends.get(key, {}) if number > through):
            end_ns, stays_ns = ends[key][number]
            if end_ns + stays_ns >= until_ns:
                break
            through, last_ns = number, max(last_ns, end_ns + 1)
            numbers.append(number)
        if numbers:
            unmapped = previous.unmapped
            if tier == "events":
                unmapped |= _find_unmapped(archive, key, numbers)
            new[key], segments[key] = Deleted(through, last_ns, unmapped), len(numbers)
    if new:
        import pyarrow as pa

        of = expressions()
        rows = [
            {
                "host": hosts[key],
                "recording": key,
                "tier": tier,
                "through": item.through,
                "until_ns": item.until_ns,
                "unmapped": json.dumps(sorted(item.unmapped)),
            }
            for key, item in new.items()
        ]
        archive.replace(
            tables.DELETED,
            of.And(of.EqualTo("tier", tier), of.In("recording", sorted(new))),
            pa.Table.from_pylist(rows, schema=tables.DELETED.columns),
        )
    return {key: item.through for key, item in {**before, **new}.items()}, segments


Ends = dict[str, dict[int, tuple[int, int]]]
"""Time of the last row, and how much longer than their age rows stay (ns), by recording and segment,
or number of several segments."""


def _ends(archive: Archive, tier: Tier, ages: Mapping[str, int]) -> Ends:
    if tier in tables.ROLLUPS:
        return _ends_of_parts(archive, tier, ages)
    ends: Ends = {}
    columns = ("recording", "segment", "last_ns")
    for row in archive.read(tables.SEGMENTS, None, columns).to_pylist():
        of_recording = ends.setdefault(row["recording"], {})
        number = row["segment"]
        of_recording[number] = max((row["last_ns"], 0), of_recording.get(number, (0, 0)))
    return ends


def _ends_of_parts(archive: Archive, tier: Tier, ages: Mapping[str, int]) -> Ends:
    """As `_ends`, of roll-ups. Sums that the longest tier does not have yet stay as long as that."""
    longest = LASTING[-1][-1]
    more_ns = ages[longest] - ages[tier] if longest in ages else 2**63
    rows = archive.read(tables.ROLLUP_PARTS).to_pylist()
    has_through: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row["tier"] == longest:
            kind = row["recording"], row["statistic"], row["added_ns"]
            has_through[kind] = max(last_of(row["segment"]), has_through.get(kind, 0))
    ends: Ends = {}
    for row in rows:
        if row["tier"] != tier:
            continue
        kind = row["recording"], row["statistic"], row["added_ns"]
        is_pending = last_of(row["segment"]) > has_through.get(kind, 0)
        end = row["until_ns"] - 1, more_ns if is_pending else 0
        of_recording = ends.setdefault(row["recording"], {})
        of_recording[row["segment"]] = max(end, of_recording.get(row["segment"], (0, 0)))
    return ends


def _find_unmapped(archive: Archive, key: str, numbers: Sequence[int]) -> set[int]:
    """Segments with events that have no map of latencies."""
    of = expressions()
    of_these = of.And(
        of.EqualTo("recording", key),
        of.GreaterThanOrEqual("segment", numbers[0]),
        of.LessThanOrEqual("segment", numbers[-1]),
    )
    mapped = archive.read(
        tables.SEGMENT_MAPS, of.And(of_these, of.EqualTo("map", "io.latency")), ("segment",)
    )
    events = archive.read(
        tables.SEGMENTS, of.And(of_these, of.EqualTo("kind", "events")), ("segment",)
    )
    return set(events["segment"].to_pylist()) - set(mapped["segment"].unique().to_pylist())


def _delete_rows(
    archive: Archive, table: Table, through: Mapping[str, int], progress: Progress
) -> tuple[int, int]:
    """Delete the rows of segments up to a number by recording. Returns (rows, files skipped)."""
    if not through:
        return 0, 0
    of = expressions()
    where = of.And(
        of.In("recording", sorted(through)), of.LessThanOrEqual("segment", max(through.values()))
    )
    iceberg = archive.table(table)
    with explain_errors(archive.url, f"read table {table.name}"):
        tasks = list(iceberg.scan(row_filter=where).plan_files())
    rows = skipped = 0
    for first in range(0, len(tasks), FILES):
        progress(first, len(tasks))
        group = tasks[first : first + FILES]
        deleted = _replace_files(archive, table, group, through)
        rows += deleted or 0
        skipped += len(group) if deleted is None else 0
    progress(len(tasks), len(tasks))
    return rows, skipped


def _replace_files(
    archive: Archive, table: Table, tasks: Sequence[Any], through: Mapping[str, int]
) -> int | None:
    """Replace data files by files without the rows of segments up to a number by recording, in one
    commit. Returns the number of rows that were deleted; None where another writer changed files."""
    iceberg = archive.table(table)
    addresses: list[str] = []
    changed: list[Any] = []
    deleted = 0
    for task in tasks:
        file = file_of(task, table, iceberg.schema())
        if _is_whole(file, through):
            deleted += file.rows
            changed.append(task)
            continue
        rows = read_files(archive, table, iceberg, [task])
        kept = rows.filter(_are_kept(rows, through))
        if kept.num_rows < rows.num_rows:
            deleted += rows.num_rows - kept.num_rows
            changed.append(task)
            name = f"{table.name}-kept-{uuid.uuid4().hex}.parquet"
            addresses += [archive.write_file(table, name, kept)[0]] if kept.num_rows else []
    if not changed:
        return 0
    expected = {task.file.file_path for task in changed}

    def change(transaction: Any) -> None:
        present = {task.file.file_path for task in archive.table(table).scan().plan_files()}
        if not expected <= present:
            raise ChangedError
        with transaction.update_snapshot().overwrite() as update:
            for task in changed:
                update.delete_data_file(task.file)
        if addresses:
            transaction.add_files(addresses, check_duplicate_files=False)

    try:
        archive.commit(table, change)
    except ChangedError:
        delete_files(iceberg.io, addresses)
        return None
    return deleted


def _is_whole(file: DataFile, through: Mapping[str, int]) -> bool:
    """Whether metadata shows that all rows of a file are to be deleted."""
    if file.recordings is None or file.segments is None or file.has_deletes:
        return False
    first, last = file.recordings
    return bool(first == last and file.segments[1] <= through.get(first, -1))


def _are_kept(rows: pa.Table, through: Mapping[str, int]) -> Any:
    """Which rows remain."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pa.array(list(through))
    numbers = pa.array([*through.values(), -1])
    place = pc.fill_null(pc.index_in(rows["recording"], keys), len(keys))
    return pc.greater(rows["segment"], pc.take(numbers, place))
