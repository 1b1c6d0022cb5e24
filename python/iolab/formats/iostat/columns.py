# SPDX-License-Identifier: Apache-2.0
"""What iostat's columns mean, by the name that they have in every version of sysstat (iostat(1))
and in illumos."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from ..core.tables import Floats

KIB, SECTOR, MIB = 1024.0, 512.0, 1048576.0
"""sysstat's kB is 1024 bytes and its MB 1024 of those; a sector (or block) is 512 bytes."""


@dataclass(frozen=True)
class Column:
    """A file's column: canonical name, factor to base units, and the unit in which the file has
    it."""

    canonical: str
    scale: float
    unit: str


def _sysstat() -> dict[str, Column]:
    columns = {
        "await": Column("await", 1e-3, "ms"),
        "r_await": Column("read.await", 1e-3, "ms"),
        "w_await": Column("write.await", 1e-3, "ms"),
        "aqu-sz": Column("queue", 1.0, ""),
        "avgqu-sz": Column("queue", 1.0, ""),
        "%util": Column("util", 0.01, "%"),
        "util": Column("util", 0.01, "%"),  # JSON
    }
    for letter, word, old in (
        ("r", "read", "read"),
        ("w", "write", "wrtn"),
        ("d", "discard", "dscd"),
    ):
        columns[f"{letter}/s"] = Column(f"{word}.iops", 1.0, "1/s")
        for prefix, scale, unit in (("kB", KIB, "KiB/s"), ("MB", MIB, "MiB/s")):
            columns[f"{letter}{prefix}/s"] = Column(f"{word}.bw", scale, unit)
            columns[f"{prefix}_{old}/s"] = Column(f"{word}.bw", scale, unit)
        columns[f"{letter}sec/s"] = Column(f"{word}.bw", SECTOR, "512 B/s")
        columns[f"Blk_{old}/s"] = Column(f"{word}.bw", SECTOR, "512 B/s")
    columns["f/s"] = Column("flush.iops", 1.0, "1/s")
    return columns


SYSSTAT: Mapping[str, Column] = _sysstat()
"""Column names of sysstat's text and JSON."""

ILLUMOS: Mapping[str, Column] = {
    "r/s": Column("read.iops", 1.0, "1/s"),
    "w/s": Column("write.iops", 1.0, "1/s"),
    "kr/s": Column("read.bw", KIB, "KiB/s"),
    "kw/s": Column("write.bw", KIB, "KiB/s"),
    "Mr/s": Column("read.bw", MIB, "MiB/s"),
    "Mw/s": Column("write.bw", MIB, "MiB/s"),
    "svc_t": Column("await", 1e-3, "ms"),
    "ms/r": Column("read.await", 1e-3, "ms"),
    "ms/w": Column("write.await", 1e-3, "ms"),
    "ms/t": Column("await", 1e-3, "ms"),
    "qlen": Column("queue", 1.0, ""),
    "%b": Column("util", 0.01, "%"),
}
"""Column names of `iostat -x` of illumos and FreeBSD; `wait` + `actv` and `wsvc_t` + `asvc_t` are
sums and worked out apart."""

_SIZES = (("avgrq-sz", "rw", SECTOR), ("rareq-sz", "r", KIB), ("wareq-sz", "w", KIB))
"""Columns of mean request sizes, the I/Os that they average, and their unit in bytes."""

_PREFIXES = {"kB": KIB, "MB": MIB, "sec": SECTOR}


def true_bandwidths(fields: Sequence[str], values: Floats) -> list[str] | None:
    """The names with their bandwidths' true unit: `rMB/s` for an `rkB/s` that the request sizes
    contradict.

    A row without header doesn't say whether -k, -m or sectors were requested, and sysstat's JSON
    named the wrong unit until 12.2.1; but bandwidth over I/Os is the request size, and its unit
    never depended on options.

    Args:
        fields: names in order, bandwidths as `rkB/s`, `wkB/s`, `dkB/s`.
        values: shape (rows, fields).

    Returns None where nothing was busy enough to tell.
    """
    place = {name: index for index, name in enumerate(fields)}
    for size_name, letters, size_unit in _SIZES:
        if size_name not in place or any(
            f"{letter}/s" not in place or f"{letter}kB/s" not in place for letter in letters
        ):
            continue
        iops, bandwidth = (
            reduce(add, [values[:, place[f"{letter}{unit}"]] for letter in letters])
            for unit in ("/s", "kB/s")
        )
        size = values[:, place[size_name]]
        busy = (iops >= 1) & (size > 0) & (bandwidth >= 0.05)
        if busy.any():
            sizes = sorted((iops[busy] * size[busy] * size_unit / bandwidth[busy]).tolist())
            actual = sizes[len(sizes) // 2]
            prefix = min(_PREFIXES, key=lambda name: abs(math.log(actual / _PREFIXES[name])))
            return [name.replace("kB/s", f"{prefix}/s") for name in fields]
    return None
