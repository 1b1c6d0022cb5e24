# SPDX-License-Identifier: Apache-2.0
"""A heat map in binary, version 1, all little-endian; docs/reference/api.md describes it byte by
byte.

    magic "ioHm" · version u8 = 1 · flags u8 (bit 0: counts are u64, else u32) · zero u16 · cells
    u32 · buckets u32 · length of the head u32 · zero u32 · head: JSON in UTF-8, padded with spaces
    to a multiple of 8 · low u64[buckets] · high u64[buckets] · counts u32|u64[cells] · column
    i32[cells] · bucket u32[cells]

Buckets ascend, low <= value < high; cells ascend by column, then bucket, which is a place among the
buckets. A map that is ready to be drawn has its rows for buckets, and no cells in its head; `sizes`
there says how many of the cells are the map's, then each part's.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Sequence

import numpy as np

from iolab.base.documents import Model
from iolab.recordings.ask.answers.json_form import bounds_of, heat_facts
from iolab.recordings.ask.question import Statistic
from iolab.recordings.heatmap.wire import HeatMapGroup, SparseArrays
from iolab.recordings.store.base.counts import HeatCounts, Integers

MEDIA_TYPE = "application/vnd.iolab.heat"
VERSION = 1
_HEAD = struct.Struct("<4sBBHIIII")


def encode(asked: Statistic, counts: HeatCounts) -> bytes:
    """A map in binary."""
    bounds = bounds_of(counts)
    indices = np.fromiter(bounds, dtype=np.int64, count=len(bounds))
    head = json.dumps(
        {"schema": 1, "kind": "heat", **heat_facts(asked, counts)}, ensure_ascii=False
    ).encode()
    return _pack(
        head,
        list(bounds.values()),
        counts.count,
        counts.column,
        np.searchsorted(indices, counts.index),
    )


def encode_drawn(answer: Model, group: HeatMapGroup | None, cells: Sequence[SparseArrays]) -> bytes:
    """An answer with a map that is ready to be drawn in binary; `cells` are those of the map, then
    of each of its parts, and the answer has none."""
    head = answer.model_dump(by_alias=True)
    bounds = [] if group is None else [int(bound) for bound in group.bounds]
    none = np.zeros(0, dtype=np.int64)
    counts, columns, rows = (
        np.concatenate([none, *parts])
        for parts in (
            [cell.counts for cell in cells],
            [cell.column for cell in cells],
            [cell.rows for cell in cells],
        )
    )
    text = json.dumps(
        {**head, "sizes": [len(cell.counts) for cell in cells]}, ensure_ascii=False
    ).encode()
    return _pack(text, list(itertools.pairwise(bounds)), counts, columns, rows)


def _pack(
    head: bytes,
    bounds: Sequence[tuple[int, int]],
    count: Integers,
    column: Integers,
    bucket: Integers,
) -> bytes:
    head += b" " * (-len(head) % 8)
    wide = len(count) > 0 and int(count.max()) >= 2**32
    return b"".join(
        [
            _HEAD.pack(b"ioHm", VERSION, int(wide), 0, len(count), len(bounds), len(head), 0),
            head,
            np.array([low for low, _ in bounds], dtype="<u8").tobytes(),
            # the last bucket of all ends at 2^64, which no u64 holds
            np.array([min(high, 2**64 - 1) for _, high in bounds], dtype="<u8").tobytes(),
            count.astype("<u8" if wide else "<u4").tobytes(),
            column.astype("<i4").tobytes(),
            bucket.astype("<u4").tobytes(),
        ]
    )
