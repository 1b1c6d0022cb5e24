# SPDX-License-Identifier: Apache-2.0
"""Per-second series of a run, and device samples cut to its window."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from iolab.formats.core.tables import DeviceSamples, Floats, HostTable

from ..evidence.model import Series

MOVED = ("read.bw", "write.bw", "discard.bw")
"""Columns that count as bytes moved."""


Samples = TypeVar("Samples", DeviceSamples, HostTable)


def cut(samples: Samples, window: tuple[int, int] | None) -> Samples:
    """The samples with an interval inside the window, give or take half an interval; all where
    either has no clock."""
    if window is None or samples.time_ns is None:
        return samples
    inside = _inside(samples.time_ns, samples.interval, window)
    return dataclasses.replace(
        samples,
        time_ns=samples.time_ns[inside],
        columns={name: values[inside] for name, values in samples.columns.items()},
    )


def count(samples: DeviceSamples | HostTable, window: tuple[int, int] | None) -> int:
    """How many samples `cut` leaves."""
    if window is None or samples.time_ns is None:
        return max((len(values) for values in samples.columns.values()), default=0)
    return int(_inside(samples.time_ns, samples.interval, window).sum())


def _inside(end: NDArray[np.int64], interval: float, window: tuple[int, int]) -> NDArray[np.bool_]:
    half = round(interval * 5e8)
    inside: NDArray[np.bool_] = (end - 2 * half >= window[0] - half) & (end <= window[1] + half)
    return inside


def device_series(
    devices: Mapping[str, DeviceSamples],
    window: tuple[int, int] | None,
    every: Mapping[str, DeviceSamples] | None = None,
) -> dict[str, Series]:
    """Series over all devices (`device.bw`, `device.read.bw`, `device.write.bw`, `device.util`) and
    of each of `every` (default: of these) alone.

    Devices are aligned by reading; where their files differ in length, the common readings count.
    `device.util` is the mean over devices, the others are sums.
    """
    lines: dict[str, Series] = {}
    if not devices:
        return lines
    length = min(_length(samples) for samples in devices.values())
    first = next(iter(devices.values()))
    time = times(first, window)[:length]

    def total(columns: Iterable[str]) -> Floats | None:
        parts = [
            samples.columns[name][:length]
            for samples in devices.values()
            for name in columns
            if name in samples.columns
        ]
        return np.sum(parts, axis=0) if parts else None

    def add(name: str, unit: str, values: Floats | None) -> None:
        if values is not None and length:
            lines[name] = Series(name, unit, time, values)

    add("device.bw", "B/s", total(MOVED))
    for column in ("read.bw", "write.bw"):
        add(f"device.{column}", "B/s", total([column]))
    busy = [
        samples.columns["util"][:length]
        for samples in devices.values()
        if "util" in samples.columns
    ]
    add("device.util", "1", np.mean(busy, axis=0) if busy else None)
    every = devices if every is None else every
    if len(every) > 1:
        for name, samples in every.items():
            own = times(samples, window)
            for column, unit in (("write.bw", "B/s"), ("read.bw", "B/s"), ("util", "1")):
                values = samples.columns.get(column)
                if values is not None and np.any(values > 0):
                    series = f"device.{column}[{name}]"
                    lines[series] = Series(series, unit, own, values)
    return lines


def _length(samples: DeviceSamples | HostTable) -> int:
    return min((len(values) for values in samples.columns.values()), default=0)


def times(
    samples: DeviceSamples | HostTable, window: tuple[int, int] | None
) -> NDArray[np.float64]:
    """End of each interval in seconds since the window's start (or the first interval's), shape
    (n,)."""
    if samples.time_ns is not None and len(samples.time_ns):
        return (samples.time_ns - origin(samples.time_ns, samples.interval, window)) / 1e9
    return samples.interval * (1 + np.arange(_length(samples), dtype=np.float64))


def origin(time_ns: NDArray[np.int64], interval: float, window: tuple[int, int] | None) -> int:
    """Realtime at which a run's time begins: its window's start, or the first interval's."""
    return window[0] if window is not None else int(time_ns[0] - interval * 1e9)
