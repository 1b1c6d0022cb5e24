# SPDX-License-Identifier: Apache-2.0
"""Heat maps of recordings: from default maps where these answer exactly, else by a scan of the
events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...recording.base.counts import HeatCounts, merge
from ...recording.base.grids import Linear
from ..engine.cells import Asked, count, fitting, grid_of
from ..engine.coverage import gap_columns, lost_at
from ..engine.engine import Engine, single
from ..engine.snapshot import Span
from ..engine.windows import Window, attach
from ..language.intervals import SECOND, columns_of
from ..language.names import Filter
from ..question import Question
from . import segment_maps

LONG_SCAN = 5_000_000
"""Events that take a noticeable time to scan: then columns of a second, which default maps have, do
instead of shorter ones."""


def heat_of(
    whole: Window,
    kept: Window,
    question: Question,
    maps: tuple[Window, segment_maps.MapFiles] | None,
) -> tuple[HeatCounts, Window]:
    """(counts by time and y, the window that they are of).

    `whole` is the window with the time of which only default maps remain, `kept` the one of which
    there are events. `maps`: as `maps_of` found them, None where events are to be scanned; these
    are scanned as well where maps are too coarse.
    """
    filters = question.filters
    if maps is not None:
        seconds, files = maps
        mapped = _from_maps(seconds, files, question)
        if mapped is not None:
            longer = seconds.interval_ns != whole.interval_ns
            notes = ["columns of a second, as the recording's own maps have them"] if longer else []
            return with_facts(mapped, seconds, filters, notes), whole
    return with_facts(_scanned(kept, question), kept, filters, []), kept


def counts_of(
    window: Window, question: Question, files: segment_maps.MapFiles | None
) -> HeatCounts:
    """Counts of a window by time and y: of default maps and the events that these lack, or of all
    events where there are none or they are too coarse."""
    mapped = None if files is None else _from_maps(window, files, question)
    return _scanned(window, question) if mapped is None else mapped


def maps_of(whole: Window, question: Question) -> tuple[Window, segment_maps.MapFiles] | str:
    """The window in columns that default maps have, and the maps; or why they can't answer.

    Columns become a second where their length was left open and a scan would take long.
    """
    assert question.y is not None
    if question.y == "queue":
        return "segment maps have no time in the queue"
    if question.weight == "bytes":
        return "segment maps count I/Os, not bytes"
    if question.buckets is not None and question.y != "offset":
        return "segment maps have no equal buckets of this"
    seconds = _in_seconds(whole) if question.interval_ns is None else whole
    files = segment_maps.find_maps(seconds, question.filters, question.y)
    return files if isinstance(files, str) else (seconds, files)


def _in_seconds(window: Window) -> Window:
    """The window in columns of a second, where a scan would take long and enough columns remain."""
    events = sum(segment.sources[window.source] for segment in window.segments())
    if (
        window.interval_ns < SECOND
        and events > LONG_SCAN
        and window.until_ns - window.first_ns >= 60 * SECOND
    ):
        return replace(window, interval_ns=SECOND)
    return window


def _asked(window: Window, question: Question) -> Asked:
    assert question.y is not None
    conditions, bound = window.conditions(question.filters)
    grid, _ = grid_of(question.y, question.buckets)
    return Asked(
        question.y,
        window.base_ns,
        window.interval_ns,
        conditions,
        bound,
        question.low,
        question.high,
        grid or Linear(0, 1),
        question.weight,
    )


def _scanned(window: Window, question: Question) -> HeatCounts:
    # too many are refused before they are counted
    columns_of(window.first_ns, window.until_ns - 1, window.interval_ns)
    asked = _asked(window, question)
    grid, most = grid_of(asked.y, question.buckets)
    with Engine(window.snap.place) as engine:
        attach(engine, window)
        if grid is None:
            asked = replace(asked, grid=fitting(engine, asked, most))
        counts = count(engine, asked)
        if not question.filters:
            return counts
        return replace(counts, filtered=_all(engine, window) - _seen(counts))


def _all(engine: Engine, window: Window) -> int:
    """I/Os of the window, before conditions: of sealed segments that lie in it whole, their own
    count says it."""
    segments = window.segments()
    edges = [
        each
        for each in segments
        if window.cut and not (window.first_ns <= each.first_ns and each.last_ns < window.until_ns)
    ]
    parts = ["hot"] if window.snap.hot_of(window.source) is not None else []
    if edges:
        engine.files("edges", [each.part for each in edges])
        parts.append("edges")
    conditions, bound = window.conditions([])
    counted = [
        single(
            engine.ask(
                f"SELECT CAST(sum(count) AS BIGINT) AS n FROM {part} WHERE {' AND '.join(conditions)}",
                bound,
            )["n"]
        )
        or 0
        for part in parts
    ]
    cut = {each.number for each in edges}
    return sum(counted) + sum(
        each.sources[window.source] for each in segments if each.number not in cut
    )


def _seen(counts: HeatCounts) -> int:
    return counts.events + counts.without_y + counts.outside


def _from_maps(
    window: Window, files: segment_maps.MapFiles, question: Question
) -> HeatCounts | None:
    """From default maps, and the events that no map has; None where maps are too coarse."""
    asked, filters = _asked(window, question), question.filters
    rest = files.rest(window)
    with Engine(window.snap.place) as engine:
        if rest.is_empty:
            return segment_maps.heat(engine, window, files, filters, asked, question.buckets, None)
        attach(engine, rest)
        ends = _ends(engine, asked) if question.y == "offset" else None
        counts = segment_maps.heat(engine, window, files, filters, asked, question.buckets, ends)
        if counts is None:
            return None
        others = count(engine, replace(asked, grid=counts.grid))
        if filters:
            others = replace(others, filtered=_all(engine, rest) - _seen(others))
        return merge([counts, others])


def _ends(engine: Engine, asked: Asked) -> Span | None:
    """The least and largest value of y that meet the conditions."""
    found = engine.ask(
        f"SELECT min({asked.column}) AS low, max({asked.column}) AS high FROM events WHERE {' AND '.join(asked.conditions)}",
        asked.bound,
    )
    low, high = single(found["low"]), single(found["high"])
    return None if low is None or high is None else (low, high)


def with_facts(
    counts: HeatCounts, window: Window, filters: Sequence[Filter], notes: Sequence[str]
) -> HeatCounts:
    """Counts with what was lost and when nothing was recorded."""
    losses = window.losses
    columns = columns_of(window.first_ns, window.until_ns - 1, window.interval_ns)
    shift = (window.base_ns - counts.t0_ns) // window.interval_ns
    gaps = (
        ()
        if window.recorded is None
        else gap_columns(window.recorded, window.base_ns, window.interval_ns, columns)
    )
    return replace(
        counts,
        lost=losses.lost,
        damaged=losses.damaged,
        unpaired=losses.unpaired,
        conditional=bool(filters),
        averaged=_averaged(window),
        assumptions=tuple(notes),
        window=(shift, columns + shift),
        gaps=tuple((first + shift, past + shift) for first, past in gaps),
        lost_at=lost_at(losses.timed, counts.t0_ns, window.interval_ns),
    )


def _averaged(window: Window) -> bool:
    """Whether what was imported are means of windows, not I/Os."""
    facts = window.snap.recording.facts.sources.get(window.source)
    return isinstance(facts, dict) and bool(facts.get("averaged"))
