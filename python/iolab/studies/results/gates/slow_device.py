# SPDX-License-Identifier: Apache-2.0
"""Did one of the target's devices hold the others up?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.units import format_number, format_quantity
from iolab.base.verdict import Reason

from ..facts.device_metrics import loads
from ..facts.device_outliers import DeviceOutlier, device_outliers
from ..facts.run_facts import RunFacts
from .base import suspect


class SlowDeviceGate:
    """SUSPECT when a device's mean latency is 3 times the median of its three or more peers and 100
    µs or more, or its busy share 3 times theirs and 30 % or more, while it moves at most 1.5 times
    as much as they.

    Then the numbers tell how slow that device is, not the target. Devices that did nothing are no
    peers.
    """

    name = "slow-device"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """One reason for each such device, slowest first."""
        for outlier in device_outliers(loads(facts.devices)):
            yield suspect(
                "slow-device",
                f"{outlier.device} {_words(outlier)}",
                device=outlier.device,
                quantity=outlier.quantity,
                value=outlier.value,
                peers=outlier.peers,
            )


def _words(outlier: DeviceOutlier) -> str:
    often = f"{format_number(outlier.times, 2)} times" if outlier.peers > 0 else "far above"
    if outlier.quantity == "await":
        return (
            f"took {format_quantity(outlier.value, 's', 3)} for an I/O, {often} its peers' median"
        )
    return f"was busy for {100 * outlier.value:.0f} % of the time, {often} its peers' median"
