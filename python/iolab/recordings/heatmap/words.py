# SPDX-License-Identifier: Apache-2.0
"""The texts about a map: what was counted, what is not shown, what was lost."""

from __future__ import annotations

from datetime import UTC, datetime

from ..store.base.counts import HeatCounts, LostKind, Y
from .model import Cells
from .ticks import quantity

TITLES: dict[Y, str] = {
    "latency": "Latency",
    "queue": "Time in the queue",
    "offset": "Offset",
    "size": "Size",
    "utilization": "Utilization in percent",
}

WEIGHED: dict[str, str] = {"time": "ns", "bytes": "B"}
"""The unit of cells that hold no count, by weight."""

_SUMS = {"time": "spent in them", "bytes": "moved by them"}

SIGNS = {"shaded": "no I/O, though some was expected", "hatched": "not recorded"}
"""What stretches of a map without I/O are drawn as, and what that says."""

_EPOCH = 10**17
"""Later than this (March 1973) a time in ns counts from 1970; earlier ones count from the trace's
own start."""


def number(value: float) -> str:
    """A count with thin groups of three."""
    return f"{value:,.0f}".replace(",", " ")


def ios(count: int) -> str:
    """`1 I/O`, `12 345 I/Os`."""
    return f"{number(count)} I/O{'' if count == 1 else 's'}"


def records(count: int) -> str:
    """`1 record`, `12 345 records`."""
    return f"{number(count)} record{'' if count == 1 else 's'}"


def halves(count: int) -> str:
    """Starts without a completion, or the reverse, as those under way when a recording
    begins."""
    if count == 1:
        return "1 unmatched issue or completion event"
    return f"{number(count)} unmatched issue or completion events"


def lost(kind: LostKind, count: int) -> str:
    """What is said of a kind that was lost; 0 means an unknown number."""
    if not count:
        return lost(kind, 2).replace("2", "an unknown number of", 1)
    if kind == "unpaired":
        return halves(count)
    return f"{records(count)} {'could not be read' if kind == 'damaged' else 'was lost' if count == 1 else 'were lost'}"


def amount(counts: HeatCounts, value: float) -> str:
    """A cell's worth: I/Os (of utilization: readings), the time spent in them, or the bytes that
    they moved."""
    return (
        _count_text(counts, round(value))
        if counts.weight == "count"
        else quantity(value, WEIGHED[counts.weight])
    )


def kind_of(y: str, weight: str) -> str:
    """What a map's cells hold: time, bytes, readings of counters, or I/Os."""
    return weight if weight != "count" else "readings" if y == "utilization" else "I/Os"


def _count_text(counts: HeatCounts, count: int) -> str:
    return f"{number(count)} {kind_of(counts.y, 'count').removesuffix('s' if count == 1 else '')}"


def headline(label: str, counts: HeatCounts, cells: Cells) -> str:
    """`reads.log: 120 000 I/Os over 60 s, 200 ms a column`."""
    spent = (
        ""
        if counts.weight == "count"
        else f", {amount(counts, counts.total)} {_SUMS[counts.weight]}"
    )
    span = quantity(counts.span_ns, "ns")
    return f"{label}: {_count_text(counts, counts.events)} over {span}{spent}, {quantity(cells.column_ns, 'ns')} a column"


def outside(counts: HeatCounts, cells: Cells, high: float, low: float, unit: str) -> list[str]:
    """The counts above and below the map."""
    texts = []
    share = f" ({100 * cells.above / counts.total:.2g} %)" if cells.above else ""
    if cells.above:
        texts.append(
            f"{amount(counts, cells.above)}{share} above the crop, from {quantity(high, unit)} on"
        )
    if cells.below:
        texts.append(f"{amount(counts, cells.below)} below {quantity(low, unit)}")
    if counts.outside:
        texts.append(f"{ios(counts.outside)} outside the range")
    return texts


def losses(counts: HeatCounts) -> list[str]:
    """What could not be counted, and why; nothing is lost silently."""
    texts = []
    if counts.damaged:
        texts.append(
            f"{number(counts.damaged)} damaged line{'s' if counts.damaged > 1 else ''} left out"
        )
    if counts.lost:
        texts.append(f"the tracer lost {records(counts.lost)}")
    if counts.unpaired:
        texts.append(halves(counts.unpaired))
    if counts.without_y:
        texts.append(f"{ios(counts.without_y)} without {counts.required_field}")
    if counts.averaged:
        texts.append("each line of the log is the mean of a window, not one I/O")
    return [*texts, *counts.assumptions]


def begins(counts: HeatCounts) -> str:
    """When the map begins, where its times count from 1970; else nothing."""
    if counts.t0_ns < _EPOCH:
        return ""
    return f"begins {datetime.fromtimestamp(counts.t0_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
