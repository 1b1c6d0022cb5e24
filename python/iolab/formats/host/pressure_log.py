# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc/pressure, `pressure.log`: shares of time in which tasks waited for I/O, CPU and
memory.

Pressure stall information, the kernel's Documentation/accounting/psi.rst; since Linux 4.20, where
it is switched on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from iolab.base.metrics import Metric

from .counter_set import CounterSet, Files, Measured
from .counters_log import Reading
from .host_columns import Column, rate

_PROC = "/proc/pressure"
_RESOURCES = {"io": "I/O", "cpu": "CPU", "memory": "memory"}
_LINE = re.compile(r"(io|cpu|memory) (some|full)(?: avg\d+=\d+\.\d+)* total=(\d{1,20})", re.ASCII)
_MICRO = 1e-6


class PressureCounters(CounterSet):
    """Share of time in which some task (`some`) or every task that could run (`full`) waited for
    I/O, CPU or memory."""

    name = "pressure"
    line = "a line of /proc/pressure"
    metrics = tuple(
        Measured(
            Metric(
                f"host.pressure.{resource}.{share}",
                f"{name} pressure, {whose} waiting",
                "1",
                None,
                "difference",
                "mean",
            ),
            f"pressure.{resource}.{share}",
            is_drawn=resource == "io",
        )
        for resource, name in _RESOURCES.items()
        for share, whose in (("some", "some tasks"), ("full", "all tasks"))
        if (resource, share) != ("cpu", "full")
    )  # undefined for a whole machine, and 0 (psi.rst)

    def lines(self, files: Files) -> list[str]:
        """The lines of the three files, each with its resource's name in front."""
        return [
            f"{resource} {line}"
            for resource in _RESOURCES
            for line in files.read_text(f"{_PROC}/{resource}").splitlines(keepends=True)
        ]

    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """`io.some` and its total in microseconds."""
        match = _LINE.fullmatch(line.strip())
        return None if match is None else (f"{match[1]}.{match[2]}", [int(match[3])])

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Shares of each interval, from the totals."""
        columns = []
        for name in dict.fromkeys(name for reading in readings for name in reading.counters):
            share = rate(readings, name, scale=_MICRO)
            columns.append(
                Column(
                    f"pressure.{name}",
                    None if share is None else np.clip(share, 0, 1),
                    "1",
                    f"{name} total",
                    "us",
                )
            )
        return columns
