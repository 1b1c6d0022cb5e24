# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc/vmstat, `vmstat.log`: pages dirtied, written, reclaimed and swapped, as rates.

Names are the kernel's (mm/vmstat.c); they come and go by version: what a kernel lacks is missing,
never 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.metrics import Metric

from .counter_set import CounterSet, Files, Measured
from .counters_log import Reading
from .host_columns import Column, rate, whole_numbers

_PROC = "/proc/vmstat"
_KEPT = (
    "pgpg",
    "pswp",
    "pgfault ",
    "pgmajfault ",
    "pgscan_",
    "pgsteal_",
    "allocstall",
    "nr_dirt",
    "nr_writ",
    "nr_throttled",
    "nr_vmscan",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "workingset_refault",
    "drop_",
    "oom_kill",
    "kswapd_",
)
"""Beginnings of names: paging, swapping, reclaim, dirty pages and their writing, compaction,
dropped caches."""

_KIB = 1024.0
_RATES = {
    "vmstat.dirtied": ("nr_dirtied",),
    "vmstat.written": ("nr_written",),
    "vmstat.swap_in": ("pswpin",),
    "vmstat.swap_out": ("pswpout",),
    "vmstat.major_faults": ("pgmajfault",),
    "vmstat.compact_stalls": ("compact_stall",),
    "vmstat.scanned_directly": ("pgscan_direct",),
}


class VmstatCounters(CounterSet):
    """Pages dirtied, written, swapped and reclaimed, memory compaction, dropped caches; bytes that
    all block devices moved."""

    name = "vmstat"
    line = "a line of /proc/vmstat"
    metrics = tuple(
        Measured(
            Metric(f"host.vmstat.{name}", f"{title} per second", "1/s", None, "difference"),
            f"vmstat.{name}",
            is_drawn=name == "direct_reclaim",
        )
        for name, title in (
            ("dirtied", "pages dirtied"),
            ("written", "pages written back"),
            ("direct_reclaim", "direct reclaims"),
            ("swap_in", "pages swapped in"),
            ("swap_out", "pages swapped out"),
            ("major_faults", "major page faults"),
        )
    )

    def lines(self, files: Files) -> list[str]:
        """The kept lines."""
        return [
            line
            for line in files.read_text(_PROC).splitlines(keepends=True)
            if line.startswith(_KEPT)
        ]

    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """The counter's name and its value."""
        fields = line.split()
        numbers = whole_numbers(fields[1:])
        return None if numbers is None or len(numbers) != 1 else (fields[0], numbers)

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Rates."""
        stalls = sorted(
            {
                name
                for reading in readings
                for name in reading.counters
                if name.startswith("allocstall")
            }
        )
        return [
            *(
                Column(name, rate(readings, *fields), "1/s", " + ".join(fields), "")
                for name, fields in _RATES.items()
            ),
            Column(
                "vmstat.direct_reclaim",
                rate(readings, *stalls),
                "1/s",
                "allocstall of all zones",
                "",
            ),
            Column("vmstat.read.bw", rate(readings, "pgpgin", scale=_KIB), "B/s", "pgpgin", "KiB"),
            Column(
                "vmstat.write.bw", rate(readings, "pgpgout", scale=_KIB), "B/s", "pgpgout", "KiB"
            ),
        ]
