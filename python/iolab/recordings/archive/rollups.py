# SPDX-License-Identifier: Apache-2.0
"""Kept statistics of a recording as rows of an archive.

A file of a kept statistic has the sums of a range of segments. Its rows are added first, then listed
in `rollup_parts`, then the row of the recording says that they count. So a push that was killed is
completed by the next one, and rows that are not listed are in no answer. A file that was merged from
archived ones and later ones is pushed as a whole: it then counts instead of those.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from iolab.base.errors import FormatError, ResultsError

from . import tables
from .store import Archive, expressions
from .tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

SECOND = 10**9
_DAY_NS = 86_400 * SECOND
_SHIFT = 31
ROWS = 1 << 20
"""Rows of a data file, at most."""


@dataclass(frozen=True)
class KeptFile:
    """A file of a kept statistic.

    Attributes:
        first, last: its segments. read: its rows and the width of their equal buckets. They have
        `time_s`, and some of the columns of `tables.ROLLUPS`. FormatError where it is damaged,
        FileNotFoundError where it was merged meanwhile.
    """

    first: int
    last: int
    read: Callable[[], tuple[pa.Table, int]]


@dataclass(frozen=True)
class ArchivedStatistic:
    """A kept statistic, as the row of its recording has it.

    Attributes:
        statistic, source, added_ns: its name, source, and since when it was to be kept.
        through: segments up to this number count. first_ns, until_ns: their time.
        left_out: spans in which it was not kept; an end is None while that lasts.
        begins: by tier, the second before which nothing is archived.
    """

    statistic: str
    source: str
    added_ns: int
    through: int
    first_ns: int
    until_ns: int
    left_out: tuple[tuple[int, int | None], ...] = ()
    begins: Mapping[str, int] | None = None

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> ArchivedStatistic:
        """From JSON. KeyError, TypeError or ValueError where it is none."""
        spans = tuple(
            (int(first), None if until is None else int(until)) for first, until in data["left_out"]
        )
        begins = {str(tier): int(second) for tier, second in (data["begins"] or {}).items()}
        plain = {
            item.name: str(data[item.name]) if item.type == "str" else int(data[item.name])
            for item in fields(cls)
            if item.name not in ("left_out", "begins")
        }
        return cls(**plain, left_out=spans, begins=begins)  # type: ignore[arg-type]


@dataclass(frozen=True)
class KeptStatistic:
    """A kept statistic of a recording, to be pushed: its state, and its files by tier, ascending."""

    state: ArchivedStatistic
    files: Mapping[str, Sequence[KeptFile]]


@dataclass(frozen=True)
class Part:
    """Archived sums of a range of segments. number: as rows have it. width: of equal buckets."""

    number: int
    width: int
    until_ns: int

    @property
    def first(self) -> int:
        """The first segment."""
        return self.number >> _SHIFT

    @property
    def last(self) -> int:
        """The last segment."""
        return last_of(self.number)


@dataclass(frozen=True)
class PushedStatistics:
    """What a push of kept statistics did: what counts now, rows and bytes that were written."""

    statistics: Sequence[ArchivedStatistic] = ()
    rows: int = 0
    bytes: int = 0


Parts = Mapping[tuple[str, int, str], Sequence[Part]]
"""Parts by name, `added_ns` and tier of the statistic."""


def number_of(first: int, last: int) -> int:
    """The number of sums of segments in `segment`: larger for later first segments."""
    return first << _SHIFT | last


def last_of(number: int) -> int:
    """The last segment of the sums of a number."""
    return number & ((1 << _SHIFT) - 1)


def parse_statistics(kept: Sequence[Mapping[str, Any]], where: str) -> list[ArchivedStatistic]:
    """Kept statistics of the row of a recording. ResultsError where they can't be read."""
    try:
        return [ArchivedStatistic.parse(data) for data in kept]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"kept statistics can't be read: {error!r}", where=where) from None


def format_statistics(statistics: Sequence[ArchivedStatistic]) -> str:
    """As the row of a recording has them."""
    return json.dumps([asdict(statistic) for statistic in statistics])


def read_parts(archive: Archive, keys: Sequence[str]) -> dict[str, Parts]:
    """What is listed of recordings."""
    parts: dict[str, dict[tuple[str, int, str], list[Part]]] = {}
    where = expressions().In("recording", keys)
    for row in archive.read_if_present(tables.ROLLUP_PARTS, where).to_pylist():
        kind = row["statistic"], row["added_ns"], row["tier"]
        part = Part(row["segment"], row["width_bytes"], row["until_ns"])
        parts.setdefault(row["recording"], {}).setdefault(kind, []).append(part)
    return {key: dict(of_recording) for key, of_recording in parts.items()}


def effective_parts(parts: Sequence[Part], through: int) -> list[Part]:
    """The parts of one kind that count, ascending: each segment once, up to `through`."""
    effective: list[Part] = []
    settled = {part.number: part for part in parts if part.last <= through}.values()
    for part in sorted(settled, key=lambda part: (part.first, -part.last)):
        if not effective or part.last > effective[-1].last:
            effective.append(part)
    return effective


def replaced_parts(parts: Sequence[Part], through: int) -> list[Part]:
    """The parts of one kind that count no more, since another one has all their segments."""
    counting = {part.number for part in effective_parts(parts, through)}
    return [part for part in parts if part.last <= through and part.number not in counting]


def push_statistics(
    archive: Archive,
    host: str,
    key: str,
    statistics: Sequence[KeptStatistic],
    refused: dict[str, str],
) -> PushedStatistics:
    """Push what the archive lacks of kept statistics. The caller then writes the returned states into
    the row of the recording. `refused`: gets statistics with a damaged file, and why; they remain as
    they are in the archive. ResultsError where the archive can't be read or written."""
    where = expressions().EqualTo("recording", key)
    before = {
        (state.statistic, state.added_ns): state
        for row in archive.read(tables.RECORDINGS, where).to_pylist()
        for state in parse_statistics(json.loads(row["kept"] or "[]"), archive.url)
    }
    if not statistics:
        return PushedStatistics(list(before.values()))
    listed = read_parts(archive, [key]).get(key, {})
    states = dict(before)
    addresses: dict[str, list[str]] = {}
    new: dict[str, list[dict[str, Any]]] = {}
    rows = size = 0
    for statistic in statistics:
        kind = statistic.state.statistic, statistic.state.added_ns
        try:
            lines, files, written = _write(archive, host, key, statistic, listed)
        except FileNotFoundError:
            # it was merged meanwhile: the next push takes it
            continue
        except FormatError as error:
            refused[f"statistic {kind[0]}"] = str(error).splitlines()[0]
            continue
        states[kind] = _combine_states(statistic.state, before.get(kind), listed)
        for tier, of_tier in files.items():
            addresses.setdefault(tier, []).extend(of_tier)
        for line in lines:
            new.setdefault(line["tier"], []).append(line)
            rows += line["rows"]
        size += written
    for tier, tier_lines in new.items():
        _add(archive, tables.ROLLUPS[tier], key, tier_lines, addresses[tier])
    _list(archive, key, [line for tier_lines in new.values() for line in tier_lines])
    return PushedStatistics(list(states.values()), rows, size)


def _combine_states(
    state: ArchivedStatistic, before: ArchivedStatistic | None, listed: Parts
) -> ArchivedStatistic:
    """The state after a push: what is archived goes back further than what remains of the
    recording."""
    if before is None or state.through < before.through:
        # a copy of the recording may be older than what is archived
        return before or state
    begins = dict(before.begins or {})
    for tier, second in (state.begins or {}).items():
        parts = listed.get((state.statistic, state.added_ns, tier), ())
        # sums that were deleted before they were pushed
        if second * SECOND > max((part.until_ns for part in parts), default=-1):
            begins[tier] = second
    left_out = dict.fromkeys((*before.left_out, *state.left_out))
    ended = {first for first, until in left_out if until is not None}
    spans = tuple(
        sorted(
            (span for span in left_out if span[1] is not None or span[0] not in ended),
            key=lambda span: span[0],
        )
    )
    first_ns = min(before.first_ns, state.first_ns)
    return replace(state, first_ns=first_ns, left_out=spans, begins=begins)


def _write(
    archive: Archive, host: str, key: str, statistic: KeptStatistic, listed: Parts
) -> tuple[list[dict[str, Any]], dict[str, list[str]], int]:
    """Write data files of what is not listed yet. Returns (lines of `rollup_parts`, addresses by
    tier, bytes)."""
    state = statistic.state
    lines: list[dict[str, Any]] = []
    addresses: dict[str, list[str]] = {}
    size = 0
    for tier, files in statistic.files.items():
        parts = listed.get((state.statistic, state.added_ns, tier), ())
        through = max((part.last for part in parts), default=0)
        waiting: list[pa.Table] = []
        for file in files:
            if file.last <= through:
                continue
            table, width = file.read()
            rows = _rows(table, tables.ROLLUPS[tier], host, key, state, file, width)
            waiting.append(rows)
            times = rows["time_ns"].to_numpy()
            lines.append(
                {
                    "host": host,
                    "recording": key,
                    "statistic": state.statistic,
                    "added_ns": state.added_ns,
                    "tier": tier,
                    "segment": number_of(file.first, file.last),
                    "first_ns": int(times.min()),
                    "until_ns": int(times.max()) + _LENGTHS_NS[tier],
                    "width_bytes": width,
                    "rows": rows.num_rows,
                }
            )
            if sum(part.num_rows for part in waiting) >= ROWS:
                size += _write_files(archive, tier, key, waiting, addresses)
                waiting = []
        if waiting:
            size += _write_files(archive, tier, key, waiting, addresses)
    return lines, addresses, size


_LENGTHS_NS = {"1s": SECOND, "1m": 60 * SECOND, "1h": 3600 * SECOND}


def _rows(
    table: pa.Table,
    target: Table,
    host: str,
    key: str,
    state: ArchivedStatistic,
    file: KeptFile,
    width: int,
) -> pa.Table:
    """Rows of a file as the archive has them."""
    import numpy as np
    import pyarrow as pa

    count = table.num_rows
    times = table["time_s"].to_numpy() * SECOND
    zeros = pa.array(np.zeros(count, dtype=np.int32))
    constants: dict[str, Any] = {
        "host": host,
        "recording": key,
        "segment": number_of(file.first, file.last),
        "source": state.source,
        "statistic": state.statistic,
        "added_ns": state.added_ns,
        "width_bytes": width,
    }
    computed: dict[str, pa.Array] = {
        "day": pa.array(np.floor_divide(times, _DAY_NS).astype(np.int32)).cast(pa.date32()),
        "time_ns": pa.array(times),
    }
    columns = []
    for column in target.columns:
        if column.name in constants:
            values: Any = pa.array([constants[column.name]], column.type).take(zeros)
        elif column.name in computed:
            values = computed[column.name]
        elif column.name in table.column_names:
            values = table[column.name].cast(column.type)
        else:
            values = pa.nulls(count, column.type)
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=target.columns)


def _write_files(
    archive: Archive,
    tier: str,
    key: str,
    parts: Sequence[pa.Table],
    addresses: dict[str, list[str]],
) -> int:
    """Write rows of one source as data files, one for each day. Returns bytes."""
    import pyarrow as pa

    table = tables.ROLLUPS[tier]
    size = 0
    for rows in _by_day(pa.concat_tables(parts)):
        ordered = rows.sort_by([(name, "ascending") for name in table.order])
        for first in range(0, ordered.num_rows, ROWS):
            name = f"{table.name}-{key}-{uuid.uuid4().hex}.parquet"
            address, written = archive.write_file(table, name, ordered.slice(first, ROWS))
            addresses.setdefault(tier, []).append(address)
            size += written
    return size


def _by_day(rows: pa.Table) -> Iterator[pa.Table]:
    import pyarrow.compute as pc

    for day in sorted(rows["day"].unique().to_pylist()):
        yield rows.filter(pc.equal(rows["day"], day))


def _add(
    archive: Archive,
    table: Table,
    key: str,
    lines: Sequence[Mapping[str, Any]],
    addresses: Sequence[str],
) -> None:
    """Add rows in one commit. They replace rows of the same parts, of a killed push or of another
    process."""
    of = expressions()
    numbers: dict[tuple[str, int], list[int]] = {}
    for line in lines:
        numbers.setdefault((line["statistic"], line["added_ns"]), []).append(line["segment"])
    conditions = [
        of.And(
            of.EqualTo("recording", key),
            of.EqualTo("statistic", name),
            of.EqualTo("added_ns", added_ns),
            of.In("segment", of_statistic),
        )
        for (name, added_ns), of_statistic in numbers.items()
    ]
    of_these = conditions[0] if len(conditions) == 1 else of.Or(*conditions)

    def change(transaction: Any) -> None:
        if archive.read(table, of_these, ("segment",)).num_rows:
            transaction.delete(of_these)
        transaction.add_files(list(addresses), check_duplicate_files=False)

    archive.commit(table, change)


def _list(archive: Archive, key: str, lines: Sequence[Mapping[str, Any]]) -> None:
    """Add lines to `rollup_parts`, without those that another process listed meanwhile."""
    if not lines:
        return
    import pyarrow as pa

    def change(transaction: Any) -> None:
        listed = read_parts(archive, [key]).get(key, {})
        present = {(*kind, part.number) for kind, parts in listed.items() for part in parts}
        new = [
            line
            for line in lines
            if (line["statistic"], line["added_ns"], line["tier"], line["segment"]) not in present
        ]
        if new:
            transaction.append(pa.Table.from_pylist(new, schema=tables.ROLLUP_PARTS.columns))

    archive.commit(tables.ROLLUP_PARTS, change)
