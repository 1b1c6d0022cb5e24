"""Series of what OpenZFS did over a run's window: readings of its counters per second, and a point for each transaction group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from ..formats.tables import Floats, HostTable
from ..formats.txgs_log import TxgTable
from ..formats.zfs_histograms import HistogramTable
from .model import Series
from .series import times

SHOWN = {"arcstats": {"zfs.arc.hit_ratio": "arc.hit_ratio", "zfs.arc.size": "arc.size", "zfs.l2arc.hits": "l2arc.hits",
                      "zfs.l2arc.read.bw": "l2arc.read.bw", "zfs.l2arc.size": "l2arc.size", "zfs.l2arc.headers": "l2arc.headers"},
         "zil": {"zfs.zil.commits": "zil.commits"}, "dmu_tx": {"zfs.tx.delayed": "tx.delayed"},
         "dmu_tx_assign": {"zfs.tx.waited": "dmu_tx_assign.wait[pool]"}}
"""Columns that are drawn, by kind and under the name that they have there; those that a release doesn't tell are left out, and
those of the L2ARC where there is none: its counters are zero then."""

_WAIT = re.compile(r"(vdev\.(?:read|write)\.wait)\[(.+)\]")
_TAIL = 0.99


def zfs_series(tables: Mapping[str, HostTable], window: tuple[int, int] | None) -> dict[str, Series]:
    """By name, from tables cut to the window; time in seconds since its start."""
    return {one.name: one for kind, table in tables.items() for one in _of(kind, table, window) if np.isfinite(one.values).any()}


def _of(kind: str, table: HostTable, window: tuple[int, int] | None) -> Iterator[Series]:
    time = times(table, window)
    for name, column in SHOWN.get(kind, {}).items():
        if column in table.columns and not (column.startswith("l2arc.") and not np.nan_to_num(table.columns[column]).any()):
            yield Series(name, table.units[column], time, table.columns[column])
    if isinstance(table, TxgTable):
        yield from _groups(table, window)
    if kind == "zpool-iostat":
        for column, values in table.columns.items():
            if match := _WAIT.fullmatch(column):
                yield Series(match[1] if match[2] == "pool" else column, "s", time, values)
    if kind == "dmu_tx_assign" and isinstance(table, HistogramTable):
        yield Series("zfs.tx.wait.p99", "s", time, _waits(table))


def _groups(table: TxgTable, window: tuple[int, int] | None) -> Iterator[Series]:
    """A point for each group, at the reading in which it was first seen committed: they end every few seconds, not every second."""
    inside = np.isin(table.seen_ns, table.time_ns)
    if not inside.any():
        return
    origin = window[0] if window is not None else int(table.time_ns[0] - table.interval * 1e9)
    order = np.argsort(table.seen_ns[inside], kind="stable")
    time: Floats = ((table.seen_ns[inside] - origin) / 1e9)[order]
    for name, unit, values in (("zfs.txg.sync", "s", table.sync_time), ("zfs.txg.dirty", "B", table.dirty_bytes)):
        yield Series(name, unit, time, values[inside][order], table.interval)


def _waits(table: HistogramTable) -> Floats:
    """Per interval the time below which 99 % of the waits were, the upper bound of a bucket; nan where there was none."""
    from .._core import grid_bounds

    counts = table.histograms["pool", "wait"]
    rows = counts.counts[np.isin(table.ends_ns, table.time_ns)]
    upper = np.array([grid_bounds(int(index), 0)[1] + 1 for index in counts.indices], dtype=np.float64) / 1e9
    found = np.full(len(rows), np.nan)
    for place, row in enumerate(rows):
        total = int(row.sum())
        if total:
            found[place] = upper[int(np.searchsorted(np.cumsum(row), _TAIL * total))]
    return found
