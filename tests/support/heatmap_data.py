# SPDX-License-Identifier: Apache-2.0
"""Counts made by hand, for tests of what draws them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from iolab import _core
from iolab.recordings.store.base.counts import HeatCounts, Y
from iolab.recordings.store.base.grids import Linear, LogLinear


def counts(
    events: Iterable[tuple[int, int]],
    *,
    y: Y = "latency",
    bits: int = 6,
    interval: int = 1000,
    width: int = 0,
    **more: Any,
) -> HeatCounts:
    """Counts of events (time, value), on the grid, or on equal buckets of `width`."""
    events = list(events)
    grid = Linear(0, width) if width else LogLinear(bits)
    found = Counter(
        (time // interval, value // width if width else _core.grid_index(value, bits))
        for time, value in events
    )
    cells = sorted(found)
    return HeatCounts(
        y,
        0,
        interval,
        grid,
        np.array([cell[0] for cell in cells], dtype=np.int64),
        np.array([cell[1] for cell in cells], dtype=np.int64),
        np.array([found[cell] for cell in cells], dtype=np.int64),
        events=len(events),
        **more,
    )
