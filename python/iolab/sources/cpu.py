"""What the host's CPUs did, once a second: `cpu.log`, from /proc/stat (proc(5))."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from .counters import CounterSource

_PROC = "/proc/stat"
_CHOSEN = ("cpu", "ctxt", "procs_running", "procs_blocked", "softirq")


class CpuSource(CounterSource):
    """Time of every CPU by what it did, context switches, interrupts, processes that run or wait for I/O."""

    name: ClassVar[str] = "cpu"

    def lines(self) -> list[str]:
        """The chosen lines; of `intr` the total alone, for the rest is a number per interrupt line, thousands on a server."""
        found = []
        for line in self._host.read_text(_PROC).splitlines(keepends=True):
            if line.startswith(_CHOSEN):
                found.append(line)
            elif line.startswith("intr "):
                found.append(" ".join(line.split(None, 2)[:2]) + "\n")
        return found

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Ticks of all CPUs: all eight states, and those that were idle or waiting for I/O."""
        ticks = [int(field) for field in lines[0].split()[1:9]]
        return {"all": sum(ticks), "idle": ticks[3] + ticks[4]}

    def live(self, passed: float, before: Mapping[str, float], now: Mapping[str, float]) -> Mapping[str, float]:
        """Share of all CPUs' time that was busy."""
        spent = now["all"] - before["all"]
        return {"host.cpu.busy": 1 - (now["idle"] - before["idle"]) / spent} if spent > 0 else {}
