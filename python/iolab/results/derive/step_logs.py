# SPDX-License-Identifier: Apache-2.0
"""One step of a load that adds to what runs: its rates and latency from the logs of the sections
that take part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...formats.core.tables import FioDirection, FioJob, FioLogTable, Latency
from ...formats.fio.seconds import OPERATION_NAMES, overlaps, rates_between

_NANOSECOND = 1e-9
_SINCE_EPOCH = 1e8
"""Seconds; a later time of a log is the epoch's."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds [begin, end] since the start of the run's window, as far as they count, and the
    window's realtime nanoseconds."""

    begin: float
    end: float
    window: tuple[int, int] | None

    def on_clock_of(self, table: FioLogTable) -> tuple[float, float] | None:
        """The same on a log's own clock, or None where it counts from its job's start: sections
        start at different times."""
        if self.window is None or not len(table.time) or table.time[0] < _SINCE_EPOCH:
            return None
        origin = self.window[0] / 1e9
        return self.begin + origin, self.end + origin


def pooled_from_logs(
    times: StepTimes, sections: Sequence[str], logs: Mapping[tuple[str, str], FioLogTable]
) -> FioJob:
    """Rate, bandwidth and mean latency of every operation, summed over the sections, as one job;
    nothing where a section has no log of the step.

    Latency is the mean over I/Os: a window's mean counts as often as I/Os ended in it, by the log
    of rates. What logs don't have (extremes, distribution) is zero or missing.
    """
    seconds = times.end - times.begin
    rates = {section: _rates(times, logs.get((section, "iops")), "iops") for section in sections}
    directions: dict[str, FioDirection] = {}
    for operation in OPERATION_NAMES[:3] if all(rates.values()) else ():
        own = {
            section: rates_of_section.get(operation, 0.0)
            for section, rates_of_section in rates.items()
        }
        total = sum(own.values())
        if total <= 0:
            continue
        bw = sum(
            _rates(times, logs.get((section, "bw")), "bw").get(operation, 0.0)
            for section in sections
        )
        delay = _latency(times, operation, own, logs)
        latencies = (
            {} if delay is None else {"lat": Latency("lat_ns", _NANOSECOND, delay, 0.0, 0.0, 0.0)}
        )
        directions[operation] = FioDirection(
            round(total * seconds),
            round(bw * seconds),
            seconds,
            total,
            bw,
            "bw",
            bw / 1024,
            "KiB/s",
            latencies=latencies,
        )
    return FioJob("+".join(sections), 0, {}, directions)


def _rates(times: StepTimes, table: FioLogTable | None, kind: str) -> dict[str, float]:
    span = None if table is None else times.on_clock_of(table)
    if table is None or span is None:
        return {}
    return rates_between([table], "bw" if kind == "bw" else "iops", *span)


def _latency(
    times: StepTimes,
    operation: str,
    rates: Mapping[str, float],
    logs: Mapping[tuple[str, str], FioLogTable],
) -> float | None:
    """Seconds, weighted by I/Os over the sections; None where a section that did I/O has no log of
    latency."""
    waited = 0.0
    for section, rate in rates.items():
        if rate <= 0:
            continue
        delay, count = logs.get((section, "lat")), logs.get((section, "iops"))
        span = None if delay is None else times.on_clock_of(delay)
        if delay is None or count is None or span is None:
            return None
        number = OPERATION_NAMES.index(operation)
        inside = overlaps(delay, *span)
        rows, counted = (delay.operation == number) & (inside > 0), count.operation == number
        if not rows.any() or not counted.any():
            return None
        order = np.argsort(count.time[counted], kind="stable")
        weights = inside[rows] * np.interp(
            delay.time[rows], count.time[counted][order], count.value[counted][order]
        )
        if weights.sum() <= 0:
            return None
        waited += rate * float(np.average(delay.value[rows], weights=weights)) * _NANOSECOND
    total = sum(rates.values())
    return waited / total if total > 0 else None
