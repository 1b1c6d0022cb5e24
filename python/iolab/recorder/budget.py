# SPDX-License-Identifier: Apache-2.0
"""Keeping what recording costs under what the user allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..units import format_number, format_quantity
from .settings import COUNTERS, Budget


@dataclass(frozen=True)
class _Spent:
    monotonic: float
    cpu_ns: int
    bytes: int
    events: Mapping[str, int]


@dataclass(frozen=True)
class Excess:
    """What is over the budget: the source that costs most, and the reason in words."""

    source: str
    words: str


class BudgetKeeper:
    """Compares what was spent within a moving window with the budget. `cpus`: of the machine."""

    def __init__(self, budget: Budget, cpus: int) -> None:
        self._budget, self._cpus = budget, max(cpus, 1)
        self._spent: deque[_Spent] = deque()
        self._resume_at: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def spent(self, monotonic: float, cpu_ns: int, size: int, events: Mapping[str, int]) -> None:
        """Note what was spent so far, once a second."""
        self._spent.append(_Spent(monotonic, cpu_ns, size, dict(events)))
        while (
            len(self._spent) > 2 and monotonic - self._spent[1].monotonic >= self._budget.window_s
        ):
            self._spent.popleft()

    def forget(self) -> None:
        """Begin a new window: what was spent so far was on another set of sources."""
        self._spent.clear()

    def excess(self, running: Collection[str]) -> Excess | None:
        """What is over the budget now; None while a window isn't full, or nothing is. Counters cost
        next to nothing and stay."""
        if len(self._spent) < 2:
            return None
        first, last = self._spent[0], self._spent[-1]
        seconds = last.monotonic - first.monotonic
        if seconds < self._budget.window_s * 0.9:
            return None
        gained = {
            name: last.events.get(name, 0) - first.events.get(name, 0)
            for name in running
            if name != COUNTERS
        }
        source = max(gained, key=lambda name: gained[name], default=None)
        if source is None:
            return None
        share = (last.cpu_ns - first.cpu_ns) / 1e9 / seconds / self._cpus
        growth = (last.bytes - first.bytes) / seconds
        if self._budget.cpu_share is not None and share > self._budget.cpu_share:
            return Excess(
                source,
                f"recording took {_percent(share)} of all CPU time over {seconds:.0f} s, "
                f"the budget is {_percent(self._budget.cpu_share)}",
            )
        if self._budget.bytes_per_s is not None and growth > self._budget.bytes_per_s:
            return Excess(
                source,
                f"the recording grew by {format_quantity(growth, 'B/s', 3)} over {seconds:.0f} s, "
                f"the budget is {format_quantity(self._budget.bytes_per_s, 'B/s', 3)}",
            )
        return None

    def suspend(self, source: str, monotonic: float) -> float:
        """A source is suspended now; for how many seconds: twice as long each time, up to an
        hour."""
        times = self._times.get(source, 0)
        pause = min(self._budget.pause_s * 2.0**times, 3600.0)
        self._times[source] = times + 1
        self._resume_at[source] = monotonic + pause
        return pause

    def due(self, monotonic: float) -> list[str]:
        """Suspended sources at the end of their pause; they count as running from now on."""
        over = sorted(name for name, when in self._resume_at.items() if monotonic >= when)
        for name in over:
            del self._resume_at[name]
        return over

    @property
    def suspended_sources(self) -> set[str]:
        """Sources that are suspended."""
        return set(self._resume_at)


def _percent(share: float) -> str:
    return f"{format_number(share * 100, 2)} %"
