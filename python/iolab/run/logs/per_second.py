# SPDX-License-Identifier: Apache-2.0
"""fio's logs of means over a second, made from single I/Os: rate, bandwidth and latency, as fio
writes them itself otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Wholes = NDArray[np.int64]
_DIRECTIONS = ("read", "write", "trim")


@dataclass
class Sums:
    """I/Os, bytes and latencies of one section in windows of `every_ms` from `origin_ms` on.

    A last window that `last_ms` cuts by more than a tenth is left out, as fio may leave it out:
    readers of such logs derive the window's length from the distance of lines.
    Times are milliseconds since the epoch, the finest that fio's logs have. An I/O on a border
    belongs to the window before it.
    """

    origin_ms: int
    last_ms: int
    every_ms: int
    of: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def add(self, operation: int, time_ms: Wholes, latency_ns: Wholes, size_bytes: Wholes) -> None:
        """Add I/Os of an operation (its code in the native core)."""
        windows = self._windows()
        place = np.maximum((time_ms - self.origin_ms - 1) // self.every_ms, 0)
        sums = self.of.setdefault(operation, np.zeros((3, windows)))
        for row, weights in enumerate((None, size_bytes, latency_ns)):
            sums[row] += np.bincount(place, weights=weights, minlength=windows)[:windows]

    def ends_ms(self) -> Wholes:
        """End of each window."""
        ends = self.origin_ms + self.every_ms * np.arange(1, self._windows() + 1)
        return np.minimum(ends, max(self.last_ms, self.origin_ms + 1))

    def _windows(self) -> int:
        return max(1, (10 * (self.last_ms - self.origin_ms) // self.every_ms + 1) // 10)


def second_logs(sections: Mapping[str, Sums], operations: Sequence[str]) -> dict[str, str]:
    """Text of `<section>_iops.log`, `_bw.log` (KiB/s) and `_lat.log` (ns) for each section; a
    window without I/O has no row.

    Args:
        sections: prefix of the logs' names to sums. operations: names by the native core's codes.
    """
    texts = {}
    for prefix, sums in sections.items():
        ends = sums.ends_ms()
        seconds = np.diff(ends, prepend=sums.origin_ms) / 1000
        rows: dict[str, list[tuple[int, int, int]]] = {"iops": [], "bw": [], "lat": []}
        for operation, (ios, size, latency) in sums.of.items():
            if operations[operation] not in _DIRECTIONS:
                continue
            number = _DIRECTIONS.index(operations[operation])
            for place in np.flatnonzero(ios):
                end, length = int(ends[place]), max(float(seconds[place]), 1e-3)
                rows["iops"].append((end, number, round(ios[place] / length)))
                rows["bw"].append((end, number, round(size[place] / length / 1024)))
                rows["lat"].append((end, number, round(latency[place] / ios[place])))
        for kind, listed in rows.items():
            texts[f"{prefix}_{kind}.log"] = "".join(
                f"{end}, {value}, {number}, 0, 0\n" for end, number, value in sorted(listed)
            )
    return texts
