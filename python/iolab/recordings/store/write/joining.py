# SPDX-License-Identifier: Apache-2.0
"""Joins default maps of segments without events. Otherwise a month has a hundred thousand files of a
minute each, and a question about it opens all of one kind.

First the maps of consecutive segments that begin within 1000 s become one, later those of 100,000 s
(about a day). Each joined map has coarser files of 100 and 1000 s, as answers have columns of 1, 2 or
5 times a power of ten. The sums are the same, only offset buckets become as wide as the widest.

New files are written first, then the line that names them, then the replaced files are deleted. A
kill at any time leaves either the old or the new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from iolab import _core
from iolab.base.errors import FormatError
from iolab.base.files import map_regular, remove

from ..base.grids import WITHOUT
from ..base.layout import SEGMENTS, STEPS_S, joined_map_file, replacing, telling
from ..base.metadata import Facts
from ..ledger import Numbered, Part, append_line, check, known_damage
from ..segments.sealing import KEY, SCHEMA, map_writer
from ..segments.segments import (
    MAP_NAMES,
    first_of,
    line_of_joined,
    map_paths,
    maps_of_line,
    part_of,
    read_list,
)
from .retention import Retention

SECOND = 10**9
LEVELS_NS = (1000 * SECOND, 100_000 * SECOND)
"""Maps are joined within multiples of the first, then those within multiples of the second."""
MOST_BYTES = 64 << 20
"""Bytes of the maps that become one, of all three kinds together."""
ROWS = 1 << 17
"""Rows of a row group: what is read of a file for a short time."""

JOINED_SCHEMA = SCHEMA.insert(0, pa.field("segment", pa.int64(), nullable=False))


@dataclass(frozen=True)
class MapGroup:
    """Maps that become one: consecutive lines of segments without events, by number."""

    lines: Mapping[int, Mapping[str, Any]]

    @property
    def last(self) -> int:
        """The last segment."""
        return max(self.lines)

    @property
    def first(self) -> int:
        """The first segment."""
        number = min(self.lines)
        return first_of(self.lines[number], number)

    @property
    def facts(self) -> dict[str, Any]:
        """Span and sources of all, and the width of their offset buckets."""
        lines = self.lines.values()
        return {
            "first_ns": min(line["first_ns"] for line in lines),
            "last_ns": max(line["last_ns"] for line in lines),
            "sources": {source: {} for line in lines for source in line["sources"]},
            "offset_width": max(line["offset_width"] for line in lines),
        }


class MapJoiner:
    """Joins default maps of a recording, for its writer."""

    def __init__(
        self,
        directory: Path,
        facts: Facts,
        retention: Retention,
        guard: AbstractContextManager[Any],
    ) -> None:
        """`guard`: held while the list of segments or the retention is used."""
        self._directory, self._facts = directory, facts
        self._retention, self._guard = retention, guard
        self._refused: set[int] = set()

    def join(self, is_going: Callable[[], bool] = lambda: True) -> int:
        """Join maps as long as there are some and `is_going`. Returns how many joined maps were made.
        ResultsError where the disk refuses; nothing is lost then."""
        joins = 0
        while is_going():
            with self._guard:
                mapped = self._list_mapped()
            segments = read_list(self._directory).content
            group = find_group(
                self._directory, segments, self._facts.dropped_through, mapped, self._refused
            )
            if group is None:
                break
            try:
                with telling(self._directory, "join its maps"):
                    line = write_joined(self._directory, group)
            except (FormatError, ValueError, pa.ArrowException):
                # these are read one by one as before
                self._refused.add(group.last)
                continue
            replaced = [
                path
                for number, line_of_map in group.lines.items()
                for path in map_paths(self._directory, line_of_map, number)
            ]
            with self._guard, telling(self._directory / SEGMENTS, "add a line"):
                if group.lines.keys() <= self._list_mapped():
                    append_line(self._directory / SEGMENTS, line, durable=True)
                    self._retention.note_joined(self._facts, line)
                else:
                    # retention deleted some meanwhile
                    replaced = map_paths(self._directory, line, group.last)
            with telling(self._directory, "remove joined maps"):
                for path in replaced:
                    remove(path)
            joins += 1
        return joins

    def _list_mapped(self) -> set[int]:
        return self._retention.list_mapped(self._facts) if self._facts.dropped_through else set()


def find_group(
    directory: Path,
    segments: Numbered,
    through: int,
    mapped: Collection[int],
    refused: Collection[int] = (),
) -> MapGroup | None:
    """The next maps to join; None where there are none.

    Damaged and incomplete maps remain single, and so do the latest ones, as more may follow.

    Args:
        through: number of the last deleted segment. mapped: numbers of those with maps.
        refused: last segments of groups that can't be joined.
    """
    numbers = sorted(number for number in segments.lines if number <= through)
    for level_ns in LEVELS_NS:
        group: list[int] = []
        block: tuple[int, ...] | None = None
        total = 0
        for number in numbers:
            line = segments.lines[number]
            parts = maps_of_line(directory, line, number)
            if not parts:
                # it had no events
                continue
            size = sum(part.bytes or 0 for part in parts)
            is_single = number not in segments.firsts
            next_block = None
            is_joinable = number in mapped and _is_joinable(line, parts)
            if is_joinable and (is_single or level_ns != LEVELS_NS[0]):
                next_block = (line["first_ns"] // level_ns,)
            if next_block != block or total + size > MOST_BYTES:
                if len(group) > 1 and group[-1] not in refused:
                    return MapGroup({number: segments.lines[number] for number in group})
                group, total, block = [], 0, next_block
            if next_block is not None:
                group.append(number)
                total += size
    return None


def _is_joinable(line: Mapping[str, Any], parts: Sequence[Part]) -> bool:
    return (
        len(parts) == len(MAP_NAMES)
        and all(part.crc32 is not None and part.bytes is not None for part in parts)
        and not any(known_damage(part.path) for part in parts)
        and not line.get("lost")
        and all(isinstance(line.get(name), int) for name in ("first_ns", "last_ns", "offset_width"))
        and isinstance(line.get("sources"), dict)
    )


def write_joined(directory: Path, group: MapGroup) -> dict[str, Any]:
    """Write the files of joined maps. Returns their line, which is to be appended.

    DamagedError where a map is not what was written, FormatError or ValueError where it can't be
    joined, OSError where the disk refuses.
    """
    for name in MAP_NAMES:
        _write_map(directory, group, name)
    return line_of_joined(directory, group.first, group.last, group.facts)


def _write_map(directory: Path, group: MapGroup, name: str) -> None:
    facts = group.facts
    metadata = {
        "schema": 1,
        "segments": [group.first, group.last],
        "events": {fact: facts[fact] for fact in ("first_ns", "last_ns", "sources")},
        **({"width": facts["offset_width"]} if name == "io.offset" else {}),
    }
    fine_schema, coarse_schema = (
        schema.with_metadata({KEY: json.dumps(metadata)}) for schema in (JOINED_SCHEMA, SCHEMA)
    )
    with ExitStack() as files:
        # the one with all rows is in place last
        place = joined_map_file(directory, group.first, group.last, name)
        fine = files.enter_context(replacing(place))
        with map_writer(fine, fine_schema) as writer:
            for rows in _row_groups(_rows(directory, group, name)):
                writer.write_table(rows.replace_schema_metadata(fine_schema.metadata), ROWS)
        for step_s in STEPS_S:
            place = joined_map_file(directory, group.first, group.last, name, step_s)
            coarse = files.enter_context(replacing(place))
            with map_writer(coarse, coarse_schema) as writer:
                for source in facts["sources"]:
                    rows = _sums(fine, source, step_s).replace_schema_metadata(
                        coarse_schema.metadata
                    )
                    writer.write_table(rows, ROWS)


def _rows(directory: Path, group: MapGroup, name: str) -> Iterator[pa.Table]:
    """The rows of all maps, with their segments, in their order."""
    width = group.facts["offset_width"]
    for number, line in sorted(group.lines.items()):
        part = part_of(directory, line, number, name)
        check([part])
        shift = (width // line["offset_width"]).bit_length() - 1 if name == "io.offset" else 0
        with pq.ParquetFile(pa.BufferReader(map_regular(part.path))) as file:
            for row_group in range(file.num_row_groups):
                table = file.read_row_group(row_group, use_threads=False)
                if "segment" not in table.column_names:
                    numbers = np.full(table.num_rows, number, dtype=np.int64)
                    table = table.append_column("segment", pa.array(numbers))
                if shift:
                    index = table.column("index").to_numpy()
                    index = np.where(index == WITHOUT, index, index >> np.uint32(shift))
                    place = table.schema.get_field_index("index")
                    table = table.set_column(place, SCHEMA.field("index"), pa.array(index))
                yield table.select(JOINED_SCHEMA.names).cast(JOINED_SCHEMA)


def _row_groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Tables as longer ones of about as many rows as a row group."""
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(part.num_rows for part in pending) >= ROWS:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


def _sums(path: Path, source: str, step_s: int) -> pa.Table:
    """Rows of a map of one source, summed up by longer columns."""
    columns, keys = _core.sum_maps(
        [(path, 0)],
        source,
        step_s * SECOND,
        (-(2**63), 2**63 - 1),
        by=["index", "op", "device"],
        is_timed=True,
        threads=1,
    )
    kinds = ("<u4", "<i8", "<u4", "<u4", "<i8", "<i8")
    _, column, bucket, key, ios, spent = (
        np.frombuffer(data, dtype=kind) for data, kind in zip(columns, kinds, strict=True)
    )
    ops, devices = (
        pa.array([names[place] for names in keys], pa.string()).take(pa.array(key))
        for place in range(2)
    )
    sources = pa.array([source]).take(pa.array(np.zeros(len(key), dtype=np.int32)))
    return pa.table(
        [
            column * (step_s * SECOND),
            sources,
            ops,
            devices,
            bucket,
            ios.astype(np.uint64),
            spent.astype(np.uint64),
        ],
        schema=SCHEMA,
    )
