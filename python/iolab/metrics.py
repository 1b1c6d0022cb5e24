"""What is measured: the one registry of metrics with unit, direction, how values pool, and how arms are compared.

A metric's name is `<operation>.<quantity>` for what the load saw (`write.iops`, `write.clat.p99`), `device.<quantity>`
for what the target's devices did (`device.util[sdb]` for one of several), `host.<quantity>` for what the machine did,
and a word of its own for the rest. Percentiles are open-ended: any `p<per cent>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from . import registry

OPERATIONS = ("read", "write", "trim", "mixed", "sync")
"""Operations in fio's words; `mixed` is unified reporting, `sync` is fsync and its kin."""

SUMMARIES = {"mean": "mean", "min": "minimum", "max": "maximum", "stddev": "standard deviation of"}


@dataclass(frozen=True)
class Metric:
    """One measurable thing.

    Attributes:
        name: as scripts and the command line write it.
        title: as a chart's axis or a heading writes it.
        unit: base unit of its values (`units.BASE`).
        better: which direction is an improvement, or None where neither is.
        change: `ratio` compares arms by the logarithm of their ratio (positive quantities); `difference` by
            subtraction (shares, and quantities that are often exactly zero).
        pools: how values of several jobs or devices of one run become one: `sum`, `mean`, `max`, or `bins` (histogram
            counts are added, then read again).
        assumption: what is assumed of its logarithm (or value) over blocks: `normal`, or `nothing` (extremes).
        headline: whether a report shows it unasked where it was measured.
    """

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower"] | None
    change: Literal["ratio", "difference"] = "ratio"
    pools: Literal["sum", "mean", "max", "bins"] = "sum"
    assumption: Literal["normal", "nothing"] = "normal"
    headline: bool = False


_LATENCY = {"lat": "latency", "clat": "completion latency", "slat": "submission latency"}

_FIXED = [
    Metric("device.util", "device busy, mean over devices", "1", None, "difference", "mean", headline=True),
    Metric("device.queue", "requests in flight at the devices", "", "lower", "ratio", "sum"),
    Metric("device.await", "device latency, mean over I/Os", "s", "lower", "ratio", "mean"),
    Metric("device.read.iops", "device reads", "1/s", None),
    Metric("device.write.iops", "device writes", "1/s", None),
    Metric("device.read.bw", "device read throughput", "B/s", None),
    Metric("device.write.bw", "device write throughput", "B/s", None),
    Metric("stall.seconds", "seconds in stalls (no byte moved)", "s", "lower", "difference", "max", "nothing"),
    Metric("target.compression", "achieved compression, bytes in files over room taken", "", None, "ratio", "mean"),
    Metric("target.fill", "share of the target in use after the run", "1", None, "difference", "mean"),
    Metric("write.amplification", "device bytes written per byte that the load wrote, within the window", "", "lower", "ratio", "mean"),
    Metric("offered.iops", "offered rate", "1/s", None),
    Metric("cpu.usr", "user CPU of the load, per job", "1", "lower", "difference", "mean"),
    Metric("cpu.sys", "system CPU of the load, per job", "1", "lower", "difference", "mean"),
    Metric("littles_law", "Little's law: I/Os in flight by rate and latency over jobs x depth", "", None, "ratio", "mean"),
    Metric("runtime", "measured window", "s", None, "ratio", "max"),
    Metric("time", "elapsed time", "s", "lower", "ratio", "max", headline=True),
]
_BY_NAME = {metric.name: metric for metric in _FIXED}
_OPERATION = re.compile(rf"({'|'.join(OPERATIONS)})\.(iops|bw|ios|bytes|time)")
_SUMMARY = re.compile(rf"({'|'.join(OPERATIONS)})\.(lat|clat|slat)\.(mean|min|max|stddev|p(\d{{1,2}}(?:\.\d+)?|100))")

_OF_DEVICE = re.compile(r"((?:device|vdev)\.[a-z.]+)\[(.+)\]")
_PER_SECOND = re.compile(rf"({'|'.join(OPERATIONS)})\.(lat|clat|slat)")
"""A series only: its mean over the window is `write.lat.mean`, as fio itself measured it."""

_QUANTITIES: dict[str, tuple[str, str, Literal["higher", "lower"] | None, bool]] = {
    "iops": ("I/O operations per second", "1/s", "higher", True),
    "bw": ("throughput", "B/s", "higher", True),
    "ios": ("I/O operations", "", None, False),
    "bytes": ("bytes moved", "B", None, False),
    "time": ("elapsed time", "s", "lower", True),
}
_HEADLINE_SUMMARIES = {"lat.mean", "clat.p99", "clat.p99.9", "lat.p99", "lat.p99.9", "clat.max"}


@cache
def _declared() -> Mapping[str, Metric]:
    """Metrics that readers of host logs declare beside what they read (`formats.counter_set`), by name."""
    readers = registry.load_all("format")
    return {each.metric.name: each.metric for reader in readers for each in getattr(reader, "metrics", ())}


def find(name: str) -> Metric | None:
    """The metric of that name, or None where the registry knows none."""
    if known := _BY_NAME.get(name):
        return known
    if match := _OPERATION.fullmatch(name):
        words, unit, better, headline = _QUANTITIES[match[2]]
        pools: Literal["sum", "max"] = "max" if match[2] == "time" else "sum"
        return Metric(name, f"{match[1]}: {words}", unit, better, "ratio", pools, headline=headline)
    if match := _SUMMARY.fullmatch(name):
        operation, kind, summary, percent = match.groups()
        if percent is not None:
            title = f"{operation}: {_LATENCY[kind]}, {percent} % of I/Os at or below"
        else:
            title = f"{operation}: {SUMMARIES[summary]} {_LATENCY[kind]}"
        extreme = summary in ("min", "max")
        shown = f"{kind}.{summary}" in _HEADLINE_SUMMARIES
        return Metric(name, title, "s", "lower", "ratio", "bins" if percent else ("max" if extreme else "mean"),
                      "nothing" if extreme else "normal", headline=shown)
    if known := _declared().get(name):
        return known
    if (match := _OF_DEVICE.fullmatch(name)) and (whole := _BY_NAME.get(match[1]) or _declared().get(match[1])) is not None:
        title = f"{whole.title.partition(',')[0]} of {match[2]}"
        return replace(whole, name=name, title=title, headline=False)
    if match := _PER_SECOND.fullmatch(name):
        return Metric(name, f"{match[1]}: mean {_LATENCY[match[2]]} per second", "s", "lower", "ratio", "mean")
    return None


def of(name: str, unit: str = "") -> Metric:
    """The metric of that name; one that the registry does not know (an imported table's) is taken with no direction."""
    return find(name) or Metric(name, name, unit, None)


def fixed() -> list[Metric]:
    """Metrics with a name of their own, for the catalogue; those that are only drawn over time come last."""
    return [*_FIXED, *_declared().values()]


def percentile_name(percent: float) -> str:
    """`p99`, `p99.9`: the last word of a percentile's metric."""
    return f"p{percent:.6f}".rstrip("0").rstrip(".")


def sort_key(name: str) -> tuple[int, str]:
    """Order in which reports list metrics: throughput, latency from mean to tail, devices, the rest."""
    order = ("iops", "bw", "time", "lat.mean", "clat.mean", "lat.p", "clat.p", "max", "device.util", "stall")
    # numbers as numbers, so that p5 stands before p40
    natural = re.sub(r"\d+", lambda match: match[0].zfill(3), name)
    for place, part in enumerate(() if name.startswith("host.") else order):
        if part in name and not (name.startswith("device.") and part in ("iops", "bw")):
            return place, natural
    return len(order), natural
