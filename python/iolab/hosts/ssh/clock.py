# SPDX-License-Identifier: Apache-2.0
"""The clock of the remote host, measured from here: sources and marks of a run bear the times of
the host that it runs on."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..base.host import Offset
from .channel import Channel

_ROUNDS = 15
_KEPT_SECONDS = 30.0
"""A guest's clock may run a little faster or slower than this machine's."""


def measure(channel: Channel, rounds: int = _ROUNDS) -> Offset:
    """Ask the far clock several times; an answer falls within its round trip (Cristian's
    method)."""
    best: tuple[int, int] | None = None
    for _ in range(rounds):
        before = time.time_ns()
        begin = time.monotonic_ns()
        far = int(channel.call("clock")[0])
        trip = time.monotonic_ns() - begin
        if best is None or trip < best[0]:
            best = trip, far - (before + trip // 2)
    assert best is not None
    return Offset(best[1], (best[0] + 1) // 2, best[0], time.monotonic())


class HostClock:
    """Seconds pass as they do here; the time of day is the far side's."""

    def __init__(self, measured: Callable[[], Offset]) -> None:
        self._measured = measured
        self._offset: Offset | None = None

    def monotonic(self) -> float:
        """This machine's `CLOCK_MONOTONIC`."""
        return time.monotonic()

    def realtime_ns(self) -> int:
        """Nanoseconds since 1970-01-01 UTC by the far side's clock."""
        return time.time_ns() + self.offset().nanoseconds

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""
        if seconds > 0:
            time.sleep(seconds)

    def offset(self) -> Offset:
        """The latest measurement; the first is made on the first call."""
        if self._offset is None:
            self._offset = self._measured()
        return self._offset

    def renew(self) -> None:
        """Measure again, as over a new connection."""
        self._offset = self._measured()

    def refresh(self) -> None:
        """Measure again where the latest is old."""
        if self._offset is None or time.monotonic() - self._offset.measured_at > _KEPT_SECONDS:
            self._offset = self._measured()
