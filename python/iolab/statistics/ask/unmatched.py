# SPDX-License-Identifier: Apache-2.0
"""Conditions that match nothing: which names there were instead, so that a 0 for a wrong name is
not taken for a quiet device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...recording.base.counts import HeatCounts
from ..answers.answers import Answer, Series, Stack
from ..language.names import Statistic
from ..language.objects import missing

NAMED = (
    "device",
    "process",
    "file",
    "mount",
    "client",
    "job",
    "vdev",
    "pool",
    "procedure",
    "version",
)
"""Fields whose values are names that may be mistyped."""


def with_unmatched(answer: Answer, asked: Statistic, of: Callable[[Statistic], Answer]) -> Answer:
    """The answer; where it is empty, with a note for each name in its conditions that did not occur
    in the same time.

    `of` answers another statistic for that time.
    """
    fields = {
        each.field: each.values
        for each in asked.filters
        if each.sign == "=" and each.field in NAMED and each.field in asked.entry.breakdowns
    }
    if not fields or not _is_empty(answer):
        return answer
    notes: list[str] = []
    for field, values in fields.items():
        there = of(replace(asked, filters=(), breakdown=field))
        # of more names than are told apart nobody knows which are among the others
        if isinstance(there, Stack) and not there.rest_keys:
            notes += missing(
                field,
                map(str, values),
                [key for key, total in zip(there.keys, there.totals, strict=True) if total],
            )
    if isinstance(answer, HeatCounts):
        return replace(answer, assumptions=tuple(dict.fromkeys([*answer.assumptions, *notes])))
    return replace(answer, notes=tuple(dict.fromkeys([*answer.notes, *notes])))


def _is_empty(answer: Answer) -> bool:
    if isinstance(answer, HeatCounts):
        return answer.y != "utilization" and answer.events == 0
    return (
        isinstance(answer, Series | Stack) and answer.statistic.entry.additive and answer.total == 0
    )
