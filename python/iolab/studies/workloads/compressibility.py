# SPDX-License-Identifier: Apache-2.0
"""How compressible a load's data is, in per cent, as the options that really make it so.

What fio's own options give was measured with zlib at the records of file systems (8 and 128 KiB):
its default data compresses 6 times at 128 KiB, `buffer_compress_percentage=0` repeats one block,
and 100 writes zeros, which file systems store as holes.
`tests/unit/workloads/test_workloads_fio_data.py` measures what is said here.
"""

from __future__ import annotations

from collections.abc import Mapping

CHUNK = 4096
"""Bytes within which data is compressible as asked: any record of a file system is as large, so
that it sees the same share."""

PATTERN = "0xdeadbeef"

DECIDED = (
    "buffer_compress_percentage",
    "buffer_pattern",
    "refill_buffers",
    "zero_buffers",
    "scramble_buffers",
)
"""Options that a compressibility decides; none of them can be set with it.
`buffer_compress_chunk` can."""


def data_options(per_cent: float) -> Mapping[str, str | int]:
    """fio's options for data of which this many per cent can be compressed away.

    0: random data, new for every write. 1 to 99: that share of every 4 KiB is compressible, the
    rest random, new for every write. 100: one pattern of four bytes, which isn't zero.
    """
    if per_cent <= 0:
        return {"refill_buffers": 1}
    if per_cent >= 100:
        return {"buffer_pattern": PATTERN}
    return {
        "refill_buffers": 1,
        "buffer_compress_percentage": round(per_cent),
        "buffer_compress_chunk": CHUNK,
    }
