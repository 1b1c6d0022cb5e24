# SPDX-License-Identifier: Apache-2.0
"""A range of time beside another one of the same length, as a request puts them."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import UsageError
from ...recording.read.trace import Trace
from ...statistics.language.intervals import check_interval, columns_of, round_interval
from ..base.store import Store
from .query_params import Request, Words, columned, moment, needed, request_of

Span = tuple[int, int]
"""From (ns) up to, not including, until (ns)."""


@dataclass(frozen=True)
class Ranges:
    """Two ranges, widened to whole columns and of equal length then.

    Attributes:
        request: what is asked of both. ends: (first, last) ns of the recording. from_ns,
        other_from_ns: where they begin, multiples of interval_ns. columns: of each.
    """

    request: Request
    ends: tuple[int, int]
    interval_ns: int
    columns: int
    from_ns: int
    other_from_ns: int

    @property
    def length_ns(self) -> int:
        """Of each range."""
        return self.columns * self.interval_ns

    def within(self, request: Request) -> Span | None:
        """The part of a request's range between the ends of the recording; empty where they do not
        meet. None where it is known when it recorded: traces and imports do not say that."""
        opened, first = request.opened, request.from_ns
        assert first is not None
        if not isinstance(opened, Trace) and opened.facts.sessions:
            return None
        begin = max(first, self.ends[0])
        return begin, max(begin, min(first + self.length_ns, self.ends[1] + 1))

    def beyond(self, span: Span, request: Request) -> list[Span]:
        """Runs of columns of a request's range, (first, one past the last), that lie outside of a
        span as `within` gives it."""
        assert request.from_ns is not None
        if span[0] == span[1]:
            return [(0, self.columns)]
        first, past = (
            (span[0] - request.from_ns) // self.interval_ns,
            -(-(span[1] - request.from_ns) // self.interval_ns),
        )
        return [each for each in ((0, first), (past, self.columns)) if each[0] < each[1]]

    def requests(self) -> tuple[Request, Request]:
        """The request of the range, and of the other one."""
        one, other = (
            self.request.changed(span=(first, first + self.length_ns), interval_ns=self.interval_ns)
            for first in (self.from_ns, self.other_from_ns)
        )
        return one, other


def ranges_of(store: Store, words: Words) -> Ranges:
    """The ranges of a request. UsageError where one is empty, or they differ in length."""
    request = columned(request_of(store, words))
    ends = store.ends(request.recording)
    spans = [
        [moment(needed(words, f"{which}{end}"), *ends) for end in ("from", "to")]
        for which in ("", "other_")
    ]
    for (first, until), name in zip(spans, ("from", "other_from"), strict=True):
        if first >= until:
            raise UsageError(
                "the span of time is empty", where=name, hint="it must begin before it ends"
            )
    if spans[0][1] - spans[0][0] != spans[1][1] - spans[1][0]:
        raise UsageError(
            "the two ranges differ in length",
            where="other_to",
            hint="take the same length of time for both",
        )
    check_interval(request.question.interval_ns)
    interval = request.question.interval_ns or round_interval(
        spans[0][0], spans[0][1] - 1, request.question.columns
    )
    columns = max(columns_of(first, until - 1, interval) for first, until in spans)
    starts = [first // interval * interval for first, _ in spans]
    return Ranges(request, ends, interval, columns, starts[0], starts[1])
