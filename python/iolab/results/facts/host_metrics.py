# SPDX-License-Identifier: Apache-2.0
"""Observations and series of what the host did over the window, by the readers of the logs that its
sources left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ... import registry
from ...formats.core.tables import HostTable
from ...formats.host.counter_set import HostLog, known
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
        for one in _reader(kind).summaries(table):
            yield Observation(
                one.metric, one.value, one.unit, files[kind], one.field, None, one.source_unit
            )


def host_series(
    tables: Mapping[str, HostTable], window: tuple[int, int] | None
) -> dict[str, Series]:
    """The metrics that are drawn, by name, from tables cut to the window; time in seconds since its
    start."""
    found: dict[str, Series] = {}
    for kind, table in tables.items():
        for curve in _reader(kind).curves(table):
            if not np.isfinite(curve.values).any():
                continue
            if curve.time_ns is None:
                found[curve.metric] = Series(
                    curve.metric, curve.unit, times(table, window), curve.values
                )
            else:
                time = (curve.time_ns - origin(table.time_ns, table.interval, window)) / 1e9
                found[curve.metric] = Series(
                    curve.metric, curve.unit, time, curve.values, table.interval
                )
    return found


def mean_busy(tables: Mapping[str, HostTable]) -> float | None:
    """Share of all CPUs' time that was busy over the window; None where nobody watched."""
    busy = known(tables["cpu"].columns.get("cpu.busy")) if "cpu" in tables else ()
    return float(np.mean(busy)) if len(busy) else None


def _reader(kind: str) -> HostLog:
    made: HostLog = registry.load("format", kind)()
    return made
