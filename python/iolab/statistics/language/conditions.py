# SPDX-License-Identifier: Apache-2.0
"""Conditions for those who carry them out: SQL with bound values for the executor, ranges in words
for the native readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import UsageError
from ...recording.base.conditions import NAMES, Where
from .fields import FIELDS, STORED, TIME, Field, near
from .names import Between, Filter

_CORE_RANGES = ("time", "latency", "offset", "size")
_CORE_MOST = 2**63 - 1


def field_of(name: str) -> Field:
    """A field of events, or the time. UsageError for any other name."""
    if name == TIME.name:
        return TIME
    if name not in STORED:
        raise UsageError(f"there is no dimension '{name}'", hint=near(name, [*FIELDS, TIME.name]))
    return STORED[name]


def filters_of(where: Where) -> tuple[Filter, ...]:
    """Conditions as `recording.conditions.parse_where` makes them. UsageError where one can't be
    asked."""
    filters = []
    for name, words in where.items():
        field = field_of(name)
        if words:
            values = (
                tuple(words)
                if field.kind == "name"
                else tuple(_between(name, word) for word in words)
            )
            filters.append(Filter(name, "=", values))
    return tuple(filters)


def _between(name: str, word: str) -> Between:
    low, dots, high = word.partition("..")
    try:
        if not dots:
            return Between(int(low), int(low) + 1)
        return Between(int(low) if low else None, int(high) if high else None)
    except ValueError:
        raise UsageError(f"{name}={word}: a range is LOW..HIGH in plain whole numbers") from None


def for_core(filters: Iterable[Filter]) -> tuple[dict[str, list[str]], list[Filter]]:
    """(conditions that the native readers carry out, the others)."""
    core: dict[str, list[str]] = {}
    rest = []
    for condition in filters:
        words = None if condition.sign == "!=" else _core_words(condition)
        if words is not None and condition.field in core:
            # all must hold: of names those that both allow; where none is left it takes more than
            # the readers know
            words = (
                [word for word in core[condition.field] if word in words]
                if condition.field in NAMES
                else None
            )
        if not words:
            rest.append(condition)
        else:
            core[condition.field] = words
    return core, rest


def _core_words(condition: Filter) -> list[str] | None:
    if condition.field in NAMES:
        names = [value for value in condition.values if isinstance(value, str)]
        # the readers know no word for what is missing
        return None if field_of(condition.field).missing in names else names
    if condition.field not in _CORE_RANGES:
        return None
    ranges = _ranges(condition)
    if any(
        abs(end or 0) > _CORE_MOST for interval in ranges for end in (interval.low, interval.high)
    ):
        return None
    return [
        f"{'' if interval.low is None else interval.low}..{'' if interval.high is None else interval.high}"
        for interval in ranges
    ]


def _ranges(condition: Filter) -> list[Between]:
    """The ranges that meet a condition on a number, its sign being taken in (but for `!=`)."""
    ranges = []
    for value in condition.values:
        assert isinstance(value, Between)
        low, past = value.low, value.high
        ranges.append(
            {
                ">=": Between(low, None),
                ">": Between(past, None),
                "<": Between(None, low),
                "<=": Between(None, past),
            }.get(condition.sign, value)
        )
    return ranges


def sql_of(filters: Sequence[Filter]) -> tuple[list[str], dict[str, Any]]:
    """(conditions that must all hold, what is bound in them). Column names come from the fields
    alone, values are bound."""
    texts: list[str] = []
    bound: dict[str, Any] = {}

    def bind(value: Any) -> str:
        name = f"v{len(bound)}"
        bound[name] = value
        return f"${name}"

    for condition in filters:
        field = field_of(condition.field)
        column = field.column
        if field.kind == "name":
            choices = [f"{column} IN ({', '.join(bind(value) for value in condition.values)})"]
            if field.missing in condition.values:
                choices.append(f"{column} IS NULL")
        else:
            ends = [
                [None if end is None else bind(end) for end in (interval.low, interval.high)]
                for interval in _ranges(condition)
            ]
            choices = [_within(column, low, high) for low, high in ends]
        text = f"({' OR '.join(choices)})"
        # unknown is no answer in SQL; here an event that lacks the field meets `!=`
        texts.append(f"NOT coalesce({text}, false)" if condition.sign == "!=" else text)
    return texts, bound


def _within(column: str, low: str | None, high: str | None) -> str:
    ends = [f"{column} >= {low}" if low else "", f"{column} < {high}" if high else ""]
    return f"({' AND '.join(end for end in ends if end) or f'{column} IS NOT NULL'})"
