# SPDX-License-Identifier: Apache-2.0
"""What keeping statistics may cost: beyond it the largest, or the costliest, is suspended until
somebody resumes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping

from ...units import format_number, format_quantity
from .definitions import Definitions

WINDOW_S = 60.0
"""Seconds over which CPU time is taken at least."""


class Budget:
    """Compares what was spent with what may be."""

    def __init__(self, monotonic: Callable[[], float], cpus: int | None) -> None:
        self._monotonic, self._cpus = monotonic, cpus
        self._spent: deque[tuple[float, dict[str, int]]] = deque()

    def excess(
        self, definitions: Definitions, sizes: Mapping[str, int], cpu_ns: Mapping[str, int]
    ) -> tuple[str, str] | None:
        """(the statistic that has to pause, why), None while all is well.

        Args:
            sizes: bytes on disk of all statistics, those that pause included. cpu_ns: CPU time so
            far of those that are being kept now.
        """
        found = self._too_large(definitions, sizes, cpu_ns) or self._too_costly(definitions, cpu_ns)
        if found is not None:
            self._spent.clear()
        return found

    def _too_large(
        self, definitions: Definitions, sizes: Mapping[str, int], going: Collection[str]
    ) -> tuple[str, str] | None:
        whole = sum(sizes.values())
        if definitions.bytes is None or whole <= definitions.bytes or not going:
            return None
        return max(going, key=lambda name: sizes.get(name, 0)), (
            f"kept statistics take {format_quantity(whole, 'B', 3)}, the budget is {format_quantity(definitions.bytes, 'B', 3)}"
        )

    def _too_costly(
        self, definitions: Definitions, cpu_ns: Mapping[str, int]
    ) -> tuple[str, str] | None:
        if self._cpus is None:
            return None
        now = self._monotonic()
        self._spent.append((now, dict(cpu_ns)))
        while len(self._spent) > 2 and now - self._spent[1][0] >= WINDOW_S:
            self._spent.popleft()
        begin, before = self._spent[0]
        seconds = now - begin
        if definitions.cpu_share is None or seconds < WINDOW_S:
            return None
        spent = {name: cpu_ns[name] - before[name] for name in cpu_ns if name in before}
        share = sum(spent.values()) / 1e9 / seconds / self._cpus
        if share <= definitions.cpu_share or not spent:
            return None
        return max(spent, key=lambda name: spent[name]), (
            f"keeping statistics took {format_number(share * 100, 2)} % of all CPU time over {seconds:.0f} s, "
            f"the budget is {format_number(definitions.cpu_share * 100, 2)} %"
        )
