"""Observations of what OpenZFS did over the window, where its sources watched: the ARC, transaction groups, the intent log, vdevs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from ..formats.tables import Floats, HostTable
from ..formats.txgs_log import TxgTable
from ..metrics import of
from .model import Observation

_MEANS = {"arcstats": {"zfs.arc.size": "arc.size"}, "zil": {"zfs.zil.commits": "zil.commits"}, "dmu_tx": {"zfs.tx.delayed": "tx.delayed"}}
_WAIT = re.compile(r"vdev\.(read|write)\.wait\[(.+)\]")


def observations(tables: Mapping[str, HostTable], files: Mapping[str, str]) -> Iterator[Observation]:
    """Each metric that some table knows something of within the window; nothing for what a release doesn't tell.

    Args:
        tables: by kind, cut to the window. files: kind to the file that it came from.
    """
    for kind, wanted in _MEANS.items():
        for metric, column in wanted.items() if kind in tables else ():
            known = _known(tables[kind].columns.get(column))
            if len(known):
                yield _observation(metric, float(known.mean()), files[kind], f"mean of {tables[kind].source_fields[column][0]}")
    if "arcstats" in tables:
        yield from _hit_ratio(tables["arcstats"], files["arcstats"])
    txgs = tables.get("txgs")
    if isinstance(txgs, TxgTable):
        yield from _groups(txgs, files["txgs"])
    if "zpool-iostat" in tables:
        yield from _waits(tables["zpool-iostat"], files["zpool-iostat"])


def _hit_ratio(table: HostTable, file: str) -> Iterator[Observation]:
    """Over all that was asked in the window, not the mean of seconds: a second with one read counts as one read."""
    hits, misses = table.columns.get("arc.hits"), table.columns.get("arc.misses")
    if hits is None or misses is None:
        return
    both = np.isfinite(hits) & np.isfinite(misses)
    asked = float((hits[both] + misses[both]).sum())
    if asked > 0:
        yield _observation("zfs.arc.hit_ratio", float(hits[both].sum()) / asked, file, "hits / (hits + misses)")


def _groups(table: TxgTable, file: str) -> Iterator[Observation]:
    """Of the groups that were seen committed within the window."""
    inside = np.isin(table.seen_ns, table.time_ns)
    if not inside.any():
        return
    sync, dirty = table.sync_time[inside], table.dirty_bytes[inside]
    yield _observation("zfs.txg.sync.p50", float(np.median(sync)), file, f"median stime of {inside.sum()} groups")
    yield _observation("zfs.txg.sync.max", float(sync.max()), file, f"most stime of {inside.sum()} groups")
    yield _observation("zfs.dirty.max", float(dirty.max()), file, f"most ndirty of {inside.sum()} groups")


def _waits(table: HostTable, file: str) -> Iterator[Observation]:
    """Latency of each vdev over its I/Os: an interval's mean counts as often as it has I/Os; of the pool without a name."""
    for column, waits in table.columns.items():
        match = _WAIT.fullmatch(column)
        rates = table.columns.get(f"vdev.{match[1]}.iops[{match[2]}]") if match is not None else None
        if match is None or rates is None:
            continue
        both = np.isfinite(waits) & np.isfinite(rates) & (rates > 0)
        ios = float(rates[both].sum())
        if ios > 0:
            metric = f"vdev.{match[1]}.wait" + ("" if match[2] == "pool" else f"[{match[2]}]")
            yield _observation(metric, float((waits[both] * rates[both]).sum()) / ios, file, table.source_fields[column][0])


def _known(values: Floats | None) -> Floats:
    return np.empty(0) if values is None else values[np.isfinite(values)]


def _observation(metric: str, value: float, file: str, field: str) -> Observation:
    return Observation(metric, value, of(metric).unit, file, field)
