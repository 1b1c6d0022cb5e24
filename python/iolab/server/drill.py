"""Whose the I/Os in a rectangle are, and the paths of files as a tree: made of the one executor's sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..errors import UsageError
from ..recording.conditions import parse_range
from ..recording.counts import HeatCounts
from ..statistics.answers import Stack
from ..statistics.fields import FIELDS, QUANTIZED, near
from ..statistics.names import Between, Filter, Statistic
from .asking import Question, Words, question_of, whole
from .models import DimensionShares, Hierarchy, Node, Share, Who
from .store import Store

MOST_VALUES = 50
"""Values of a dimension that are named unless asked otherwise."""
SMALLEST = 0.001
"""Share of all below which a path isn't named."""
DEPTH = 12


def who(store: Store, words: Words) -> Who:
    """Every dimension's values by their share inside a rectangle against outside.

    The statistic is a map, such as io.ops[latency]; from, to, low and high bound the rectangle. Outside is all else of the recording
    that meets the statistic's filters.
    """
    inside = question_of(store, words)
    asked = inside.statistic
    if asked.breakdown not in QUANTIZED:
        raise UsageError("whose I/Os these are is asked of a map", where="statistic", hint=f"such as {asked.entry.name}[latency]")
    low, high = _values(words, asked.breakdown)
    whole_time = replace(inside, from_ns=None, until_ns=None, interval_ns=None)
    narrow = asked.filters if low is None and high is None else (*asked.filters, Filter(asked.breakdown, "=", (Between(low, high),)))
    most = whole(words, "top", MOST_VALUES, 1, 1000)
    dimensions = []
    sums = (0, 0)
    for field in asked.entry.breakdowns:
        if field in QUANTIZED:
            continue
        part = _sums(inside, Statistic(asked.group, asked.name, narrow, field))
        every = _sums(whole_time, Statistic(asked.group, asked.name, asked.filters, field))
        sums = sum(part.values()), sum(every.values()) - sum(part.values())
        if len(every) > 1:
            dimensions.append(_shares(field, part, every, most))
    first, last = store.ends(inside.recording)
    return Who(recording=inside.recording, statistic=str(asked), from_ns=first if inside.from_ns is None else inside.from_ns,
               until_ns=last + 1 if inside.until_ns is None else inside.until_ns, low=low, high=high, inside=sums[0], outside=sums[1],
               dimensions=dimensions)


def _values(words: Words, field: str) -> tuple[int | None, int | None]:
    kind = "time" if FIELDS[field].kind == "time" else "size"
    text = f"{words.get('low', '')}..{words.get('high', '')}"
    return (None, None) if text == ".." else parse_range(text, kind)


def _sums(question: Question, statistic: Statistic) -> dict[str, int]:
    """Totals by key."""
    answer = question.answer(statistic, columns=1)
    assert isinstance(answer, Stack)
    found = dict(zip(answer.keys, answer.totals, strict=True))
    if answer.rest_total:
        found["(others)"] = found.get("(others)", 0) + answer.rest_total
    return found


def _shares(field: str, part: dict[str, int], every: dict[str, int], most: int) -> DimensionShares:
    inside = sum(part.values())
    outside = sum(every.values()) - inside
    shares = []
    for value in {**every, **part}:
        within = part.get(value, 0)
        beyond = max(0, every.get(value, 0) - within)
        shares.append(Share(value=value, inside=within, outside=beyond, share_inside=within / inside if inside else None,
                            share_outside=beyond / outside if outside > 0 else None))
    shares.sort(key=lambda each: (-((each.share_inside or 0) - (each.share_outside or 0)), -each.inside, each.value))
    return DimensionShares(dimension=field, values=shares[:most], left=max(0, len(shares) - most))


def hierarchy(store: Store, words: Words) -> Hierarchy:
    """Sums by directory of a statistic that is broken down by file."""
    question = question_of(store, words)
    asked = question.statistic
    if asked.breakdown not in (None, "file") or "file" not in asked.entry.breakdowns:
        raise UsageError(f"{asked} has no paths", where="statistic", hint=near("file", asked.entry.breakdowns))
    named = Statistic(asked.group, asked.name, asked.filters, "file")
    answer = question.answer(named, columns=1)
    assert not isinstance(answer, HeatCounts)
    sums = _sums(question, named)
    missing = FIELDS["file"].missing
    unnamed = sums.pop(missing, 0) + sums.pop("(others)", 0)
    return Hierarchy(recording=question.recording, statistic=str(named), unit="1" if named.entry.measure == "ops" else "B",
                     total=answer.total, unnamed=unnamed, root=tree(sums.items(), SMALLEST * max(1, answer.total)))


def tree(sums: Iterable[tuple[str, int]], least: float) -> Node:
    """Paths with their sums as a tree of directories; a name that is no path stands at the root."""
    return _node("", [(path.strip("/").split("/", DEPTH), amount) for path, amount in sums], least)


def _node(name: str, paths: list[tuple[list[str], int]], least: float) -> Node:
    groups: dict[str, list[tuple[list[str], int]]] = {}
    for parts, amount in paths:
        if parts:
            groups.setdefault(parts[0], []).append((parts[1:], amount))
    sums = {part: sum(amount for _, amount in group) for part, group in groups.items()}
    children = [_node(part, groups[part], least) for part in sorted(sums, key=lambda part: (-sums[part], part)) if sums[part] >= least]
    return Node(name=name, total=sum(amount for _, amount in paths), others=sum(sums.values()) - sum(each.total for each in children),
                children=children)
