"""fio's logs of all jobs of a run as rates per second: what the load saw, second by second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .tables import FioLogTable, Floats

OPERATION_NAMES = ("read", "write", "trim", "sync")
"""Operation number of a log to its name."""

_SINCE_EPOCH = 1e8
"""Seconds; a job doesn't run for three years, so a later time is the epoch's (log_unix_epoch, log_alternate_epoch)."""

_LONGEST = 1e7
"""Seconds, a hundred days: more is no run but a damaged time."""


@dataclass(frozen=True)
class PerSecond:
    """Rates of all jobs together in whole seconds.

    Attributes:
        origin: what `time` counts from: 0 for the job's start, else seconds since the epoch.
        time: start of each second, counted from `origin`; shape (n,).
        rates: operation to B/s (`bw`) or 1/s (`iops`); shape (n,) each; 0 in a second without I/O, for fio writes no
            row then.
    """

    origin: float
    time: Floats
    rates: Mapping[str, Floats]


def per_second(tables: Iterable[FioLogTable], kind: Literal["bw", "iops"]) -> PerSecond:
    """Sum of the jobs' logs in one-second steps.

    A row that is an average over a window counts for the time up to it, spread over the seconds that it touches, so
    that windows of any length and fio's jitter of a few milliseconds come out right. Rows of single I/Os are counted
    (iops) or their sizes added (bw). A last second that the logs cover by less than nine tenths is left out, and what
    some of the jobs that ran to the end have no row of any more: fio drops a job's last window at times.

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
        raise FormatError(f"the logs span {last - origin:.0f} s",
                          hint="a time in them is damaged, or they are of different runs")
    seconds = int(_common_end(spans, last) - origin + 0.1)
    operations = sorted({int(number) for rows in spans for number in np.unique(rows.operation)})
    rates = {}
    for number in operations:
        if number >= len(OPERATION_NAMES):
            continue
        total = np.zeros(int(last - origin) + 2)
        for rows in spans:
            chosen = rows.operation == number
            _spread(total, rows.start[chosen] - origin, rows.end[chosen] - origin, rows.amount[chosen])
        rates[OPERATION_NAMES[number]] = total[:seconds]
    return PerSecond(origin, np.arange(seconds, dtype=np.float64), rates)


@dataclass(frozen=True)
class _Rows:
    """What was done (bytes or I/Os) between two times, per row."""

    start: Floats
    end: Floats
    amount: Floats
    operation: NDArray[np.int8]

    @classmethod
    def of(cls, table: FioLogTable, kind: Literal["bw", "iops"]) -> _Rows:
        scale = 1024.0 if kind == "bw" else 1.0
        if table.averaged is False:
            amount = table.block_size_bytes.astype(np.float64) if kind == "bw" else np.ones(len(table.time))
            return cls(table.time, table.time, amount, table.operation)
        start = np.empty_like(table.time)
        for number in np.unique(table.operation):
            chosen = table.operation == number
            start[chosen] = _window_starts(table.time[chosen])
        return cls(start, table.time, table.value * scale * (table.time - start), table.operation)


def _common_end(spans: Sequence[_Rows], last: float) -> float:
    """Until when all jobs that ran to the end have rows: a job that lacks its last window is no job that slowed down.

    A job whose rows end longer before is one that ended earlier, and takes nothing away.
    """
    reach = 1.5 * max(1.0, *(float(np.max(rows.end - rows.start)) for rows in spans))
    return min(end for rows in spans if (end := float(rows.end.max())) >= last - reach)


def _window_starts(ends: Floats) -> Floats:
    """Where the windows that end so began: at the row before, but no earlier than a window's length.

    fio leaves a window without I/O out, so that the row before may be long ago. With per_job_logs=0 one job's rows
    follow another's: time goes back, and the next job's first window begins.
    """
    steps = np.diff(ends, prepend=ends[0])
    positive = steps[1:][steps[1:] > 0]
    window = float(np.median(positive)) if len(positive) else min(float(ends[0]), 1.0)
    lengths = np.where((steps < 0) | (steps > 1.5 * window), window, steps)
    lengths[0] = window
    return np.where(ends > _SINCE_EPOCH, ends - lengths, np.maximum(ends - lengths, 0.0))


def _spread(total: Floats, start: Floats, end: Floats, amount: Floats) -> None:
    """Add each row's amount to the seconds between its start and end, in proportion to the time in each."""
    length = end - start
    at_once = length <= 0
    np.add.at(total, np.clip(end[at_once], 0, len(total) - 1).astype(np.int64), amount[at_once])
    start, end, amount, length = (values[~at_once] for values in (np.maximum(start, 0), end, amount, length))
    if not len(start):
        return
    second = np.floor(start).astype(np.int64)
    for step in range(int(np.max(np.ceil(end) - second))):
        here = second + step
        share = np.clip(np.minimum(end, here + 1) - np.maximum(start, here), 0, None) / length
        np.add.at(total, np.clip(here, 0, len(total) - 1), share * amount)
