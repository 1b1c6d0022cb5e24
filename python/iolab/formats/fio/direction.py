# SPDX-License-Identifier: Apache-2.0
"""One operation of one fio job as `FioDirection`: bytes, rates and runtime of every version in one
meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.tables import FioDirection
from .latency import finite, read_latencies

OPERATIONS = ("read", "write", "trim", "mixed")
"""Operations that move bytes; `sync` is read apart, as its I/Os have neither bytes nor runtime of
their own."""


@dataclass(frozen=True)
class Bandwidth:
    """B/s, with field, value and unit that it came from."""

    value: float
    field: str
    source: float
    unit: str


def _count_or_none(value: Any) -> float | None:
    """A number that a counter or rate can be: from 0 to 2^63; anything else is damage and taken as
    absent."""
    number = finite(value)
    return number if number is not None and 0 <= number < 2**63 else None


def read_directions(job: Mapping[str, Any], assume: set[str]) -> dict[str, FioDirection]:
    """Operations of a job that did at least one I/O. What had to be assumed is added to
    `assume`."""
    directions = {}
    for operation in OPERATIONS:
        value = job.get(operation)
        if isinstance(value, dict):
            direction = _direction(value, assume)
            if direction is not None:
                directions[operation] = direction
    sync = job.get("sync")
    if isinstance(sync, dict):
        runtime = max((direction.runtime for direction in directions.values()), default=0.0)
        direction = _sync(sync, runtime)
        if direction is not None:
            directions["sync"] = direction
    return directions


def _direction(value: Mapping[str, Any], assume: set[str]) -> FioDirection | None:
    runtime = (_count_or_none(value.get("runtime")) or 0.0) / 1000
    size_bytes, in_kibibytes = _size(value, runtime)
    if in_kibibytes and size_bytes:
        assume.add("io_bytes is in KiB (fio before 2.99)")
    iops = _count_or_none(value.get("iops"))
    total = _count_or_none(value.get("total_ios")) or 0
    if total == 0:
        total = round((iops or 0.0) * runtime)
        if total:
            assume.add("total_ios is absent or 0 (fio 2.0): I/Os are iops times runtime")
    if iops is None:
        iops = total / runtime if runtime else 0.0
        if total:
            assume.add("no iops: I/Os over runtime")
    if total <= 0 and size_bytes <= 0:
        return None
    bandwidth = _bandwidth(value, size_bytes, in_kibibytes, runtime)
    return FioDirection(
        ios=int(total),
        size_bytes=size_bytes,
        runtime=runtime,
        iops=iops,
        bw=bandwidth.value,
        bw_field=bandwidth.field,
        bw_source=bandwidth.source,
        bw_unit=bandwidth.unit,
        short_ios=int(_count_or_none(value.get("short_ios")) or 0),
        drop_ios=int(_count_or_none(value.get("drop_ios")) or 0),
        latencies=read_latencies(value),
    )


def _size(value: Mapping[str, Any], runtime: float) -> tuple[int, bool]:
    """Bytes moved, and whether `io_bytes` was in KiB.

    Up to fio 2.21 `io_bytes` held KiB; then it became bytes, with a separate `io_kbytes` (fio issue
    378). Without `io_kbytes`, `bw` decides: its unit has always been KiB/s.
    """
    size_bytes = _count_or_none(value.get("io_bytes"))
    kibibytes = _count_or_none(value.get("io_kbytes"))
    if size_bytes is None:
        return int(kibibytes * 1024) if kibibytes is not None else 0, False
    if kibibytes is not None:
        return int(size_bytes), False
    expected = (_count_or_none(value.get("bw")) or 0.0) * runtime
    if expected > 0 and size_bytes / expected > 32:
        return int(size_bytes), False
    return int(size_bytes) * 1024, True


def _bandwidth(
    value: Mapping[str, Any], size_bytes: int, in_kibibytes: bool, runtime: float
) -> Bandwidth:
    exact = _count_or_none(value.get("bw_bytes"))
    if exact is not None:
        return Bandwidth(exact, "bw_bytes", exact, "B/s")
    if runtime > 0 and size_bytes > 0:
        rate = size_bytes / runtime
        return Bandwidth(
            rate,
            "io_bytes/runtime",
            rate / 1024 if in_kibibytes else rate,
            "KiB/s" if in_kibibytes else "B/s",
        )
    coarse = _count_or_none(value.get("bw")) or 0.0
    return Bandwidth(coarse * 1024, "bw", coarse, "KiB/s")


def _sync(value: Mapping[str, Any], runtime: float) -> FioDirection | None:
    """fsync and its kin: fio counts and times them, but gives no rate; it is their number over the
    job's runtime."""
    latencies = read_latencies(value)
    total = _count_or_none(value.get("total_ios")) or 0
    # after a ramp fio 3.33 writes 0 here beside a filled latency, whose count is right
    if total == 0:
        total = next((latency.count for latency in latencies.values() if latency.count), 0)
    if total <= 0:
        return None
    iops = total / runtime if runtime else 0.0
    return FioDirection(
        ios=int(total),
        size_bytes=0,
        runtime=runtime,
        iops=iops,
        bw=0.0,
        bw_field="",
        bw_source=0.0,
        bw_unit="",
        latencies=latencies,
    )
