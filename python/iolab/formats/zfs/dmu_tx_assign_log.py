# SPDX-License-Identifier: Apache-2.0
"""iolab's log of how long transactions waited for a group, `# iolab dmu_tx_assign 1`: the pool's
name, a tab, `<2^i> ns type count`; `end`.

The kernel counts in its bucket 2^i what took more than 2^(i-1) and at most 2^i ns; on the grid,
with buckets that include their lower and exclude their upper end, that is taken as [2^(i-1), 2^i): only
waits of exactly a power of two are counted a bucket too low. Buckets above the last that isn't 0
are
not written: they are 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from iolab._core import grid_bounds
from iolab.base.metrics import Metric

from ..core.tables import Floats, HostTable
from ..host.counter_set import Curve, HostLog, Measured
from ..host.counters_log import read_log
from .histograms import HistogramTable, histogram_table
from .kstat_log import named_counter

_TAIL = 0.99
_BUCKET = re.compile(r"(\d{1,20}) ns", re.ASCII)


class DmuTxAssignLog(HostLog):
    """Counts of waits per interval, by powers of two of nanoseconds."""

    name = "dmu_tx_assign"

    metrics = (
        Measured(
            Metric("zfs.tx.waited", "transactions that waited for a TXG", "1/s", None),
            "dmu_tx_assign.wait[pool]",
            None,
            True,
        ),
        Measured(
            Metric("zfs.tx.wait.p99", "p99 wait for a TXG (power of two)", "s", "lower"),
            "dmu_tx_assign.wait[pool]",
            None,
        ),
    )

    def read(self, data: bytes, where: str) -> HistogramTable:
        """One histogram of all pools per interval; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(
            self.name, data, where, _parse, "a bucket of dmu_tx_assign", end="end"
        )
        grown: list[dict[int, int] | None] = []
        for reading in readings:
            row: dict[int, int] = {}
            for name, (count,) in reading.counters.items():
                n = max(int(name.rpartition("\t")[2]) - 1, 0)
                row[n] = row.get(n, 0) + count
            grown.append(row)
        return histogram_table(self.name, "latency", readings, {("pool", "wait"): grown}, damaged)

    def curves(self, table: HostTable) -> Iterator[Curve]:
        """How many waited, and for how long."""
        yield from super().curves(table)
        if isinstance(table, HistogramTable):
            yield Curve("zfs.tx.wait.p99", "s", _p99(table))


def _parse(line: str) -> tuple[str, list[int]] | None:
    pool, tab, rest = line.partition("\t")
    counter = named_counter(rest) if tab and pool else None
    match = _BUCKET.fullmatch(counter[0]) if counter is not None else None
    if counter is None or match is None or counter[1][0] < 0:
        return None
    nanoseconds = int(match[1])
    power = nanoseconds and nanoseconds & (nanoseconds - 1) == 0 and nanoseconds.bit_length() <= 64
    return (f"{pool}\t{nanoseconds.bit_length() - 1}", counter[1]) if power else None


def _p99(table: HistogramTable) -> Floats:
    """Per interval the time below which 99 % of the waits were, in seconds, the upper bound of a
    bucket; nan where there was none."""
    counts = table.histograms["pool", "wait"]
    rows = counts.counts[np.isin(table.ends_ns, table.time_ns)]
    upper = (
        np.array([grid_bounds(int(index), 0)[1] + 1 for index in counts.indices], dtype=np.float64)
        / 1e9
    )
    upper_bounds = np.full(len(rows), np.nan)
    for place, row in enumerate(rows):
        total = int(row.sum())
        if total:
            upper_bounds[place] = upper[int(np.searchsorted(np.cumsum(row), _TAIL * total))]
    return upper_bounds
