"""Per-second series of what the host did, named as the metrics that sum them up."""

from __future__ import annotations

from collections.abc import Mapping

from ..formats.tables import HostTable
from .model import Series
from .series import times

PREFIX = "host."

SHOWN = ("cpu.busy", "cpu.user", "cpu.system", "cpu.iowait", "cpu.busiest", "memory.available", "memory.cached", "memory.dirty",
         "memory.writeback", "vmstat.direct_reclaim", "pressure.io.some", "pressure.io.full")
"""Columns that are drawn; the others are summed up only."""


def host_series(tables: Mapping[str, HostTable], window: tuple[int, int] | None) -> dict[str, Series]:
    """`host.cpu.busy`, `host.memory.dirty`... of tables cut to the window, time in seconds since its start."""
    found: dict[str, Series] = {}
    for table in tables.values():
        time = times(table, window)
        for column in SHOWN:
            values = table.columns.get(column)
            if values is not None and len(values):
                name = f"{PREFIX}{column}"
                found[name] = Series(name, table.units[column], time, values)
    return found
