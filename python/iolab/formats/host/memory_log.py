# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc/meminfo, `memory.log`: what memory held at each reading (proc(5); its kB is
1024 bytes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.base.metrics import Metric

from .counter_set import CounterSet, Files, Measured
from .counters_log import Reading
from .host_columns import Column, gauge, whole_numbers

_PROC = "/proc/meminfo"
_KEPT = frozenset(
    {
        "MemTotal",
        "MemFree",
        "MemAvailable",
        "Buffers",
        "Cached",
        "SwapCached",
        "Active(file)",
        "Inactive(file)",
        "SwapTotal",
        "SwapFree",
        "Dirty",
        "Writeback",
        "WritebackTmp",
        "AnonPages",
        "Mapped",
        "Shmem",
        "KReclaimable",
        "Slab",
        "SReclaimable",
        "SUnreclaim",
    }
)
"""What storage depends on: pages that cache files, those not yet written, and what the kernel
itself holds."""

_KIB = 1024.0
_COLUMNS = {
    "memory.free": "MemFree",
    "memory.available": "MemAvailable",
    "memory.buffers": "Buffers",
    "memory.cached": "Cached",
    "memory.dirty": "Dirty",
    "memory.writeback": "Writeback",
    "memory.anonymous": "AnonPages",
    "memory.slab": "Slab",
}


class MemoryCounters(CounterSet):
    """Memory free, available, in the page cache, dirty and under writeback, at the end of each
    interval."""

    name = "memory"
    line = "a line of /proc/meminfo"
    metrics = (
        Measured(
            Metric("host.memory.available", "available memory, minimum", "B", None),
            "memory.available",
            "min",
            True,
        ),
        Measured(
            Metric("host.memory.cached", "page cache, mean", "B", None),
            "memory.cached",
            is_drawn=True,
        ),
        Measured(
            Metric("host.memory.dirty", "dirty memory, mean", "B", None, "difference"),
            "memory.dirty",
            is_drawn=True,
        ),
        Measured(
            Metric(
                "host.memory.dirty.max",
                "dirty memory, maximum",
                "B",
                None,
                "difference",
                "max",
                "nothing",
            ),
            "memory.dirty",
            "max",
        ),
        Measured(
            Metric(
                "host.memory.writeback", "memory under writeback, mean", "B", None, "difference"
            ),
            "memory.writeback",
            is_drawn=True,
        ),
    )

    def lines(self, files: Files) -> list[str]:
        """The kept lines."""
        return [
            line
            for line in files.read_text(_PROC).splitlines(keepends=True)
            if line.partition(":")[0] in _KEPT
        ]

    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """The field's name and its kB."""
        name, colon, rest = line.partition(":")
        fields = rest.split()
        numbers = whole_numbers(fields[:1])
        if not colon or not name or numbers is None or fields[1:] not in ([], ["kB"]):
            return None
        return name, numbers

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Bytes by what they hold."""
        total, free = gauge(readings, "SwapTotal", _KIB), gauge(readings, "SwapFree", _KIB)
        swapped = None if total is None or free is None else total - free
        return [
            *(
                Column(name, gauge(readings, field, _KIB), "B", field, "kB")
                for name, field in _COLUMNS.items()
            ),
            Column("memory.swapped", swapped, "B", "SwapTotal - SwapFree", "kB"),
        ]

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Dirty bytes."""
        return {
            name: 1024.0 * int(rest.split()[0])
            for name, _, rest in (line.partition(":") for line in lines)
            if name == "Dirty"
        }

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Bytes that wait to be written."""
        return {"host.memory.dirty": now["Dirty"]} if "Dirty" in now else {}
