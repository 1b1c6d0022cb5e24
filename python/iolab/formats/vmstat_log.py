"""iolab's own log of /proc/vmstat, `# iolab vmstat 1`: pages dirtied, written, reclaimed and swapped, as rates.

Names are the kernel's (mm/vmstat.c); they come and go by version: what a kernel lacks is missing, never 0.
"""

from __future__ import annotations

from .counters_log import detect_log, read_log
from .host_columns import Column, host_table, rate, whole_numbers
from .tables import HostTable

_KIB = 1024.0
_RATES = {
    "vmstat.dirtied": ("nr_dirtied",), "vmstat.written": ("nr_written",), "vmstat.swap_in": ("pswpin",), "vmstat.swap_out": ("pswpout",),
    "vmstat.major_faults": ("pgmajfault",), "vmstat.compact_stalls": ("compact_stall",), "vmstat.scanned_directly": ("pgscan_direct",)}


class VmstatLog:
    """Rates of pages and events, and bytes that all block devices moved."""

    name = "vmstat"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log(self.name, head)

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, _parse, "a line of /proc/vmstat")
        stalls = sorted({name for reading in readings for name in reading.counters if name.startswith("allocstall")})
        columns = [Column(name, rate(readings, *fields), "1/s", " + ".join(fields), "") for name, fields in _RATES.items()]
        columns += [
            Column("vmstat.direct_reclaim", rate(readings, *stalls), "1/s", "allocstall of all zones", ""),
            Column("vmstat.read.bw", rate(readings, "pgpgin", scale=_KIB), "B/s", "pgpgin", "KiB"),
            Column("vmstat.write.bw", rate(readings, "pgpgout", scale=_KIB), "B/s", "pgpgout", "KiB"),
        ]
        return host_table(self.name, readings, columns, damaged)


def _parse(line: str) -> tuple[str, list[int]] | None:
    fields = line.split()
    numbers = whole_numbers(fields[1:])
    return None if numbers is None or len(numbers) != 1 else (fields[0], numbers)
