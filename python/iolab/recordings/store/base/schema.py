# SPDX-License-Identifier: Apache-2.0
"""The columns of events and samples: one schema in hot files, sealed files and answers."""

from __future__ import annotations

import pyarrow as pa

NAME = pa.dictionary(pa.int32(), pa.string())
"""The type of columns that hold names."""

NAMED = ("device", "process", "file", "mount", "client", "job", "error", "flags")
"""Columns of names that an event may lack."""

NUMBERS = {
    "latency_ns": pa.uint64(),
    "queue_ns": pa.uint64(),
    "offset_bytes": pa.uint64(),
    "size_bytes": pa.uint64(),
    "pid": pa.uint32(),
    "thread": pa.uint32(),
}
"""Numbers that an event may lack."""

EVENTS = pa.schema(
    [
        pa.field("source", NAME, nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("latency_ns", pa.uint64()),
        pa.field("latency_bucket", pa.uint16()),
        pa.field("queue_ns", pa.uint64()),
        pa.field("offset_bytes", pa.uint64()),
        pa.field("size_bytes", pa.uint64()),
        pa.field("op", NAME, nullable=False),
        *(pa.field(name, NAME) for name in ("device", "process", "file", "mount", "client", "job")),
        pa.field("pid", pa.uint32()),
        pa.field("thread", pa.uint32()),
        pa.field("error", NAME),
        pa.field("flags", NAME),
        pa.field("count", pa.uint64(), nullable=False),
    ]
)
"""One row an I/O. time_ns is its completion; latency_bucket the index of latency_ns on the grid of
6 bits; count the I/Os of the row (1, except in histogram logs)."""

SAMPLES = pa.schema(
    [
        pa.field("source", NAME, nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("object", NAME, nullable=False),
        pa.field("field", NAME, nullable=False),
        pa.field("value", pa.int64(), nullable=False),
    ]
)
"""One row a reading of a counter; object is the device, processor or interface, "" where there is
only one."""

LATENCY_BITS = 6
"""Resolution of the stored latency_bucket."""

ENCODINGS = {
    "time_ns": "DELTA_BINARY_PACKED",
    "latency_ns": "BYTE_STREAM_SPLIT",
    "queue_ns": "BYTE_STREAM_SPLIT",
    "offset_bytes": "BYTE_STREAM_SPLIT",
    "value": "DELTA_BINARY_PACKED",
}
"""Parquet encodings of columns with values that seldom repeat; others are dictionaries."""


def schema_of(kind: str) -> pa.Schema:
    """The schema of "events" or "samples"."""
    return {"events": EVENTS, "samples": SAMPLES}[kind]
