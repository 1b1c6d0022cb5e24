# SPDX-License-Identifier: Apache-2.0
"""Numbers over two ranges of time beside each other: of all together and of each key, and by how
much they changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...errors import UsageError
from ...statistics.answers.answers import Answer, Floats, Series, Stack
from ...statistics.answers.json_form import Row, is_averaged, largest, number, numbers
from ...statistics.kept.coverage import is_counted
from ...statistics.language.fields import MAPPED
from ..base.compared import Change, Changes
from ..base.json_answer import check_size
from ..base.store import Store
from .query_params import Request, Words
from .ranges import Ranges, ranges_of


@dataclass(frozen=True)
class _Side:
    """One of the ranges: the values and the mean of all together and of each key, in the columns of
    the range.

    `complete`: whether each key there was is told apart, so that one that is not there did nothing.
    """

    whole: Row
    rows: dict[str, Row]
    complete: bool
    adds_up: bool
    covered_ns: int
    unit: str
    notes: tuple[str, ...]

    def row(self, key: str) -> Row:
        """The key's; of one that was not there 0 where something was recorded, unknown where it may
        be among the others."""
        found = self.rows.get(key)
        if found is not None:
            return found
        values = (
            np.where(np.isnan(self.whole.values), math.nan, 0.0)
            if self.complete
            else np.full_like(self.whole.values, math.nan)
        )
        return Row(key, values, 0, self.mean(key))

    def mean(self, key: str) -> float:
        """Of the same row."""
        found = self.rows.get(key)
        return (
            found.mean
            if found is not None
            else 0.0
            if self.complete and self.covered_ns
            else math.nan
        )


def changes(store: Store, words: Words) -> Changes:
    """A range of numbers beside another one: ranges are widened to whole columns, and are then of
    equal length."""
    ranges = ranges_of(store, words)
    asked = ranges.request.statistic
    if asked.breakdown in MAPPED:
        raise UsageError(
            "a map is not a number over time",
            where="statistic",
            hint="such as io.ops, or io.ops[op]",
        )
    one, other = (_side(each, ranges) for each in ranges.requests())
    found = sorted(
        dict.fromkeys([*one.rows, *other.rows]),
        key=lambda key: (-_size(one.mean(key) - other.mean(key)), key),
    )
    keys = found[: ranges.request.top]
    check_size(2 * (1 + len(keys)) * ranges.columns)
    return Changes(
        statistic=str(asked),
        unit=one.unit,
        interval_ns=ranges.interval_ns,
        columns=ranges.columns,
        from_ns=ranges.from_ns,
        until_ns=ranges.from_ns + ranges.length_ns,
        other_from_ns=ranges.other_from_ns,
        other_until_ns=ranges.other_from_ns + ranges.length_ns,
        covered_ns=one.covered_ns,
        other_covered_ns=other.covered_ns,
        adds_up=one.adds_up and other.adds_up,
        whole=_change("", one.whole, other.whole),
        keys=[_change(key, one.row(key), other.row(key)) for key in keys],
        left=len(found) - len(keys),
        notes=list(dict.fromkeys([*one.notes, *other.notes])),
    )


def _side(request: Request, ranges: Ranges) -> _Side:
    answer = _covered(request.answer(), request, ranges)
    rows: dict[str, Row] = {}
    complete, adds_up = True, True
    whole = answer
    if isinstance(answer, Stack):
        rows = {
            row.key: replace(row, values=_placed(row.values, answer, request, ranges))
            for row in largest(answer, None)[0]
        }
        # of things of which a mean is taken, one that was not there was not idle
        complete, adds_up = not answer.rest_keys and not is_averaged(answer), answer.adds_up
        whole = _covered(
            request.answer(replace(request.statistic, breakdown=None)), request, ranges
        )
    values = _placed(whole.values, whole, request, ranges)
    return _Side(
        Row("", values, whole.total, whole.mean),
        rows,
        complete,
        adds_up,
        answer.covered_ns,
        answer.unit,
        tuple(dict.fromkeys([*whole.notes, *answer.notes])),
    )


def _covered(answer: Answer, request: Request, ranges: Ranges) -> Series | Stack:
    """The answer, of which nothing is covered beyond the ends of what nobody knows when it was
    recorded: its means are over the rest. Counters tell that themselves."""
    assert isinstance(answer, Series | Stack)
    within = None if is_counted(answer.statistic, answer.source) else ranges.within(request)
    return answer if within is None else replace(answer, covered_ns=within[1] - within[0])


def _placed(values: Floats, answer: Series | Stack, request: Request, ranges: Ranges) -> Floats:
    """Values in the columns of the range; those beyond what was answered, or beyond the ends that
    `_covered` knows, are unknown."""
    assert request.from_ns is not None
    placed = np.full(ranges.columns, math.nan)
    shift = (answer.t0_ns - request.from_ns) // ranges.interval_ns
    first, past = max(0, shift), min(ranges.columns, shift + len(values))
    if first < past:
        placed[first:past] = values[first - shift : past - shift]
    within = None if is_counted(answer.statistic, answer.source) else ranges.within(request)
    for first, past in ranges.beyond(within, request) if within is not None else ():
        placed[first:past] = math.nan
    return placed


def _size(change: float) -> float:
    """By which keys are ordered."""
    return 0.0 if math.isnan(change) else abs(change)


def _change(key: str, one: Row, other: Row) -> Change:
    ratio = one.mean / other.mean if other.mean else math.nan
    return Change(
        key=key,
        mean=number(one.mean),
        other_mean=number(other.mean),
        change=number(one.mean - other.mean),
        ratio=number(ratio),
        values=numbers(one.values),
        other_values=numbers(other.values),
    )
