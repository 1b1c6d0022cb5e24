# SPDX-License-Identifier: Apache-2.0
"""Counters of a pool, once a second, from /proc/spl/kstat/zfs/<pool>: `txgs.log`,
`dmu_tx_assign.log`, `objset.log`.

Lines are the kernel's with the pool's name (of `objset` the data set's) and a tab in front. Names
come and go while a run lasts, so a reading ends with a line `end`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from iolab.base.clock import Clock
from iolab.formats.zfs.kstat_log import KSTATS, named_lines, not_loaded
from iolab.hosts.base.host import Host, text_or_none
from iolab.hosts.base.options import Options

from .counters import CounterSource
from .zfs_pools import PoolOptions, pools_to_watch

_END = "end\n"


class _PoolKstat(CounterSource):
    options: ClassVar[type[Options]] = PoolOptions

    def __init__(
        self, options: PoolOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options, host, clock, devices)
        self._pool = options.pool
        self._pools: Sequence[str] = ()

    def unfit(self) -> str | None:
        """Without OpenZFS there is nothing to read; pools may be made after this is asked."""
        return not_loaded(self._host)

    def start(self, run_dir: Path) -> None:
        """Find the pools, write the head and the first reading."""
        self._pools = ()
        super().start(run_dir)

    def lines(self) -> list[str]:
        """The lines of every pool; OSError where none is imported, or a pool disappeared."""
        if not self._pools:
            self._pools = pools_to_watch(self._host, self._pool)
        return [*(line for pool in self._pools for line in self.lines_of(pool)), _END]

    @abstractmethod
    def lines_of(self, pool: str) -> list[str]:
        """The lines of one pool, each with its line end."""


class DmuTxAssignSource(_PoolKstat):
    """How long transactions waited to be assigned to a transaction group: counts by powers of two
    of nanoseconds."""

    name: ClassVar[str] = "dmu_tx_assign"

    def lines_of(self, pool: str) -> list[str]:
        """The counts up to the largest that isn't 0: none before the first wait."""
        return [
            f"{pool}\t{line}"
            for line in named_lines(self._host.read_text(f"{KSTATS}/{pool}/{self.name}"))
        ]


class ObjsetSource(_PoolKstat):
    """Reads, writes and unlinks of every data set; since OpenZFS 2.2 its intent log too."""

    name: ClassVar[str] = "objset"

    def lines_of(self, pool: str) -> list[str]:
        """The counters of every data set that is mounted."""
        lines: list[str] = []
        for entry in self._host.list_directory(f"{KSTATS}/{pool}"):
            if entry.startswith("objset-"):
                lines += self._of(f"{KSTATS}/{pool}/{entry}")
        return lines

    def _of(self, path: str) -> list[str]:
        try:
            lines = named_lines(self._host.read_text(path))
        except OSError:  # unmounted since the directory was listed
            return []
        name = next(
            (
                line.split(None, 2)[2].rstrip("\n")
                for line in lines
                if line.startswith("dataset_name ")
            ),
            "",
        )
        return (
            [f"{name}\t{line}" for line in lines if not line.startswith("dataset_name ")]
            if name
            else []
        )


class TxgsSource(_PoolKstat):
    """Transaction groups: dirty bytes, bytes read and written, time open, quiescing, waiting and
    syncing.

    The kernel keeps the last `zfs_txg_history` of them. Each reading has those that were not done
    at the last one, and the newest done. A group that came and went between two readings is counted
    as lost.
    """

    name: ClassVar[str] = "txgs"

    def __init__(
        self, options: PoolOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options, host, clock, devices)
        self._seen: dict[str, tuple[int, int]] = {}
        self._missed = 0

    def unfit(self) -> str | None:
        """Without OpenZFS, or where it keeps no history, there is nothing to read."""
        kept = text_or_none(self._host, "/sys/module/zfs/parameters/zfs_txg_history")
        return super().unfit() or (
            "zfs_txg_history is 0: no history of transaction groups is kept"
            if kept == "0"
            else None
        )

    def start(self, run_dir: Path) -> None:
        """Forget what was seen, write the head and the first reading."""
        self._seen, self._missed, self.trouble = {}, 0, ""
        super().start(run_dir)

    def lines_of(self, pool: str) -> list[str]:
        """The groups that are new or were not done yet."""
        rows = [
            (int(line.split(None, 1)[0]), line)
            for line in self._host.read_text(f"{KSTATS}/{pool}/txgs").splitlines(keepends=True)
            if line[:1].isdecimal()
        ]
        # a raw kstat has a line of its own numbers above the titles in some releases; groups have
        # twelve fields
        rows = [(txg, line) for txg, line in rows if len(line.split()) == 12]
        if not rows:
            return []
        done, newest = self._seen.get(pool, (0, 0))
        first, last = min(txg for txg, _ in rows), max(txg for txg, _ in rows)
        if last < newest:  # imported anew, or another pool of that name
            done = newest = 0
        if newest and first > newest + 1:
            self._miss(first - newest - 1)
        committed = [txg for txg, line in rows if line.split()[2] == "C"]
        self._seen[pool] = max(committed, default=done), last
        return [f"{pool}\t{line}" for txg, line in rows if txg >= done]

    def _miss(self, count: int) -> None:
        self._missed += count
        self.lost += count
        self.trouble = f"missed {self._missed} transaction groups: more passed between two readings than zfs_txg_history keeps"
