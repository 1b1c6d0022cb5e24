"""Observations of what the target's devices did: means over the window, summed or averaged over those that stand for themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ...formats.core.tables import DeviceSamples
from ...metrics import of
from ..evidence.model import Observation
from .device_outliers import DeviceLoad

_COLUMNS = {"device.util": "util", "device.queue": "queue", "device.read.iops": "read.iops", "device.write.iops": "write.iops",
            "device.read.bw": "read.bw", "device.write.bw": "write.bw"}


_OF_EACH = ("util", "await", "read.bw", "write.bw")
"""What is observed of each device where there are several; a column that is 0 on all of them is left out."""


def observations(devices: Mapping[str, DeviceSamples], files: Mapping[str, str],
                 every: Mapping[str, DeviceSamples] | None = None) -> Iterator[Observation]:
    """Each metric that every device has: a mean over each device's own samples, then the sum (or mean) over devices.

    Seconds in which a device's counters are unknown (nan) are left out of its mean. Each device by itself is one of `every`, by default
    those of the sums.
    """
    if not devices:
        return
    file = next(iter(files.values()), "")
    for metric, column in _COLUMNS.items():
        means = [_mean(samples, column) for samples in devices.values()]
        known = [mean for mean in means if mean is not None]
        if len(known) != len(means):
            continue
        pooled = float(np.mean(known)) if of(metric).pools == "mean" else float(np.sum(known))
        field, unit = next(iter(devices.values())).source_fields.get(column, (column, ""))
        over = f"{field} of {', '.join(devices)}" if len(devices) <= 8 else f"{field} of {len(devices)} devices"
        yield Observation(metric, pooled, of(metric).unit, file, over, None, unit)
    waiting = _await(devices)
    if waiting is not None:
        yield Observation("device.await", waiting, "s", file, f"await of {len(devices)} devices, weighted by I/Os")
    every = devices if every is None else every
    if len(every) > 1:
        yield from _of_each(every, files)


def loads(devices: Mapping[str, DeviceSamples]) -> list[DeviceLoad]:
    """Busy share, mean latency and bytes per second of each device."""
    return [DeviceLoad(name, _mean(samples, "util"), _await({name: samples}),
                       (_mean(samples, "read.bw") or 0.0) + (_mean(samples, "write.bw") or 0.0)) for name, samples in devices.items()]


def _of_each(devices: Mapping[str, DeviceSamples], files: Mapping[str, str]) -> Iterator[Observation]:
    """`device.util[sdb]`, `device.await[sdb]`...: each device by itself."""
    for column in _OF_EACH:
        found = {name: _await({name: samples}) if column == "await" else _mean(samples, column) for name, samples in devices.items()}
        if not any(found.values()):
            continue
        for name, value in found.items():
            if value is not None:
                field, unit = devices[name].source_fields.get(column, (column, ""))
                metric = f"device.{column}[{name}]"
                yield Observation(metric, value, of(metric).unit, files.get(name, ""), f"{field} of {name}", None, unit)


def _mean(samples: DeviceSamples, column: str) -> float | None:
    values = samples.columns.get(column)
    if values is None or not len(values):
        return None
    mean = float(values.mean())
    if not math.isnan(mean):
        return mean
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _await(devices: Mapping[str, DeviceSamples]) -> float | None:
    """Mean latency over all I/Os: each interval's await counts as often as it has I/Os."""
    waited = ios = 0.0
    for samples in devices.values():
        columns = samples.columns
        pairs = [("read.await", "read.iops"), ("write.await", "write.iops")]
        if not all(name in columns for pair in pairs for name in pair):
            return None
        with np.errstate(all="ignore"):
            for latency, rate in pairs:
                spent, done = columns[latency], columns[rate]
                known = np.isfinite(spent) & np.isfinite(done)
                if not known.all():
                    spent, done = spent[known], done[known]
                waited += float((spent * done).sum())
                ios += float(done.sum())
    return waited / ios if ios > 0 else None
