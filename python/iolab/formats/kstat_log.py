"""iolab's logs of OpenZFS's own counters, `# iolab arcstats 1`, `zil` and `dmu_tx`: lines `name type value` of a kstat.

Names come and go with releases: a quantity whose names are not there is missing, never 0. `iohits` (2.2 and later) are hits of a buffer
whose read was under way; before, they counted as hits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from .counters_log import Reading, detect_log, read_log
from .host_columns import Column, gauge, host_table, rate
from .tables import Floats, HostTable

_TYPES = frozenset("123456")
"""Types of whole numbers in a named kstat: 32 and 64 bits, signed and unsigned, and the machine's long."""

_WAYS = tuple((f"{kind}.{what}", f"{kind}_{what}") for kind in ("demand", "prefetch") for what in ("data", "metadata"))


def named_counter(line: str) -> tuple[str, list[int]] | None:
    """A line of a named kstat: its name (which may have spaces) and its value, which may be negative."""
    fields = line.rsplit(None, 2)
    if len(fields) != 3 or fields[1] not in _TYPES or not fields[2].isascii():
        return None
    digits = fields[2].removeprefix("-")
    return (fields[0].rstrip(), [int(fields[2])]) if digits.isdecimal() and len(digits) <= 20 else None


class _KstatLog:
    name: ClassVar[str]

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log(self.name, head)

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, named_counter, f"a counter of {self.name}")
        return host_table(self.name, readings, self.columns(readings), damaged)

    def columns(self, readings: Sequence[Reading]) -> list[Column]:
        """What the readings tell."""
        raise NotImplementedError


class ArcstatsLog(_KstatLog):
    """Hits and misses per second and their share, by who asked and for what; sizes; L2ARC."""

    name: ClassVar[str] = "arcstats"

    def columns(self, readings: Sequence[Reading]) -> list[Column]:
        """`arc.hit_ratio` is nan in an interval in which nobody asked."""
        found = []
        for name, prefix in (("arc", ""), *((f"arc.{name}", f"{field}_") for name, field in _WAYS)):
            counters = [f"{prefix}{what}" for what in ("hits", "iohits", "misses")]
            hits, under_way, misses = (rate(readings, counter) for counter in counters)
            served = hits if hits is None or under_way is None else hits + under_way
            found += [Column(f"{name}.hits", served, "1/s", " + ".join(counters[:2]) if under_way is not None else counters[0]),
                      Column(f"{name}.misses", misses, "1/s", counters[2]),
                      Column(f"{name}.hit_ratio", _share(served, misses), "1", "hits / (hits + misses)")]
        sizes = {"size": "size", "target": "c", "target.max": "c_max", "data": "data_size", "metadata": "metadata_size",
                 "headers": "hdr_size", "dnodes": "dnode_size", "dbufs": "dbuf_size", "anonymous": "anon_size", "mru": "mru_size",
                 "mfu": "mfu_size"}
        l2_sizes = {"size": "l2_size", "allocated": "l2_asize", "headers": "l2_hdr_size"}
        l2_rates = {"hits": ("l2_hits", "1/s"), "misses": ("l2_misses", "1/s"), "read.bw": ("l2_read_bytes", "B/s"),
                    "write.bw": ("l2_write_bytes", "B/s")}
        found += [Column(f"arc.{name}", gauge(readings, field), "B", field, "B") for name, field in sizes.items()]
        found += [Column(f"l2arc.{name}", gauge(readings, field), "B", field, "B") for name, field in l2_sizes.items()]
        found += [Column(f"l2arc.{name}", rate(readings, field), unit, field) for name, (field, unit) in l2_rates.items()]
        found.append(Column("arc.throttled", rate(readings, "memory_throttle_count"), "1/s", "memory_throttle_count"))
        return found


class ZilLog(_KstatLog):
    """Commits and records of the intent log per second, and bytes by where they are written."""

    name: ClassVar[str] = "zil"

    def columns(self, readings: Sequence[Reading]) -> list[Column]:
        """Rates of what this release counts."""
        return [Column(f"zil.{name}", rate(readings, field), unit, field) for name, field, unit in (
            ("commits", "zil_commit_count", "1/s"), ("writers", "zil_commit_writer_count", "1/s"),
            ("stalls", "zil_commit_stall_count", "1/s"), ("errors", "zil_commit_error_count", "1/s"), ("records", "zil_itx_count", "1/s"),
            ("indirect.bw", "zil_itx_indirect_bytes", "B/s"), ("copied.bw", "zil_itx_copied_bytes", "B/s"),
            ("needcopy.bw", "zil_itx_needcopy_bytes", "B/s"), ("pool.bw", "zil_itx_metaslab_normal_bytes", "B/s"),
            ("log.bw", "zil_itx_metaslab_slog_bytes", "B/s"), ("log.write.bw", "zil_itx_metaslab_slog_write", "B/s"))]


class DmuTxLog(_KstatLog):
    """Transactions per second, and how many the write throttle, memory or quota held back."""

    name: ClassVar[str] = "dmu_tx"

    def columns(self, readings: Sequence[Reading]) -> list[Column]:
        """Rates of what this release counts."""
        fields = {"assigned": "assigned", "delayed": "dirty_delay", "over_max": "dirty_over_max", "throttled": "dirty_throttle",
                  "group": "group", "memory": "memory_reserve", "log_delayed": "wrlog_delay", "quota": "quota", "errors": "error"}
        return [Column(f"tx.{name}", rate(readings, f"dmu_tx_{field}"), "1/s", f"dmu_tx_{field}") for name, field in fields.items()]


def _share(hits: Floats | None, misses: Floats | None) -> Floats | None:
    if hits is None or misses is None:
        return None
    asked = hits + misses
    share: Floats = np.divide(hits, asked, out=np.full_like(asked, np.nan), where=asked > 0)
    return share
