# SPDX-License-Identifier: Apache-2.0
"""The tables of an archive: their columns, partitions and sort orders.

Times are in ns since the Unix epoch, sizes in bytes, as in recordings. Each row is self-contained:
it has its host and recording, and names instead of numbers of names. `day` is the UTC date of the
row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

NAMESPACE = "iolab"

_KEY = (
    pa.field("host", pa.string(), nullable=False),
    pa.field("recording", pa.string(), nullable=False),
)
_PLACE = (
    *_KEY,
    pa.field("segment", pa.int64(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("day", pa.date32(), nullable=False),
)


@dataclass(frozen=True)
class Table:
    """A table of the archive.

    Attributes:
        name: in the namespace `iolab`. columns: its Arrow schema. partitions: columns that have
        one value in each file. order: columns by which the rows of a file ascend.
    """

    name: str
    columns: pa.Schema
    partitions: Sequence[str] = ()
    order: Sequence[str] = ()


EVENTS = Table(
    "events",
    pa.schema(
        [
            *_PLACE,
            pa.field("time_ns", pa.int64(), nullable=False),
            pa.field("latency_ns", pa.int64()),
            pa.field("latency_bucket", pa.int32()),
            pa.field("queue_ns", pa.int64()),
            pa.field("offset_bytes", pa.int64()),
            pa.field("size_bytes", pa.int64()),
            pa.field("op", pa.string(), nullable=False),
            *(
                pa.field(name, pa.string())
                for name in ("device", "process", "file", "mount", "client", "job")
            ),
            pa.field("pid", pa.int64()),
            pa.field("thread", pa.int64()),
            pa.field("error", pa.string()),
            pa.field("flags", pa.string()),
            pa.field("count", pa.int64(), nullable=False),
        ]
    ),
    ("day", "source", "host"),
    ("time_ns",),
)
"""One row an I/O, with the columns of a recording's events."""

SAMPLES = Table(
    "samples",
    pa.schema(
        [
            *_PLACE,
            pa.field("time_ns", pa.int64(), nullable=False),
            pa.field("object", pa.string(), nullable=False),
            pa.field("field", pa.string(), nullable=False),
            pa.field("value", pa.int64(), nullable=False),
        ]
    ),
    ("day", "source", "host"),
    ("time_ns",),
)
"""One row a reading of a counter."""


def _maps(name: str) -> Table:
    """A table of segment maps."""
    return Table(
        name,
        pa.schema(
            [
                *_PLACE,
                pa.field("map", pa.string(), nullable=False),
                pa.field("second_ns", pa.int64(), nullable=False),
                pa.field("op", pa.string(), nullable=False),
                pa.field("device", pa.string()),
                pa.field("index", pa.int64(), nullable=False),
                pa.field("width_bytes", pa.int64()),
                pa.field("count", pa.int64(), nullable=False),
                pa.field("time_ns_sum", pa.int64(), nullable=False),
            ]
        ),
        ("day", "source", "host"),
        ("map", "second_ns"),
    )


SEGMENT_MAPS = _maps("segment_maps")
"""Sums by second, operation, device and bucket of a map. The map is io.latency, io.offset or io.size.
The index is the bucket on the grid of 6 bits (latency, size) or of `width_bytes` (offset). Index 4294967295
has the I/Os without the value."""

COARSE_S = 100
"""Seconds of a sum in `COARSE_MAPS`. Longer columns are multiples of it, as they are 1, 2 or 5 times
a power of ten."""

COARSE_MAPS = _maps(f"segment_maps_{COARSE_S}s")
"""As `SEGMENT_MAPS`, by 100 s from the epoch on, and by segment. second_ns: start of the 100 s. Segments
of an older iolab have no such rows."""

SEGMENTS = Table(
    "segments",
    pa.schema(
        [
            *_KEY,
            pa.field("segment", pa.int64(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),
            pa.field("first_ns", pa.int64(), nullable=False),
            pa.field("last_ns", pa.int64(), nullable=False),
            pa.field("rows", pa.int64(), nullable=False),
            pa.field("count", pa.int64(), nullable=False),
        ]
    ),
)
"""What is archived: a row for each segment, kind of rows (events, samples) and source. It is written
after the rows. count: I/Os or readings."""

COVERAGE = Table(
    "coverage",
    pa.schema(
        [
            *_KEY,
            pa.field("source", pa.string(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("from_ns", pa.int64()),
            pa.field("until_ns", pa.int64()),
            pa.field("count", pa.int64()),
            pa.field("words", pa.string(), nullable=False),
            pa.field("parts", pa.string()),
            pa.field("of", pa.string()),
        ]
    ),
)
"""Of which times something is known. kind: "session" (recorded live), a kind of loss (gap, overrun,
damaged, missed, unpaired, unknown-name), or "behind" (recorded, not archived yet). source: "" for
all. parts: of a loss that was joined of several, their times and counts, as in a recording. of:
"events" or "samples" where rows of one kind are lost."""

MARKS = Table(
    "marks",
    pa.schema(
        [
            *_KEY,
            pa.field("label", pa.string(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("from_ns", pa.int64(), nullable=False),
            pa.field("until_ns", pa.int64()),
            pa.field("link", pa.string()),
            pa.field("facts", pa.string(), nullable=False),
        ]
    ),
)
"""Named spans of time. facts: a JSON object."""

RECORDINGS = Table(
    "recordings",
    pa.schema(
        [
            *_KEY,
            pa.field("clock", pa.string(), nullable=False),
            pa.field("first_ns", pa.int64()),
            pa.field("until_ns", pa.int64()),
            pa.field("pushed_ns", pa.int64(), nullable=False),
            pa.field("iolab", pa.string(), nullable=False),
            pa.field("sources", pa.string(), nullable=False),
            pa.field("origin", pa.string(), nullable=False),
            pa.field("recorded_ns", pa.int64()),
            pa.field("kept", pa.string()),
        ]
    ),
)
"""A row for each recording. until_ns: everything before it that was recorded is archived. pushed_ns:
time of the last push. sources, origin: JSON objects of recording.json. recorded_ns: until when its
writer said that it recorded. kept: a JSON list of its kept statistics (`rollups.ArchivedStatistic`)."""


def _rollups(length: str) -> Table:
    """The table of roll-ups of a length."""
    return Table(
        f"rollups_{length}",
        pa.schema(
            [
                *_PLACE,
                pa.field("statistic", pa.string(), nullable=False),
                pa.field("added_ns", pa.int64(), nullable=False),
                pa.field("time_ns", pa.int64(), nullable=False),
                *(pa.field(name, pa.int64()) for name in ("index", "width_bytes")),
                *(pa.field(name, pa.string()) for name in ("key", "object", "part")),
                *(pa.field(name, pa.int64()) for name in ("count", "amount")),
                *(pa.field(name, pa.float64()) for name in ("growth", "over", "covered", "broken")),
            ]
        ),
        ("day", "source", "host"),
        ("statistic", "object", "key", "part", "index", "time_ns"),
    )


ROLLUPS: Mapping[str, Table] = {length: _rollups(length) for length in ("1s", "1m", "1h")}
"""Sums of kept statistics by second, minute and hour. time_ns: start of the sum. added_ns: since
when the statistic is kept, of several with one name. segment: of which segments it is the sum, as
first x 2^31 + last. index: of the bucket, on the grid of 3 bits or of `width_bytes`. key: value of
the breakdown; null: all beyond the largest. object, part, growth, over, covered, broken: of counters,
as in the files of kept statistics."""

ROLLUP_PARTS = Table(
    "rollup_parts",
    pa.schema(
        [
            *_KEY,
            pa.field("statistic", pa.string(), nullable=False),
            pa.field("added_ns", pa.int64(), nullable=False),
            pa.field("tier", pa.string(), nullable=False),
            pa.field("segment", pa.int64(), nullable=False),
            pa.field("first_ns", pa.int64(), nullable=False),
            pa.field("until_ns", pa.int64(), nullable=False),
            pa.field("width_bytes", pa.int64(), nullable=False),
            pa.field("rows", pa.int64(), nullable=False),
        ]
    ),
)
"""Which roll-ups are archived: a row for each statistic, tier (1s, 1m, 1h) and range of segments. It
is written after the sums. A part is not used if another one has all its segments."""

OBSERVATIONS = Table(
    "observations",
    pa.schema(
        [
            pa.field("host", pa.string(), nullable=False),
            pa.field("results", pa.string(), nullable=False),
            pa.field("study", pa.string(), nullable=False),
            pa.field("run", pa.string(), nullable=False),
            pa.field("variant", pa.string(), nullable=False),
            pa.field("factors", pa.string(), nullable=False),
            pa.field("repetition", pa.int64(), nullable=False),
            pa.field("block", pa.int64(), nullable=False),
            pa.field("verdict", pa.string(), nullable=False),
            pa.field("reasons", pa.string(), nullable=False),
            pa.field("from_ns", pa.int64()),
            pa.field("until_ns", pa.int64()),
            pa.field("metric", pa.string(), nullable=False),
            pa.field("value", pa.float64(), nullable=False),
            pa.field("unit", pa.string(), nullable=False),
            pa.field("source_file", pa.string(), nullable=False),
            pa.field("source_field", pa.string(), nullable=False),
        ]
    ),
)
"""A row for each metric of each run. results: key of the results. factors: a JSON object.

reasons: codes of the verdict as a JSON list. from_ns, until_ns: the measured window, if known."""

HOSTS = Table(
    "hosts",
    pa.schema(
        [
            pa.field("host", pa.string(), nullable=False),
            pa.field("label", pa.string(), nullable=False),
            pa.field("value", pa.string(), nullable=False),
        ]
    ),
)
"""Labels of hosts, such as rack and role: one value of each name."""

DELETED = Table(
    "deleted",
    pa.schema(
        [
            *_KEY,
            pa.field("tier", pa.string(), nullable=False),
            pa.field("through", pa.int64(), nullable=False),
            pa.field("until_ns", pa.int64(), nullable=False),
            pa.field("unmapped", pa.string(), nullable=False),
        ]
    ),
)
"""What age deleted of a recording. The tier is "events" (with samples), "maps", or a tier of roll-ups
("1s", "1m", "1h"). The last deleted segment, or number of a range of segments, is `through`. All
deleted rows are before `until_ns`. The JSON list `unmapped` has segments that had no map when their
events were deleted."""

TABLES = (
    EVENTS, SAMPLES, SEGMENT_MAPS, COARSE_MAPS, SEGMENTS, COVERAGE, MARKS, RECORDINGS, OBSERVATIONS,
    HOSTS, DELETED,
    *ROLLUPS.values(), ROLLUP_PARTS,
)  # fmt: skip

ENCODINGS = {
    "time_ns": "DELTA_BINARY_PACKED",
    "second_ns": "DELTA_BINARY_PACKED",
    "index": "DELTA_BINARY_PACKED",
    "time_ns_sum": "DELTA_BINARY_PACKED",
    "latency_ns": "BYTE_STREAM_SPLIT",
    "queue_ns": "BYTE_STREAM_SPLIT",
    "offset_bytes": "BYTE_STREAM_SPLIT",
    "value": "DELTA_BINARY_PACKED",
}
"""Parquet encodings of columns with values that seldom repeat; the others are dictionaries."""


def iceberg_schema(table: Table) -> Any:
    """The Iceberg schema of a table, with ids of fields in their order."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import (
        DateType,
        DoubleType,
        IntegerType,
        LongType,
        NestedField,
        StringType,
    )

    kinds: dict[pa.DataType, Any] = {
        pa.string(): StringType,
        pa.int64(): LongType,
        pa.float64(): DoubleType,
        pa.int32(): IntegerType,
        pa.date32(): DateType,
    }
    return Schema(
        *(
            NestedField(number, field.name, kinds[field.type](), required=not field.nullable)
            for number, field in enumerate(table.columns, start=1)
        )
    )
