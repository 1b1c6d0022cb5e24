# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc/stat, `cpu.log`: what each CPU's time went to, context switches, interrupts,
processes.

Ticks of a `cpu` line: user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in
user and nice (proc(5)).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from iolab.base.metrics import Metric

from ..core.tables import Floats
from .counter_set import CounterSet, Files, Measured
from .counters_log import Reading, numbers_of
from .host_columns import Column, gauge, rate, whole_numbers

_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(8)
_ONE_CPU = re.compile(r"cpu\d+")
_LINE = re.compile(r"(?:cpu\d*|ctxt|intr|softirq|procs_running|procs_blocked) ")


_PROC = "/proc/stat"
_CHOSEN = ("cpu", "ctxt", "procs_running", "procs_blocked", "softirq")


def _share(name: str, title: str, *, is_drawn: bool = True) -> Measured:
    return Measured(
        Metric(f"host.cpu.{name}", title, "1", None, "difference", "mean"),
        f"cpu.{name}",
        is_drawn=is_drawn,
    )


class CpuCounters(CounterSet):
    """Time of every CPU by what it did, context switches, interrupts, processes that run or wait
    for I/O.

    Columns are shares of the time of all CPUs, and of the busiest one.

    `cpu.busy` is what was neither idle nor idle while an I/O was outstanding (iowait); time that a
    hypervisor gave to other machines (steal) counts as busy, since this host could not use it.
    """

    name = "cpu"
    line = "a line of /proc/stat"
    metrics = (
        _share("busy", "host CPU utilization"),
        _share("user", "host CPU, user"),
        _share("system", "host CPU, system"),
        _share("iowait", "host CPU, iowait"),
        _share("steal", "host CPU, steal", is_drawn=False),
        _share("busiest", "utilization of the busiest CPU, mean"),
        Measured(
            Metric("host.context_switches", "context switches, host", "1/s", None),
            "context_switches",
        ),
        Measured(Metric("host.interrupts", "interrupts, host", "1/s", None), "interrupts"),
        Measured(
            Metric("host.tasks.blocked", "tasks blocked on I/O", "", None, "difference", "mean"),
            "tasks.blocked",
        ),
    )

    def lines(self, files: Files) -> list[str]:
        """The chosen lines; of `intr` the total alone, for the rest is a number per interrupt line,
        thousands on a server."""
        result_lines = []
        for line in files.read_text(_PROC).splitlines(keepends=True):
            if line.startswith(_CHOSEN):
                result_lines.append(line)
            elif line.startswith("intr "):
                result_lines.append(" ".join(line.split(None, 2)[:2]) + "\n")
        return result_lines

    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """A CPU's ticks, or another counter's value."""
        if not _LINE.match(line):
            return None
        fields = line.split()
        numbers = whole_numbers(fields[1:])
        if numbers is None or (fields[0].startswith("cpu") and len(numbers) < 4):
            return None
        return fields[0], numbers

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Shares of time, rates, and tasks."""
        share = _shares(readings, "cpu")
        columns: list[Column] = []
        if share is not None:
            parts = (
                ("user", (_USER, _NICE), "user, nice"),
                ("system", (_SYSTEM, _IRQ, _SOFTIRQ), "system, irq, softirq"),
                ("iowait", (_IOWAIT,), "iowait"),
                ("steal", (_STEAL,), "steal"),
            )
            columns.append(
                Column("cpu.busy", _busy(share), "1", "cpu: all but idle and iowait", "ticks")
            )
            columns += [
                Column(f"cpu.{name}", share[:, places].sum(axis=1), "1", f"cpu: {words}", "ticks")
                for name, places, words in parts
            ]
        busy_times = [
            busy
            for name in _cpus(readings)
            if (shares := _shares(readings, name)) is not None and len(busy := _busy(shares))
        ]
        if busy_times:
            columns.append(
                Column(
                    "cpu.busiest",
                    np.fmax.reduce(busy_times),
                    "1",
                    "busiest of cpu0, cpu1...",
                    "ticks",
                )
            )
        columns += [
            Column("context_switches", rate(readings, "ctxt"), "1/s", "ctxt"),
            Column("interrupts", rate(readings, "intr"), "1/s", "intr"),
            Column("tasks.running", gauge(readings, "procs_running"), "", "procs_running"),
            Column("tasks.blocked", gauge(readings, "procs_blocked"), "", "procs_blocked"),
        ]
        return columns

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Ticks of all CPUs: all eight states, and those that were idle or waiting for I/O."""
        ticks = [int(field) for field in lines[0].split()[1:9]]
        return {"all": sum(ticks), "idle": ticks[3] + ticks[4]}

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Share of all CPUs' time that was busy."""
        spent = now["all"] - before["all"]
        return {"host.cpu.busy": 1 - (now["idle"] - before["idle"]) / spent} if spent > 0 else {}


def _cpus(readings: Sequence[Reading]) -> list[str]:
    return [
        name
        for name in dict.fromkeys(name for reading in readings for name in reading.counters)
        if _ONE_CPU.fullmatch(name)
    ]


def _shares(readings: Sequence[Reading], name: str) -> Floats | None:
    """Share of the time in each of the eight states, shape (readings - 1, 8); None where the log
    lacks the CPU.

    Idle and iowait go back a little at times (proc(5) says so): that is no time, and not a reading
    to throw away.
    """
    if not any(name in reading.counters for reading in readings):
        return None
    ticks = numbers_of(name, readings, 8)
    ticks[:, _IRQ:] = np.where(
        np.isnan(ticks[:, _USER, None]), np.nan, np.nan_to_num(ticks[:, _IRQ:])
    )  # kernels before 2.6.11
    ticks[:, _IOWAIT] = np.where(
        np.isnan(ticks[:, _USER]), np.nan, np.nan_to_num(ticks[:, _IOWAIT])
    )
    spent = np.clip(np.diff(ticks, axis=0), 0, None)
    total = spent.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(spent, total, out=np.full_like(spent, np.nan), where=total > 0)
    return shares


def _busy(share: Floats) -> Floats:
    busy: Floats = 1.0 - share[:, _IDLE] - share[:, _IOWAIT]
    return np.clip(busy, 0.0, 1.0)
