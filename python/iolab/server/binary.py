"""A heat map in binary, version 1, all little-endian; docs/reference/api.md describes it byte by byte.

    magic "ioHm" · version u8 = 1 · flags u8 (bit 0: counts are u64, else u32) · zero u16 · cells u32 · buckets u32 · length of the
    head u32 · zero u32 · head: JSON in UTF-8, padded with spaces to a multiple of 8 · low u64[buckets] · high u64[buckets] ·
    counts u32|u64[cells] · column i32[cells] · bucket u32[cells]

Buckets ascend, low <= value < high; cells ascend by column, then bucket, which is a place among the buckets.
"""

from __future__ import annotations

import json
import struct

import numpy as np

from ..recording.counts import HeatCounts
from ..statistics.names import Statistic
from ..statistics.plain import bounds_of, heat_facts
from .plain import check_size

MEDIA_TYPE = "application/vnd.iolab.heat"
VERSION = 1
_HEAD = struct.Struct("<4sBBHIIII")


def encode(asked: Statistic, counts: HeatCounts) -> bytes:
    """A map in binary; UsageError where it would be too large."""
    check_size(len(counts.count))
    bounds = bounds_of(counts)
    indices = np.fromiter(bounds, dtype=np.int64, count=len(bounds))
    head = json.dumps({"schema": 1, "kind": "heat", **heat_facts(asked, counts)}, ensure_ascii=False).encode()
    head += b" " * (-len(head) % 8)
    wide = len(counts.count) > 0 and int(counts.count.max()) >= 2**32
    parts = [
        _HEAD.pack(b"ioHm", VERSION, int(wide), 0, len(counts.count), len(bounds), len(head), 0), head,
        np.array([low for low, _ in bounds.values()], dtype="<u8").tobytes(),
        # the last bucket of all ends at 2^64, which no u64 holds
        np.array([min(high, 2**64 - 1) for _, high in bounds.values()], dtype="<u8").tobytes(),
        counts.count.astype("<u8" if wide else "<u4").tobytes(), counts.column.astype("<i4").tobytes(),
        np.searchsorted(indices, counts.index).astype("<u4").tobytes()]
    return b"".join(parts)
