# SPDX-License-Identifier: Apache-2.0
"""Counters of network interfaces, `network.log`: lines of /proc/net/dev, and the speed of each link.

A line `speed eth0 1000` is /sys/class/net/eth0/speed, in 10^6 bits per second. It is missing if the
kernel does not know the speed, as of many virtual cards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from iolab.base.metrics import Metric

from ..core.tables import Floats
from .counter_set import CounterSet, Files, Measured
from .counters_log import Reading, numbers_of, times_of
from .host_columns import Column, whole_numbers

_PROC = "/proc/net/dev"
_CLASS = "/sys/class/net"
_BYTES_IN, _BYTES_OUT, _WIDTH = 0, 8, 16
_BYTES_PER_MBIT = 125_000.0
_LINE = re.compile(r"\s*([^\s:]+):\s*(.*)")
_SPEED = "speed"


class NetworkCounters(CounterSet):
    """Bytes of network interfaces that belong to a device, and the speed of their links.

    The utilization is the larger share of a link's speed that one direction had; of several links,
    that of the busiest one.
    """

    name = "network"
    line = "a line of /proc/net/dev"
    metrics = (
        Measured(
            Metric("host.net.in.bw", "network throughput in, host", "B/s", None, "difference"),
            "net.in",
        ),
        Measured(
            Metric("host.net.out.bw", "network throughput out, host", "B/s", None, "difference"),
            "net.out",
        ),
        Measured(
            Metric(
                "host.net.util", "utilization of the busiest link", "1", None, "difference", "mean"
            ),
            "net.util",
            is_drawn=True,
        ),
    )
    example: ClassVar[Mapping[str, str]] = {
        _PROC: "Inter-|   Receive |  Transmit\n face |bytes packets|bytes packets\n"
        "    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  eth0: 4000 3 0 0 0 0 0 0 8000 7 0 0 0 0 0 0\n",
        f"{_CLASS}/eth0/device/uevent": "DRIVER=virtio_net\n",
        f"{_CLASS}/eth0/speed": "1000\n",
    }

    def __init__(self) -> None:
        self._speeds: dict[str, str] | None = None

    def lines(self, files: Files) -> list[str]:
        """Lines of the interfaces that were devices at the first reading, with their speeds then."""
        lines = {
            match[1]: line
            for line in files.read_text(_PROC).splitlines(keepends=True)
            if (match := _LINE.fullmatch(line.rstrip("\n")))
        }
        if self._speeds is None:
            self._speeds = {
                name: _read_speed(files, name)
                for name in lines
                if files.is_directory(f"{_CLASS}/{name}/device")
            }
        present = [name for name in self._speeds if name in lines]
        return [lines[name] for name in present] + [
            f"{_SPEED} {name} {self._speeds[name]}\n" for name in present if self._speeds[name]
        ]

    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """An interface's counters by its name, or its speed by `speed NAME`."""
        if line.startswith(f"{_SPEED} "):
            fields = line.split()
            numbers = whole_numbers(fields[2:])
            return None if numbers is None or len(numbers) != 1 else (" ".join(fields[:2]), numbers)
        match = _LINE.fullmatch(line.rstrip("\n"))
        numbers = whole_numbers(match[2].split()) if match else None
        if match is None or numbers is None or len(numbers) < _WIDTH:
            return None
        return match[1], numbers

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Throughput in and out of all interfaces, and the utilization of the busiest link."""
        names = dict.fromkeys(name for reading in readings for name in reading.counters)
        rates = {name: _rates(readings, name) for name in names if " " not in name}
        if not rates:
            return ()
        shares = [
            rates[name].max(axis=1) / (_BYTES_PER_MBIT * speed)
            for name in rates
            if (speed := _link_speed(readings, name))
        ]
        moved = np.sum(list(rates.values()), axis=0)
        return [
            Column("net.in", moved[:, 0], "B/s", "received bytes", "B"),
            Column("net.out", moved[:, 1], "B/s", "transmitted bytes", "B"),
            Column(
                "net.util",
                np.fmax.reduce(shares) if shares else None,
                "1",
                "bytes of the busiest link and direction, of its speed",
                "B",
            ),
        ]


def _read_speed(files: Files, name: str) -> str:
    """The speed as the kernel writes it; "" if it is unknown."""
    try:
        text = files.read_text(f"{_CLASS}/{name}/speed").strip()
    except OSError:  # a link that is down
        return ""
    return text if text.isascii() and text.isdecimal() and int(text) > 0 else ""


def _link_speed(readings: Sequence[Reading], name: str) -> int:
    speeds = (reading.counters.get(f"{_SPEED} {name}", [0]) for reading in readings)
    return max((int(numbers[0]) for numbers in speeds), default=0)


def _rates(readings: Sequence[Reading], name: str) -> Floats:
    """Bytes per second in and out, shape (readings - 1, 2); nan where a counter restarted."""
    counts = numbers_of(name, readings, _WIDTH)[:, [_BYTES_IN, _BYTES_OUT]]
    change = np.diff(counts, axis=0)
    change[change < 0] = np.nan
    rates: Floats = change / times_of(readings)[0].reshape(-1, 1)
    return rates
