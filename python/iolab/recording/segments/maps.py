# SPDX-License-Identifier: Apache-2.0
"""Default maps: what heat maps of whole segments need, summed by second while a segment is sealed,
and exact.

One row for each second, source, operation, device and bucket. Buckets: latency and size on the grid
of 6 bits, offset in equal buckets from 0, of a width (the same power of two for a segment) that
makes at most 1024 of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ... import _core
from ..base.grids import WITHOUT
from ..base.schema import LATENCY_BITS
from .sealing import KEY, Tally, numbers

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
            known, places = _dense(index)
            grouped = (
                pa.table({"key": who * len(known) + places, "count": counts, "spent": spent})
                .group_by("key", use_threads=False)
                .aggregate([("count", "sum"), ("spent", "sum")])
            )
            keys = grouped.column("key").to_numpy()
            order = np.argsort(keys)
            keys, place = np.divmod(keys[order], len(known))
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
                        known[place].astype(np.uint32),
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
        delta = {
            "second_ns": "DELTA_BINARY_PACKED",
            "index": "DELTA_BINARY_PACKED",
            "time_ns_sum": "DELTA_BINARY_PACKED",
        }
        table = self.table(name).replace_schema_metadata({KEY: json.dumps(facts)})
        pq.write_table(
            table,
            path,
            compression="zstd",
            use_dictionary=["source", "op", "device", "count"],
            column_encoding=delta,
            write_page_checksum=True,
        )

    def _offset_index(self, part: pa.Table) -> npt.NDArray[np.uint64]:
        return _or_without(
            part, "offset_bytes", numbers(part, "offset_bytes") // np.uint64(self.width)
        )


def _latency_index(part: pa.Table) -> npt.NDArray[np.uint64]:
    return _or_without(part, "latency_bucket", numbers(part, "latency_bucket").astype(np.uint64))


def _size_index(part: pa.Table) -> npt.NDArray[np.uint64]:
    """Few sizes occur, so each is put on the grid once."""
    known, places = _dense(numbers(part, "size_bytes"))
    return _or_without(
        part,
        "size_bytes",
        np.array([_core.grid_index(int(size), LATENCY_BITS) for size in known], dtype=np.uint64)[
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
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return found[order], ranks[np.asarray(encoded.indices)]


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
