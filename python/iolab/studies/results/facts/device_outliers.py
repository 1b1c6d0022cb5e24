# SPDX-License-Identifier: Apache-2.0
"""Is one of a target's devices slower than its peers? A pure rule, for one run and for comparisons
of runs alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

TIMES = 3.0
"""How often the median of its peers a device's latency or busy share must be."""

FEWEST_PEERS = 3
"""With fewer there is no saying who is odd."""

SLOW_SECONDS = 100e-6
"""A latency below this is no reason, however quick the peers are."""

BUSY_SHARE = 0.3
"""A device less busy than this is no reason."""

LEAST_WORK = 0.01
"""A device that moved less than this times its peers' median had too few I/Os to have a mean
latency."""

SAME_WORK = 1.5
"""A device that is asked to move more than this times its peers' median is not slow: the load is
uneven."""


@dataclass(frozen=True)
class DeviceLoad:
    """What one device did over a window: busy share, mean latency of its I/Os (s; None without
    any), B/s moved."""

    device: str
    util: float | None
    await_: float | None
    bw: float


@dataclass(frozen=True)
class DeviceOutlier:
    """A device that is slower than its peers.

    Attributes:
        quantity: `await` or `util`; value: the device's; peers: the median of the others; times:
        value over peers.
    """

    device: str
    quantity: Literal["await", "util"]
    value: float
    peers: float

    @property
    def times(self) -> float:
        """How often the peers' median; infinite where that is 0."""
        return self.value / self.peers if self.peers > 0 else float("inf")


def device_outliers(devices: Sequence[DeviceLoad]) -> list[DeviceOutlier]:
    """Devices with at least 3 peers and a mean latency that is 3 times the peers' median and 100 µs
    or more, or a busy share that is 3 times theirs and 30 % or more, though they move at most 1.5
    times as much; slowest first.

    Peers are the other devices that did any I/O. Mirrors, stripes and RAID groups load their
    members alike: one member far from the others sets the pace of all.
    """
    outliers = []
    active = [device for device in devices if device.bw > 0]
    for device in active:
        peers = [other for other in active if other is not device]
        if len(peers) < FEWEST_PEERS:
            continue
        usual = median(peer.bw for peer in peers)
        if not LEAST_WORK * usual <= device.bw <= SAME_WORK * usual:
            continue
        slow = _far(
            device.device, "await", device.await_, [peer.await_ for peer in peers], SLOW_SECONDS
        )
        busy = _far(device.device, "util", device.util, [peer.util for peer in peers], BUSY_SHARE)
        outliers += [outlier for outlier in (slow or busy,) if outlier is not None]
    # Where half of them are, there are two kinds of devices, and no saying which is the odd one.
    return (
        sorted(outliers, key=lambda outlier: -outlier.times)
        if 2 * len(outliers) < len(active)
        else []
    )


def _far(
    device: str,
    quantity: Literal["await", "util"],
    value: float | None,
    peers: Sequence[float | None],
    least: float,
) -> DeviceOutlier | None:
    known_peers = [peer for peer in peers if peer is not None]
    if value is None or len(known_peers) < FEWEST_PEERS or value < least:
        return None
    middle = median(known_peers)
    return DeviceOutlier(device, quantity, value, middle) if value >= TIMES * middle else None
