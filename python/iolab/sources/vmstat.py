"""What the host's memory management did, once a second: `vmstat.log`, from /proc/vmstat."""

from __future__ import annotations

from typing import ClassVar

from .counters import CounterSource

_PROC = "/proc/vmstat"
_CHOSEN = ("pgpg", "pswp", "pgfault ", "pgmajfault ", "pgscan_", "pgsteal_", "allocstall", "nr_dirt", "nr_writ", "nr_throttled",
           "nr_vmscan", "compact_stall", "compact_fail", "compact_success", "workingset_refault", "drop_", "oom_kill", "kswapd_")
"""Beginnings of names: paging, swapping, reclaim, dirty pages and their writing, compaction, dropped caches."""


class VmstatSource(CounterSource):
    """Pages dirtied, written, swapped and reclaimed, memory compaction, dropped caches."""

    name: ClassVar[str] = "vmstat"

    def lines(self) -> list[str]:
        """The chosen lines."""
        return [line for line in self._host.read_text(_PROC).splitlines(keepends=True) if line.startswith(_CHOSEN)]
