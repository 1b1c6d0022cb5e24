# SPDX-License-Identifier: Apache-2.0
"""Observations of what the target's devices did: means over the window, summed or averaged over
those that are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from iolab.base.metrics import of
from iolab.formats.core.tables import DeviceSamples

from ..evidence.model import Observation
from .device_outliers import DeviceLoad

_COLUMNS = {
    "device.util": "util",
    "device.queue": "queue",
    "device.read.iops": "read.iops",
    "device.write.iops": "write.iops",
    "device.read.bw": "read.bw",
    "device.write.bw": "write.bw",
}


_OF_EACH = ("util", "await", "read.bw", "write.bw")
"""What is observed of each device where there are several; a column that is 0 on all of them is
left out."""


def observations(
    devices: Mapping[str, DeviceSamples],
    files: Mapping[str, str],
    every: Mapping[str, DeviceSamples] | None = None,
) -> Iterator[Observation]:
    """Each metric that every device has: a mean over each device's own samples, then the sum (or
    mean) over devices.

    Seconds in which a device's counters are unknown (nan) are left out of its mean. Each device by
    itself is one of `every`, by default those of the sums.
    """
    if not devices:
        return
    file = next(iter(files.values()), "")
    for metric, column in _COLUMNS.items():
        means = [samples.means.get(column) for samples in devices.values()]
        known_means = [mean for mean in means if mean is not None]
        if len(known_means) != len(means):
            continue
        pooled = (
            float(np.mean(known_means))
            if of(metric).pools == "mean"
            else float(np.sum(known_means))
        )
        field, unit = next(iter(devices.values())).source_fields.get(column, (column, ""))
        over = (
            f"{field} of {', '.join(devices)}"
            if len(devices) <= 8
            else f"{field} of {len(devices)} devices"
        )
        yield Observation(metric, pooled, of(metric).unit, file, over, None, unit)
    waiting = _await(devices)
    if waiting is not None:
        yield Observation(
            "device.await", waiting, "s", file, f"await of {len(devices)} devices, weighted by I/Os"
        )
    every = devices if every is None else every
    if len(every) > 1:
        yield from _of_each(every, files)


def loads(devices: Mapping[str, DeviceSamples]) -> list[DeviceLoad]:
    """Busy share, mean latency and bytes per second of each device."""
    return [
        DeviceLoad(
            name,
            samples.means.get("util"),
            _await({name: samples}),
            samples.means.get("read.bw", 0.0) + samples.means.get("write.bw", 0.0),
        )
        for name, samples in devices.items()
    ]


def _of_each(
    devices: Mapping[str, DeviceSamples], files: Mapping[str, str]
) -> Iterator[Observation]:
    """`device.util[sdb]`, `device.await[sdb]`...: of each device."""
    for column in _OF_EACH:
        values = {
            name: _await({name: samples}) if column == "await" else samples.means.get(column)
            for name, samples in devices.items()
        }
        if not any(values.values()):
            continue
        for name, value in values.items():
            if value is not None:
                field, unit = devices[name].source_fields.get(column, (column, ""))
                metric = f"device.{column}[{name}]"
                yield Observation(
                    metric,
                    value,
                    of(metric).unit,
                    files.get(name, ""),
                    f"{field} of {name}",
                    None,
                    unit,
                )


def _await(devices: Mapping[str, DeviceSamples]) -> float | None:
    """Mean latency over all I/Os: each interval's await counts as often as it has I/Os."""
    waits = [samples.wait_sums for samples in devices.values()]
    known_waits = [wait for wait in waits if wait is not None]
    ios = sum(done for _, done in known_waits)
    return (
        sum(spent for spent, _ in known_waits) / ios
        if ios > 0 and len(known_waits) == len(waits)
        else None
    )
