# SPDX-License-Identifier: Apache-2.0
"""Readings of iostat, whatever they were printed as, put together as a `DeviceTable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import FormatError

from ..core.tables import DeviceSamples, DeviceTable, Floats
from .columns import Column
from .stamps import epoch_ns, interval_of

SINCE_BOOT = (
    "the first of {n} reports is taken as the mean since boot and left out (iostat without -y)"
)
ONLY_ONE = "the only report may be the mean since boot (iostat without -y)"
NO_INTERVAL = "no time stamps: the file doesn't say the time between reports"
IDLE = "{device} is missing from {n} reports: taken as idle (iostat -z)"


@dataclass
class Reading:
    """One report: its time stamp as printed, and each device's values in the order of the file's
    fields.

    A device with a damaged row has nan: it is unknown, and not idle.
    """

    stamp: str = ""
    rows: dict[str, list[float]] = field(default_factory=dict)


def build_table(
    readings: Sequence[Reading],
    fields: Sequence[str],
    columns: Mapping[str, Column],
    *,
    where: str,
    damaged: Sequence[tuple[int, str]] = (),
    assumptions: Sequence[str] = (),
) -> DeviceTable:
    """The table of all reports but the first, which without -y is the mean since boot.

    A device that a report leaves out was idle then: 0, said in `assumptions`; a device with a
    damaged row is nan.

    Args:
        fields: the file's column names, without the device's.
        columns: what those names mean; unknown names are left out.

    Raises FormatError when no report is left, or no column is known.
    """
    if not any(reading.rows for reading in readings):
        raise FormatError("no reading of a device in the file", where=where)
    if not any(name in columns for name in fields):
        raise FormatError(f"no known column among {', '.join(fields)}", where=where)
    notes = list(assumptions)
    stamps = [reading.stamp for reading in readings]
    skipped = len(readings) > 1
    if skipped:
        notes.append(SINCE_BOOT.format(n=len(readings)))
    else:
        notes.append(ONLY_ONE)
    kept = readings[1:] if skipped else readings
    interval = interval_of(stamps)
    if interval is None:
        notes.append(NO_INTERVAL)
    times = [epoch_ns(reading.stamp) for reading in kept]
    known_times = [time for time in times if time is not None]
    time_ns = np.array(known_times, dtype=np.int64) if len(known_times) == len(kept) else None
    devices = {}
    for device in dict.fromkeys(name for reading in kept for name in reading.rows):
        values = np.zeros((len(kept), len(fields)))
        idle = 0
        for place, reading in enumerate(kept):
            row = reading.rows.get(device)
            if row is not None:
                values[place] = row
            else:
                idle += 1
        if idle:
            notes.append(IDLE.format(device=device, n=idle))
        devices[device] = device_samples(device, values, fields, columns, interval, time_ns)
    if not devices:
        raise FormatError("no reading of a device after the one since boot", where=where)
    return DeviceTable(
        devices=devices, skipped_first=skipped, damaged=tuple(damaged), assumptions=tuple(notes)
    )


def device_samples(
    device: str,
    values: Floats,
    fields: Sequence[str],
    columns: Mapping[str, Column],
    interval: float | None,
    time_ns: NDArray[np.int64] | None = None,
) -> DeviceSamples:
    """A device's values, shape (readings, fields), under canonical names in base units.

    `await` over reads and writes is worked out where the file has only theirs (sysstat 11.5.7 and
    later); it is 0 without I/O, as iostat prints it. `interval`: None where the file doesn't say
    it.
    """
    known_columns = [
        (place, name, columns[name]) for place, name in enumerate(fields) if name in columns
    ]
    values_by_column = {
        column.canonical: values[:, place] * column.scale for place, _, column in known_columns
    }
    sources = {column.canonical: (name, column.unit) for _, name, column in known_columns}
    if (
        "await" not in values_by_column
        and {"read.await", "write.await", "read.iops", "write.iops"} <= values_by_column.keys()
    ):
        total = values_by_column["read.iops"] + values_by_column["write.iops"]
        spent = (
            values_by_column["read.iops"] * values_by_column["read.await"]
            + values_by_column["write.iops"] * values_by_column["write.await"]
        )
        values_by_column["await"] = np.divide(
            spent, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0
        )
        sources["await"] = ("r_await, w_await", "ms")
    return DeviceSamples(
        device,
        1.0 if interval is None else interval,
        values_by_column,
        sources,
        time_ns,
        interval is not None,
    )
