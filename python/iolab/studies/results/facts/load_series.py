# SPDX-License-Identifier: Apache-2.0
"""Per-second series of what the load itself saw, from fio's own logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import numpy as np

from iolab.base.errors import FormatError
from iolab.formats.core.tables import FioLogTable
from iolab.formats.fio.seconds import PerSecond, latency_per_second, per_second

from ..evidence.model import Series

_KIND = re.compile(r"(?:^|_)(bw|iops|lat|clat|slat)(?:\.\d+)?\.log")
_UNITS: dict[str, str] = {"bw": "B/s", "iops": "1/s"}


def load_series(
    logs: Mapping[str, FioLogTable], window: tuple[int, int] | None, *, latency_scale: float = 1e-9
) -> dict[str, Series]:
    """`read.iops`, `write.bw`... and `load.bw`, the sum over operations, from the logs of all jobs
    of a run; `write.lat`, `write.clat`... where fio logged them, the mean over the I/Os of all
    jobs, nan in a second without any.

    Args:
        logs: file name to table; bandwidth and rate logs are identified by fio's names
            (`..._bw.1.log`).
        window: the measured window, realtime ns; logs with epoch times are cut to it.
        latency_scale: seconds per unit of the logs of latencies: 1e-9, and 1e-6 before fio 2.99.

    Logs that don't fit together (a damaged time) yield no series.
    """
    lines: dict[str, Series] = {}
    kinds: tuple[Literal["bw", "iops"], ...] = ("bw", "iops")
    for kind in kinds:
        tables = [
            table
            for file, table in logs.items()
            if (match := _KIND.search(file)) and match[1] == kind
        ]
        try:
            rates = per_second(tables, kind)
        except FormatError:
            continue
        time, inside = _window(rates, window)
        for operation, values in rates.rates.items():
            name = f"{operation}.{kind}"
            lines[name] = Series(name, _UNITS[kind], time[inside], values[inside])
        if kind == "bw" and rates.rates:
            total = np.sum(list(rates.rates.values()), axis=0)
            lines["load.bw"] = Series("load.bw", "B/s", time[inside], total[inside])
    for latency in ("lat", "clat", "slat"):
        try:
            means = latency_per_second(_with_rates(logs, latency))
        except FormatError:
            continue
        time, inside = _window(means, window)
        for operation, values in means.rates.items():
            name = f"{operation}.{latency}"
            lines[name] = Series(name, "s", time[inside], values[inside] * latency_scale)
    return lines


def _with_rates(
    logs: Mapping[str, FioLogTable], kind: str
) -> list[tuple[FioLogTable, FioLogTable | None]]:
    """Logs of latencies, each with the log of rates of the same job: `x_clat.3.log` and
    `x_iops.3.log`."""
    pairs = []
    for file, table in logs.items():
        if (match := _KIND.search(file)) and match[1] == kind:
            pairs.append((table, logs.get(f"{file[: match.start(1)]}iops{file[match.end(1) :]}")))
    return pairs


def _window(rates: PerSecond, window: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
    """End of each second since the window's start, and which seconds lie inside, give or take half
    of one."""
    ends = rates.time + 1.0
    if window is None or rates.origin == 0:
        return ends, np.ones(len(ends), bool)
    relative = ends + rates.origin - window[0] / 1e9
    length = (window[1] - window[0]) / 1e9
    return relative, (relative >= 0.5) & (relative <= length + 0.5)
