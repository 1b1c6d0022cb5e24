# SPDX-License-Identifier: Apache-2.0
"""Time as something handed in, so that whatever waits can be tested without waiting."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Reads and spends time. All values in seconds unless named otherwise."""

    def monotonic(self) -> float:
        """Seconds that never go back; the origin has no meaning."""

    def realtime_ns(self) -> int:
        """Nanoseconds since 1970-01-01 UTC."""

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """`CLOCK_MONOTONIC`."""
        return time.monotonic()

    def realtime_ns(self) -> int:
        """`CLOCK_REALTIME`."""
        return time.time_ns()

    def sleep(self, seconds: float) -> None:
        """Sleep; returns at once for nothing or less."""
        if seconds > 0:
            time.sleep(seconds)


class FakeClock:
    """A clock that moves only when slept on: hours of study pass in a test at once."""

    def __init__(self, start_ns: int = 1_700_000_000_000_000_000) -> None:
        self._start_ns = start_ns
        self._elapsed = 0.0

    def monotonic(self) -> float:
        """Seconds slept so far."""
        return self._elapsed

    def realtime_ns(self) -> int:
        """The start plus what was slept."""
        return self._start_ns + round(self._elapsed * 1e9)

    def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self._elapsed += max(seconds, 0.0)
