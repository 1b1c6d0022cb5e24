# SPDX-License-Identifier: Apache-2.0
"""Record batches to one sealed Parquet file: sorted by source, then time, a row group to one
source, with what it holds beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..base.schema import ENCODINGS, NAMED

ROWS = 2**20
"""Rows of a row group at most; also of what is sorted at a time, so that memory stays flat."""

LARGEST = 100
"""Names of a dimension whose I/Os a segment's facts tell; the rest are one number."""

KEY = "iolab"
"""Key of the facts in the Parquet file's metadata."""


def stretches(batches: Sequence[pa.RecordBatch], rows: int = ROWS) -> Iterator[pa.Table]:
    """The batches as tables of at most `rows` rows, each column in one piece, names in one
    dictionary a column."""
    taken: list[pa.RecordBatch] = []
    held = 0
    for whole in batches:
        for start in range(0, whole.num_rows, rows):
            batch = whole.slice(start, rows)
            if taken and held + batch.num_rows > rows:
                yield _one_piece(taken)
                taken, held = [], 0
            taken.append(batch)
            held += batch.num_rows
    if taken:
        yield _one_piece(taken)


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
    """Write tables of one source each, then the facts, asked for after the last part."""
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
    """What a segment holds, counted while it is sealed: span, I/Os by source, and whose they are."""

    def __init__(self) -> None:
        self.rows = 0
        self.sources: dict[str, dict[str, Any]] = {}
        self._names: dict[str, dict[str, int]] = {name: {} for name in ("op", *NAMED)}

    def take(self, source: str, part: pa.Table) -> None:
        """Count rows of one source in the order of time."""
        if not part.num_rows:
            return
        seen = self.count(source, part)
        if "count" in part.column_names:
            counts: npt.NDArray[Any] | None = numbers(part, "count")
            assert counts is not None
            if int(counts.sum()) == part.num_rows and int(counts.max(initial=1)) == 1:
                counts = None
            for name, totals in self._names.items():
                _count_names(part.column(name).chunk(0), counts, totals)
            _keep_largest(part, seen)

    def count(self, source: str, part: pa.Table) -> dict[str, Any]:
        """Count rows as `take` does, without names and sizes. Returns what is counted of their
        source."""
        times = numbers(part, "time_ns")
        events = part.num_rows
        if "count" in part.column_names:
            events = int(numbers(part, "count").sum())
        seen = self.sources.setdefault(
            source, {"events": 0, "rows": 0, "first_ns": int(times[0]), "last_ns": int(times[-1])}
        )
        self.rows += part.num_rows
        seen |= {
            "events": seen["events"] + events,
            "rows": seen["rows"] + part.num_rows,
            "first_ns": min(seen["first_ns"], int(times[0])),
            "last_ns": max(seen["last_ns"], int(times[-1])),
        }
        return seen

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
            name: sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))
            for name, held in self._names.items()
            if held
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
        codes, values, known = (
            np.asarray(op.indices),
            numbers(part, "latency_ns"),
            np.asarray(latency.is_valid()),
        )
        held = seen.setdefault("largest_latency", {})
        for code, name in enumerate(op.dictionary.to_pylist()):
            own = values[(codes == code) & known]
            if len(own):
                held[name] = max(int(own.max()), held.get(name, 0))


def _exact_sums(codes: npt.NDArray[Any], counts: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    totals = np.zeros(length, dtype=np.uint64)
    np.add.at(totals, codes, counts)
    return totals
