"""iolab's own log of /proc/meminfo, `# iolab memory 1`: what memory held at each reading (proc(5); its kB is 1024 bytes)."""

from __future__ import annotations

from collections.abc import Sequence

from .counters_log import Reading, detect_log, read_log
from .host_columns import Column, gauge, host_table, whole_numbers
from .tables import HostTable

_KIB = 1024.0
_COLUMNS = {
    "memory.free": "MemFree", "memory.available": "MemAvailable", "memory.buffers": "Buffers", "memory.cached": "Cached",
    "memory.dirty": "Dirty", "memory.writeback": "Writeback", "memory.anonymous": "AnonPages", "memory.slab": "Slab"}


class MemoryLog:
    """Bytes of memory by what they hold, at the end of each interval."""

    name = "memory"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log(self.name, head)

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per reading but the first; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, _parse, "a line of /proc/meminfo")
        columns = [Column(name, gauge(readings, field, _KIB), "B", field, "kB") for name, field in _COLUMNS.items()]
        columns.append(_swapped(readings))
        return host_table(self.name, readings, columns, damaged)


def _swapped(readings: Sequence[Reading]) -> Column:
    total, free = gauge(readings, "SwapTotal", _KIB), gauge(readings, "SwapFree", _KIB)
    values = None if total is None or free is None else total - free
    return Column("memory.swapped", values, "B", "SwapTotal - SwapFree", "kB")


def _parse(line: str) -> tuple[str, list[int]] | None:
    name, colon, rest = line.partition(":")
    fields = rest.split()
    numbers = whole_numbers(fields[:1])
    if not colon or not name or numbers is None or fields[1:] not in ([], ["kB"]):
        return None
    return name, numbers
