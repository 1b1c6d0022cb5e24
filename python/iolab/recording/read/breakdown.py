# SPDX-License-Identifier: Apache-2.0
"""Counts of each value of a dimension (operation, device, process, file, job), so that a part of a
map can say whose it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..base.conditions import NAMES, Where
from ..base.counts import HeatCounts, alike, merge
from .trace import Trace

_Events = TypeVar("_Events")

MOST = 8
"""Values of a dimension that are told apart; the rest are one part, `other`."""

BUDGET = 2**30
"""Bytes of traces to read again for this; beyond, fewer dimensions are told apart."""


@dataclass(frozen=True)
class Dimension:
    """Values of a dimension with their counts, most frequent first; they add up to the whole map."""

    name: str
    parts: tuple[tuple[str, HeatCounts], ...]


def dimensions(
    traces: Sequence[Trace], whole: HeatCounts, read: Callable[[Trace, Where], HeatCounts]
) -> tuple[list[Dimension], list[str]]:
    """Dimensions in which the traces have more than one value, and the names of those left out for
    the traces' size.

    `read` counts a trace under further conditions, on the whole's columns. One pass is made for
    each value.
    """
    budget, size = BUDGET, sum(trace.path.stat().st_size for trace in traces)
    summaries = [trace.summary() for trace in traces]
    found, left = [], []
    for name in NAMES:
        ios: dict[str, int] = {}
        for summary in summaries:
            for value, count in summary.names(name):
                ios[value] = ios.get(value, 0) + count
        values = sorted(ios, key=lambda value: (-ios[value], value))[:MOST]
        if not values or (
            len(values) == 1 and ios[values[0]] >= sum(summary.events for summary in summaries)
        ):
            continue
        if len(values) * size > budget:
            left.append(name)
            continue
        budget -= len(values) * size
        found.append(dimension(name, values, traces, whole, read))
    return found, left


def dimension(
    name: str,
    values: Sequence[str],
    held: Sequence[_Events],
    whole: HeatCounts,
    read: Callable[[_Events, Where], HeatCounts],
    *,
    growing: bool = False,
) -> Dimension:
    """The parts of a map that are of these values, those with a count, and `other` for the rest;
    `read` as for `dimensions`.

    `growing` says that events came after the whole was counted: they are left out of the parts.
    """
    rest, *parts = alike(
        [whole, *(merge(alike([read(each, {name: [value]}) for each in held])) for value in values)]
    )
    named = []
    for value, part in zip(values, parts, strict=True):
        mine = part.within(rest) if growing else part
        if len(mine.count):
            named.append((value, mine))
            rest = rest.minus([mine])
    if len(rest.count):
        named.append(("other", rest))
    return Dimension(name, tuple(named))
