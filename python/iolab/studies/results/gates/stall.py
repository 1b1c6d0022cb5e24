# SPDX-License-Identifier: Apache-2.0
"""Did the storage stop moving?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from iolab.base.verdict import Reason

from ..evidence.model import Series
from ..facts.run_facts import RunFacts
from .base import note, suspect

SHORTEST = 3.0
"""Seconds."""


def stalls(series: Series) -> list[tuple[float, float]]:
    """(start, length) in seconds since the window's start of every span of three seconds or more in
    which each sample is exactly zero.

    A sample covers the time since the previous sample, at any interval; half of a second's
    jitter is let pass.
    """
    idle = np.concatenate(([False], series.values == 0, [False]))
    edges = np.flatnonzero(np.diff(idle.astype(np.int8)))
    steps = series.steps
    spans = []
    for first, after in zip(edges[::2], edges[1::2], strict=True):
        start = max(0.0, float(series.time[first] - steps[first]))
        length = float(series.time[after - 1]) - start
        if length >= SHORTEST - min(0.5, float(steps[first]) / 2):
            spans.append((start, length))
    return spans


def moved_series(facts: RunFacts) -> tuple[Series, str] | None:
    """Bytes per second that show a stall, and their origin: the devices, else the load itself."""
    if "device.bw" in facts.series:
        return facts.series["device.bw"], "the target's devices"
    if "load.bw" in facts.series:
        return facts.series["load.bw"], "the load"
    return None


class StallGate:
    """SUSPECT when 0 bytes moved for three seconds or more, summed over the target's devices: in
    every sample of that time.

    `stall.seconds` is a separate metric, because leaving stalled runs out of one arm would hide
    the effect. Devices that moved nothing in the whole window didn't stall: a cache served the
    load, which is noted.
    """

    name = "stall"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Stalls inside the window, with where the longest began."""
        moved = moved_series(facts)
        if moved is None or not len(moved[0].values):
            return
        series, whose = moved
        if not np.any(series.values > 0):
            if whose == "the target's devices" and facts.iops > 0:
                yield note(
                    "devices-idle", "the target's devices moved nothing: a cache served the load"
                )
            return
        spans = stalls(series)
        if spans:
            total = sum(length for _, length in spans)
            at, longest = max(spans, key=lambda span: span[1])
            more = f" ({len(spans)} stalls, {_seconds(total)} in all)" if len(spans) > 1 else ""
            yield suspect(
                "stall",
                f"{whose} moved nothing for {_seconds(longest)} from second {at:.0f} on{more}",
                seconds=total,
                longest_seconds=longest,
                start_seconds=at,
                stalls=len(spans),
            )


def _seconds(length: float) -> str:
    return f"{length:.1f}".removesuffix(".0") + " s"
