"""Observations of what the host did over the window: means, and the extreme where that is what matters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ..formats.tables import Floats, HostTable
from .model import Observation
from .monitor_series import PREFIX

_MEANS = ("cpu.busy", "cpu.user", "cpu.system", "cpu.iowait", "cpu.steal", "cpu.busiest", "context_switches", "interrupts",
          "tasks.blocked", "memory.cached", "memory.dirty", "memory.writeback", "vmstat.dirtied", "vmstat.written",
          "vmstat.direct_reclaim", "vmstat.swap_in", "vmstat.swap_out", "vmstat.major_faults", "pressure.io.some", "pressure.io.full",
          "pressure.cpu.some", "pressure.memory.some", "pressure.memory.full")
_EXTREMES = {"memory.available": ("memory.available", np.min), "memory.dirty.max": ("memory.dirty", np.max)}


def observations(tables: Mapping[str, HostTable], files: Mapping[str, str]) -> Iterator[Observation]:
    """Each metric whose column some table has, over the seconds in which it is known.

    Args:
        tables: by kind, cut to the window. files: kind to the file that it came from.
    """
    for kind, table in tables.items():
        for column in _MEANS:
            if (value := _over(table.columns.get(column), np.mean)) is not None:
                yield _observation(table, files[kind], column, column, value, "mean")
        for metric, (column, summary) in _EXTREMES.items():
            if (value := _over(table.columns.get(column), summary)) is not None:
                yield _observation(table, files[kind], metric, column, value, summary.__name__)


def mean_busy(tables: Mapping[str, HostTable]) -> float | None:
    """Share of all CPUs' time that was busy over the window; None where nobody watched."""
    return _over(tables["cpu"].columns.get("cpu.busy"), np.mean) if "cpu" in tables else None


def _over(values: Floats | None, summary: object) -> float | None:
    if values is None:
        return None
    known = values[np.isfinite(values)]
    value = float(summary(known)) if len(known) else math.nan  # type: ignore[operator]
    return value if math.isfinite(value) else None


def _observation(table: HostTable, file: str, metric: str, column: str, value: float, how: str) -> Observation:
    field, unit = table.source_fields[column]
    return Observation(f"{PREFIX}{metric}", value, table.units[column], file, f"{how} of {field}", None, unit)
