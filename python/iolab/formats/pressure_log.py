"""iolab's own log of /proc/pressure, `# iolab pressure 1`: shares of time in which tasks waited (psi.rst of the kernel).

A line is the kernel's with its file's name in front: `io some avg10=0.00 avg60=0.00 avg300=0.00 total=<microseconds>`.
"""

from __future__ import annotations

import re

import numpy as np

from .counters_log import detect_log, read_log
from .host_columns import Column, host_table, rate
from .tables import HostTable

_LINE = re.compile(r"(io|cpu|memory) (some|full)(?: avg\d+=\d+\.\d+)* total=(\d{1,20})", re.ASCII)
_MICRO = 1e-6


class PressureLog:
    """Share of time in which some task (`some`) or every task that could run (`full`) waited for I/O, CPU or memory."""

    name = "pressure"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log(self.name, head)

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings, from the totals; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, _parse, "a line of /proc/pressure")
        columns = []
        for name in dict.fromkeys(name for reading in readings for name in reading.counters):
            share = rate(readings, name, scale=_MICRO)
            columns.append(Column(f"pressure.{name}", None if share is None else np.clip(share, 0, 1), "1", f"{name} total", "us"))
        return host_table(self.name, readings, columns, damaged)


def _parse(line: str) -> tuple[str, list[int]] | None:
    match = _LINE.fullmatch(line.strip())
    return None if match is None else (f"{match[1]}.{match[2]}", [int(match[3])])
