"""Counters of the whole of OpenZFS, once a second, from /proc/spl/kstat/zfs: `arcstats.log`, `zil.log`, `dmu_tx.log`.

The kernel's lines are `name type value`; which names there are changes from release to release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from .counters import CounterSource
from .zfs_pools import KSTATS, not_loaded

_HEAD = 2
"""Lines before the first counter: the kstat's own, and the titles."""


def named_lines(text: str) -> list[str]:
    """The counters of a named kstat, each with its line end."""
    return text.splitlines(keepends=True)[_HEAD:]


class _GlobalKstat(CounterSource):
    def lines(self) -> list[str]:
        """The counters as the kernel wrote them."""
        return named_lines(self._host.read_text(f"{KSTATS}/{self.name}"))

    def unfit(self) -> str | None:
        """Without OpenZFS there is nothing to read."""
        return not_loaded(self._host) or super().unfit()

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Every counter by its name."""
        return {fields[0]: float(fields[2]) for fields in (line.split() for line in lines)}


class ArcstatsSource(_GlobalKstat):
    """The ARC: hits and misses of demand and prefetch, of data and metadata; its sizes; L2ARC."""

    name: ClassVar[str] = "arcstats"

    def live(self, passed: float, before: Mapping[str, float], now: Mapping[str, float]) -> Mapping[str, float]:
        """Bytes in the ARC."""
        return {"zfs.arc.size": now["size"]} if "size" in now else {}


class ZilSource(_GlobalKstat):
    """The intent log: commits, records by how they are written, bytes to log devices and to the pool."""

    name: ClassVar[str] = "zil"

    def live(self, passed: float, before: Mapping[str, float], now: Mapping[str, float]) -> Mapping[str, float]:
        """Commits per second."""
        key = "zil_commit_count"
        return {"zfs.zil.commits": (now[key] - before[key]) / passed} if key in now and key in before else {}


class DmuTxSource(_GlobalKstat):
    """Transactions: assigned, delayed by the write throttle, held back for memory or quota."""

    name: ClassVar[str] = "dmu_tx"
