# SPDX-License-Identifier: Apache-2.0
"""What recording costs, how large the recording is on disk, and keeping both under what the user
allows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iolab.base.clock import Clock
from iolab.base.units import format_number, format_quantity

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


_SHARE = 0.002
"""Share of the time that looking may take: the more files there are, the more seldom it is done."""
_SLICE = 0.01
"""Seconds that it looks at a time: after months there are files enough for seconds, in which the
probe would not be heard."""


class SizeWatch:
    """Adds up the files below a directory: once as it is made, then not more often than looking is
    cheap, and of many files some at a time."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        # what a continued recording holds isn't growth
        self._known = sum(_sizes(str(directory)))
        self._next = 0.0
        self._under_way: Iterator[int] | None = None
        self._sum = 0
        self._spent = 0.0

    def bytes(self, *, at_once: bool = False) -> int:
        """Bytes that the files hold, as of the last look that is done."""
        begin = self._clock.monotonic()
        if at_once:
            self._known, self._under_way = sum(_sizes(str(self._directory))), None
        elif self._under_way is not None or begin >= self._next:
            self._go_on(begin)
        return self._known

    def _go_on(self, begin: float) -> None:
        if self._under_way is None:
            self._under_way, self._sum, self._spent = _sizes(str(self._directory)), 0, 0.0
        for size in self._under_way:
            self._sum += size
            if self._clock.monotonic() - begin >= _SLICE:
                self._spent += self._clock.monotonic() - begin
                return
        end = self._clock.monotonic()
        self._known, self._under_way = self._sum, None
        self._next = end + (self._spent + end - begin) / _SHARE


def _sizes(directory: str) -> Iterator[int]:
    """Bytes of each file below a directory; files that vanish meanwhile count as nothing."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        yield from _sizes(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    except OSError:
        return
