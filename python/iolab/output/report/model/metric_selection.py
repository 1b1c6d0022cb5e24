# SPDX-License-Identifier: Apache-2.0
"""Which metrics the report has, and in which order: none is left out without a word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iolab.base import metrics
from iolab.studies.results.evidence.model import Run

MOST_FURTHER = 60
"""Metrics that don't lead and get tables without charts: more than any run here has, but a foreign
tree may have hundreds."""

MOST_LEADING = 16
"""Metrics with charts where none is a headline."""

_PLAIN_FACT = re.compile(r"\.(min|stddev|ios|bytes)$|^(runtime|offered\.iops)$|\.p(?!50$|9)[\d.]+$")
"""Metrics that say how the load ran rather than how well, and percentiles below the median: left
out unless a gate spoke of them."""

_OF_DEVICE = re.compile(r"\[.+\]$")
"""One device of several: the table of their sum or mean replaces it."""

_OF_GATE = {
    "stall": ("stall.seconds",),
    "cpu-bound": ("host.cpu.busy", "host.cpu.busiest", "cpu.usr", "cpu.sys"),
    "cpu-busy": ("host.cpu.busy",),
    "compression": ("target.compression",),
    "time-outside-io": ("littles_law",),
    "saturated": ("offered.iops",),
    "runtime": ("runtime",),
    "ended-by-size": ("runtime",),
    "fits-in-memory": ("host.memory.cached", "host.memory.available"),
    "devices-idle": ("host.memory.cached",),
}
"""What a reason is about, by its code: a reader of the verdict wants to see these first."""

_KINDS = (
    re.compile(r"stall\.|target\.|.+\.amplification$|zfs\.|vdev\."),
    re.compile(r"device\."),
    re.compile(r"(?!host\.)"),
)
"""In order: what the target did, its devices, what the load saw; the host comes last."""


def chosen_metrics(
    observed: Sequence[str], runs: Sequence[Run] = ()
) -> tuple[list[str], list[str]]:
    """(leading, further): headline metrics, or others where none is one; then those with tables
    alone.

    Further ones follow in this order: of the gates that spoke, what the target did, its devices,
    the load, the host. Single devices (but those that a gate spoke of) and plain facts are left
    out; the page names what has no section.
    """
    leading = [name for name in observed if metrics.of(name).headline]
    spoken = _spoken_of(runs)
    rest = [
        name
        for name in observed
        if name not in leading
        and (name in spoken or not (_PLAIN_FACT.search(name) or _OF_DEVICE.search(name)))
    ]
    rest.sort(
        key=lambda name: (spoken.index(name), 0) if name in spoken else (len(spoken), _kind(name))
    )
    if not leading:
        leading, rest = rest[:MOST_LEADING], rest[MOST_LEADING:]
    return leading, rest[:MOST_FURTHER]


def _spoken_of(runs: Sequence[Run]) -> list[str]:
    """Metrics that reasons are about, the gravest reasons first."""
    reasons = sorted(
        (reason for run in runs for reason in run.verdict.reasons),
        key=lambda reason: -reason.level.rank,
    )
    names: dict[str, None] = {}
    for reason in reasons:
        names |= dict.fromkeys(_OF_GATE.get(reason.code, ()))
        if reason.code == "slow-device":
            quantity = f"device.{reason.data.get('quantity')}"
            names |= dict.fromkeys((quantity, f"{quantity}[{reason.data.get('device')}]"))
    return list(names)


def _kind(name: str) -> int:
    return next((place for place, pattern in enumerate(_KINDS) if pattern.match(name)), len(_KINDS))
