# SPDX-License-Identifier: Apache-2.0
"""Rows of a recording that are not sealed, by source and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class SourceBatch(NamedTuple):
    """Rows of one source. events: I/Os; of samples, readings. first_ns, last_ns: the earliest and
    the latest time."""

    source: str
    rows: pa.RecordBatch
    events: int
    first_ns: int
    last_ns: int


def split_by_source(batch: pa.RecordBatch) -> Iterator[SourceBatch]:
    """The rows of each source of a batch. Rows of a single source, the usual case, are not
    copied."""
    if not batch.num_rows:
        return
    source = batch.column("source")
    codes = np.asarray(source.indices)
    used = np.unique(codes) if len(source.dictionary) > 1 else codes[:1]
    for code in used.tolist():
        rows = batch if len(used) == 1 else batch.filter(pa.array(codes == code))
        times = pc.min_max(rows.column("time_ns")).as_py()
        events = (
            int(rows.column("count").to_numpy().sum())
            if "count" in rows.schema.names
            else rows.num_rows
        )
        yield SourceBatch(source.dictionary[code].as_py(), rows, events, times["min"], times["max"])


class UnsealedRows:
    """Rows that are not sealed, in batches of one source each. To choose among them copies none."""

    def __init__(self, batches: Sequence[SourceBatch], schema: pa.Schema) -> None:
        self._schema, self._all = schema, batches
        self._batches: dict[str, list[SourceBatch]] = {}
        for batch in batches:
            self._batches.setdefault(batch.source, []).append(batch)

    @property
    def sources(self) -> Sequence[str]:
        """Sources with rows."""
        return list(self._batches)

    def bounds(self, source: str) -> tuple[int, int] | None:
        """(first, last) time of a source; None without rows."""
        batches = self._batches.get(source)
        if not batches:
            return None
        return min(batch.first_ns for batch in batches), max(batch.last_ns for batch in batches)

    def batches(self, source: str) -> Sequence[SourceBatch]:
        """The batches of a source. They do not change: later rows come in further batches."""
        return self._batches.get(source, ())

    def only(self, batches: Sequence[SourceBatch]) -> UnsealedRows:
        """Some of the batches alone."""
        return UnsealedRows(batches, self._schema)

    def of(self, source: str, span: tuple[int, int] | None = None) -> pa.Table | None:
        """Rows of a source, None where there are none. span: from (ns) up to, not including, until
        (ns); batches without a row in it are left out, other rows beyond it are not."""
        rows = [
            batch.rows
            for batch in self._batches.get(source, ())
            if span is None or (batch.first_ns < span[1] and batch.last_ns >= span[0])
        ]
        return pa.Table.from_batches(rows, self._schema) if rows else None

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches([batch.rows for batch in self._all], self._schema)
