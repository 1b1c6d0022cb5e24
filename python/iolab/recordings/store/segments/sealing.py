# SPDX-License-Identifier: Apache-2.0
"""Sealing: record batches to one sealed Parquet file: sorted by source, then time, a row group to one source,
with facts of its content. Default maps: what heat maps of whole segments need, summed by second
while a segment is sealed, and exact.

A map has one row for each second, source, operation, device and bucket. Latency and size are on the
grid of 6 bits. Offsets are in at most 1024 equal buckets from 0, of a width that is a power of two
and the same for a segment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from iolab import __version__, _core

from ..base.grids import WITHOUT
from ..base.layout import map_file, replacing, sealed_file, telling
from ..base.schema import ENCODINGS, EVENTS, LATENCY_BITS, NAMED, SAMPLES
from .segments import MAP_NAMES, note_segment, own_facts

ROWS = 2**20
"""Rows of a row group at most; also of what is sorted at a time, so that memory stays flat."""

LARGEST = 100
"""Names of a dimension with I/Os in a segment's facts; the rest are one number."""

KEY = "iolab"
"""Key of the facts in the Parquet file's metadata."""


def stretches(batches: Sequence[pa.RecordBatch], rows: int = ROWS) -> Iterator[pa.Table]:
    """The batches as tables of at most `rows` rows, each column in one piece, names in one
    dictionary a column."""
    record_batches: list[pa.RecordBatch] = []
    batch_rows = 0
    for batch_of_all in batches:
        for start in range(0, batch_of_all.num_rows, rows):
            batch = batch_of_all.slice(start, rows)
            if record_batches and batch_rows + batch.num_rows > rows:
                yield _one_piece(record_batches)
                record_batches, batch_rows = [], 0
            record_batches.append(batch)
            batch_rows += batch.num_rows
    if record_batches:
        yield _one_piece(record_batches)


def _one_piece(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()


def by_source(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Each source's rows in the order of time, equal times in the order they came; sources by name.
    Columns are in one piece."""
    source = table.column("source").chunk(0)
    codes = np.asarray(source.indices)
    names = source.dictionary.to_pylist()
    used = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    for code in sorted(used, key=lambda code: str(names[code])):
        part = table if len(used) == 1 else table.take(pa.array(np.flatnonzero(codes == code)))
        times = numbers(part, "time_ns")
        if np.any(times[1:] < times[:-1]):
            part = part.take(pa.array(np.argsort(times, kind="stable")))
        yield str(names[code]), part.combine_chunks()


def numbers(table: pa.Table, column: str) -> npt.NDArray[Any]:
    """The values of a column in one piece; where there is none, zero."""
    array = table.column(column).chunk(0)
    return np.asarray(array.fill_null(0) if array.null_count else array)


def write_parquet(
    path: Path,
    schema: pa.Schema,
    parts: Iterable[tuple[str, pa.Table]],
    facts: Callable[[], Mapping[str, Any]],
) -> None:
    """Write tables of one source each, then the facts, requested after the last part."""
    encodings = {field.name: ENCODINGS[field.name] for field in schema if field.name in ENCODINGS}
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=3,
        column_encoding=encodings,
        dictionary_pagesize_limit=16 << 20,
        write_page_checksum=True,
        use_dictionary=[field.name for field in schema if field.name not in encodings],
    ) as writer:
        for _, part in parts:
            writer.write_table(part.cast(schema), row_group_size=ROWS)
        writer.add_key_value_metadata({KEY: json.dumps(facts())})


class Tally:
    """What a segment holds, counted while it is sealed: span, I/Os by source and by name."""

    def __init__(self) -> None:
        self.rows = 0
        self.sources: dict[str, dict[str, Any]] = {}
        self._names: dict[str, dict[str, int]] = {name: {} for name in ("op", *NAMED)}

    def take(self, source: str, part: pa.Table) -> None:
        """Count rows of one source in the order of time."""
        if not part.num_rows:
            return
        counted = self.count(source, part)
        if "count" in part.column_names:
            counts: npt.NDArray[Any] | None = numbers(part, "count")
            assert counts is not None
            if int(counts.sum()) == part.num_rows and int(counts.max(initial=1)) == 1:
                counts = None
            for name, totals in self._names.items():
                _count_names(part.column(name).chunk(0), counts, totals)
            _keep_largest(part, counted)

    def count(self, source: str, part: pa.Table) -> dict[str, Any]:
        """Count rows as `take` does, without names and sizes. Returns what is counted of their
        source."""
        times = numbers(part, "time_ns")
        events = part.num_rows
        if "count" in part.column_names:
            events = int(numbers(part, "count").sum())
        counted = self.sources.setdefault(
            source, {"events": 0, "rows": 0, "first_ns": int(times[0]), "last_ns": int(times[-1])}
        )
        self.rows += part.num_rows
        counted |= {
            "events": counted["events"] + events,
            "rows": counted["rows"] + part.num_rows,
            "first_ns": min(counted["first_ns"], int(times[0])),
            "last_ns": max(counted["last_ns"], int(times[-1])),
        }
        return counted

    def span(self) -> dict[str, Any]:
        """Rows, first_ns, last_ns and sources, as `facts` has them."""
        return {
            "rows": self.rows,
            "first_ns": min((source["first_ns"] for source in self.sources.values()), default=None),
            "last_ns": max((source["last_ns"] for source in self.sources.values()), default=None),
            "sources": self.sources,
        }

    def facts(self) -> dict[str, Any]:
        """As plain data: rows, first_ns, last_ns, sources, names, distinct (names), other (I/Os of
        names beyond the largest).

        Of events a source has `largest_size` and `largest_latency` by operation as well, where
        there is one.
        """
        ranked = {
            name: sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            for name, counts in self._names.items()
            if counts
        }
        return {
            **self.span(),
            "names": {name: dict(pairs[:LARGEST]) for name, pairs in ranked.items()},
            "distinct": {name: len(pairs) for name, pairs in ranked.items()},
            "other": {
                name: sum(count for _, count in pairs[LARGEST:])
                for name, pairs in ranked.items()
                if len(pairs) > LARGEST
            },
        }


def _count_names(column: pa.Array, counts: npt.NDArray[Any] | None, held: dict[str, int]) -> None:
    """Add the I/Os of each name in a column to `held`."""
    if column.null_count == len(column):
        return
    valid = None if not column.null_count else np.asarray(pc.is_valid(column))
    codes = np.asarray(column.indices.fill_null(0) if column.null_count else column.indices)
    if valid is not None:
        codes = codes[valid]
        counts = counts[valid] if counts is not None else None
    names = column.dictionary.to_pylist()
    totals = (
        np.bincount(codes, minlength=len(names))
        if counts is None
        else _exact_sums(codes, counts, len(names))
    )
    for code in np.flatnonzero(totals):
        held[names[code]] = held.get(names[code], 0) + int(totals[code])


def _keep_largest(part: pa.Table, seen: dict[str, Any]) -> None:
    """Keep the largest size, and the largest latency of each operation."""
    size = pc.max(part.column("size_bytes")).as_py()
    if size is not None:
        seen["largest_size"] = max(size, seen.get("largest_size", 0))
    latency, op = part.column("latency_ns").chunk(0), part.column("op").chunk(0)
    if latency.null_count < len(latency):
        codes, values, is_valid = (
            np.asarray(op.indices),
            numbers(part, "latency_ns"),
            np.asarray(latency.is_valid()),
        )
        largest = seen.setdefault("largest_latency", {})
        for code, name in enumerate(op.dictionary.to_pylist()):
            own = values[(codes == code) & is_valid]
            if len(own):
                largest[name] = max(int(own.max()), largest.get(name, 0))


def _exact_sums(codes: npt.NDArray[Any], counts: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    totals = np.zeros(length, dtype=np.uint64)
    np.add.at(totals, codes, counts)
    return totals


NAMES = ("io.latency", "io.offset", "io.size")

LEAST_WIDTH, MOST_BUCKETS = 4096, 1024

SCHEMA = pa.schema(
    [
        pa.field("second_ns", pa.int64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("op", pa.string(), nullable=False),
        pa.field("device", pa.string()),
        pa.field("index", pa.uint32(), nullable=False),
        pa.field("count", pa.uint64(), nullable=False),
        pa.field("time_ns_sum", pa.uint64(), nullable=False),
    ]
)
"""second_ns is the start of the second; count the I/Os; time_ns_sum their latencies, those without
one as none."""

_SECOND = 1_000_000_000


def offset_width(largest: int) -> int:
    """The width of offset buckets where `largest` is the largest offset."""
    width = LEAST_WIDTH
    while largest // width >= MOST_BUCKETS:
        width *= 2
    return width


class Maps:
    """The default maps of one segment, filled source by source."""

    def __init__(self, largest_offset: int) -> None:
        self.width = offset_width(largest_offset)
        self._parts: dict[str, list[pa.Table]] = {name: [] for name in NAMES}
        self._events = Tally()

    def take(self, source: str, part: pa.Table) -> None:
        """Count events of one source, in the order of time, each column in one piece."""
        if not part.num_rows:
            return
        self._events.count(source, part)
        seconds = np.floor_divide(numbers(part, "time_ns"), _SECOND)
        steps = np.concatenate([[False], seconds[1:] != seconds[:-1]])
        columns = np.cumsum(steps)
        op, device = part.column("op").chunk(0), part.column("device").chunk(0)
        devices = len(device.dictionary) + 1
        # the last code is that of events without a device
        device_codes = np.asarray(device.indices.fill_null(devices - 1)).astype(np.int64)
        who = (columns * len(op.dictionary) + np.asarray(op.indices)) * devices + device_codes
        counts = numbers(part, "count")
        spent = _spent(numbers(part, "latency_ns"), counts)
        starts = seconds[np.concatenate([[0], np.flatnonzero(steps)])] * _SECOND
        for name, index in (
            ("io.latency", _latency_index(part)),
            ("io.offset", self._offset_index(part)),
            ("io.size", _size_index(part)),
        ):
            distinct, places = _dense(index)
            grouped = (
                pa.table({"key": who * len(distinct) + places, "count": counts, "spent": spent})
                .group_by("key", use_threads=False)
                .aggregate([("count", "sum"), ("spent", "sum")])
            )
            keys = grouped.column("key").to_numpy()
            order = np.argsort(keys)
            keys, place = np.divmod(keys[order], len(distinct))
            keys, device_code = np.divmod(keys, devices)
            column, op_code = np.divmod(keys, len(op.dictionary))
            device_indices = pa.array(device_code.astype(np.int32), mask=device_code == devices - 1)
            self._parts[name].append(
                pa.table(
                    [
                        starts[column],
                        pa.array([source]).take(pa.array(np.zeros(len(keys), dtype=np.int32))),
                        op.dictionary.take(pa.array(op_code)),
                        device.dictionary.take(device_indices),
                        distinct[place].astype(np.uint32),
                        grouped.column("count_sum").to_numpy()[order],
                        grouped.column("spent_sum").to_numpy()[order],
                    ],
                    schema=SCHEMA,
                )
            )

    def table(self, name: str) -> pa.Table:
        """One map, equal rows of different stretches added."""
        parts = self._parts[name]
        if len(parts) < 2:
            return parts[0] if parts else SCHEMA.empty_table()
        keys = ["source", "second_ns", "op", "device", "index"]
        summed = (
            pa.concat_tables(parts)
            .group_by(keys, use_threads=False)
            .aggregate([("count", "sum"), ("time_ns_sum", "sum")])
        )
        summed = (
            summed.rename_columns([*keys, "count", "time_ns_sum"]).select(SCHEMA.names).cast(SCHEMA)
        )
        return summed.sort_by([(key, "ascending") for key in keys])

    def write(self, path: Path, name: str) -> None:
        """Write one map as Parquet; its metadata has the width of offset buckets, and span and number
        of the events by source."""
        facts = {
            "schema": 1,
            "events": self._events.span(),
            **({"width": self.width} if name == "io.offset" else {"bits": LATENCY_BITS}),
        }
        write_map(path, self.table(name).replace_schema_metadata({KEY: json.dumps(facts)}))

    def _offset_index(self, part: pa.Table) -> npt.NDArray[np.uint64]:
        return _or_without(
            part, "offset_bytes", numbers(part, "offset_bytes") // np.uint64(self.width)
        )


def write_map(where: Path | pa.BufferOutputStream, table: pa.Table) -> None:
    """Write a map as the native core reads it."""
    with map_writer(where, table.schema) as writer:
        writer.write_table(table)


def map_writer(where: Path | pa.BufferOutputStream, schema: pa.Schema) -> pq.ParquetWriter:
    """Writes a map as the native core reads it: columns of `SCHEMA`, and other numbers."""
    names = ("source", "op", "device", "count")
    return pq.ParquetWriter(
        where,
        schema,
        compression="zstd",
        use_dictionary=[name for name in names if name in schema.names],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name not in names},
        write_page_checksum=True,
        data_page_version="1.0",
    )


def _latency_index(part: pa.Table) -> npt.NDArray[np.uint64]:
    return _or_without(part, "latency_bucket", numbers(part, "latency_bucket").astype(np.uint64))


def _size_index(part: pa.Table) -> npt.NDArray[np.uint64]:
    """Few sizes occur, so each is put on the grid once."""
    distinct, places = _dense(numbers(part, "size_bytes"))
    return _or_without(
        part,
        "size_bytes",
        np.array([_core.grid_index(int(size), LATENCY_BITS) for size in distinct], dtype=np.uint64)[
            places
        ],
    )


def _or_without(
    part: pa.Table, column: str, index: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    array = part.column(column).chunk(0)
    return (
        np.where(np.asarray(array.is_null()), np.uint64(WITHOUT), index)
        if array.null_count
        else index
    )


def _dense(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """(different values ascending, place of each value among them)."""
    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return distinct[order], ranks[np.asarray(encoded.indices)]


def _spent(
    latency: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Latency times count; where sums could leave 64 bits, as no real trace makes them, each is cut
    so that they can't."""
    if not len(latency):
        return latency
    most = (2**64 - 1) // len(latency)
    if int(latency.max()) * int(counts.max()) <= most:
        return latency * counts
    return np.where(
        latency > np.uint64(most) // np.maximum(counts, np.uint64(1)),
        np.uint64(most),
        latency * counts,
    )


def write_segment(
    directory: Path,
    number: int,
    events: Sequence[pa.RecordBatch],
    samples: Sequence[pa.RecordBatch],
    losses: Mapping[str, int],
    label: str | None = None,
) -> dict[str, Any]:
    """Seal batches under a number: default maps, then events, then samples; each is there as a
    whole or not at all.

    Returns the facts. ResultsError where it can't be written, a full disk above all; what was there
    remains.
    """
    facts: dict[str, Any] = {}
    with telling(directory, "seal a segment"):
        if any(batch.num_rows for batch in events):
            about = _about_samples(directory, number, samples)
            facts = _write_events(directory, number, events, losses, label, about)
        if any(batch.num_rows for batch in samples):
            has_events = bool(facts) or sealed_file(directory, number, "events").exists()
            facts["samples"] = _write_samples(directory, number, samples, has_events)
        if facts:
            note_segment(directory, number, facts)
    return facts


def _write_events(
    directory: Path,
    number: int,
    batches: Sequence[pa.RecordBatch],
    losses: Mapping[str, int],
    label: str | None,
    samples: Mapping[str, Any] | None,
) -> dict[str, Any]:

    maps, tally = Maps(_largest_offset(batches)), Tally()

    def facts() -> dict[str, Any]:
        facts_of_events = {
            "schema": 1,
            "iolab": __version__,
            "number": number,
            **tally.facts(),
            "offset_width": maps.width,
            "label": label,
            "samples": samples,
        }
        for source, counts in facts_of_events["sources"].items():
            counts["losses"] = losses.get(source, 0)
        return facts_of_events

    def parts() -> Iterator[tuple[str, pa.Table]]:
        for source, part in _count_parts(batches, tally):
            maps.take(source, part)
            yield source, part

    with ExitStack() as pending:
        # maps first: a map without its segment is not looked at while the hot file is there
        path = pending.enter_context(replacing(sealed_file(directory, number, "events")))
        write_parquet(path, EVENTS, parts(), facts)
        for name in MAP_NAMES:
            with replacing(map_file(directory, number, name)) as temporary:
                maps.write(temporary, name)
    return facts()


def _about_samples(
    directory: Path, number: int, batches: Sequence[pa.RecordBatch]
) -> dict[str, Any] | None:
    """What the samples of a segment are, for its events to say; None where it has none."""

    path = sealed_file(directory, number, "samples")
    if path.exists():
        about = own_facts(path)
    elif any(batch.num_rows for batch in batches):
        tally = Tally()
        for _ in _count_parts(batches, tally):
            pass
        about = tally.facts()
    else:
        return None
    return {name: about[name] for name in ("rows", "first_ns", "last_ns", "sources")}


def _write_samples(
    directory: Path, number: int, batches: Sequence[pa.RecordBatch], has_events: bool
) -> dict[str, Any]:

    tally = Tally()

    def facts() -> dict[str, Any]:
        facts_of_samples = tally.facts()
        return {
            "schema": 1,
            "number": number,
            "has_events": has_events,
            **{name: facts_of_samples[name] for name in ("rows", "first_ns", "last_ns", "sources")},
        }

    with replacing(sealed_file(directory, number, "samples")) as path:
        write_parquet(path, SAMPLES, _count_parts(batches, tally), facts)
    return facts()


def _count_parts(batches: Sequence[pa.RecordBatch], tally: Any) -> Iterator[tuple[str, pa.Table]]:

    for table in stretches(batches):
        for source, part in by_source(table):
            tally.take(source, part)
            yield source, part


def _largest_offset(batches: Sequence[pa.RecordBatch]) -> int:

    return max((pc.max(batch.column("offset_bytes")).as_py() or 0 for batch in batches), default=0)
