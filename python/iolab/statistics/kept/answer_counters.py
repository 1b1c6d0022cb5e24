# SPDX-License-Identifier: Apache-2.0
"""What was kept of counters, and the samples that are still there, as one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...recording.base.checked_files import Part
from ...recording.base.counts import HeatCounts
from ..answers.answers import Answer, Floats
from ..engine.engine import Engine, whole
from ..engine.windows import Window
from ..language.fields import UTILIZATION
from ..language.names import Statistic
from ..tiers import counters
from ..tiers.readings import Shares, Spread, read, spread
from .coverage import Held
from .paths import Tier
from .rows import COLUMN, INSIDE, by_width, rows, steady

_LENGTHS = {"1s": "a second", "1m": "a minute", "1h": "an hour"}
_SUMS = ("amount", "over", "covered", "broken")


def answer(
    window: Window,
    held: Held,
    tiers: Sequence[Tier],
    asked: Statistic,
    there_ns: int,
    notes: Sequence[str],
) -> Answer:
    """The answer to a statistic of counters; `there_ns` is when the samples begin that are still
    there."""
    mapped = asked.breakdown == UTILIZATION.name
    if mapped:
        # longer sums tell less of how busy something was
        needed = held.needed(window.first_ns)
        tiers = (needed,) if needed in tiers else tiers[:1]
    kept = steady(lambda: _kept(window, held, tiers, asked))
    # a column belongs to what was kept unless samples tell all of it
    split = min(window.columns, max(0, -(-(there_ns - window.base_ns) // window.interval_ns)))
    told = counters.tell(asked, window, _joined(kept, _present(window, asked), split))
    if isinstance(told, HeatCounts):
        means = [
            f"what was kept are means over {_LENGTHS[each.name]}, which count as one reading each: peaks within are not in it"
            for each in tiers
            if mapped and split and any(len(row.readings.column) for row in kept)
        ]
        return replace(told, assumptions=(*notes, *means, *told.assumptions))
    return replace(told, notes=(*notes, *told.notes))


def _present(window: Window, asked: Statistic) -> list[Spread]:
    counter, parts = asked.entry.counter, counters.parts_of(asked)
    if counter is None or not window.snap.bounds(counter.source):
        return []
    breaks = window.snap.recording.breaks(counter.source)
    return [
        spread(each, counter, parts, window, breaks)
        for each in read(window, counter, parted=counters.is_parted(asked))
    ]


def _kept(window: Window, held: Held, tiers: Sequence[Tier], asked: Statistic) -> list[Spread]:
    parts = [part.key for part in counters.parts_of(asked)]
    found: dict[str, Spread] = {}
    sums = ", ".join(f"sum({name}) AS {name}" for name in _SUMS)
    for paths in by_width(held, tiers).values():
        with Engine(held.directory) as engine:
            told = rows(
                engine,
                paths,
                window,
                f"SELECT object, part, {COLUMN} AS c, {sums} FROM kept WHERE {INSIDE} GROUP BY ALL",
            )
        objects, words, column = (
            np.ma.getdata(told["object"]),
            np.ma.getdata(told["part"]),
            whole(told["c"]),
        )
        for name in sorted(set(objects.tolist())):
            own = found.setdefault(str(name), _empty(str(name), window.columns))
            for part in parts:
                at = (objects == name) & (words == part)
                if at.any():
                    values = {each: np.ma.filled(told[each], 0.0)[at] for each in _SUMS}
                    amounts = own.amounts.setdefault(part, np.zeros(window.columns))
                    np.add.at(amounts, column[at], values["amount"])
                    for target, each in (
                        (own.over, "over"),
                        (own.covered, "covered"),
                        (own.broken, "broken"),
                    ):
                        # the same for each part
                        target[column[at]] = values[each]
        if asked.breakdown == UTILIZATION.name:
            for name, shares in _shares(held, paths, window, parts).items():
                found[name] = replace(found[name], readings=shares)
    return list(found.values())


def _shares(
    held: Held, paths: Sequence[Part], window: Window, parts: Sequence[str]
) -> dict[str, Shares]:
    """The mean over each sum that was kept, by object."""
    chosen = ", ".join(f"'{part}'" for part in parts)
    with Engine(held.directory) as engine:
        told = rows(
            engine,
            paths,
            window,
            f"""
            WITH parts AS (SELECT object, part, time_s, sum(amount) AS amount, sum(over) AS over FROM kept
                           WHERE {INSIDE} AND part IN ({chosen}) GROUP BY ALL)
            SELECT object, {COLUMN} AS c, sum(amount) / max(over) AS share FROM parts GROUP BY object, time_s HAVING max(over) > 0""",
        )
    objects, column, share = (
        np.ma.getdata(told["object"]),
        whole(told["c"]),
        np.ma.filled(told["share"], 0.0),
    )
    return {
        str(name): Shares(column[objects == name], share[objects == name])
        for name in set(objects.tolist())
    }


def _empty(name: str, columns: int) -> Spread:
    return Spread(name, {}, np.zeros(columns), np.zeros(columns), np.zeros(columns), Shares.none())


def _joined(kept: Sequence[Spread], present: Sequence[Spread], split: int) -> list[Spread]:
    """Columns before `split` of the one, the others of the other."""
    early, late = ({each.object: each for each in spreads} for spreads in (kept, present))
    columns = next((len(each.covered) for each in (*kept, *present)), 0)

    def both(before: Floats, after: Floats) -> Floats:
        return np.concatenate([before[:split], after[split:]])

    found = []
    for name in sorted(early.keys() | late.keys()):
        first, last = early.get(name, _empty(name, columns)), late.get(name, _empty(name, columns))
        parts = list(dict.fromkeys([*first.amounts, *last.amounts]))
        amounts = {
            part: both(
                first.amounts.get(part, np.zeros(columns)),
                last.amounts.get(part, np.zeros(columns)),
            )
            for part in parts
        }
        early_held, late_held = first.readings.column < split, last.readings.column >= split
        shares = Shares(
            np.concatenate([first.readings.column[early_held], last.readings.column[late_held]]),
            np.concatenate([first.readings.share[early_held], last.readings.share[late_held]]),
        )
        found.append(
            Spread(
                name,
                amounts,
                both(first.over, last.over),
                both(first.covered, last.covered),
                both(first.broken, last.broken),
                shares,
            )
        )
    return found
