# SPDX-License-Identifier: Apache-2.0
"""The unit of fio's latency logs: microseconds up to fio 2.21, nanoseconds since 2.99; a log itself
doesn't say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from ...formats.core.tables import FioLogTable, FioOutput
from ..evidence.model import RunPlan

UNIT = "log_latency_unit"
"""Key of a plan's `extra` that gives the unit: `us` or `ns`."""

UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6}

_LATENCY = re.compile(r"_(?:lat|clat|slat)(?:\.\d+)?\.log$")
_VERSION = re.compile(r"fio[- ](\d+)\.(\d+)")
_NO_NANOSECONDS = 150.0
"""Values with a lower median are not nanoseconds: no system call is that fast."""


def latency_scale(
    plan: RunPlan, fio: FioOutput | None, logs: Mapping[str, FioLogTable]
) -> tuple[float, str | None]:
    """Seconds per unit of a run's latency logs, and what had to be assumed for it.

    Known from the plan, else from the version of fio in its result or the result's own fields, else
    from columns that only fio since
    3.19 writes. What the logs' values can't be decides next; without all of that they are taken as
    nanoseconds, and that is said.
    """
    stated_scale = UNITS.get(str(plan.extra.get(UNIT, "")))
    scale = stated_scale if stated_scale is not None else _of_result(fio)
    tables = [table for file, table in logs.items() if _LATENCY.search(file) and len(table.value)]
    if scale is not None or not tables:
        return scale or 1e-9, None
    if any(table.has_priority for table in tables):
        return 1e-9, None
    if _median(tables) < _NO_NANOSECONDS:
        return (
            1e-6,
            "latency logs are taken as us, as fio before 3.0 wrote them: their values are too small for ns",
        )
    return 1e-9, (
        "latency logs are taken as ns, as fio writes them since 3.0: nothing says which version wrote these "
        "(before 3.0: us, import with --log-unit us)"
    )


def _of_result(fio: FioOutput | None) -> float | None:
    if fio is None:
        return None
    version = _VERSION.match(fio.version or "")
    if version is not None:
        return 1e-9 if (int(version[1]), int(version[2])) >= (2, 99) else 1e-6
    directions = (direction for job in fio.jobs for direction in job.directions.values())
    latency = next(
        (latency for direction in directions for latency in direction.latencies.values()), None
    )
    # terse output is in microseconds whatever the version; in JSON a name without _ns is of fio
    # before 2.99
    return 1e-9 if latency is not None and latency.source_field.endswith("_ns") else None


def _median(tables: Iterable[FioLogTable]) -> float:
    return float(np.median(np.concatenate([table.value for table in tables])))
