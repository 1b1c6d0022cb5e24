# SPDX-License-Identifier: Apache-2.0
"""iolab's log of `zpool iostat -Hpy -l -v -T u`, `# iolab zpool-iostat 1`: what every vdev did, a
report per interval.

After the head a line `@ <realtime ns> <ns since boot>` of the start and lines `pool`, tab, name;
then zpool's own: seconds since the epoch, a row per pool and vdev. The first stamp has no rows: the
means since boot that would follow it are left out (-y). `-` is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from iolab.base.errors import FormatError
from iolab.base.metrics import PLURALS, Metric

from ..core.tables import HostTable
from ..core.text import decode
from ..host.counter_set import Curve, HostLog, Measured, Summary
from ..host.counters_log import Damage, header
from .zpool_words import FEWEST_LATENCIES, WAITS, Owners

_COLUMNS = (
    ("alloc", "B", 1.0, "alloc"),
    ("free", "B", 1.0, "free"),
    ("read.iops", "1/s", 1.0, "operations read"),
    ("write.iops", "1/s", 1.0, "operations write"),
    ("read.bw", "B/s", 1.0, "bandwidth read"),
    ("write.bw", "B/s", 1.0, "bandwidth write"),
    *((name, "s", 1e-9, f"{what} {way}") for name, way, what in WAITS),
)
"""Name, base unit, base units per number, zpool's words; 17 columns with the name in 2.1, 18 in
2.3."""

_WAIT = re.compile(r"vdev\.(read|write)\.wait\[(.+)\]")

_FEWEST = 6 + FEWEST_LATENCIES - 1
"""-l shows no trim and, before 0.8, no scrub."""


@dataclass
class _Report:
    line: int
    seconds: int
    rows: dict[str, list[float]] = field(default_factory=dict)


class ZpoolIostatLog(HostLog):
    """`vdev.write.iops[vdb]`, `vdev.write.wait[vdb]`...: every column of every vdev; `[pool]` is
    the pool itself."""

    name = "zpool-iostat"
    metrics = tuple(
        Measured(
            Metric(
                f"vdev.{way}.wait",
                f"mean vdev latency, {PLURALS[way]}, queues and disks",
                "s",
                "lower",
                "ratio",
                "mean",
            ),
            f"vdev.{way}.wait[pool]",
            None,
            True,
        )
        for way in ("read", "write")
    )

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per report. FormatError: nothing in the file, another format or a newer one, no
        whole report."""
        text = decode(data, where, when_empty="zpool was ended before its first report")
        lines = text.split("\n")
        if lines[0].rstrip() != header(self.name) or len(lines) < 2:
            raise FormatError(
                f"'{lines[0][:60]}' is not a header of this log",
                where=f"{where}:1",
                hint=f"it begins with '{header(self.name)}'",
            )
        damaged: Damage = [(len(lines), "cut off: no line end")] if lines[-1] else []
        reports, start = _reports(lines[1:-1], damaged)
        reports = _complete_reports(reports, damaged, torn=bool(lines[-1]))
        if not reports:
            raise FormatError("no whole report in the log", where=where)
        return _table(self.name, reports, start, damaged)

    def summaries(self, table: HostTable) -> Iterator[Summary]:
        """Latency of each vdev over its I/Os: an interval's mean counts as often as it has I/Os; of
        the pool without a name."""
        for column, waits in table.columns.items():
            match = _WAIT.fullmatch(column)
            rates = (
                table.columns.get(f"vdev.{match[1]}.iops[{match[2]}]")
                if match is not None
                else None
            )
            if match is None or rates is None:
                continue
            both = np.isfinite(waits) & np.isfinite(rates) & (rates > 0)
            ios = float(rates[both].sum())
            if ios > 0:
                yield Summary(
                    _metric(column),
                    float((waits[both] * rates[both]).sum()) / ios,
                    "s",
                    table.source_fields[column][0],
                )

    def curves(self, table: HostTable) -> Iterator[Curve]:
        """Latency of reads and of writes at each vdev."""
        return (
            Curve(_metric(column), "s", values)
            for column, values in table.columns.items()
            if _WAIT.fullmatch(column)
        )


def _metric(column: str) -> str:
    return column.removesuffix("[pool]")


def _reports(lines: Sequence[str], damaged: Damage) -> tuple[list[_Report], int | None]:
    """Every report, and the nanoseconds past a whole second at which zpool was started."""
    owners, reports, start = Owners(), [], None
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if line.isascii() and line.isdecimal() and 9 <= len(line) <= 11:
            reports.append(_Report(number, int(line)))
        elif (
            line.startswith("@ ")
            and start is None
            and line.split()[1].isdecimal()
            and len(line) < 60
        ):
            start = int(line.split()[1])
        elif len(fields) == 2 and fields[0] == "pool" and not reports:
            owners.add(fields[1])
        elif reports and (row := _row(fields)) is not None:
            reports[-1].rows[owners.of(fields[0])] = row
        elif line.strip():
            damaged.append((number, "neither a time nor a vdev's row"))
    phase = (
        start % 10**9
        if start is not None and reports and start // 10**9 == reports[0].seconds
        else None
    )
    return reports, phase


def _row(fields: Sequence[str]) -> list[float] | None:
    if len(fields) <= _FEWEST or not fields[0]:
        return None
    values = []
    for text in fields[1:]:
        if text != "-" and not (text.isascii() and text.isdecimal() and len(text) <= 20):
            return None
        values.append(np.nan if text == "-" else float(text))
    return values


def _complete_reports(reports: list[_Report], damaged: Damage, *, torn: bool) -> list[_Report]:
    """Reports with rows, without a last report that lacks rows of the previous report."""
    kept = [report for report in reports if report.rows]
    if kept and kept[-1] is reports[-1]:
        before = kept[-2].rows.keys() if len(kept) > 1 else set()
        if not before <= kept[-1].rows.keys() or (torn and len(kept) == 1):
            damaged.append((kept[-1].line, "the last report is cut off and left out"))
            return kept[:-1]
    return kept


def _table(kind: str, reports: Sequence[_Report], phase: int | None, damaged: Damage) -> HostTable:
    seconds = np.array([report.seconds for report in reports], dtype=np.int64)
    steps = np.diff(seconds)
    width = max(len(row) for report in reports for row in report.rows.values())
    owners = dict.fromkeys(owner for report in reports for owner in report.rows)
    columns, units, fields = {}, {}, {}
    for owner in owners:
        rows = [report.rows.get(owner, ()) for report in reports]
        for place, (name, unit, scale, words) in enumerate(_COLUMNS[:width]):
            key = f"vdev.{name}[{owner}]"
            columns[key] = (
                np.array(
                    [row[place] if place < len(row) else np.nan for row in rows], dtype=np.float64
                )
                * scale
            )
            units[key], fields[key] = unit, (f"{words} of {owner}", "ns" if unit == "s" else "")
    return HostTable(
        kind=kind,
        interval=float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0,
        time_ns=seconds * 10**9 + (phase or 0),
        columns=columns,
        units=units,
        source_fields=fields,
        damaged=tuple(damaged),
    )
