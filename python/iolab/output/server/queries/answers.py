# SPDX-License-Identifier: Apache-2.0
"""The answer to a statistic: as data, ready for the page's canvas (by the keys of a field as well), as
percentiles, in binary, as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from iolab.base.documents import Model
from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Answer, Stack
from iolab.recordings.ask.answers.json_form import (
    OTHERS,
    as_data,
    csv_lines,
    losses_of,
    number,
    numbers,
)
from iolab.recordings.ask.drill import narrow
from iolab.recordings.ask.fleet import HOST, labels_of
from iolab.recordings.ask.language.fields import MAPPED, near
from iolab.recordings.ask.question import Filter, Statistic
from iolab.recordings.heatmap import overlays
from iolab.recordings.heatmap.figure import Named
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.wire import LossesOfKind, SparseArrays, SparseCounts, group_of, lists
from iolab.recordings.store.base.counts import UNITS, HeatCounts, alike, merge
from iolab.recordings.store.read.folder import Folder
from iolab.recordings.store.read.trace import Dimension

from ..base.models import (
    DrawnMap,
    HeatAnswer,
    Layers,
    Line,
    PercentilesAnswer,
    SeriesAnswer,
    StackAnswer,
)
from ..base.store import Store
from . import binary
from .parameters import Request, Words, request_of, require, require_columns, several, with_lines

MOST_NUMBERS = 2_000_000
"""Values of a series or stack, or cells of a map, in one answer."""

SHORTER = "take a longer interval, less time, or a smaller 'top'"


def plain(asked: Statistic, answer: Answer, top: int) -> SeriesAnswer | StackAnswer | HeatAnswer:
    """An answer as data; UsageError where it would be too large. `top`: keys of a stack that are
    named."""
    if isinstance(answer, HeatCounts):
        check_size(4 * len(answer.count))
        return HeatAnswer(**as_data(asked, answer, top))
    if isinstance(answer, Stack):
        check_size((min(top, len(answer.keys)) + 1) * answer.values.shape[1])
        return StackAnswer(**as_data(asked, answer, top))
    check_size(len(answer.values))
    return SeriesAnswer(**as_data(asked, answer, top))


def check_size(count: int) -> None:
    """UsageError where so many numbers are too many for an answer."""
    if count > MOST_NUMBERS:
        raise UsageError(
            f"the answer would have {count} numbers, and {MOST_NUMBERS} are the most", hint=SHORTER
        )


def cell_writer(
    numbers: int, cells: list[SparseArrays] | None = None
) -> Callable[[SparseArrays], SparseCounts]:
    """What writes the cells of maps. It raises UsageError once they are too many for an answer.

    Args:
        numbers: of each cell. cells: receives the cells, which the answer then lacks.
    """
    sizes: list[int] = []

    def write(arrays: SparseArrays) -> SparseCounts:
        sizes.append(len(arrays.counts))
        check_size(numbers * sum(sizes))
        if cells is None:
            return lists(arrays)
        cells.append(arrays)
        return SparseCounts(starts=[], rows=[], counts=[])

    return write


_LINEAR = ("offset", "utilization")


def view_of(counts: HeatCounts) -> View:
    """How such a map is seen at first."""
    return View("linear" if counts.y in _LINEAR else "log", 0.001 if counts.y == "latency" else 0.0)


def drawn_map(
    request: Request,
    counts: HeatCounts,
    dimensions: Sequence[Dimension] = (),
    *,
    lines: bool = True,
    cells: list[SparseArrays] | None = None,
) -> DrawnMap:
    """A map on its axes, with its parts by a field.

    Args:
        lines: whether with percentiles and mean. cells: receives the cells of the map, then of its
        parts, which the answer then lacks.
    """
    group = None
    if len(counts.count):
        named = Named(request.recording, counts, tuple(dimensions))
        write = cell_writer(2, cells)
        group = group_of(
            view_of(counts), [named], percentiles=False, joined=int(lines), written=write
        )
    return DrawnMap(
        statistic=str(request.statistic),
        t0_ns=counts.t0_ns,
        interval_ns=counts.interval_ns,
        events=counts.events,
        notes=list(counts.assumptions),
        gaps=list(counts.gaps),
        window=counts.window,
        group=group,
    )


def percentiles(asked: Statistic, counts: HeatCounts) -> PercentilesAnswer:
    """The lines of a map. UsageError for offsets, which are addresses, and for bytes."""
    check_size(len(overlays.TAIL_NAMES) * counts.columns)
    tails = overlays.tails(counts, where="drawn", hint="drawn=true is the map itself")
    return PercentilesAnswer(
        statistic=str(asked),
        t0_ns=counts.t0_ns,
        interval_ns=counts.interval_ns,
        y=counts.y,
        unit=UNITS[counts.y],
        events=counts.events,
        keys=[
            Line(key=name, mean=number(float(overall)), values=numbers(values))
            for name, overall, values in zip(
                overlays.TAIL_NAMES, tails.overall, tails.values, strict=True
            )
        ],
        notes=[*counts.assumptions, *tails.notes],
        lost_by_column=list(counts.lost_by_column),
        losses=[LossesOfKind(**loss) for loss in losses_of(counts)],
        gaps=list(counts.gaps),
        window=counts.window,
    )


def ask(store: Store, words: Words) -> Model:
    """The answer to a statistic."""
    request = request_of(store, words)
    return _model(request, request.answer(), words)


def ask_binary(store: Store, words: Words) -> bytes | Model:
    """The same, a heat map in binary."""
    request = request_of(store, words)
    answer = request.answer()
    if not isinstance(answer, HeatCounts) or words.get("drawn") == "percentiles":
        return _model(request, answer, words)
    if words.get("drawn") != "true":
        check_size(len(answer.count))
        return binary.encode(request.statistic, answer)
    cells: list[SparseArrays] = []
    answer_map = drawn_map(request, answer, lines=with_lines(words), cells=cells)
    return binary.encode_drawn(answer_map, answer_map.group, cells)


def _model(request: Request, answer: Answer, words: Words) -> Model:
    if isinstance(answer, HeatCounts) and words.get("drawn") == "percentiles":
        return percentiles(request.statistic, answer)
    if isinstance(answer, HeatCounts) and words.get("drawn") == "true":
        return drawn_map(request, answer, lines=with_lines(words))
    return plain(request.statistic, answer, request.top)


def export(store: Store, words: Words) -> bytes:
    """The answer as CSV, all keys of a stack unless `top` is given."""
    request = request_of(store, words)
    answer = request.answer()
    top = request.top if "top" in words else None
    if isinstance(answer, HeatCounts):
        check_size(4 * len(answer.count))
    elif isinstance(answer, Stack):
        check_size(
            3
            * (len(answer.keys) if top is None else min(top, len(answer.keys)) + 1)
            * answer.values.shape[1]
        )
    else:
        check_size(2 * len(answer.values))
    return ("\n".join(csv_lines(request.statistic, answer, top)) + "\n").encode()


MOST = 12
"""Keys of a field that have a map of their own: as many as there are colours."""


def layers(store: Store, words: Words) -> Layers:
    """The map of each key, and of all others unless `rest` is false; they add up to the map."""
    return _layers(store, words, None)


def layers_binary(store: Store, words: Words) -> bytes:
    """The same in binary."""
    cells: list[SparseArrays] = []
    answer = _layers(store, words, cells)
    return binary.encode_drawn(answer, answer.map.group, cells)


def _layers(store: Store, words: Words, cells: list[SparseArrays] | None) -> Layers:
    request = require_columns(request_of(store, words))
    statistic, by, keys = request.statistic, require(words, "by"), several(words, "key")
    if statistic.breakdown not in MAPPED:
        raise UsageError(
            "layers are those of a map", where="statistic", hint="such as io.ops[latency]"
        )
    fields = [field for field in statistic.entry.breakdowns if field not in MAPPED]
    if isinstance(request.opened, Folder):
        fields += [HOST, *labels_of(request.opened.recordings)]
    if by not in fields:
        raise UsageError(
            f"a map cannot be broken down by '{by[:40]}'", where="by", hint=near(by, fields)
        )
    if not keys:
        raise UsageError("'key' is missing", where="key", hint=f"a value of {by}")
    ends = store.ends(request.recording)
    counts, parts = _read(_pin_end(request, ends), [_narrow(statistic, by, key) for key in keys])
    named = [*zip(keys, parts, strict=True)]
    if words.get("rest") != "false":
        named.append((OTHERS, counts.minus(parts, overlapping=True)))
    # what has no value among its kind (a partition and its disk) is more than the map has
    counts = _with_cells(counts, merge(alike([part for _, part in named])))
    dimensions = [Dimension(by, tuple(named))]
    return Layers(
        statistic=str(statistic),
        by=by,
        keys=keys,
        rest=len(named) > len(keys),
        map=drawn_map(request, counts, dimensions, lines=with_lines(words), cells=cells),
    )


def _pin_end(request: Request, ends: tuple[int, int]) -> Request:
    """The request with an end, so that what comes meanwhile is in none of the maps."""
    if request.until_ns is not None:
        return request
    return request.with_parts(span=(request.from_ns, ends[1] + 1))


def _narrow(statistic: Statistic, by: str, key: str) -> Statistic:
    if by not in statistic.entry.breakdowns:
        # of a host
        return replace(statistic, filters=(*statistic.filters, Filter(by, "=", (key,))))
    return replace(narrow(replace(statistic, breakdown=by), key), breakdown=statistic.breakdown)


def _read(request: Request, asked: Sequence[Statistic]) -> tuple[HeatCounts, list[HeatCounts]]:
    """(the map, that of each statistic), of the same columns and buckets."""
    counts = request.answer()
    assert isinstance(counts, HeatCounts)
    columns = request.with_parts(interval_ns=counts.interval_ns)
    parts = [
        part
        for part in (columns.answer(statistic) for statistic in asked)
        if isinstance(part, HeatCounts)
    ]
    counts, *parts = alike([counts, *parts])
    return counts, [_at(part, counts) for part in parts]


def _at(part: HeatCounts, whole: HeatCounts) -> HeatCounts:
    """The part in the columns of the map; one without counts has no place of its own."""
    if not len(part.count):
        return replace(part, t0_ns=whole.t0_ns, grid=whole.grid, interval_ns=whole.interval_ns)
    column = part.column + (part.t0_ns - whole.t0_ns) // whole.interval_ns
    # of a recording that grows an event may have come late, before all that the map had then
    is_within = column >= 0
    return replace(
        part,
        t0_ns=whole.t0_ns,
        column=column[is_within],
        index=part.index[is_within],
        count=part.count[is_within],
    )


def _with_cells(whole: HeatCounts, cells: HeatCounts) -> HeatCounts:
    return replace(
        whole,
        column=cells.column,
        index=cells.index,
        count=cells.count,
        events=cells.total if whole.weight == "count" else cells.events,
    )
