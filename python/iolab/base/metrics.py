# SPDX-License-Identifier: Apache-2.0
"""The registry of metrics: unit, direction, pooling of values, and comparison of arms.

A metric's name is `<operation>.<quantity>` for the load (`write.iops`, `write.clat.p99`),
`device.<quantity>` for the target's devices (`device.util[sdb]` for one of several),
`host.<quantity>` for the machine, and a single word otherwise. Percentiles: any `p<per cent>`.

Titles use the terms of `glossary`: quantity, then operation (`p99 completion latency, writes`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

from . import registry

OPERATIONS = ("read", "write", "trim", "mixed", "sync")
"""Operations in fio's words; `mixed` is unified reporting, `sync` is fsync and its kin."""

PLURALS = {
    "read": "reads",
    "write": "writes",
    "trim": "trims",
    "mixed": "all operations",
    "sync": "syncs",
}
"""Operations as titles write them."""

SUMMARIES = {"mean": "mean", "min": "minimum", "max": "maximum", "stddev": "standard deviation of"}


@dataclass(frozen=True)
class Metric:
    """One measurable thing.

    Attributes:
        name: as scripts and the command line write it.
        title: as a chart's axis or a heading writes it.
        unit: base unit of its values (`units.BASE`).
        better: which direction is an improvement, or None where neither is.
        change: `ratio` compares arms by the logarithm of their ratio (positive quantities);
        `difference` by
            subtraction (shares, and quantities that are often exactly zero).
        pools: how values of several jobs or devices of one run become one: `sum`, `mean`, `max`, or
        `bins` (histogram
            counts are added, then read again).
        assumption: what is assumed of its logarithm (or value) over blocks: `normal`, or `nothing`
        (extremes). headline: whether a report shows it unasked where it was measured.
    """

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower"] | None
    change: Literal["ratio", "difference"] = "ratio"
    pools: Literal["sum", "mean", "max", "bins"] = "sum"
    assumption: Literal["normal", "nothing"] = "normal"
    headline: bool = False


_OVER_DEVICES = ", mean over devices"
_LATENCY = {"lat": "latency", "clat": "completion latency", "slat": "submission latency"}

_FIXED = [
    Metric(
        "device.util",
        f"device utilization{_OVER_DEVICES}",
        "1",
        None,
        "difference",
        "mean",
        headline=True,
    ),
    Metric("device.queue", "device queue depth", "", "lower", "ratio", "sum"),
    Metric("device.await", "mean device latency", "s", "lower", "ratio", "mean"),
    Metric("device.read.iops", "IOPS, device reads", "1/s", None),
    Metric("device.write.iops", "IOPS, device writes", "1/s", None),
    Metric("device.read.bw", "throughput, device reads", "B/s", None),
    Metric("device.write.bw", "throughput, device writes", "B/s", None),
    Metric(
        "stall.seconds",
        "stall time (no bytes transferred)",
        "s",
        "lower",
        "difference",
        "max",
        "nothing",
    ),
    Metric(
        "target.compression",
        "compression ratio, file bytes per byte of space used",
        "",
        None,
        "ratio",
        "mean",
    ),
    Metric(
        "target.fill", "space used on the target, after the run", "1", None, "difference", "mean"
    ),
    Metric(
        "write.amplification",
        "write amplification, device bytes per byte written by the load",
        "",
        "lower",
        "ratio",
        "mean",
    ),
    Metric("offered.iops", "offered IOPS", "1/s", None),
    Metric("cpu.usr", "user CPU, load, mean per job", "1", "lower", "difference", "mean"),
    Metric("cpu.sys", "system CPU, load, mean per job", "1", "lower", "difference", "mean"),
    Metric(
        "littles_law",
        "Little's law ratio, IOPS x latency / (jobs x queue depth)",
        "",
        None,
        "ratio",
        "mean",
    ),
    Metric("runtime", "length of the measured window", "s", None, "ratio", "max"),
    Metric("time", "elapsed time", "s", "lower", "ratio", "max", headline=True),
]
_BY_NAME = {metric.name: metric for metric in _FIXED}
_OPERATION = re.compile(rf"({'|'.join(OPERATIONS)})\.(iops|bw|ios|bytes|time)")
_SUMMARY = re.compile(
    rf"({'|'.join(OPERATIONS)})\.(lat|clat|slat)\.(mean|min|max|stddev|p(\d{{1,2}}(?:\.\d+)?|100))"
)

_OF_DEVICE = re.compile(r"((?:device|vdev)\.[a-z.]+)\[(.+)\]")
_PER_SECOND = re.compile(rf"({'|'.join(OPERATIONS)})\.(lat|clat|slat)")
"""A series only: its mean over the window is `write.lat.mean`, as fio itself measured it."""

_QUANTITIES: dict[str, tuple[str, str, Literal["higher", "lower"] | None, bool]] = {
    "iops": ("IOPS", "1/s", "higher", True),
    "bw": ("throughput", "B/s", "higher", True),
    "ios": ("number of I/Os", "", None, False),
    "bytes": ("bytes transferred", "B", None, False),
    "time": ("elapsed time", "s", "lower", True),
}
_HEADLINE_SUMMARIES = {"lat.mean", "clat.p99", "clat.p99.9", "lat.p99", "lat.p99.9", "clat.max"}


@cache
def _declare() -> Mapping[str, Metric]:
    """Metrics that readers of host logs declare (`formats.counter_set`), by name."""
    readers = registry.load_all("format")
    return {
        declaration.metric.name: declaration.metric
        for reader in readers
        for declaration in getattr(reader, "metrics", ())
    }


@lru_cache(maxsize=4096)
def find(name: str) -> Metric | None:
    """The metric of that name, or None. Cached, since all runs of a study have the same names."""
    if metric := _BY_NAME.get(name):
        return metric
    if match := _OPERATION.fullmatch(name):
        words, unit, better, headline = _QUANTITIES[match[2]]
        pools: Literal["sum", "max"] = "max" if match[2] == "time" else "sum"
        return Metric(
            name, f"{words}, {PLURALS[match[1]]}", unit, better, "ratio", pools, headline=headline
        )
    if match := _SUMMARY.fullmatch(name):
        operation, kind, summary, percent = match.groups()
        title = (
            f"{summary if percent else SUMMARIES[summary]} {_LATENCY[kind]}, {PLURALS[operation]}"
        )
        extreme = summary in ("min", "max")
        return Metric(
            name,
            title,
            "s",
            "lower",
            "ratio",
            "bins" if percent else ("max" if extreme else "mean"),
            "nothing" if extreme else "normal",
            headline=f"{kind}.{summary}" in _HEADLINE_SUMMARIES,
        )
    if metric := _declare().get(name):
        return metric
    if (match := _OF_DEVICE.fullmatch(name)) and (
        of_all := _BY_NAME.get(match[1]) or _declare().get(match[1])
    ) is not None:
        title = f"{of_all.title.removesuffix(_OVER_DEVICES)}, {match[2]}"
        return replace(of_all, name=name, title=title, headline=False)
    if match := _PER_SECOND.fullmatch(name):
        return Metric(
            name,
            f"mean {_LATENCY[match[2]]} in each second, {PLURALS[match[1]]}",
            "s",
            "lower",
            "ratio",
            "mean",
        )
    return None


def of(name: str, unit: str = "") -> Metric:
    """The metric of that name; a metric of an imported table that the registry does not know has no
    direction."""
    return find(name) or Metric(name, name, unit, None)


WITHOUT_SYNCS = " (without syncs)"
"""Ends the title of a latency of writes that leaves out their syncs."""


def joint_title(first: str, second: str, between: str) -> str:
    """`IOPS against mean latency, writes`: two titles of metrics; an operation that they share is
    written once, at the end."""
    ends = [f", {plural}" for plural in PLURALS.values()]
    second_end = second.removesuffix(WITHOUT_SYNCS)
    shared = next((end for end in ends if first.endswith(end) and second_end.endswith(end)), "")
    return f"{first.removesuffix(shared)} {between} {second}"


def catalogue() -> list[Metric]:
    """Metrics without a pattern in their name; those that are only drawn over time come last."""
    return [*_FIXED, *_declare().values()]


LEAST_BEYOND = 10
"""I/Os beyond a percentile below which it is the tail of a sample, not of the storage. As in the
order statistics of any distribution, its rank then varies by more than a third."""


def share_beyond(name: str) -> float | None:
    """The share of I/Os that are beyond a percentile of latency, on its nearer side: 0.01 for p99
    and p1, 0 for the minimum and the maximum. None for the median, and for any other metric."""
    match = _SUMMARY.fullmatch(name)
    if match is None or match[3] in ("mean", "stddev"):
        return None
    if match[4] is None:
        return 0.0
    percent = float(match[4])
    return None if percent == 50 else min(percent, 100 - percent) / 100


def percentile_name(percent: float) -> str:
    """`p99`, `p99.9`: the last word of a percentile's metric."""
    return f"p{percent:.6f}".rstrip("0").rstrip(".")


@cache
def sort_key(name: str) -> tuple[int, str]:
    """Order in which reports list metrics: throughput, latency from mean to tail, devices, the
    rest."""
    order = (
        "iops",
        "bw",
        "time",
        "lat.mean",
        "clat.mean",
        "lat.p",
        "clat.p",
        "max",
        "device.util",
        "stall",
    )
    # numbers as numbers, so that p5 is before p40
    natural = re.sub(r"\d+", lambda match: match[0].zfill(3), name)
    for place, part in enumerate(() if name.startswith("host.") else order):
        if part in name and not (name.startswith("device.") and part in ("iops", "bw")):
            return place, natural
    return len(order), natural
