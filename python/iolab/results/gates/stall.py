"""Did the storage stop moving?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...verdict import Reason
from ..facts import RunFacts
from ..model import Series
from .base import note, suspect

SHORTEST = 3


def stalls(series: Series) -> list[tuple[int, int]]:
    """(start, length) in samples of every run of at least three consecutive samples of exactly zero."""
    idle = np.concatenate(([False], series.values == 0, [False]))
    edges = np.flatnonzero(np.diff(idle.astype(np.int8)))
    spans = zip(edges[::2], edges[1::2], strict=True)
    return [(int(start), int(end - start)) for start, end in spans if end - start >= SHORTEST]


def moved_series(facts: RunFacts) -> tuple[Series, str] | None:
    """Bytes per second that tell a stall, and whose they are: the devices', else the load's own."""
    if "device.bw" in facts.series:
        return facts.series["device.bw"], "the target's devices"
    if "load.bw" in facts.series:
        return facts.series["load.bw"], "the load"
    return None


class StallGate:
    """SUSPECT when three or more consecutive one-second samples moved 0 bytes, summed over the target's devices.

    `stall.seconds` is a metric beside it, because leaving stalled runs out of one arm would hide the effect. Devices
    that moved nothing in the whole window didn't stall: a cache served the load, which is noted.
    """

    name = "stall"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Stalls inside the window, with where the longest began."""
        found = moved_series(facts)
        if found is None or not len(found[0].values):
            return
        series, whose = found
        if not np.any(series.values > 0):
            if whose == "the target's devices" and facts.iops > 0:
                yield note("devices-idle", "the target's devices moved nothing: a cache served the load")
            return
        spans = stalls(series)
        if spans:
            total = sum(length for _, length in spans)
            start, longest = max(spans, key=lambda span: span[1])
            at = float(series.time[start])
            more = f" ({len(spans)} stalls, {total} s in all)" if len(spans) > 1 else ""
            yield suspect("stall", f"{whose} moved nothing for {longest} s from second {at:.0f}{more}", seconds=total,
                          longest_seconds=longest, start_seconds=at, stalls=len(spans))
