# SPDX-License-Identifier: Apache-2.0
"""How the clock of a host compares with the clock of this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Offset:
    """The host's clock minus this machine's, correct within the uncertainty.

    Attributes:
        nanoseconds: by the quickest of several round trips. uncertainty_ns: half that round trip.
        measured_at: monotonic second of the measurement.
    """

    nanoseconds: int
    uncertainty_ns: int
    round_trip_ns: int
    measured_at: float


SAME_CLOCK = Offset(0, 0, 0, 0.0)
"""Of this machine itself."""
