# SPDX-License-Identifier: Apache-2.0
"""Counters of the target's block devices, once a second: `diskstats.log`.

Its lines are those of /proc/diskstats of the target's devices (the kernel's
Documentation/admin-guide/iostats.rst).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from iolab.base.clock import Clock
from iolab.hosts.base.host import Host
from iolab.hosts.base.options import Options

from .counters import CounterOptions, CounterSource

FILE = "diskstats.log"
_PROC = "/proc/diskstats"
_SECTOR = 512
"""Bytes of a sector in the kernel's statistics, whatever the device's own."""


class DiskstatsOptions(CounterOptions):
    """`[sources.diskstats]`."""

    devices: Annotated[
        list[str],
        Field(
            default_factory=list,
            description='kernel names to watch, such as ["sdb"]; default: those behind the target',
        ),
    ]


class DiskstatsSource(CounterSource):
    """Counters of the target's block devices: rates, bandwidth, latency, queue, busy."""

    name: ClassVar[str] = "diskstats"
    options: ClassVar[type[Options]] = DiskstatsOptions

    def __init__(
        self, options: DiskstatsOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options, host, clock, devices)
        self._devices = frozenset(options.devices or devices)

    def unfit(self) -> str | None:
        """Without devices, or without the kernel's file, there is nothing to read."""
        if not self._devices:
            return "the target has no block devices to count for"
        try:
            devices = {_device(line) for line in self.lines()}
        except OSError as error:
            return f"{_PROC} can't be read: {error.strerror or error}"
        missing = self._devices - devices
        return f"{_PROC} doesn't list {', '.join(sorted(missing))}" if missing else None

    def lines(self) -> list[str]:
        """The devices' lines."""
        return [
            line
            for line in self._host.read_text(_PROC).splitlines(keepends=True)
            if _device(line) in self._devices
        ]

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Completed reads and writes (fields 1 and 5) and their sectors (3 and 7), over all
        devices."""
        fields = [[int(field) for field in line.split()[3:10]] for line in lines]
        return {
            "ios": sum(field[0] + field[4] for field in fields),
            "sectors": sum(field[2] + field[6] for field in fields),
        }

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """I/Os and bytes per second over all devices."""
        return {
            "device.iops": (now["ios"] - before["ios"]) / passed,
            "device.bw": _SECTOR * (now["sectors"] - before["sectors"]) / passed,
        }


def _device(line: str) -> str:
    fields = line.split(None, 3)
    return fields[2] if len(fields) > 2 else ""
