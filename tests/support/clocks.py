# SPDX-License-Identifier: Apache-2.0
"""A machine's clock that somebody sets."""

from __future__ import annotations

from iolab.base.clock import FakeClock


class SetClock(FakeClock):
    """The time of day can be set; the monotonic clock, as ever, can't."""

    def set_ahead(self, seconds: float) -> None:
        """Set it ahead, or back where that is negative."""
        self._start_ns += round(seconds * 1e9)
