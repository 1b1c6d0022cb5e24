# SPDX-License-Identifier: Apache-2.0
"""What `iolab record` says: the line a second, the summary, and what holds unless chosen."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.recordings.record.recorder import Outcome
    from iolab.recordings.record.settings import Budget, Retention
    from iolab.recordings.record.status import Status


def live_line(status: Status, events_per_s: float) -> str:
    """`1:05  98 214 events/s  6 383 910 events, 0 lost, 52.1 MiB`."""
    from iolab.base.units import format_quantity

    from ..study.progress import clock_text

    suspended = f", suspended: {', '.join(status.suspended)}" if status.suspended else ""
    archive = ""
    if status.archive.get("error"):
        archive = f", archive {lasting(int(status.archive['behind_s']))} behind"
    return (
        f"{clock_text(status.seconds)}  {thousands(events_per_s)} events/s  {thousands(sum(status.events.values()))} events, "
        f"{thousands(sum(status.lost.values()))} lost, {format_quantity(status.bytes, 'B', 3)}{suspended}{archive}"
    )


def summary_lines(outcome: Outcome, directory: Path) -> list[str]:
    """What was recorded, what was lost, what it cost."""
    from iolab.base.units import format_number, format_quantity
    from iolab.recordings.record.settings import SOURCES

    status, seconds = outcome.status, max(outcome.seconds, 1e-9)
    events, lost = sum(status.events.values()), sum(status.lost.values())
    by_source = ", ".join(f"{name} {thousands(count)}" for name, count in status.events.items())
    bytes_per_io = f", {format_number(status.bytes / events, 3)} bytes an I/O" if events else ""
    shares = [
        f"{name} {format_number(spent / 1e7 / seconds, 2)} %"
        for name, spent in (("probe", status.probe_cpu_ns), ("recorder", status.recorder_cpu_ns))
    ]
    lines = [
        f"recorded {thousands(events)} events in {seconds:.1f} s{f' ({by_source})' if len(status.events) > 1 else ''}, "
        f"{thousands(lost)} lost, {format_quantity(status.bytes, 'B', 3)} on disk{bytes_per_io}",
        f"CPU (100 % = one core): {', '.join(shares)}"
        + (f"; the probe was lost {status.deaths} times" if status.deaths else ""),
    ]
    deleted = _deleted_events(directory)
    if deleted:
        lines.append(
            f"{thousands(deleted)} of the recording's events were deleted to stay within its limits"
            " (--keep, --keep-for)"
        )
    has_events = any(count for source, count in status.events.items() if source in SOURCES)
    look = ["heatmap", directory] if has_events else ["query", directory, "cpu.utilization"]
    commands = [["show", directory], look]
    return [*lines, "; ".join(shlex.join(["iolab", *map(str, words)]) for words in commands)]


def _deleted_events(directory: Path) -> int:
    """Events that retention deleted from a recording, over all sources."""
    from iolab.recordings.store.base.metadata import read_facts

    dropped = read_facts(directory).dropped or {}
    return sum(dropped.get("events", {}).values())


def thousands(number: float) -> str:
    """`1 234 567`."""
    return f"{number:,.0f}".replace(",", " ")


def lasting(seconds: int) -> str:
    """`7 d`, `36 h`, `90 s`."""
    for length, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            many = seconds / length
            return f"{many:.3g} {word}" if many < 1000 else f"{many:.0f} {word}"
    return f"{seconds} s"


def kept_text(retention: Retention) -> str:
    """`keeps 10 GiB and 7 days`."""
    from iolab.base.units import format_quantity

    limits = [format_quantity(retention.bytes, "B", 3)] if retention.bytes is not None else []
    if retention.age_s is not None:
        days = retention.age_s / 86400
        limits.append(f"{days:g} days" if days >= 1 else f"{retention.age_s:g} s")
    return f"keeps {' and '.join(limits)}" if limits else "keeps everything"


def budget_text(budget: Budget) -> str:
    """`budget 25 % of all CPU time`."""
    from iolab.base.units import format_quantity

    limits = (
        [f"{budget.cpu_share * 100:g} % of all CPU time"] if budget.cpu_share is not None else []
    )
    limits += (
        [format_quantity(budget.bytes_per_s, "B/s", 3)] if budget.bytes_per_s is not None else []
    )
    return f"budget {' and '.join(limits)}" if limits else "no budget"
