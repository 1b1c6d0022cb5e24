"""iolab's own log of /proc/stat, `# iolab cpu 1`: what each CPU's time went to, context switches, interrupts, processes.

Ticks of a `cpu` line: user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user and nice (proc(5)).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .counters_log import Reading, detect_log, numbers_of, read_log
from .host_columns import Column, gauge, host_table, rate, whole_numbers
from .tables import Floats, HostTable

_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(8)
_ONE_CPU = re.compile(r"cpu\d+")
_LINE = re.compile(r"(?:cpu\d*|ctxt|intr|softirq|procs_running|procs_blocked) ")


class CpuLog:
    """Shares of the time of all CPUs, and of the busiest one.

    `cpu.busy` is what was neither idle nor idle while an I/O was outstanding (iowait); time that a hypervisor gave to
    others (steal) counts as busy, for nobody here could use it.
    """

    name = "cpu"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log(self.name, head)

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, _parse, "a line of /proc/stat")
        share = _shares(readings, "cpu")
        columns: list[Column] = []
        if share is not None:
            parts = (("user", (_USER, _NICE), "user, nice"), ("system", (_SYSTEM, _IRQ, _SOFTIRQ), "system, irq, softirq"),
                     ("iowait", (_IOWAIT,), "iowait"), ("steal", (_STEAL,), "steal"))
            columns.append(Column("cpu.busy", _busy(share), "1", "cpu: all but idle and iowait", "ticks"))
            columns += [Column(f"cpu.{name}", share[:, places].sum(axis=1), "1", f"cpu: {words}", "ticks") for name, places, words in parts]
        each = [busy for name in _cpus(readings) if (one := _shares(readings, name)) is not None and len(busy := _busy(one))]
        if each:
            columns.append(Column("cpu.busiest", np.fmax.reduce(each), "1", "busiest of cpu0, cpu1...", "ticks"))
        columns += [
            Column("context_switches", rate(readings, "ctxt"), "1/s", "ctxt"),
            Column("interrupts", rate(readings, "intr"), "1/s", "intr"),
            Column("tasks.running", gauge(readings, "procs_running"), "", "procs_running"),
            Column("tasks.blocked", gauge(readings, "procs_blocked"), "", "procs_blocked"),
        ]
        return host_table(self.name, readings, columns, damaged)


def _parse(line: str) -> tuple[str, list[int]] | None:
    if not _LINE.match(line):
        return None
    fields = line.split()
    numbers = whole_numbers(fields[1:])
    if numbers is None or (fields[0].startswith("cpu") and len(numbers) < 4):
        return None
    return fields[0], numbers


def _cpus(readings: Sequence[Reading]) -> list[str]:
    return [name for name in dict.fromkeys(name for reading in readings for name in reading.counters) if _ONE_CPU.fullmatch(name)]


def _shares(readings: Sequence[Reading], name: str) -> Floats | None:
    """Share of the time in each of the eight states, shape (readings - 1, 8); None where the log lacks the CPU.

    Idle and iowait go back a little at times (proc(5) says so): that is no time, and not a reading to throw away.
    """
    if not any(name in reading.counters for reading in readings):
        return None
    ticks = numbers_of(name, readings, 8)
    ticks[:, _IRQ:] = np.where(np.isnan(ticks[:, _USER, None]), np.nan, np.nan_to_num(ticks[:, _IRQ:]))  # kernels before 2.6.11
    ticks[:, _IOWAIT] = np.where(np.isnan(ticks[:, _USER]), np.nan, np.nan_to_num(ticks[:, _IOWAIT]))
    spent = np.clip(np.diff(ticks, axis=0), 0, None)
    total = spent.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(spent, total, out=np.full_like(spent, np.nan), where=total > 0)
    return shares


def _busy(share: Floats) -> Floats:
    busy: Floats = 1.0 - share[:, _IDLE] - share[:, _IOWAIT]
    return np.clip(busy, 0.0, 1.0)
