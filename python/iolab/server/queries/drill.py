# SPDX-License-Identifier: Apache-2.0
"""Whose the I/Os in a rectangle are, and the paths of files as a tree."""

from __future__ import annotations

from ...errors import UsageError
from ...recording.base.conditions import parse_range
from ...statistics.ask import attribution as shares
from ...statistics.ask import drill as paths
from ...statistics.language.fields import FIELDS, QUANTIZED
from ..base.models import Hierarchy, Who
from ..base.store import Store
from .query_params import Request, Words, request_of, span_of

SMALLEST = 0.001
"""Share of all below which a path isn't named."""
DEPTH = 12


def who(store: Store, words: Words) -> Who:
    """Every dimension's values by their share inside a rectangle against outside.

    The statistic is a map, such as io.ops[latency]; from, to, low and high bound the rectangle.
    Outside is all else that meets the statistic's filters from around_from to around_to, where
    these are left open of the whole recording.
    """
    request = request_of(store, words)
    asked = request.statistic
    if asked.breakdown not in QUANTIZED:
        raise UsageError(
            "whose I/Os these are is asked of a map",
            where="statistic",
            hint="such as io.ops[latency]",
        )
    low, high = bounds_of(words, asked.breakdown)
    found = shares.who(
        request.opened,
        asked.breakdown,
        shares.Rectangle(request.from_ns, request.until_ns, low, high),
        filters=asked.filters,
        entry=asked.entry,
        around=_around(request, words, store.ends(request.recording)),
        source=request.question.source,
        top=request.top,
    )
    return Who.model_validate(
        {"recording": request.recording, "statistic": str(asked), **shares.as_data(found)}
    )


def _around(request: Request, words: Words, ends: tuple[int, int]) -> tuple[int | None, int | None]:
    """The time that is looked at: that of the rectangle is in it in any case."""
    first, until = span_of(words, ends, "around_")
    return (
        None if first is None or request.from_ns is None else min(first, request.from_ns),
        None if until is None or request.until_ns is None else max(until, request.until_ns),
    )


def bounds_of(words: Words, field: str) -> tuple[int | None, int | None]:
    """The parameters low and high as values of a field; None where an end is open."""
    if "low" not in words and "high" not in words:
        return None, None
    if field not in FIELDS:
        raise UsageError(f"'{field}' has no range of values", where="low")
    kind = "time" if FIELDS[field].kind == "time" else "size"
    text = f"{words.get('low', '')}..{words.get('high', '')}"
    return parse_range(text, kind)


def hierarchy(store: Store, words: Words) -> Hierarchy:
    """Sums by directory of a statistic that is broken down by file."""
    request = request_of(store, words)
    found = paths.hierarchy(
        request.opened,
        request.statistic,
        from_ns=request.from_ns,
        until_ns=request.until_ns,
        source=request.question.source,
        least=SMALLEST,
    )
    return Hierarchy.model_validate(
        {
            "recording": request.recording,
            "unit": "1" if found.statistic.entry.measure == "ops" else "B",
            **paths.tree_as_data(found, DEPTH),
        }
    )
