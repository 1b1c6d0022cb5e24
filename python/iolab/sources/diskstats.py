"""Counters of the target's block devices, once a second, as the kernel writes them.

The file, `diskstats.log`, holds the kernel's own lines so that any later reader can see more in them than today's:

    # iolab diskstats 1
    @ <realtime ns> <monotonic ns>
    <lines of /proc/diskstats of the target's devices, unchanged>

Fields: the kernel's Documentation/admin-guide/iostats.rst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, TextIO

from pydantic import Field

from ..clock import Clock
from ..hosts.base import Host
from ..hosts.options import Duration, Options

FILE = "diskstats.log"
HEADER = "# iolab diskstats 1\n"
_PROC = "/proc/diskstats"


class DiskstatsOptions(Options):
    """`[sources.diskstats]`."""

    interval: Annotated[Duration, Field(gt=0, description="time between readings; the gates expect a second")] = 1.0


class DiskstatsSource:
    """Readings at fixed times after the start: one that comes late doesn't push the next, one missed is counted."""

    name: ClassVar[str] = "diskstats"
    options: ClassVar[type[Options]] = DiskstatsOptions

    def __init__(self, options: DiskstatsOptions, host: Host, clock: Clock, devices: Sequence[str]) -> None:
        self._interval, self._host, self._clock = options.interval, host, clock
        self._devices = frozenset(devices)
        self._file: TextIO | None = None
        self._origin = 0.0
        self._next = 0
        self._last = 0.0
        self._before: tuple[float, int, int] | None = None
        self._latest: dict[str, float] = {}
        self.readings = 0
        self.lost = 0

    def unfit(self) -> str | None:
        """Without devices, or without the kernel's file, there is nothing to read."""
        if not self._devices:
            return "the target has no block devices to count for"
        try:
            known = {_device(line) for line in self._host.read_text(_PROC).splitlines()}
        except OSError as error:
            return f"{_PROC} can't be read: {error.strerror or error}"
        missing = self._devices - known
        return f"{_PROC} doesn't list {', '.join(sorted(missing))}" if missing else None

    def start(self, run_dir: Path) -> None:
        """Write the head and the first reading."""
        self.readings = self.lost = 0
        self._before, self._latest = None, {}
        self._file = (run_dir / FILE).open("w", encoding="utf-8")
        self._file.write(HEADER)
        self._origin = self._clock.monotonic()
        self._next = 1
        self._read()

    def due(self) -> float:
        """Second of the next reading on the monotonic clock."""
        return self._origin + self._next * self._interval

    def poll(self) -> None:
        """Read when due; times that passed unread meanwhile are counted as lost."""
        if self._file is None:
            return
        passed = int((self._clock.monotonic() - self._origin) / self._interval + 1e-9)
        if passed < self._next:
            return
        self.lost += passed - self._next
        self._next = passed + 1
        self._read()

    def latest(self) -> Mapping[str, float]:
        """I/Os and bytes per second over all devices between the last two readings."""
        return dict(self._latest)

    def stop(self) -> None:
        """One more reading, so that the window's last part is covered, then close.

        Not right after another: rates over a sliver of an interval would weigh as much as those over a whole one.
        """
        if self._file is not None:
            if self._clock.monotonic() - self._last >= self._interval / 2:
                self._read()
            self._file.close()
            self._file = None

    def _read(self) -> None:
        assert self._file is not None
        try:
            text = self._host.read_text(_PROC)
        except OSError:
            self.lost += 1
            return
        self._last = self._clock.monotonic()
        realtime, monotonic = self._clock.realtime_ns(), round(self._last * 1e9)
        lines = [line for line in text.splitlines(keepends=True) if _device(line) in self._devices]
        self._file.write("".join([f"@ {realtime} {monotonic}\n", *lines]))
        # Handed to the kernel at once: a killed study keeps its readings.
        self._file.flush()
        self.readings += 1
        self._update(lines)

    def _update(self, lines: Sequence[str]) -> None:
        """Rates since the reading before: completed reads and writes (fields 1 and 5), sectors (3 and 7) of 512 bytes."""
        try:
            fields = [[int(field) for field in line.split()[3:10]] for line in lines]
            ios, sectors = sum(one[0] + one[4] for one in fields), sum(one[2] + one[6] for one in fields)
        except (ValueError, IndexError):
            return
        if self._before is not None and self._last > self._before[0]:
            passed = self._last - self._before[0]
            self._latest = {"device.iops": (ios - self._before[1]) / passed, "device.bw": 512 * (sectors - self._before[2]) / passed}
        self._before = (self._last, ios, sectors)


def _device(line: str) -> str:
    fields = line.split(None, 3)
    return fields[2] if len(fields) > 2 else ""
