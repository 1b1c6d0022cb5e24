# SPDX-License-Identifier: Apache-2.0
"""iolab's own log of /proc/diskstats: raw counters of a run's devices, read again and again.

The first line is `# iolab diskstats 1`. Each reading is a line `@ <realtime ns> <monotonic ns>`,
then the devices' lines as the kernel wrote them (Documentation/admin-guide/iostats.rst): major,
minor, name; reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, ms busy, weighted
ms; since 4.18 discards, merged, sectors, ms; since 5.5 flushes, ms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.tables import DeviceSamples, DeviceTable, Floats
from .counters_log import Reading, detect_log, header, read_log, times_of

HEADER = header("diskstats")
_SECTOR = 512
"""Bytes of a sector in the kernel's statistics, whatever the device's own."""

_READS, _READ_SECTORS, _READ_MS = 0, 2, 3
_WRITES, _WRITE_SECTORS, _WRITE_MS = 4, 6, 7
_BUSY_MS, _WEIGHTED_MS = 9, 10
_DISCARDS, _DISCARD_SECTORS, _DISCARD_MS = 11, 13, 14
_FLUSHES = 15
_COUNTERS = (11, 15, 17)
"""How many numbers a line has after the name: since 2.6, 4.18 and 5.5."""

_SOURCES = {
    "read.iops": ("reads completed", "1"),
    "write.iops": ("writes completed", "1"),
    "discard.iops": ("discards completed", "1"),
    "flush.iops": ("flushes completed", "1"),
    "read.bw": ("sectors read", "512 B"),
    "write.bw": ("sectors written", "512 B"),
    "discard.bw": ("sectors discarded", "512 B"),
    "read.await": ("ms reading / reads completed", "ms"),
    "write.await": ("ms writing / writes completed", "ms"),
    "await": ("ms of I/Os / I/Os completed", "ms"),
    "queue": ("weighted ms doing I/O", "ms"),
    "util": ("ms doing I/O", "ms"),
}


class DiskstatsLog:
    """Differences between readings as rates. What the end of the file cuts off (kill -9) is left
    out."""

    name = "diskstats"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log("diskstats", head)

    def read(self, data: bytes, where: str) -> DeviceTable:
        """One value per interval between two readings; none of them where the log has a single
        reading.

        Latencies are 0 in an interval without I/O. An interval in which a counter goes back (the
        device was replaced, the counter wrapped) or a reading lacks the device is nan.

        Raises FormatError: nothing in the file, another format or a newer one, no whole reading.
        """
        readings, damaged = read_log("diskstats", data, where, _counters, "a device's counters")
        devices = {}
        steps, times = times_of(readings)
        for device in dict.fromkeys(name for reading in readings for name in reading.counters):
            columns = _rates(_counters_of(device, readings), steps)
            devices[device] = DeviceSamples(
                device=device,
                interval=float(np.median(steps)) if len(steps) else 1.0,
                columns=columns,
                source_fields={name: _SOURCES[name] for name in columns},
                time_ns=times,
            )
        return DeviceTable(devices=devices, damaged=tuple(damaged))


def _counters(line: str) -> tuple[str, list[int]] | None:
    fields = line.split()
    if len(fields) < 14 or not all(field.isdecimal() and len(field) <= 20 for field in fields[3:]):
        return None
    return fields[2], [int(field) for field in fields[3:]]


def _counters_of(device: str, readings: list[Reading]) -> Floats:
    """Counters, shape (readings, counters that all of them have); nan where a reading lacks the
    device."""
    rows = [reading.counters.get(device) for reading in readings]
    fewest = min(len(row) for row in rows if row is not None)
    width = max(number for number in _COUNTERS if number <= fewest)
    return np.array(
        [row[:width] if row is not None else [np.nan] * width for row in rows], dtype=np.float64
    )


def _rates(counters: Floats, steps: Floats) -> dict[str, Floats]:
    change = np.diff(counters, axis=0)
    rising = [place for place in range(counters.shape[1]) if place != 8]  # in flight is no counter
    change[(change[:, rising] < 0).any(axis=1)] = np.nan
    spent = change[:, _READ_MS] + change[:, _WRITE_MS]
    ios = change[:, _READS] + change[:, _WRITES]
    columns = {
        "read.iops": change[:, _READS] / steps,
        "write.iops": change[:, _WRITES] / steps,
        "read.bw": change[:, _READ_SECTORS] * _SECTOR / steps,
        "write.bw": change[:, _WRITE_SECTORS] * _SECTOR / steps,
        "read.await": _per_io(change[:, _READ_MS], change[:, _READS]),
        "write.await": _per_io(change[:, _WRITE_MS], change[:, _WRITES]),
        "queue": change[:, _WEIGHTED_MS] / 1000 / steps,
        "util": np.clip(change[:, _BUSY_MS] / 1000 / steps, 0, 1),
    }
    if counters.shape[1] > _DISCARDS:
        columns["discard.iops"] = change[:, _DISCARDS] / steps
        columns["discard.bw"] = change[:, _DISCARD_SECTORS] * _SECTOR / steps
        spent, ios = spent + change[:, _DISCARD_MS], ios + change[:, _DISCARDS]
    if counters.shape[1] > _FLUSHES:
        columns["flush.iops"] = change[:, _FLUSHES] / steps
    columns["await"] = _per_io(spent, ios)
    return columns


def _per_io(milliseconds: Floats, ios: Floats) -> Floats:
    mean: NDArray[np.float64] = np.divide(
        milliseconds / 1000, ios, out=np.where(np.isnan(ios), np.nan, 0.0), where=ios > 0
    )
    return mean
