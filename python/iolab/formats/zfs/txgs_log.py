# SPDX-License-Identifier: Apache-2.0
"""iolab's log of transaction groups, `# iolab txgs 1`: the pool's name, a tab, and a line of its
`txgs`; `end` after each reading.

A line: txg, birth (ns since boot, on a clock of its own), state (B born, O open, Q quiescing, W
waiting, S syncing, C committed), dirty bytes, bytes read, bytes written, reads, writes, ns open,
quiescing, waiting, syncing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolab.base.metrics import Metric

from ..core.tables import Floats, HostTable
from ..host.counter_set import Curve, HostLog, Measured, Summary
from ..host.counters_log import Reading, read_log
from ..host.host_columns import Column, host_table, whole_numbers

_STATES = "BOQWSC"
_COMMITTED = _STATES.index("C")
_FIELDS = 12
_DIRTY, _WRITTEN, _SYNC = 2, 4, 10
"""Places in a line's numbers after the txg: birth, state, ndirty, nread, nwritten, reads, writes,
otime, qtime, wtime, stime."""


@dataclass(frozen=True)
class TxgTable(HostTable):
    """The transaction groups that were committed while the log was written, in the order in which
    they were seen so; shapes (n,).

    Attributes:
        pool, txg: identify the group. seen_ns: realtime of the first reading in which they were
        committed, at most an interval later. dirty_bytes, written_bytes: of the group. open_time,
        quiesce_time, wait_time, sync_time: seconds in each state. lost: groups that came and went
        between two readings.
    """

    pool: tuple[str, ...] = ()
    txg: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    seen_ns: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    dirty_bytes: Floats = field(default_factory=lambda: np.empty(0))
    written_bytes: Floats = field(default_factory=lambda: np.empty(0))
    open_time: Floats = field(default_factory=lambda: np.empty(0))
    quiesce_time: Floats = field(default_factory=lambda: np.empty(0))
    wait_time: Floats = field(default_factory=lambda: np.empty(0))
    sync_time: Floats = field(default_factory=lambda: np.empty(0))
    lost: int = 0


@dataclass
class _Group:
    pool: str
    txg: int
    reading: int
    numbers: list[int]


class TxgsLog(HostLog):
    """Groups committed per interval, their dirty bytes and their time of syncing; nan where none
    was."""

    name = "txgs"

    metrics = (
        Measured(
            Metric(
                "zfs.txg.sync.p50",
                "p50 sync time, transaction groups",
                "s",
                "lower",
                "ratio",
                "max",
            ),
            "txg.sync",
            None,
        ),
        Measured(
            Metric(
                "zfs.txg.sync.max",
                "maximum sync time, transaction groups",
                "s",
                "lower",
                "ratio",
                "max",
                "nothing",
            ),
            "txg.sync",
            None,
        ),
        Measured(
            Metric(
                "zfs.dirty.max",
                "maximum dirty data, transaction groups",
                "B",
                None,
                "ratio",
                "max",
                "nothing",
            ),
            "txg.dirty",
            None,
        ),
        Measured(
            Metric("zfs.txg.sync", "sync time, each transaction group", "s", "lower"),
            "txg.sync",
            None,
            True,
        ),
        Measured(
            Metric("zfs.txg.dirty", "dirty data, each transaction group", "B", None),
            "txg.dirty",
            None,
            True,
        ),
    )

    def read(self, data: bytes, where: str) -> TxgTable:
        """One value per interval between two readings, and every group; FormatError as
        `counters_log.read_log` says."""
        readings, damaged = read_log(
            self.name, data, where, _parse, "a transaction group", end="end"
        )
        groups, lost = _read_groups(readings)
        steps = np.diff([reading.monotonic_ns for reading in readings]) / 1e9
        counts = (
            np.bincount([group.reading - 1 for group in groups], minlength=len(steps))
            if len(steps)
            else np.empty(0)
        )
        table = host_table(
            self.name,
            readings,
            [
                Column("txg.committed", counts / steps, "1/s", "groups in state C"),
                Column("txg.sync", _most(groups, _SYNC, len(steps)) / 1e9, "s", "most stime", "ns"),
                Column("txg.dirty", _most(groups, _DIRTY, len(steps)), "B", "most ndirty", "B"),
                Column(
                    "txg.write.bw",
                    _sums(groups, _WRITTEN, len(steps)) / steps,
                    "B/s",
                    "nwritten",
                    "B",
                ),
            ],
            damaged,
        )
        numbers = np.array([group.numbers for group in groups], dtype=np.float64).reshape(
            len(groups), _FIELDS - 1
        )
        return TxgTable(
            **vars(table),
            pool=tuple(group.pool for group in groups),
            txg=np.array([group.txg for group in groups], dtype=np.int64),
            seen_ns=np.array(
                [readings[group.reading].realtime_ns for group in groups], dtype=np.int64
            ),
            dirty_bytes=numbers[:, _DIRTY],
            written_bytes=numbers[:, _WRITTEN],
            open_time=numbers[:, 7] / 1e9,
            quiesce_time=numbers[:, 8] / 1e9,
            wait_time=numbers[:, 9] / 1e9,
            sync_time=numbers[:, _SYNC] / 1e9,
            lost=lost,
        )

    def summaries(self, table: HostTable) -> Iterator[Summary]:
        """Of the groups that were seen committed within the window."""
        inside = _inside(table)
        if isinstance(table, TxgTable) and inside.any():
            sync, dirty, of = (
                table.sync_time[inside],
                table.dirty_bytes[inside],
                f"of {inside.sum()} groups",
            )
            yield Summary("zfs.txg.sync.p50", float(np.median(sync)), "s", f"median stime {of}")
            yield Summary("zfs.txg.sync.max", float(sync.max()), "s", f"most stime {of}")
            yield Summary("zfs.dirty.max", float(dirty.max()), "B", f"most ndirty {of}")

    def curves(self, table: HostTable) -> Iterator[Curve]:
        """A point for each group, at the reading in which it was first seen committed: they end
        every few seconds, not every second."""
        inside = _inside(table)
        if isinstance(table, TxgTable) and inside.any():
            order = np.argsort(table.seen_ns[inside], kind="stable")
            for name, unit, values in (
                ("zfs.txg.sync", "s", table.sync_time),
                ("zfs.txg.dirty", "B", table.dirty_bytes),
            ):
                yield Curve(name, unit, values[inside][order], table.seen_ns[inside][order])


def _inside(table: HostTable) -> NDArray[np.bool_]:
    """Which groups were seen committed at a reading of the table, which may be cut to a window."""
    return (
        np.isin(table.seen_ns, table.time_ns)
        if isinstance(table, TxgTable)
        else np.zeros(0, dtype=np.bool_)
    )


def _parse(line: str) -> tuple[str, list[int]] | None:
    pool, tab, rest = line.partition("\t")
    fields = rest.split()
    if (
        not tab
        or not pool
        or len(fields) != _FIELDS
        or len(fields[2]) != 1
        or fields[2] not in _STATES
    ):
        return None
    numbers = whole_numbers([*fields[:2], *fields[3:]])
    return (
        None
        if numbers is None
        else (f"{pool}\t{fields[0]}", [numbers[1], _STATES.index(fields[2]), *numbers[2:]])
    )


def _read_groups(readings: Sequence[Reading]) -> tuple[list[_Group], int]:
    """Groups that were not committed in the first reading and are in a later one, with their last
    numbers; how many are missing.

    A group's bytes may be written a little after its state, so its line of the next reading, where
    there is one, counts.
    """
    groups: dict[tuple[str, int, int], _Group] = {}
    newest: dict[str, int] = {}
    lost = 0
    for place, reading in enumerate(readings):
        rows: dict[str, dict[int, list[int]]] = {}
        for name, numbers in reading.counters.items():
            pool, _, txg = name.rpartition("\t")
            rows.setdefault(pool, {})[int(txg)] = numbers
        for pool, row_of_txg in rows.items():
            before = newest.get(pool)
            if before is not None and before <= max(row_of_txg):  # else the pool was imported again
                lost += max(0, min(row_of_txg) - before - 1)
            newest[pool] = max(row_of_txg)
            for number, values in row_of_txg.items():
                key = (pool, number, values[0])
                if key in groups:
                    groups[key].numbers = values
                elif values[1] == _COMMITTED:
                    groups[key] = _Group(pool, number, place, values)
    return [group for group in groups.values() if group.reading > 0], lost


def _most(groups: Sequence[_Group], place: int, intervals: int) -> Floats:
    values = np.full(intervals, np.nan)
    for group in groups:
        values[group.reading - 1] = np.fmax(values[group.reading - 1], group.numbers[place])
    return values


def _sums(groups: Sequence[_Group], place: int, intervals: int) -> Floats:
    values = np.zeros(intervals)
    for group in groups:
        values[group.reading - 1] += group.numbers[place]
    return values
