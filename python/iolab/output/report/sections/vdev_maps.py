# SPDX-License-Identifier: Apache-2.0
"""Heat maps of the runs that OpenZFS's own histograms watched: latency and size of I/Os at each
vdev over time, and the waits for a transaction group. Columns are the readings' intervals, buckets
powers of two: OpenZFS keeps no finer ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from iolab.base.errors import FormatError
from iolab.base.registry import load
from iolab.formats.core.tables import HostTable
from iolab.formats.zfs.histograms import BITS, HistogramTable
from iolab.recordings.heatmap.figure import Named
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.wire import group_of
from iolab.recordings.store.base.counts import HeatCounts, Y, merge
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.read.trace import Dimension
from iolab.studies.results.evidence.files import measured_files, read_file
from iolab.studies.results.evidence.model import Run
from iolab.studies.results.facts.series import cut

from ..model.map_payload import CellMaps, RunMap

SECOND = 10**9


@dataclass(frozen=True)
class _Kind:
    """A source's map: its title, the quantity on y, and the queues that are added up, by the words
    for them."""

    title: str
    y: Y
    queues: Mapping[str, tuple[str, ...]]


_BOTH = ("sync_read", "sync_write", "async_read", "async_write", "scrub", "trim", "rebuild")
KINDS = {
    "zpool-latency": _Kind(
        "Latency at each vdev, in queues and at the disk",
        "latency",
        {
            "read": ("read.wait",),
            "write": ("write.wait",),
            "scrub": ("scrub.wait",),
            "trim": ("trim.wait",),
            "rebuild": ("rebuild.wait",),
        },
    ),
    "zpool-sizes": _Kind(
        "Size at each vdev, after aggregation",
        "size",
        {queue.replace("_", " "): (f"{queue}.alone", f"{queue}.merged") for queue in _BOTH},
    ),
    "dmu_tx_assign": _Kind("Wait of transactions for a group", "latency", {"": ("wait",)}),
}


def vdev_maps(runs: Sequence[tuple[int, Run]], notes: list[str]) -> list[CellMaps]:
    """Maps of the runs of one cell, one for each kind that a run has; runs are given with their
    place in the payload. Maps of a vdev in all runs follow each other."""
    cells = []
    for kind, what in KINDS.items():
        members = [
            (place, run, named) for place, run in runs for named in maps_of(run, kind, notes)
        ]
        if kind != "dmu_tx_assign":
            members.sort(key=lambda member: _order(member[2].label.partition(", ")[0]))
        maps = [named for _, _, named in members]
        if maps:
            group = group_of(View("log"), maps, percentiles=False, joined=1)
            of = [
                RunMap(run=place, variant=run.variant, repetition=run.plan.repetition, seen="zfs")
                for place, run, _ in members
            ]
            cells.append(
                CellMaps(
                    of=of, group=group.model_copy(update={"title": what.title, "difference": False})
                )
            )
    return cells


def has_log(run: Run) -> bool:
    """Whether a run has the log of any of these sources."""
    return any((run.evidence / f"{kind}.log").is_file() for kind in KINDS)


def maps_of(run: Run, kind: str, notes: list[str]) -> list[Named]:
    """A run's maps of one of `KINDS`, the pool's first, then each vdev's that had I/O; none without
    its log. What is damaged is noted."""
    table, what = _table(run, kind, notes), KINDS[kind]
    maps: list[Named] = []
    if table is None or table.ends_ns.size == 0:
        return maps
    for owner in sorted(
        {owner for owner, _ in table.histograms},
        key=_order,
    ):
        parts = [
            (words, counts)
            for words, queues in what.queues.items()
            if (counts := _counts(table, owner, queues, what.y)) is not None
        ]
        if parts:
            all_counts = merge([counts for _, counts in parts])
            dimensions = [Dimension("queue", tuple(parts))] if len(parts) > 1 else []
            who = "" if kind == "dmu_tx_assign" else f"{owner}, "
            maps.append(
                Named(
                    f"{who}{run.variant} (run {run.id.partition('-')[0]})",
                    all_counts,
                    tuple(dimensions),
                )
            )
    return maps


def _order(owner: str) -> tuple[object, ...]:
    """Places an owner of maps: the pool first."""
    return (owner != "pool", _natural(owner))


def _table(run: Run, kind: str, notes: list[str]) -> HistogramTable | None:
    path = run.evidence / f"{kind}.log"
    if path not in measured_files(run.evidence):
        return None
    try:
        table: HostTable = cut(
            load("format", kind)().read(
                read_file(run.evidence, path.name, run.plan.files), path.name
            ),
            run.plan.window,
        )
    except (OSError, FormatError) as error:
        notes.append(f"run {run.id}: {error}")
        return None
    return table if isinstance(table, HistogramTable) and table.time_ns is not None else None


def _counts(table: HistogramTable, owner: str, queues: Iterable[str], y: Y) -> HeatCounts | None:
    """I/Os of some queues of an owner by interval and bucket, those of the window; None where there
    were none."""
    ends = table.ends_ns
    inside = np.flatnonzero(np.isin(ends, table.time_ns))
    step = round(table.interval * 10) * SECOND // 10 or round(
        table.interval * SECOND
    )  # readings are a little early or late
    if not len(inside):
        return None
    first = int(ends[inside[0]]) - step
    columns = np.maximum(np.rint((ends[inside] - first) / step).astype(np.int64) - 1, 0)
    count_of_cell: dict[tuple[int, int], int] = {}
    for queue in queues:
        counts = table.histograms.get((owner, queue))
        if counts is None:
            continue
        for row, column in zip(inside, columns.tolist(), strict=True):
            for index, count in zip(
                counts.indices.tolist(), counts.counts[row].tolist(), strict=True
            ):
                if count:
                    count_of_cell[column, index] = count_of_cell.get((column, index), 0) + count
    if not count_of_cell:
        return None
    places = sorted(count_of_cell)
    return HeatCounts(
        y=y,
        t0_ns=first,
        interval_ns=step,
        grid=LogLinear(BITS),
        column=np.array([column for column, _ in places], dtype=np.int64),
        index=np.array([index for _, index in places], dtype=np.int64),
        count=np.array([count_of_cell[place] for place in places], dtype=np.int64),
        events=sum(count_of_cell.values()),
    )


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
