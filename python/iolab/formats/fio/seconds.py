# SPDX-License-Identifier: Apache-2.0
"""fio's logs of all jobs of a run as rates per second: what the load saw, second by second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import FormatError

from ..core.tables import FioLogTable, Floats

OPERATION_NAMES = ("read", "write", "trim", "sync")
"""Operation number of a log to its name."""

_SINCE_EPOCH = 1e8
"""Seconds; a job doesn't run for three years, so a later time is the epoch's (log_unix_epoch,
log_alternate_epoch)."""

_LONGEST = 1e7
"""Seconds, a hundred days: more is no run but a damaged time."""


@dataclass(frozen=True)
class PerSecond:
    """Rates of all jobs together in whole seconds.

    Attributes:
        origin: what `time` counts from: 0 for the job's start, else seconds since the epoch.
        time: start of each second, counted from `origin`; shape (n,).
        rates: operation to B/s (`bw`) or 1/s (`iops`); shape (n,) each; 0 in a second without I/O,
        for fio writes no
            row then.
    """

    origin: float
    time: Floats
    rates: Mapping[str, Floats]


def per_second(tables: Iterable[FioLogTable], kind: Literal["bw", "iops"]) -> PerSecond:
    """Sum of the jobs' logs in one-second steps.

    A row that is an average over a window counts for the time up to it, spread over the seconds
    that it touches, so that windows of any length and fio's jitter of a few milliseconds come out
    right. Rows of single I/Os are counted (iops) or their sizes added (bw). A last second that the
    logs cover by less than nine tenths is left out, and what some of the jobs that ran to the end
    have no row of any more: fio drops a job's last window at times.

    Args:
        tables: one log of each job, all of the same kind.
        kind: `bw` takes values as KiB/s, `iops` as 1/s.

    Raises FormatError where the times are too far apart to be one run's.
    """
    listed = [table for table in tables if len(table.time)]
    if not listed:
        return PerSecond(0.0, np.empty(0), {})
    spans = [_Rows.of(table, kind) for table in listed]
    first = min(float(rows.start.min()) for rows in spans)
    last = max(float(rows.end.max()) for rows in spans)
    origin = first if first > _SINCE_EPOCH else 0.0
    if last - origin > _LONGEST:
        raise FormatError(
            f"the logs span {last - origin:.0f} s",
            hint="a time in them is damaged, or they are of different runs",
        )
    seconds = int(_common_end(spans, last) - origin + 0.1)
    operations = sorted({int(number) for rows in spans for number in np.unique(rows.operation)})
    rates = {}
    for number in operations:
        if number >= len(OPERATION_NAMES):
            continue
        total = np.zeros(int(last - origin) + 2)
        for rows in spans:
            is_operation = rows.operation == number
            _spread(
                total,
                rows.start[is_operation] - origin,
                rows.end[is_operation] - origin,
                rows.amount[is_operation],
            )
        rates[OPERATION_NAMES[number]] = total[:seconds]
    return PerSecond(origin, np.arange(seconds, dtype=np.float64), rates)


def rates_between(
    tables: Iterable[FioLogTable], kind: Literal["bw", "iops"], begin: float, end: float
) -> dict[str, float]:
    """Mean rate of all jobs together between two times of the logs' own clock, operation to B/s or
    1/s.

    Rows count as in `per_second`. An end in a last window for which a job has no row
    moves to before it.
    """
    spans = [_Rows.of(table, kind) for table in tables if len(table.time)]
    if not spans:
        return {}
    common = _common_end(spans, max(float(rows.end.max()) for rows in spans))
    reach = max(float(np.max(rows.end - rows.start)) for rows in spans)
    until = common if end - 2 * reach <= common < end else end
    if until <= begin:
        return {}
    rates: dict[str, float] = {}
    for rows in spans:
        inside = np.clip(np.minimum(rows.end, until) - np.maximum(rows.start, begin), 0, None)
        length = rows.end - rows.start
        share = np.divide(
            inside,
            length,
            out=((rows.end > begin) & (rows.end <= until)).astype(np.float64),
            where=length > 0,
        )
        for number in np.unique(rows.operation[share > 0]):
            if number < len(OPERATION_NAMES):
                amount = float(np.sum((rows.amount * share)[rows.operation == number]))
                name = OPERATION_NAMES[number]
                rates[name] = rates.get(name, 0.0) + amount / (until - begin)
    return rates


def latency_per_second(logs: Sequence[tuple[FioLogTable, FioLogTable | None]]) -> PerSecond:
    """Mean latency over the I/Os of all jobs in one-second steps, in the logs' own unit; nan in a
    second without I/O.

    A row that is an average over a window counts as often as the job did I/Os in it, by its log of
    rates (write_iops_log); without one, or where the two don't have the same jobs, every job counts
    alike. Rows of single I/Os count once each.

    Args:
        logs: one log of latencies of each job (or of all, per_job_logs=0), each with the log of
        rates of the same.

    Raises FormatError where the times are too far apart to be one run's.
    """
    listed = [(table, rates) for table, rates in logs if len(table.time)]
    if not listed:
        return PerSecond(0.0, np.empty(0), {})
    spans = [(_Rows.of(table, "lat"), _weights(table, rates)) for table, rates in listed]
    first = min(float(rows.start.min()) for rows, _ in spans)
    last = max(float(rows.end.max()) for rows, _ in spans)
    origin = first if first > _SINCE_EPOCH else 0.0
    if last - origin > _LONGEST:
        raise FormatError(
            f"the logs span {last - origin:.0f} s",
            hint="a time in them is damaged, or they are of different runs",
        )
    seconds = int(last - origin + 0.1)
    means = {}
    for number in sorted(
        {int(number) for rows, _ in spans for number in np.unique(rows.operation)}
    ):
        if number >= len(OPERATION_NAMES):
            continue
        waited, ios = np.zeros((2, int(last - origin) + 2))
        for rows, weights in spans:
            is_operation = rows.operation == number
            start, end, amount = (
                rows.start[is_operation] - origin,
                rows.end[is_operation] - origin,
                rows.amount[is_operation],
            )
            counted = weights[is_operation] * np.where(end > start, end - start, 1.0)
            _spread(waited, start, end, amount * counted)
            _spread(ios, start, end, counted)
        means[OPERATION_NAMES[number]] = np.divide(
            waited, ios, out=np.full_like(ios, np.nan), where=ios > 0
        )[:seconds]
    return PerSecond(origin, np.arange(seconds, dtype=np.float64), means)


def _weights(table: FioLogTable, rates: FioLogTable | None) -> Floats:
    """I/Os per second of the job around each row of a log of latencies, 1 where that isn't
    known."""
    weights = np.ones(len(table.time))
    if rates is None or table.averaged is False or rates.averaged is False:
        return weights
    for number in np.unique(table.operation):
        latency_rows, rate_rows = (
            np.flatnonzero(table.operation == number),
            np.flatnonzero(rates.operation == number),
        )
        jobs, rate_jobs = _jobs(latency_rows, table.time), _jobs(rate_rows, rates.time)
        if len(jobs) != len(rate_jobs):
            continue
        for rows, of_rates in zip(jobs, rate_jobs, strict=True):
            times = rates.time[of_rates]
            after = np.clip(np.searchsorted(times, table.time[rows]), 1, max(len(times) - 1, 1))
            before = after - 1
            after = np.minimum(after, len(times) - 1)
            nearer = np.where(
                np.abs(times[after] - table.time[rows]) < np.abs(times[before] - table.time[rows]),
                after,
                before,
            )
            weights[rows] = rates.value[of_rates][nearer]
    return weights


def _jobs(rows: NDArray[np.intp], time: Floats) -> list[NDArray[np.intp]]:
    """Rows of one operation, job by job: time goes back where the next one's begin."""
    return np.split(rows, np.flatnonzero(np.diff(time[rows]) < 0) + 1) if len(rows) else []


def overlaps(table: FioLogTable, begin: float, end: float) -> Floats:
    """Seconds of each row's window between two times of the log's own clock; shape (n,). For logs
    of averages."""
    rows = _Rows.of(table, "iops")
    return np.asarray(np.clip(np.minimum(rows.end, end) - np.maximum(rows.start, begin), 0, None))


@dataclass(frozen=True)
class _Rows:
    """What was done (bytes or I/Os) between two times, per row; of latencies the values
    themselves."""

    start: Floats
    end: Floats
    amount: Floats
    operation: NDArray[np.int8]

    @classmethod
    def of(cls, table: FioLogTable, kind: Literal["bw", "iops", "lat"]) -> _Rows:
        scale = 1024.0 if kind == "bw" else 1.0
        if table.averaged is False:
            amount = {
                "bw": table.block_size_bytes.astype(np.float64),
                "iops": np.ones(len(table.time)),
                "lat": table.value,
            }[kind]
            return cls(table.time, table.time, amount, table.operation)
        start = np.empty_like(table.time)
        for number in np.unique(table.operation):
            is_operation = table.operation == number
            start[is_operation] = _window_starts(table.time[is_operation])
        length = 1.0 if kind == "lat" else table.time - start
        return cls(start, table.time, table.value * scale * length, table.operation)


def _common_end(spans: Sequence[_Rows], last: float) -> float:
    """Until when all jobs that ran to the end have rows: a job that lacks its last window is no job
    that slowed down.

    A job with rows that end earlier ended itself earlier, and reduces nothing.
    """
    reach = 1.5 * max(1.0, *(float(np.max(rows.end - rows.start)) for rows in spans))
    return min(end for rows in spans if (end := float(rows.end.max())) >= last - reach)


def _window_starts(ends: Floats) -> Floats:
    """Where the windows that end so began: at the row before, but no earlier than a window's
    length.

    fio leaves a window without I/O out, so that the row before may be long ago. With per_job_logs=0
    one job's rows follow another's: time goes back, and the next job's first window begins.
    """
    steps = np.diff(ends, prepend=ends[0])
    positive = steps[1:][steps[1:] > 0]
    window = float(np.median(positive)) if len(positive) else min(float(ends[0]), 1.0)
    lengths = np.where((steps < 0) | (steps > 1.5 * window), window, steps)
    lengths[0] = window
    return np.where(ends > _SINCE_EPOCH, ends - lengths, np.maximum(ends - lengths, 0.0))


def _spread(total: Floats, start: Floats, end: Floats, amount: Floats) -> None:
    """Add each row's amount to the seconds between its start and end, in proportion to the time in
    each."""
    length = end - start
    at_once = length <= 0
    np.add.at(total, np.clip(end[at_once], 0, len(total) - 1).astype(np.int64), amount[at_once])
    start, end, amount, length = (
        values[~at_once] for values in (np.maximum(start, 0), end, amount, length)
    )
    if not len(start):
        return
    second = np.floor(start).astype(np.int64)
    for step in range(int(np.max(np.ceil(end) - second))):
        current = second + step
        share = np.clip(np.minimum(end, current + 1) - np.maximum(start, current), 0, None) / length
        np.add.at(total, np.clip(current, 0, len(total) - 1), share * amount)
