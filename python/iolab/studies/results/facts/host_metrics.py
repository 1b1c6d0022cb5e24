# SPDX-License-Identifier: Apache-2.0
"""Observations and series of what the host did over the window, by the readers of the logs that its
sources left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from iolab.base import registry
from iolab.formats.core.tables import HostTable
from iolab.formats.host.counter_set import HostLog, finite_values

from ..evidence.model import Observation, Series
from .series import origin, times


def observations(
    tables: Mapping[str, HostTable], files: Mapping[str, str]
) -> Iterator[Observation]:
    """A value of each metric that some table knows something of within the window; nothing for what
    a kernel doesn't tell.

    Args:
        tables: by kind, cut to the window. files: kind to the file that it came from.
    """
    for kind, table in tables.items():
        for summary in _reader(kind).summaries(table):
            yield Observation(
                summary.metric,
                summary.value,
                summary.unit,
                files[kind],
                summary.field,
                None,
                summary.source_unit,
            )


def host_series(
    tables: Mapping[str, HostTable], window: tuple[int, int] | None
) -> dict[str, Series]:
    """The metrics that are drawn, by name, from tables cut to the window; time in seconds since its
    start."""
    lines: dict[str, Series] = {}
    for kind, table in tables.items():
        for curve in _reader(kind).curves(table):
            if not np.isfinite(curve.values).any():
                continue
            if curve.time_ns is None:
                lines[curve.metric] = Series(
                    curve.metric, curve.unit, times(table, window), curve.values
                )
            else:
                time = (curve.time_ns - origin(table.time_ns, table.interval, window)) / 1e9
                lines[curve.metric] = Series(
                    curve.metric, curve.unit, time, curve.values, table.interval
                )
    return lines


def mean_busy(tables: Mapping[str, HostTable]) -> float | None:
    """Share of all CPUs' time that was busy over the window; None where it was not recorded."""
    busy = finite_values(tables["cpu"].columns.get("cpu.busy")) if "cpu" in tables else ()
    return float(np.mean(busy)) if len(busy) else None


def _reader(kind: str) -> HostLog:
    reader: HostLog = registry.load("format", kind)()
    return reader
