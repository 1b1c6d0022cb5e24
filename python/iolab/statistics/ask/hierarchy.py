# SPDX-License-Identifier: Apache-2.0
"""Names that are paths as a tree: what each directory holds is the sum of what is under it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError
from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ..answers.answers import Stack
from ..language.fields import ANY, near
from ..language.names import Statistic, parse
from .query import query

PATHS = ("file", "mount")
"""Fields whose names are paths."""


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
    """A statistic by path. `unnamed` is the sum of I/Os whose path is not known; relative names
    stand under the root as they are."""

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
    asked = parse(statistic) if isinstance(statistic, str) else statistic
    field = asked.breakdown or "file"
    if field not in PATHS or field not in asked.entry.breakdowns:
        raise UsageError(
            f"{asked} has no paths",
            where=f"statistic '{asked}'",
            hint=near(field, [name for name in PATHS if name in asked.entry.breakdowns]),
        )
    named = Statistic(asked.group, asked.name, asked.filters, field)
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
    made: Branch = root["made"]
    return made


def as_data(tree: Tree, depth: int = 64) -> dict[str, Any]:
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
        "others": branch.others + sum(each.total for each in hidden),
        "left": branch.left + len(hidden),
        "children": [_data(each, depth - 1) for each in children],
    }
