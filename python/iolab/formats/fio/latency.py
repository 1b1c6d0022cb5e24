# SPDX-License-Identifier: Apache-2.0
"""One of fio's latency objects, of every version, as `Latency`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..core.tables import Latency

KINDS = ("lat", "clat", "slat")
"""fio's latencies: total, completion, submission."""

_GEOMETRY = "FIO_IO_U_PLAT_BITS"


def read_latencies(direction: Mapping[str, Any]) -> dict[str, Latency]:
    """`lat`, `clat` and `slat` of one operation, those that were measured.

    fio 2.99 renamed them to `lat_ns`... and went from microseconds to nanoseconds (HOWTO, JSON
    output).
    """
    latencies = {}
    for kind in KINDS:
        for name, scale in ((f"{kind}_ns", 1e-9), (kind, 1e-6)):
            latency = _latency(direction.get(name), name, scale)
            if latency is not None:
                latencies[kind] = latency
                break
    return latencies


def _latency(value: Any, name: str, scale: float) -> Latency | None:
    """None where the object is absent, holds no numbers, or all zeros: gtod_reduce, or an engine
    without that step."""
    if not isinstance(value, dict):
        return None
    mean, maximum = finite(value.get("mean")), finite(value.get("max"))
    if mean is None or maximum is None or (mean == 0 and maximum == 0):
        return None
    bins = _bins(value.get("bins"), scale)
    samples = finite(value.get("N"))
    count = int(samples) if samples is not None else (sum(bins.values()) or None)
    if count == 0:
        return None
    minimum, stddev = finite(value.get("min")), finite(value.get("stddev"))
    return Latency(
        source_field=name,
        source_scale=scale,
        mean=mean * scale,
        minimum=math.nan if minimum is None else minimum * scale,
        maximum=maximum * scale,
        stddev=math.nan if stddev is None else stddev * scale,
        count=count,
        percentiles=_percentiles(value.get("percentile"), scale),
        bins=bins,
    )


def _percentiles(value: Any, scale: float) -> dict[float, float]:
    """Per cent to seconds. fio up to 3.1 pads its list of twenty with "0.00" (issue 511): padding,
    not a percentile."""
    if not isinstance(value, dict):
        return {}
    percentiles = {}
    for key, amount in value.items():
        percent, latency = _number_of(key), finite(amount)
        if percent is not None and 0 < percent <= 100 and latency is not None:
            percentiles[percent] = latency * scale
    return percentiles


def _bins(value: Any, scale: float) -> dict[int, int]:
    """Nanoseconds to count.

    From 2.99 a key is a bucket's middle in nanoseconds. Before, keys are indices of fio's histogram
    in microseconds, with zeros in between and its geometry among them; the middle of the bucket is
    worked out then (`stat.h`: below 2^(bits+1) every value has a bucket, above, every octave has
    2^bits).
    """
    if not isinstance(value, dict):
        return {}
    geometry = value.get(_GEOMETRY)
    bits = geometry if isinstance(geometry, int) and 1 <= geometry <= 16 else None
    counts_by_bin: dict[int, int] = {}
    if bits is None and scale == 1e-9:
        # a healthy file of today, which is nearly every one: no key needs converting, and none
        # clashes
        counts = value.values()
        if (
            value
            and set(map(type, counts)) == {int}
            and min(counts) > 0
            and max(counts) < 2**63
            and all(value)
            and max(map(len, value)) < 19
            and "".join(value).isdecimal()
        ):
            counts_by_bin = dict(zip(map(int, value), counts, strict=True))
            if len(counts_by_bin) == len(value):
                return counts_by_bin
            counts_by_bin = {}
    for key, count in value.items():
        if not key.isdecimal() or not isinstance(count, int) or count <= 0 or len(key) > 20:
            continue
        place = int(key)
        middle = place if bits is None else _middle(place, bits)
        nanoseconds = round(middle * scale * 1e9)
        if max(nanoseconds, count) < 2**63:  # more than the grid holds is damage
            counts_by_bin[nanoseconds] = counts_by_bin.get(nanoseconds, 0) + count
    return counts_by_bin


def _middle(index: int, bits: int) -> float:
    if (
        index < 2 << bits or index > 64 << bits
    ):  # beyond 64 octaves there is no bucket: keep the key as it stands
        return index
    width = (index >> bits) - 1
    start = 1 << (width + bits)
    return start + (index % (1 << bits) + 0.5) * float(1 << width)


def finite(value: Any) -> float | None:
    """A JSON value as a finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _number_of(text: str) -> float | None:
    try:
        return finite(float(text))
    except ValueError:
        return None
