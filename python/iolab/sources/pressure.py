"""How long tasks of the host waited for I/O, CPU and memory, once a second: `pressure.log`, from /proc/pressure.

Pressure stall information, the kernel's Documentation/accounting/psi.rst; since Linux 4.20, where it is switched on.
"""

from __future__ import annotations

from typing import ClassVar

from .counters import CounterSource

RESOURCES = ("io", "cpu", "memory")
_PROC = "/proc/pressure"


class PressureSource(CounterSource):
    """Time in which some or all tasks waited for I/O, CPU or memory."""

    name: ClassVar[str] = "pressure"

    def lines(self) -> list[str]:
        """The lines of the three files, each with its resource's name in front."""
        return [f"{resource} {line}" for resource in RESOURCES
                for line in self._host.read_text(f"{_PROC}/{resource}").splitlines(keepends=True)]
