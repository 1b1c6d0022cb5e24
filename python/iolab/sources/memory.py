"""What the host's memory held, once a second: `memory.log`, from /proc/meminfo (proc(5))."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from .counters import CounterSource

_PROC = "/proc/meminfo"
CHOSEN = frozenset({
    "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active(file)", "Inactive(file)", "SwapTotal", "SwapFree",
    "Dirty", "Writeback", "WritebackTmp", "AnonPages", "Mapped", "Shmem", "KReclaimable", "Slab", "SReclaimable", "SUnreclaim"})
"""What storage depends on: pages that cache files, those not yet written, and what the kernel itself holds."""


class MemorySource(CounterSource):
    """Memory free, available, in the page cache, dirty and under writeback."""

    name: ClassVar[str] = "memory"

    def lines(self) -> list[str]:
        """The chosen lines."""
        return [line for line in self._host.read_text(_PROC).splitlines(keepends=True) if line.partition(":")[0] in CHOSEN]

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Dirty bytes."""
        return {name: 1024.0 * int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if name == "Dirty"}

    def live(self, passed: float, before: Mapping[str, float], now: Mapping[str, float]) -> Mapping[str, float]:
        """Bytes that wait to be written."""
        return {"host.memory.dirty": now["Dirty"]} if "Dirty" in now else {}
