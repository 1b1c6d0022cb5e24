# SPDX-License-Identifier: Apache-2.0
"""Counters of the whole of OpenZFS, from /proc/spl/kstat/zfs: `arcstats.log`, `zil.log`,
`dmu_tx.log`; lines `name type value` of a kstat.

Names come and go with releases: a quantity without its names is missing, never 0. `iohits`
(2.2 and later) are hits of a buffer that is still being read; before, they counted as hits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from iolab.base.metrics import Metric

from ..core.tables import Floats, HostTable
from ..host.counter_set import CounterSet, Curve, Files, Measured, Summary
from ..host.counters_log import Reading
from ..host.host_columns import Column, gauge, rate

KSTATS = "/proc/spl/kstat/zfs"

_TYPES = frozenset("123456")
"""Types of whole numbers in a named kstat: 32 and 64 bits, signed and unsigned, and the machine's
long."""

_WAYS = tuple(
    (f"{kind}.{what}", f"{kind}_{what}")
    for kind in ("demand", "prefetch")
    for what in ("data", "metadata")
)


def named_counter(line: str) -> tuple[str, list[int]] | None:
    """A line of a named kstat: its name (which may have spaces) and its value, which may be
    negative."""
    fields = line.rsplit(None, 2)
    if len(fields) != 3 or fields[1] not in _TYPES or not fields[2].isascii():
        return None
    digits = fields[2].removeprefix("-")
    return (
        (fields[0].rstrip(), [int(fields[2])]) if digits.isdecimal() and len(digits) <= 20 else None
    )


def named_lines(text: str) -> list[str]:
    """The counters of a named kstat, each with its line end, without the kstat's own line and the
    titles."""
    return text.splitlines(keepends=True)[2:]


def not_loaded(files: Files) -> str | None:
    """Why there is nothing of OpenZFS to read, in words; None where its modules are loaded. Pools
    may come later."""
    return None if files.is_directory(KSTATS) else f"OpenZFS is not loaded: there is no {KSTATS}"


class _KstatCounters(CounterSet):
    def lines(self, files: Files) -> list[str]:
        """The counters as the kernel wrote them."""
        return named_lines(files.read_text(f"{KSTATS}/{self.name}"))

    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """The counter's name and its value."""
        return named_counter(line)

    def unfit(self, files: Files) -> str | None:
        """Without OpenZFS there is nothing to read."""
        return not_loaded(files) or super().unfit(files)

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Every counter by its name."""
        return {fields[0]: float(fields[2]) for fields in (line.split() for line in lines)}


class ArcstatsCounters(_KstatCounters):
    """The ARC: hits and misses per second and their share, of demand and prefetch, of data and
    metadata; its sizes; L2ARC."""

    name = "arcstats"
    line = "a counter of arcstats"
    metrics = (
        Measured(
            Metric("zfs.arc.hit_ratio", "ARC hit ratio", "1", None, "difference", "mean"),
            "arc.hit_ratio",
            None,
            True,
        ),
        Measured(Metric("zfs.arc.size", "ARC size, mean", "B", None), "arc.size", is_drawn=True),
        Measured(Metric("zfs.l2arc.hits", "L2ARC hits", "1/s", None), "l2arc.hits", None, True),
        Measured(
            Metric("zfs.l2arc.read.bw", "throughput, L2ARC reads", "B/s", None),
            "l2arc.read.bw",
            None,
            True,
        ),
        Measured(
            Metric("zfs.l2arc.size", "L2ARC size, before compression", "B", None),
            "l2arc.size",
            None,
            True,
        ),
        Measured(
            Metric("zfs.l2arc.headers", "memory used, L2ARC headers", "B", None),
            "l2arc.headers",
            None,
            True,
        ),
    )

    def summaries(self, table: HostTable) -> Iterator[Summary]:
        """The hit ratio is of all that was asked in the window, not the mean of seconds: a second
        with one read counts as one read."""
        hits, misses = table.columns.get("arc.hits"), table.columns.get("arc.misses")
        if hits is not None and misses is not None:
            both = np.isfinite(hits) & np.isfinite(misses)
            requests = float((hits[both] + misses[both]).sum())
            if requests > 0:
                yield Summary(
                    "zfs.arc.hit_ratio",
                    float(hits[both].sum()) / requests,
                    "1",
                    "hits / (hits + misses)",
                )
        yield from super().summaries(table)

    def curves(self, table: HostTable) -> Iterator[Curve]:
        """Without those of the L2ARC where there is none: its counters are zero then."""
        return (
            curve
            for curve in super().curves(table)
            if not curve.metric.startswith("zfs.l2arc.") or np.nan_to_num(curve.values).any()
        )

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Bytes in the ARC."""
        return {"zfs.arc.size": now["size"]} if "size" in now else {}

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """`arc.hit_ratio` is nan in an interval without requests."""
        columns_of_pools = []
        for name, prefix in (("arc", ""), *((f"arc.{name}", f"{field}_") for name, field in _WAYS)):
            counters = [f"{prefix}{what}" for what in ("hits", "iohits", "misses")]
            hits, under_way, misses = (rate(readings, counter) for counter in counters)
            served = hits if hits is None or under_way is None else hits + under_way
            columns_of_pools += [
                Column(
                    f"{name}.hits",
                    served,
                    "1/s",
                    " + ".join(counters[:2]) if under_way is not None else counters[0],
                ),
                Column(f"{name}.misses", misses, "1/s", counters[2]),
                Column(f"{name}.hit_ratio", _share(served, misses), "1", "hits / (hits + misses)"),
            ]
        sizes = {
            "size": "size",
            "target": "c",
            "target.max": "c_max",
            "data": "data_size",
            "metadata": "metadata_size",
            "headers": "hdr_size",
            "dnodes": "dnode_size",
            "dbufs": "dbuf_size",
            "anonymous": "anon_size",
            "mru": "mru_size",
            "mfu": "mfu_size",
        }
        l2_sizes = {"size": "l2_size", "allocated": "l2_asize", "headers": "l2_hdr_size"}
        l2_rates = {
            "hits": ("l2_hits", "1/s"),
            "misses": ("l2_misses", "1/s"),
            "read.bw": ("l2_read_bytes", "B/s"),
            "write.bw": ("l2_write_bytes", "B/s"),
        }
        columns_of_pools += [
            Column(f"arc.{name}", gauge(readings, field), "B", field, "B")
            for name, field in sizes.items()
        ]
        columns_of_pools += [
            Column(f"l2arc.{name}", gauge(readings, field), "B", field, "B")
            for name, field in l2_sizes.items()
        ]
        columns_of_pools += [
            Column(f"l2arc.{name}", rate(readings, field), unit, field)
            for name, (field, unit) in l2_rates.items()
        ]
        columns_of_pools.append(
            Column(
                "arc.throttled",
                rate(readings, "memory_throttle_count"),
                "1/s",
                "memory_throttle_count",
            )
        )
        return columns_of_pools


class ZilCounters(_KstatCounters):
    """The intent log: commits, records by how they are written, bytes to log devices and to the
    pool."""

    name = "zil"
    line = "a counter of zil"
    metrics = (
        Measured(
            Metric("zfs.zil.commits", "ZIL commits", "1/s", None, "difference"),
            "zil.commits",
            is_drawn=True,
        ),
    )

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Commits per second."""
        key = "zil_commit_count"
        return (
            {"zfs.zil.commits": (now[key] - before[key]) / passed}
            if key in now and key in before
            else {}
        )

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Rates of what this release counts."""
        return [
            Column(f"zil.{name}", rate(readings, field), unit, field)
            for name, field, unit in (
                ("commits", "zil_commit_count", "1/s"),
                ("writers", "zil_commit_writer_count", "1/s"),
                ("stalls", "zil_commit_stall_count", "1/s"),
                ("errors", "zil_commit_error_count", "1/s"),
                ("records", "zil_itx_count", "1/s"),
                ("indirect.bw", "zil_itx_indirect_bytes", "B/s"),
                ("copied.bw", "zil_itx_copied_bytes", "B/s"),
                ("needcopy.bw", "zil_itx_needcopy_bytes", "B/s"),
                ("pool.bw", "zil_itx_metaslab_normal_bytes", "B/s"),
                ("log.bw", "zil_itx_metaslab_slog_bytes", "B/s"),
                ("log.write.bw", "zil_itx_metaslab_slog_write", "B/s"),
            )
        ]


class DmuTxCounters(_KstatCounters):
    """Transactions: assigned, delayed by the write throttle, held back for memory or quota."""

    name = "dmu_tx"
    line = "a counter of dmu_tx"
    metrics = (
        Measured(
            Metric(
                "zfs.tx.delayed",
                "transactions delayed by the write throttle",
                "1/s",
                None,
                "difference",
            ),
            "tx.delayed",
            is_drawn=True,
        ),
    )

    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """Rates of what this release counts."""
        fields = {
            "assigned": "assigned",
            "delayed": "dirty_delay",
            "over_max": "dirty_over_max",
            "throttled": "dirty_throttle",
            "group": "group",
            "memory": "memory_reserve",
            "log_delayed": "wrlog_delay",
            "quota": "quota",
            "errors": "error",
        }
        return [
            Column(f"tx.{name}", rate(readings, f"dmu_tx_{field}"), "1/s", f"dmu_tx_{field}")
            for name, field in fields.items()
        ]


def _share(hits: Floats | None, misses: Floats | None) -> Floats | None:
    if hits is None or misses is None:
        return None
    requests = hits + misses
    share: Floats = np.divide(
        hits, requests, out=np.full_like(requests, np.nan), where=requests > 0
    )
    return share
