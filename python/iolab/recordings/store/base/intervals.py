# SPDX-License-Identifier: Apache-2.0
"""Spans of time (from, until) in ns: of sessions, and times in which a source was not recorded, each
with its reason. Nothing is known of these, and they are no zeros.

They come from sessions (what is in none of them), from noted losses of kind `gap`, and from damaged
files of rows. All that answers for a time asks `Recording.unrecorded`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .layout import Kind

Span: TypeAlias = tuple[int, int]
Session: TypeAlias = Mapping[str, int | None]

_GOES_ON = 2**63 - 1


def join(spans: Iterable[Span]) -> list[Span]:
    """The same time as spans that are ascending and apart."""
    joined_spans: list[Span] = []
    for first, until in sorted(spans):
        if joined_spans and first <= joined_spans[-1][1]:
            joined_spans[-1] = (joined_spans[-1][0], max(joined_spans[-1][1], until))
        elif first < until:
            joined_spans.append((first, until))
    return joined_spans


def common(several: Sequence[Sequence[Span]]) -> list[Span]:
    """The intersection of several lists of spans, each ascending and apart."""
    spans_in_common, *rest = several
    for other in rest:
        spans_in_common = [
            (max(first, low), min(until, high))
            for first, until in spans_in_common
            for low, high in other
            if max(first, low) < min(until, high)
        ]
    return list(spans_in_common)


def without(spans: Sequence[Span], holes: Iterable[Span]) -> list[Span]:
    """Spans with holes cut out."""
    rest = list(spans)
    for first, until in holes:
        cut = []
        for start, end in rest:
            if until <= start or first >= end:
                cut.append((start, end))
                continue
            cut += [
                span
                for span in ((start, min(first, end)), (max(until, start), end))
                if span[0] < span[1]
            ]
        rest = cut
    return rest


def between(sessions: Sequence[Session]) -> list[Span]:
    """Times between sessions, in none of them, ascending; in whatever order these were made."""
    return _between(_spans(sessions))[0]


def in_common(sessions: Sequence[Session]) -> list[Span]:
    """Times in more than one session, ascending and apart: the clock was set back before the later
    one began."""
    return join(_between(_spans(sessions))[1])


def _spans(sessions: Sequence[Session]) -> list[Span]:
    """Ascending; a current one has no end."""
    ends = ((session.get("from_ns"), session.get("until_ns")) for session in sessions)
    return sorted(
        (first, _GOES_ON if until is None else until) for first, until in ends if first is not None
    )


def _between(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """What none of ascending spans holds, and what each has in common with those before it."""
    apart, twice = [], []
    reached = spans[0][0] if spans else 0
    for first, until in spans:
        if first > reached:
            apart.append((reached, first))
        elif first < min(reached, until):
            twice.append((first, min(reached, until)))
        reached = max(reached, until)
    return apart, twice


SAMPLED = "counters"
"""The name under which a loss is noted that all counters of the probe share: their samples bear the
names of what they are read from."""
BETWEEN = "nothing was recorded"
EVER_NS = 2**63 - 1
"""The end of what has not ended."""


@dataclass(frozen=True)
class Unrecorded:
    """A time from `from_ns` until `until_ns` in which a source ("" for all) was not recorded, or of
    which what was recorded is lost. of: the kind of rows that is missing, None for both. words:
    why."""

    from_ns: int
    until_ns: int
    source: str
    of: Kind | None
    words: str

    @property
    def span(self) -> Span:
        """From, until."""
        return self.from_ns, self.until_ns

    def concerns(self, kind: Kind, source: str | None) -> bool:
        """Whether rows of this kind and source are missing; None means those of all sources."""
        return self.of in (None, kind) and (
            self.source in ("", source)
            or (kind == "samples" and source is not None and self.source == SAMPLED)
        )


def unrecorded_times(
    sessions: Sequence[Session], losses: Iterable[Mapping[str, Any]]
) -> list[Unrecorded]:
    """All such times, ascending; losses are lines as `losses.Noted.single` has them."""
    # the gap after a kill begins where a session ends: sessions tell it, and what another one
    # recorded of it
    ends = {session.get("until_ns") for session in sessions}
    unrecordeds = [
        Unrecorded(first, until, "", None, BETWEEN) for first, until in between(sessions)
    ]
    for loss in losses:
        first, until, of = loss["from_ns"], loss["until_ns"], loss.get("of")
        if first is None or (loss["kind"] != "gap" and of is None):
            continue
        if loss["kind"] == "gap" and until is None:
            until = _end_of(sessions, first)
        if (
            until is None
            or first >= until
            or (loss["kind"] == "gap" and not loss["source"] and first in ends)
        ):
            continue
        unrecordeds.append(
            Unrecorded(
                first, until, loss["source"], None if loss["kind"] == "gap" else of, loss["words"]
            )
        )
    return sorted(unrecordeds, key=lambda each: (each.span, each.source))


def in_all(found: Iterable[Unrecorded], kind: Kind | None, sources: Collection[str]) -> list[Span]:
    """Times in which none of some sources was recorded, or nothing at all, ascending and apart.
    kind: None for gaps alone."""
    times = [span for span in found if span.of is None or span.of == kind]
    of_all = join(time.span for time in times if not time.source)
    of_each = [join(time.span for time in times if time.source == source) for source in sources]
    return join([*of_all, *common(of_each)]) if of_each and all(of_each) else of_all


def _end_of(sessions: Sequence[Session], first_ns: int) -> int:
    """Where a gap ends that was still open when its writer was last heard of: with its session."""
    holding = [session for session in sessions if (session.get("from_ns") or 0) <= first_ns]
    until = (
        max(holding, key=lambda each: each.get("from_ns") or 0).get("until_ns") if holding else None
    )
    return EVER_NS if until is None else until
