# SPDX-License-Identifier: Apache-2.0
"""iolab's logs of `zpool iostat -Hp -w` and `-r`, `# iolab zpool-latency 1` and `zpool-sizes`:
counts since the pool's import.

A reading: lines `pool`, tab, name; then of each vdev its name in a line, and rows of a bucket's
label and its count in every queue; `end`. Rows of zeros alone are left out. Labels: of latency
2^(n+1) - 1, the largest in the bucket; of size 2^n, the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..host.counter_set import HostLog
from ..host.counters_log import Reading, read_log
from ..host.host_columns import whole_numbers
from .histograms import HistogramTable, histogram_table
from .zpool_words import FEWEST_LATENCIES, FEWEST_SIZES, LATENCIES, SIZES, Owners


class _ZpoolHistogramLog(HostLog):
    quantity: ClassVar[str]
    queues: ClassVar[tuple[str, ...]]
    fewest: ClassVar[int]

    def read(self, data: bytes, where: str) -> HistogramTable:
        """Counts per interval between two readings, none lost; FormatError as
        `counters_log.read_log` says."""
        owners, owner = Owners(), ""

        def parse(line: str) -> tuple[str, list[int]] | None:
            nonlocal owner
            first, tab, rest = line.partition("\t")
            if first == "pool" and tab and rest:
                owners.add(rest)
                owner = ""
                return line, []
            if first and not tab:
                owner = owners.of(first)
                return owner, []
            numbers = whole_numbers([first, *rest.split("\t")]) if owner else None
            if (
                numbers is None
                or len(numbers) <= self.fewest
                or (n := self.bucket(numbers[0])) is None
            ):
                return None
            return f"{owner}\t{n}", numbers[1:]

        readings, damaged = read_log(
            self.name, data, where, parse, "a row of zpool iostat", end="end"
        )
        return histogram_table(self.name, self.quantity, readings, self._grown(readings), damaged)

    def bucket(self, label: int) -> int | None:
        """The n of [2^n, 2^(n+1)) of a label; None if it has none."""
        raise NotImplementedError

    def _grown(
        self, readings: Sequence[Reading]
    ) -> dict[tuple[str, str], list[dict[int, int] | None]]:
        width = max(
            (len(row) for reading in readings for row in reading.counters.values()), default=0
        )
        names = dict.fromkeys(
            name for reading in readings for name in reading.counters if "\t" not in name
        )
        grown: dict[tuple[str, str], list[dict[int, int] | None]] = {
            (owner, queue): [] for owner in names for queue in self.queues[:width]
        }
        for reading in readings:
            rows: dict[str, dict[int, list[int]]] = {
                name: {} for name in reading.counters if "\t" not in name
            }
            for name, counts in reading.counters.items():
                owner, tab, n = name.rpartition("\t")
                if tab and counts:
                    rows[owner][int(n)] = counts
            for owner in names:
                for place, queue in enumerate(self.queues[:width]):
                    mine = rows.get(owner)
                    grown[owner, queue].append(
                        None
                        if mine is None
                        else {n: row[place] for n, row in mine.items() if place < len(row)}
                    )
        return grown


class ZpoolLatencyLog(_ZpoolHistogramLog):
    """Latency: in all, at the disk, and in each queue."""

    name, quantity, queues, fewest = "zpool-latency", "latency", LATENCIES, FEWEST_LATENCIES

    def bucket(self, label: int) -> int | None:
        """2^(n+1) - 1 to n."""
        return (
            label.bit_length() - 1
            if label and label & (label + 1) == 0 and label.bit_length() <= 64
            else None
        )


class ZpoolSizesLog(_ZpoolHistogramLog):
    """Size: I/Os alone and put together, in each queue."""

    name, quantity, queues, fewest = "zpool-sizes", "size", SIZES, FEWEST_SIZES

    def bucket(self, label: int) -> int | None:
        """2^n to n."""
        return (
            label.bit_length() - 1
            if label and label & (label - 1) == 0 and label.bit_length() <= 64
            else None
        )
