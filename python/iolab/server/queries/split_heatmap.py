# SPDX-License-Identifier: Apache-2.0
"""A heat map told apart by a field: one map for each key, and one of all others, on the same
columns and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import UsageError
from ...recording.base.counts import HeatCounts, alike, merge
from ...recording.read.breakdown import Dimension
from ...statistics.answers.json_form import OTHERS
from ...statistics.ask.drill import narrow
from ...statistics.language.fields import MAPPED, near
from ...statistics.language.names import Statistic
from ..base.models import DrawnMap, Layers
from ..base.store import Store
from . import binary
from .heatmap_response import apart, drawn
from .query_params import Request, Words, columned, needed, request_of, several, with_lines

MOST = 12
"""Keys that are told apart: as many as there are colours to tell them."""


def layers(store: Store, words: Words) -> Layers:
    """The map of each key, and of all others unless `rest` is false; they add up to the map."""
    found = _told(store, words)
    return found.answer(
        drawn(found.asked, found.whole, found.label, [found.dimension], lines=with_lines(words))
    )


def layers_binary(store: Store, words: Words) -> bytes:
    """The same in binary."""
    found = _told(store, words)
    made, cells = apart(
        found.asked, found.whole, found.label, [found.dimension], lines=with_lines(words)
    )
    return binary.layers(found.answer(made), cells)


@dataclass(frozen=True)
class _Told:
    """A map told apart: by `keys`, and by the rest where the dimension has one part more."""

    asked: Statistic
    label: str
    keys: list[str]
    whole: HeatCounts
    dimension: Dimension

    def answer(self, made: DrawnMap) -> Layers:
        return Layers(
            statistic=str(self.asked),
            by=self.dimension.name,
            keys=self.keys,
            rest=len(self.dimension.parts) > len(self.keys),
            map=made,
        )


def _told(store: Store, words: Words) -> _Told:
    request = columned(request_of(store, words))
    asked, by, keys = request.statistic, needed(words, "by"), several(words, "key")
    if asked.breakdown not in MAPPED:
        raise UsageError(
            "layers are those of a map", where="statistic", hint="such as io.ops[latency]"
        )
    fields = [field for field in asked.entry.breakdowns if field not in MAPPED]
    if by not in fields:
        raise UsageError(
            f"a map cannot be broken down by '{by[:40]}'", where="by", hint=near(by, fields)
        )
    if not keys:
        raise UsageError("'key' is missing", where="key", hint=f"a value of {by}")
    ends = store.ends(request.recording)
    whole, parts = _read(_pinned(request, ends), [_of(asked, by, key) for key in keys])
    named = [*zip(keys, parts, strict=True)]
    if words.get("rest") != "false":
        rest = whole.minus(parts, overlapping=True)
        named.append((OTHERS, rest))
    # what has no value among its kind (a partition beside its disk) is more than the map knows of
    whole = _with_cells(whole, merge(alike([part for _, part in named])))
    return _Told(asked, request.recording, keys, whole, Dimension(by, tuple(named)))


def _pinned(request: Request, ends: tuple[int, int]) -> Request:
    """The request with an end, so that what comes meanwhile is in none of the maps."""
    if request.until_ns is not None:
        return request
    return request.changed(span=(request.from_ns, ends[1] + 1))


def _of(asked: Statistic, by: str, key: str) -> Statistic:
    return replace(narrow(replace(asked, breakdown=by), key), breakdown=asked.breakdown)


def _read(request: Request, asked: Sequence[Statistic]) -> tuple[HeatCounts, list[HeatCounts]]:
    """(the map, that of each statistic), of the same columns and buckets."""
    whole = request.answer()
    assert isinstance(whole, HeatCounts)
    columns = request.changed(interval_ns=whole.interval_ns)
    found = [
        part for part in (columns.answer(each) for each in asked) if isinstance(part, HeatCounts)
    ]
    whole, *found = alike([whole, *found])
    return whole, [_at(each, whole) for each in found]


def _at(part: HeatCounts, whole: HeatCounts) -> HeatCounts:
    """The part in the columns of the map; one without counts has no place of its own."""
    if not len(part.count):
        return replace(part, t0_ns=whole.t0_ns, grid=whole.grid, interval_ns=whole.interval_ns)
    column = part.column + (part.t0_ns - whole.t0_ns) // whole.interval_ns
    # of a recording that grows an event may have come late, before all that the map had then
    held = column >= 0
    return replace(
        part, t0_ns=whole.t0_ns, column=column[held], index=part.index[held], count=part.count[held]
    )


def _with_cells(whole: HeatCounts, cells: HeatCounts) -> HeatCounts:
    return replace(
        whole,
        column=cells.column,
        index=cells.index,
        count=cells.count,
        events=cells.total if whole.weight == "count" else cells.events,
    )
