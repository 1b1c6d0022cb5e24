# SPDX-License-Identifier: Apache-2.0
"""Drill-down: a value of a breakdown becomes a condition, and a breakdown of maps by their values. Paths
of files become a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iolab.base.errors import UsageError

from ..store.base.conditions import Where
from ..store.base.counts import HeatCounts
from ..store.read.recording import Recording
from ..store.read.trace import MOST, Dimension, Trace, dimension, select
from .answers.answers import Stack
from .engine.snapshot import choose, snapshot
from .language.fields import ANY, QUANTIZED, UTILIZATION, near
from .query import query
from .question import Between, Filter, Statistic, parse


def narrow(statistic: Statistic, value: str | Between) -> Statistic:
    """The statistic of one value of its breakdown: it becomes a condition, and there is no
    breakdown.

    Args:
        value: a key of the stack; of a heat map a range, in words (`10ms..1s`) or as Between.
    UsageError where the statistic has no breakdown, or no such value.
    """
    field = statistic.breakdown
    if field is None:
        breakdowns = statistic.entry.breakdowns
        raise UsageError(
            "a value is one of a breakdown, and there is none",
            where=f"statistic '{statistic}'",
            hint=f"such as {statistic.entry.name}[{breakdowns[0]}]"
            if breakdowns
            else f"{statistic.entry.name} can't be broken down",
        )
    if field == UTILIZATION.name:
        raise UsageError(
            "utilization can't be narrowed",
            where=f"statistic '{statistic}'",
            hint="break it down by device instead",
        )
    if isinstance(value, Between):
        if field not in QUANTIZED:
            raise UsageError(
                f"a range is not a value of {field}",
                where=f"statistic '{statistic}'",
                hint="name one of its values",
            )
        more = Filter(field, "=", (value,))
    elif ANY[field].kind == "name":
        more = Filter(field, "=", (value,))
        words = statistic.entry.words(field)
        if words and value not in words:
            raise UsageError(
                f"there is no {field} '{value}'",
                where=f"statistic '{statistic}'",
                hint=f"there are {', '.join(words)}",
            )
    else:
        # numbers come in words: the one parser reads them
        *_, more = parse(f"{statistic.group}.{statistic.name}[{field}={value}]").filters
    kept = statistic.filters if more in statistic.filters else (*statistic.filters, more)
    return replace(statistic, filters=kept, breakdown=None)


FIELDS = ("op", "device", "process", "file", "job", "client")
BUDGET = 2 * 10**9
"""Events to scan for this; beyond, fewer fields are distinguished."""


def dimensions_of(
    recordings: Sequence[Recording],
    whole: HeatCounts,
    read: Callable[[Recording, Where], HeatCounts],
    where: Where | None = None,
) -> tuple[list[Dimension], list[str]]:
    """Fields in which the recordings have more than one value, and the names of those left out for
    the recordings' size.

    `read` counts a recording under further conditions, on the whole's columns. What a recording
    holds of other sources than the map's counts for nothing: a value without a count has no part.
    `where`: conditions of the whole; other values are no part of it.
    """
    events = sum(
        sum(segment.sources.values())
        for recording in recordings
        for segment in recording.segments()
    )
    budget, dimensions, unscanned = BUDGET, [], []
    for name in FIELDS:
        if MOST * events > budget:
            unscanned.append(name)
            continue
        totals = select(_totals(recordings, name), name, where)
        values = sorted(totals, key=lambda value, totals=totals: (-totals[value], value))[:MOST]  # type: ignore[misc]
        if len(totals) < 2:
            continue
        budget -= len(values) * events
        dimensions.append(
            dimension(
                name,
                values,
                recordings,
                whole,
                read,
                growing=any(_is_growing(recording) for recording in recordings),
            )
        )
    return dimensions, unscanned


def _is_growing(recording: Recording) -> bool:
    """Whether something may be recorded meanwhile: a session has no end."""
    return any(session.get("until_ns") is None for session in recording.facts.sessions)


def _totals(recordings: Sequence[Recording], name: str) -> dict[str, int]:
    """I/Os by value of a field, over all time."""
    totals: dict[str, int] = {}
    for recording in recordings:
        # events as the map's, though counters could tell some of it
        source, _ = choose(snapshot(recording).sources, None, None, recording.path)
        answer = query(recording, Statistic("io", "ops", (), name), columns=1, source=source)
        assert isinstance(answer, Stack)
        for key, total in zip(answer.keys, answer.totals, strict=True):
            totals[key] = totals.get(key, 0) + total
    return totals


PATHS = ("file", "mount", "slot", "vdev")
"""Fields with paths as values: slots are `ENCLOSURE/SLOT`, vdevs of disk I/O `POOL/VDEV`."""


@dataclass(frozen=True)
class Branch:
    """A directory or file.

    Attributes:
        name: the last part of its path, "" of the root. total: the plain sum of all under it. own:
        what is its own name's, not its children's. children: largest first. others: the sum of
        children that are left out, too small to be named; left: how many.
    """

    name: str
    total: int
    own: int
    children: tuple[Branch, ...]
    others: int = 0
    left: int = 0


@dataclass(frozen=True)
class Tree:
    """A statistic by path. `unnamed` is the sum of I/Os with an unknown path; relative names
    are children of the root."""

    statistic: Statistic
    total: int
    unnamed: int
    root: Branch


def hierarchy(
    events: Trace | Recording,
    statistic: Statistic | str,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    source: str | None = None,
    least: float = 0.0,
) -> Tree:
    """Sums by directory of a statistic; its breakdown is `file` unless it names another field of
    paths.

    Args:
        least: share of all below which a branch isn't named.
    UsageError where it has no paths; else as `query.query`.
    """
    question = parse(statistic) if isinstance(statistic, str) else statistic
    field = question.breakdown or "file"
    if field not in PATHS or field not in question.entry.breakdowns:
        raise UsageError(
            f"{question} has no paths",
            where=f"statistic '{question}'",
            hint=near(field, [name for name in PATHS if name in question.entry.breakdowns]),
        )
    named = Statistic(question.group, question.name, question.filters, field)
    answer = query(events, named, from_ns=from_ns, until_ns=until_ns, columns=1, source=source)
    assert isinstance(answer, Stack)
    sums = dict(zip(answer.keys, answer.totals, strict=True))
    unnamed = sums.pop(ANY[field].missing, 0) + answer.rest_total
    return Tree(named, answer.total, unnamed, branches(sums.items(), least * answer.total))


def branches(sums: Iterable[tuple[str, int]], least: float = 0.0) -> Branch:
    """Paths with their sums as a tree; a branch of less than `least` is summed among `others`."""
    return _branch(
        "", [([part for part in path.split("/") if part], amount) for path, amount in sums], least
    )


def _branch(name: str, paths: list[tuple[list[str], int]], least: float) -> Branch:
    # by depth, not by recursion: a path may have thousands of parts
    root: dict[str, Any] = {"name": name, "total": 0, "own": 0, "children": {}}
    for parts, amount in paths:
        node = root
        node["total"] += amount
        for part in parts:
            node = node["children"].setdefault(
                part, {"name": part, "total": 0, "own": 0, "children": {}}
            )
            node["total"] += amount
        node["own"] += amount
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += [child for child in node["children"].values() if child["total"] >= least]
    for node in reversed(order):
        below = node["children"].values()
        children = sorted(
            (child["made"] for child in below if "made" in child),
            key=lambda each: (-each.total, each.name),
        )
        small = [child["total"] for child in below if "made" not in child]
        node["made"] = Branch(
            node["name"], node["total"], node["own"], tuple(children), sum(small), len(small)
        )
    branch: Branch = root["made"]
    return branch


def tree_as_data(tree: Tree, depth: int = 64) -> dict[str, Any]:
    """For JSON: `{"statistic", "total", "unnamed", "root": {"name", "total", "own", "others",
    "left", "children": [...]}}`.

    Below `depth` children are summed among `others`.
    """
    return {
        "statistic": str(tree.statistic),
        "total": tree.total,
        "unnamed": tree.unnamed,
        "root": _data(tree.root, depth),
    }


def _data(branch: Branch, depth: int) -> dict[str, Any]:
    children = branch.children if depth > 0 else ()
    hidden = () if depth > 0 else branch.children
    return {
        "name": branch.name,
        "total": branch.total,
        "own": branch.own,
        "others": branch.others + sum(child.total for child in hidden),
        "left": branch.left + len(hidden),
        "children": [_data(child, depth - 1) for child in children],
    }
