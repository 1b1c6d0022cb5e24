# SPDX-License-Identifier: Apache-2.0
"""Drill-down: a value of a breakdown becomes a condition, and what is left can be broken down
again, without limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ...errors import UsageError
from ..language.fields import ANY, MAPPED, QUANTIZED, UTILIZATION
from ..language.names import Between, Filter, Statistic, parse

Kind = Literal["stack", "heat"]


@dataclass(frozen=True)
class Next:
    """A further breakdown: its field, what answers it, and the whole question."""

    field: str
    kind: Kind
    statistic: Statistic


def narrowed(statistic: Statistic, value: str | Between) -> Statistic:
    """The statistic of one value of its breakdown: that is a condition now, and the breakdown is
    gone.

    Args:
        value: a key of the stack; of a heat map a range, in words (`10ms..1s`) or as Between.
    UsageError where the statistic has no breakdown, or no such value.
    """
    field = statistic.breakdown
    if field is None:
        known = statistic.entry.breakdowns
        raise UsageError(
            "a value is one of a breakdown, and there is none",
            where=f"statistic '{statistic}'",
            hint=f"such as {statistic.entry.name}[{known[0]}]"
            if known
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


def next_breakdowns(
    statistic: Statistic,
    value: str | Between | None = None,
    *,
    allowed: tuple[str, ...] | None = None,
) -> list[Next]:
    """What a value of a statistic (without one: the statistic itself) can be broken down by next.

    A field that is narrowed to one name is left out; one that is a number remains, for a range has
    a distribution of its own.
    `allowed`: fields that the recording can tell (`available.Available.breakdowns`); default: all.
    """
    asked = replace(statistic, breakdown=None) if value is None else narrowed(statistic, value)
    pinned = {
        each.field
        for each in asked.filters
        if each.sign == "=" and len(each.values) == 1 and each.field not in MAPPED
    }
    fields = [
        field
        for field in asked.entry.breakdowns
        if field not in pinned and (allowed is None or field in allowed)
    ]
    return [
        Next(field, "heat" if field in MAPPED else "stack", replace(asked, breakdown=field))
        for field in fields
    ]


def as_data(
    statistic: Statistic,
    value: str | Between | None = None,
    *,
    allowed: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """`{"statistic": the narrowed one, "next": [{"field", "kind", "statistic"}]}`, for JSON."""
    asked = replace(statistic, breakdown=None) if value is None else narrowed(statistic, value)
    return {
        "statistic": str(asked),
        "next": [
            {"field": each.field, "kind": each.kind, "statistic": str(each.statistic)}
            for each in next_breakdowns(statistic, value, allowed=allowed)
        ],
    }
