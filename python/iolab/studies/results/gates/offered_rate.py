# SPDX-License-Identifier: Apache-2.0
"""Was the offered rate reached?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.units import format_number
from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import note

REACHED = 0.95


class OfferedRateGate:
    """A note "saturated" when an open loop achieved less than 95 % of what was offered; charts draw
    such runs dashed."""

    name = "offered-rate"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Achieved against offered I/Os per second."""
        offered = facts.offered_iops
        if offered is None or not facts.directions or facts.iops >= REACHED * offered:
            return
        text = f"saturated: {format_number(facts.iops)} of {format_number(offered)} offered I/Os per second"
        yield note("saturated", text, achieved_iops=facts.iops, offered_iops=offered)
