# SPDX-License-Identifier: Apache-2.0
"""What was kept of events, and the events that came since, as one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...recording.base.checked_files import Part
from ...recording.base.counts import HeatCounts, Weight, Y, alike, merge, summed
from ...recording.base.grids import WITHOUT, Grid, Linear, LogLinear
from ...recording.read.recording import Segment
from ..answers.answers import Answer, Series, Stack
from ..engine.cells import BUCKETS, Asked, count
from ..engine.engine import Engine, whole
from ..engine.snapshot import Snapshot
from ..engine.windows import Window, attach
from ..language.fields import QUANTIZED
from ..language.intervals import SECOND
from ..language.names import Statistic
from ..question import Question
from ..tiers import over_time, segment_maps
from ..tiers.heat import counts_of, maps_of, with_facts
from ..tiers.over_time import MOST_CELLS
from .coverage import Held
from .paths import Tier
from .rows import COLUMN, INSIDE, by_width, rows, steady
from .storage_kind import BITS, COARSER, MOST_KEYS, form_of

_BUCKETS = 2**32
"""Buckets of a column, at most."""


def answer(
    window: Window, held: Held, tiers: Sequence[Tier], asked: Statistic, notes: Sequence[str]
) -> Answer:
    """The answer to a statistic of events."""
    if asked.breakdown in QUANTIZED:
        return steady(lambda: _map(window, held, tiers, asked, notes))
    return steady(lambda: _over_time(window, held, tiers, asked, notes))


def remaining(window: Window, held: Held) -> list[Window]:
    """Windows of the events that are not kept: those sealed since, those that are hot, those before
    it was kept."""
    snap = window.snap

    def of(segments: Sequence[Segment], hot: Any) -> Window:
        return replace(window, snap=Snapshot(snap.recording, tuple(segments), hot), earlier=False)

    since = of([each for each in snap.sealed if each.number > held.kept.through], snap.hot)
    windows = [] if since.is_empty else [since]
    if window.first_ns < held.first_ns:
        until_ns = min(window.until_ns, held.first_ns)
        early = of([each for each in snap.sealed if each.number <= held.kept.through], None)
        early = replace(early, until_ns=until_ns, cuts_until=True)
        windows += [] if early.is_empty else [early]
    return windows


def maps_in(window: Window, asked: Statistic) -> segment_maps.MapFiles | None:
    """Default maps that answer for what remains, None where its events are scanned."""
    if asked.breakdown == "offset":
        return None
    question = _question(window, asked)
    if question.y is None:
        files = segment_maps.find_counts(window, question)
        return None if isinstance(files, str) else files
    maps = maps_of(window, question)
    return None if isinstance(maps, str) else maps[1]


def _question(window: Window, asked: Statistic) -> Question:
    return Question.of(asked, window.span, window.interval_ns, window.columns, window.source)


def _map(
    window: Window, held: Held, tiers: Sequence[Tier], asked: Statistic, notes: Sequence[str]
) -> HeatCounts:
    y = next(each for each in QUANTIZED if each == asked.breakdown)
    weight, unique = asked.entry.weight, _unique(held, tiers, window)
    parts = [
        _kept_map(window, held, y, weight, width, paths, unique)
        for width, paths in by_width(held, tiers).items()
    ]
    width = max((each.grid.width for each in parts if isinstance(each.grid, Linear)), default=1)
    grid = Linear(0, width) if y == "offset" else LogLinear(BITS + COARSER)
    for part in remaining(window, held):
        if y == "offset":
            parts.append(_count_events(part, asked, y, grid))
        else:
            counts = counts_of(part, _question(part, asked), maps_in(part, asked))
            parts.append(replace(counts, filtered=0).coarser(steps=COARSER))
    empty = np.zeros(0, dtype=np.int64)
    parts = parts or [
        HeatCounts(y, window.base_ns, window.interval_ns, grid, empty, empty, empty, weight)
    ]
    counts = merge(alike(parts)) if len(parts) > 1 else parts[0]
    while (
        isinstance(counts.grid, Linear)
        and len(counts.index)
        and int(counts.index.max() - counts.index.min()) >= BUCKETS
    ):
        counts = counts.coarser(steps=1)
    said = [
        *notes,
        *([f"{2**BITS} buckets an octave"] if isinstance(counts.grid, LogLinear) else []),
    ]
    return with_facts(counts, window, asked.filters, said)


def _count_events(window: Window, asked: Statistic, y: Y, grid: Grid) -> HeatCounts:
    """Counts of events on a grid."""
    conditions, bound = window.conditions(asked.filters)
    with Engine(window.snap.place) as engine:
        attach(engine, window)
        return count(
            engine,
            Asked(
                y,
                window.base_ns,
                window.interval_ns,
                conditions,
                bound,
                None,
                None,
                grid,
                asked.entry.weight,
            ),
        )


def _unique(held: Held, tiers: Sequence[Tier], window: Window) -> bool:
    """Whether rows are of a column each: few are to be added up, and that is done in any case."""
    return all(tier.seconds * SECOND == window.interval_ns for tier, _ in held.files(tiers))


def _kept_map(
    window: Window,
    held: Held,
    y: Y,
    weight: Weight,
    width: int,
    paths: Sequence[Part],
    unique: bool,
) -> HeatCounts:
    # one number for column and bucket, so that millions of cells are sorted once
    cell, group = f"{COLUMN} * {_BUCKETS} + index", "" if unique else "GROUP BY ALL"
    sums = {"n": "count"} if weight == "count" else {"n": "amount", "ios": "count"}
    amounts = ", ".join(
        f"CAST({each if unique else f'sum({each})'} AS BIGINT) AS {name}"
        for name, each in sums.items()
    )
    with Engine(held.directory) as engine:
        found = rows(
            engine,
            paths,
            window,
            f"SELECT {cell} AS cell, {amounts} FROM kept WHERE {INSIDE} {group}",
        )
    key, amount = np.ma.getdata(found["cell"]), np.ma.getdata(found["n"])
    ios, lacking = (
        np.ma.getdata(found["ios" if weight != "count" else "n"]),
        key & (_BUCKETS - 1) == WITHOUT,
    )
    events, without_y = int(ios[~lacking].sum()), int(ios[lacking].sum())
    # I/Os that moved nothing are in no cell
    shown = ~lacking & (amount > 0)
    key, amount = key[shown], amount[shown]
    order = np.argsort(key, kind="stable")
    key, amount = key[order], amount[order]
    if len(key) and (key[1:] == key[:-1]).any():
        key, amount = summed(key, amount)
    column, index = key >> 32, key & (_BUCKETS - 1)
    first = int(column[0]) if len(column) else 0
    grid = Linear(0, width) if y == "offset" else LogLinear(BITS)
    return HeatCounts(
        y,
        window.base_ns + first * window.interval_ns,
        window.interval_ns,
        grid,
        column - first,
        index,
        amount,
        weight,
        events=events,
        without_y=without_y,
    )


def _over_time(
    window: Window, held: Held, tiers: Sequence[Tier], asked: Statistic, notes: Sequence[str]
) -> Series | Stack:
    parts = []
    key = "key" if asked.breakdown is not None else "NULL"
    amount = "count" if form_of(held.statistic, counted=False) == "map" else "amount"
    for paths in by_width(held, tiers).values():
        with Engine(held.directory) as engine:
            parts.append(
                rows(
                    engine,
                    paths,
                    window,
                    f"SELECT {COLUMN} AS c, {key} AS k, CAST(sum({amount}) AS BIGINT) AS n, 0 AS lacking "
                    f"FROM kept WHERE {INSIDE} GROUP BY ALL",
                )
            )
    if asked.breakdown is not None and any(np.ma.getmaskarray(part["k"]).any() for part in parts):
        notes = [
            *notes,
            f"names beyond the {MOST_KEYS:,} largest of a segment are in the rest: how many they are is not known, and a "
            "name that was among them for a time is told too small",
        ]
    for part in remaining(window, held):
        parts += over_time.sums_of(part, asked, maps_in(part, asked))
    none = np.zeros(0, dtype=np.int64)
    parts = parts or [
        {"c": none, "k": np.ma.array(none.astype(object), mask=True), "n": none, "lacking": none}
    ]
    found = (
        _fewer(over_time.added(parts), window.columns)
        if asked.breakdown is not None
        else over_time.added(parts)
    )
    return over_time.answer(
        asked,
        found,
        source=held.source,
        base_ns=window.base_ns,
        interval_ns=window.interval_ns,
        columns=window.columns,
        span=window.span,
        recorded=window.recorded,
        notes=tuple(notes),
        losses=window.losses,
    )


def _fewer(found: dict[str, Any], columns: int) -> dict[str, Any]:
    """Sums of the largest keys apart, of all others without a key; `every` is how many there are."""
    rest = np.ma.getmaskarray(found["k"])
    words, places = np.unique(np.ma.filled(found["k"], "").astype(str), return_inverse=True)
    totals = np.bincount(places[~rest], weights=whole(found["n"])[~rest], minlength=len(words))
    shown = np.argsort(-totals, kind="stable")[: max(16, MOST_CELLS // max(1, columns))]
    small = np.ones(len(words), dtype=bool)
    small[shown] = False
    named = len(np.unique(places[~rest]))
    return {
        **found,
        "k": np.ma.array(np.ma.getdata(found["k"]), mask=rest | small[places]),
        "every": np.full(len(rest), named + bool(rest.any())),
    }
