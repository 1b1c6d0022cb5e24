# SPDX-License-Identifier: Apache-2.0
"""Per-second series of a run, packed for the page: scaled to a readable unit, rounded, on shared
time bases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from iolab.base import metrics
from iolab.base.units import readable_unit
from iolab.studies.results.evidence.model import Series

from ..model.payload import Line, Strip

Floats = NDArray[np.float64]

DIGITS = 4
"""Significant digits of a drawn value: finer than a pixel, and a third of the bytes."""

MOST_POINTS = 2000
"""Readings of a line that are kept; of longer ones the lowest and highest per bucket."""

_NAME = re.compile(r"(?P<base>[^\[\]]+)(?:\[(?P<device>.*)\])?")


class TimeBases:
    """The distinct time arrays of a report; most runs share one."""

    def __init__(self) -> None:
        self.times: list[list[float]] = []
        self._places: dict[bytes, int] = {}

    def place(self, time: Floats) -> int:
        """The place of this array in `times`, added if new."""
        rounded = np.round(time, 3)
        key = rounded.tobytes()
        if key not in self._places:
            self._places[key] = len(self.times)
            self.times.append(
                [
                    int(second) if second == int(second) else float(second)
                    for second in rounded.tolist()
                ]
            )
        return self._places[key]


_EXACT_POWER = 22
"""Doubles hold powers of ten exactly up to this one."""


def strips(series: Iterable[Series], bases: TimeBases) -> list[Strip]:
    """A run's series by quantity, the load's own first, each quantity with its total and its
    devices in one unit.

    Quantities that never left zero are left out, and a sum of reads and writes where it only
    repeats one of them.
    """
    by_name: dict[str, list[tuple[str, Series]]] = {}
    for item in series:
        match = _NAME.fullmatch(item.name)
        base, device = (match["base"], match["device"] or "") if match else (item.name, "")
        if len(item.time) and np.any(np.nan_to_num(item.values) != 0):
            by_name.setdefault(base, []).append((device, item))
    for name in _SUMS:
        prefix = name.removesuffix("bw").removeprefix("load.")
        if len({f"{prefix}read.bw", f"{prefix}write.bw"} & by_name.keys()) == 1:
            by_name.pop(name, None)
    return [_strip(name, by_name[name], bases) for name in sorted(by_name, key=_order)]


def without_devices(found: Sequence[Strip]) -> list[Strip]:
    """Only sums and means over devices; strips without them are left out."""
    kept = [
        strip.model_copy(update={"lines": [line for line in strip.lines if not line.device]})
        for strip in found
    ]
    return [strip for strip in kept if strip.lines]


def _order(name: str) -> tuple[bool, tuple[int, str]]:
    """The load's own first."""
    return name.startswith(("device.", "zfs.", "vdev.", "host.")), metrics.sort_key(name)


def _strip(name: str, members: Sequence[tuple[str, Series]], bases: TimeBases) -> Strip:
    everything = np.concatenate(
        [np.abs(item.values[np.isfinite(item.values)]) for _, item in members]
    )
    unit, scale = readable_unit(
        [float(np.max(everything))] if everything.size else [], members[0][1].unit
    )
    lines, longest = [], 0
    for device, item in sorted(members, key=lambda member: (member[0] != "", member[0])):
        time, values = thin(item.time, item.values)
        longest = max(longest, len(item.time) if len(time) < len(item.time) else 0)
        lines.append(
            Line(device=device, time=bases.place(time), values=round_values(values / scale))
        )
    note = f"{longest} readings, drawn as the lowest and highest of each stretch" if longest else ""
    return Strip(name=name, title=_title(name), unit=unit, note=note, lines=lines)


def thin(time: Floats, values: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """At most `most` readings: all, or the lowest and the highest of equal stretches in their
    order. Gaps stay gaps."""
    if len(time) <= most:
        return time, values
    kept: list[int] = []
    for part in np.array_split(np.arange(len(time)), most // 2):
        finite_places = part[np.isfinite(values[part])]
        places_to_use = finite_places if len(finite_places) else part[:1]
        kept += sorted(
            {
                int(places_to_use[np.argmin(values[places_to_use])]),
                int(places_to_use[np.argmax(values[places_to_use])]),
            }
        )
    return time[kept], values[kept]


_SUMS = {"device.bw": "device throughput", "load.bw": "throughput of the load"}
"""Series without a metric of their own: reads and writes together."""


def _title(name: str) -> str:
    """The words of a series."""
    return _SUMS.get(name) or metrics.of(name).title


def round_values(values: Floats, digits: int = DIGITS) -> list[float | None]:
    """Values at `digits` significant digits; whole numbers as integers (shorter in JSON), not
    finite ones as None."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.floor(np.log10(np.abs(values)))
    places = np.where(np.isfinite(power), digits - 1 - power, 0)
    # quotients and products of exact powers of ten are the doubles nearest to the short decimals
    is_exact = np.abs(places) <= _EXACT_POWER
    factor = 10.0 ** np.where(is_exact, np.abs(places), 0)
    with np.errstate(invalid="ignore"):
        short = np.where(
            places >= 0, np.round(values * factor) / factor, np.round(values / factor) * factor
        )
    if not is_exact.all():
        short[~is_exact] = [float(f"{value:.{digits}g}") for value in values[~is_exact].tolist()]
    return [
        None if not math.isfinite(value) else int(value) if value.is_integer() else value
        for value in short.tolist()
    ]
