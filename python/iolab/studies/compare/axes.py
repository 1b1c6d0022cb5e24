# SPDX-License-Identifier: Apache-2.0
"""Which factor is a row, a column or a table of its own: projections over a sweep, as
benchstat's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import UsageError
from iolab.base.metrics import Metric
from iolab.base.units import parse_fio_size
from iolab.base.verdict import Level

from ..results.derive.windows import ARM
from ..results.evidence.model import Run
from .load.achieved import AchievedLevel
from .model import WITHOUT_METRIC, Key, Warning

Where = Mapping[str, Sequence[str]]
"""Factor (or `variant`, `host`, `block`) to the levels to keep, as typed."""

LOADS = ("numjobs", "iodepth", "threads", "jobs", "rate_iops", "procs")
"""Factors that are a load: the first choice for rows, and the x axis of charts."""


MOST_LEVELS = 4
"""Levels without a metric that are listed."""

BLOCK_SIZES = {"bs", "blocksize", "block_size", "recordsize"}
"""Rates at different block sizes are different quantities: tables of their own, and no mean over
them."""


@dataclass(frozen=True)
class Axes:
    """Factor names of each axis; `ignored` are pooled within a cell, `fixed` have one level."""

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    tables: tuple[str, ...]
    ignored: tuple[str, ...]
    fixed: dict[str, object]
    unasked: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Levels of every axis, in order."""

    tables: tuple[Key, ...]
    rows: tuple[Key, ...]
    cols: tuple[Key, ...]


def parse_where(texts: Iterable[str]) -> dict[str, list[str]]:
    """`media=hdd,ssd` and `disks=4` as a mapping; repeated factors add up. UsageError for what is
    no `name=level`."""
    levels_by_factor: dict[str, list[str]] = {}
    for text in texts:
        name, equals, levels = text.partition("=")
        if not equals or not name.strip() or not levels.strip():
            raise UsageError(
                f"'{text}' is not a condition",
                where="--where",
                hint="write factor=level or factor=level,level",
            )
        levels_by_factor.setdefault(name.strip(), []).extend(
            level.strip() for level in levels.split(",")
        )
    return levels_by_factor


def select(runs: Sequence[Run], where: Where) -> list[Run]:
    """The runs that meet every condition; UsageError for a factor or a level that isn't there,
    naming what is."""
    selected = list(runs)
    for name, kept_levels in where.items():
        have = {level_text(level) for run in runs if (level := _level(run, name)) is not None}
        if not have:
            raise unknown_factor(name, runs)
        for level in kept_levels:
            if level not in have:
                raise UsageError(
                    f"there is no {name}={level}",
                    where="--where",
                    hint=f"{name} is one of {', '.join(_natural(have))}",
                )
        selected = [run for run in selected if level_text(_level(run, name)) in kept_levels]
    return selected


def _level(run: Run, name: str) -> Any:
    own = {
        "variant": run.variant,
        "host": run.plan.host,
        "block": run.plan.block,
        "repetition": run.plan.repetition,
    }
    return own[name] if name in own else run.factors.get(name)


def level_text(level: object) -> str:
    """A level as a user types it: 4, not 4.0; true, as in TOML; a dash for a factor that the cell
    lacks."""
    if level is None:
        return "—"
    if isinstance(level, bool):
        return "true" if level else "false"
    return f"{level:.12g}" if isinstance(level, float) else str(level)


def axis_text(names: Iterable[str], key: Key) -> str:
    """`disks=4 media=hdd`, for headings."""
    return " ".join(f"{name}={level_text(level)}" for name, level in zip(names, key, strict=True))


def _natural(texts: Iterable[str]) -> list[str]:
    def key(text: str) -> tuple[int, float, str]:
        try:
            return 0, float(text), text
        except ValueError:
            return 1, 0.0, text

    return sorted(texts, key=key)


def unknown_factor(name: str, runs: Sequence[Run]) -> UsageError:
    """The error for a factor that isn't in the runs."""
    factors = list(dict.fromkeys(factor for run in runs for factor in run.factors))
    near = difflib.get_close_matches(name, factors, n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    remedy = f"factors are {', '.join(factors)}" if factors else "these runs have no factors"
    return UsageError(f"unknown factor '{name}'", hint=f"{guess}{remedy}")


def levels(runs: Sequence[Run], names: Sequence[str]) -> tuple[Key, ...]:
    """Combinations of levels that occur, in order: numbers and sizes (`8k` before `128k`)
    ascending, other text by the alphabet.

    Published and imported text keeps its order of appearance, which somebody chose; a study's runs
    come in seeded order. The arms of windows have their order too.
    """
    keys = dict.fromkeys(key_of(run, names) for run in runs)
    foreign = any(run.plan.status in ("published", "imported") for run in runs)
    order = {
        name: _text_order(
            {level: rank for rank, level in enumerate(dict.fromkeys(key[place] for key in keys))},
            foreign or name == ARM,
        )
        for place, name in enumerate(names)
    }

    def place(name: str, level: object) -> tuple[int, float]:
        if isinstance(level, AchievedLevel):
            return 0, level.requested
        return (0, float(level)) if isinstance(level, int | float) else (1, order[name][level])

    def rank(key: Key) -> tuple[tuple[int, float], ...]:
        return tuple(place(name, level) for name, level in zip(names, key, strict=True))

    return tuple(sorted(keys, key=rank))


def _text_order(appearance: dict[object, float], foreign: bool) -> dict[object, float]:
    """Rank of each text level of a factor."""
    texts = [level for level in appearance if isinstance(level, str)]
    try:
        return appearance | {text: float(parse_fio_size(text)) for text in texts}
    except UsageError:
        pass
    return (
        appearance
        if foreign
        else appearance | {text: float(rank) for rank, text in enumerate(_natural(texts))}
    )


def with_metric(runs: Sequence[Run], metric: Metric, axes: Axes) -> tuple[list[Run], list[Warning]]:
    """The runs at levels of each axis at which some run has the metric, and what was left out:
    reads of a sweep over operations have nothing at the levels that only write. A level of which
    all runs
    are INVALID stays: nothing is known of it."""
    selected, warnings = list(runs), []
    for names in (axes.tables, axes.cols, axes.rows):
        by_level: dict[Key, list[Run]] = {}
        for run in selected:
            by_level.setdefault(key_of(run, names), []).append(run)
        empty = [
            key
            for key, at_level in by_level.items()
            if all(run.value(metric.name) is None for run in at_level)
            and any(run.verdict.level is not Level.INVALID for run in at_level)
        ]
        if empty:
            listed = "; ".join(axis_text(names, key) for key in empty[:MOST_LEVELS])
            more = f" and {len(empty) - MOST_LEVELS} more" if len(empty) > MOST_LEVELS else ""
            text = f"no run has {metric.name} at {listed}{more}: left out"
            warnings.append(Warning(WITHOUT_METRIC, text))
            selected = [run for run in selected if key_of(run, names) not in empty]
    return selected, warnings


def key_of(run: Run, names: Sequence[str]) -> Key:
    """The run's levels of these factors."""
    levels_of = run.factors
    return tuple([levels_of.get(name) for name in names])


@dataclass(frozen=True)
class Layout:
    """The requested factors of each axis; None: inferred. `ignore`: factors to pool within a cell,
    which is then named as hidden variation."""

    rows: Sequence[str] | None = None
    cols: Sequence[str] | None = None
    tables: Sequence[str] | None = None
    ignore: Sequence[str] = ()


def choose(runs: Sequence[Run], layout: Layout) -> Axes:
    """The requested axes, filled up so that nothing varies unseen.

    Rows left open take the load (or else the factor with most levels), columns the next; every
    other factor that varies splits the tables, so that unlike things are pooled only when
    `layout.ignore` says so.
    """
    rows, cols, tables, ignored = layout.rows, layout.cols, layout.tables, layout.ignore
    names = list(dict.fromkeys(name for run in runs for name in run.factors))
    for name in (*(rows or ()), *(cols or ()), *(tables or ()), *ignored):
        if name not in names:
            raise unknown_factor(name, runs)
    levels_of_run = [run.factors for run in runs]
    levels_of = {name: {factors.get(name) for factors in levels_of_run} for name in names}
    counts = {name: len(levels_of[name]) for name in names}
    assigned = {*(rows or ()), *(cols or ()), *(tables or ()), *ignored}
    free = [name for name in names if counts[name] > 1 and name not in assigned]
    numeric = {
        name
        for name in names
        if all(isinstance(level, int | float | AchievedLevel) for level in levels_of[name])
    }
    by_size = sorted(
        free,
        key=lambda name: (
            name not in LOADS,
            name in BLOCK_SIZES,
            name not in numeric,
            -counts[name],
        ),
    )
    chosen_rows = tuple(rows) if rows is not None else tuple(by_size[:1])
    rest = [name for name in by_size if name not in chosen_rows]
    chosen_cols = tuple(cols) if cols is not None else tuple(rest[:1])
    free_factors = [name for name in free if name not in (*chosen_rows, *chosen_cols)]
    unasked = (
        tuple(free_factors) if rows is not None and cols is not None and tables is None else ()
    )
    fixed = {
        name: runs[0].factors.get(name)
        for name in names
        if counts[name] == 1 and name not in assigned
    }
    return Axes(
        chosen_rows, chosen_cols, (*(tables or ()), *free_factors), tuple(ignored), fixed, unasked
    )
