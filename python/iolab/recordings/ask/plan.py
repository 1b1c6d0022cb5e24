# SPDX-License-Identifier: Apache-2.0
"""The plan of a question: which tier gives the sums of which span, why not another, and what is
read for it.

A tier is a kind of data that has sums: roll-ups, segment maps, events, counters, a trace. The plan
divides all I/Os of the question into spans and takes the cheapest tier for each, so that every I/O
is in exactly one span. A new kind of data needs a class with the methods of `Tier`, nothing here.

Tiers give sums in the common forms `Sums`.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.base.files import map_regular

from ..store.base.counts import HeatCounts
from ..store.base.grids import Grid
from .engine.windows import Window
from .question import Question, places_asked

if TYPE_CHECKING:
    from .tiers.readings import Spread


@dataclass(frozen=True)
class Axis:
    """Columns of time. source: of the events. base_ns: start of column 0. interval_ns: length of a
    column. columns: how many. span: from, until (ns)."""

    source: str
    base_ns: int
    interval_ns: int
    columns: int
    span: tuple[int, int]


@dataclass(frozen=True)
class Numbers:
    """Sums by column of time and key.

    Attributes:
        rows: columns of equal length, by name.
            c: column of time. k: key, masked for the sum of other keys. n: the sum.
            lacking: I/Os that add nothing, as they have no size.
            every: number of all keys, absent unless some were summed up.
        notes: about the sums. axis: columns of a trace, known after reading.
    """

    rows: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    axis: Axis | None = None


@dataclass(frozen=True)
class Growth:
    """Growth of counters in columns of time, by object. notes: about it."""

    spreads: tuple[Spread, ...]
    notes: tuple[str, ...] = ()


Sums: TypeAlias = "Numbers | HeatCounts | Growth"
"""Numbers for a series or stack; counts by time and value for a map; growth of counters."""


@dataclass(frozen=True)
class Bounds:
    """Least and largest value that I/Os have, None without any. `width`: both are starts of equal
    buckets of this width."""

    ends: tuple[int, int] | None
    width: int = 1


UNSEALED = 2**62
"""The number of all segments that are not sealed."""

FILE_COST = 1 << 16
"""Opening a file takes as long as reading so many bytes."""


class Span(NamedTuple):
    """I/Os of the segments `first` to `last` (both included), deleted ones included, from `from_ns`
    up to `until_ns`.

    Segments overlap in time, as some I/Os are recorded late: a time alone names no set of I/Os.
    """

    first: int
    last: int
    from_ns: int
    until_ns: int


class Cost(NamedTuple):
    """What is read for a span. files: to open. bytes: to read, of files and of rows in memory."""

    files: int
    bytes: int

    @property
    def weight(self) -> int:
        """Bytes, with the opening of files as bytes."""
        return self.bytes + FILE_COST * self.files


@dataclass(frozen=True)
class Part:
    """What is read of one kind of data.

    Attributes:
        name: of the kind. first_ns, until_ns: its time, None if unknown before it is read. files:
        number of files; 0 for rows in memory. rows, bytes: to read, None if unknown.
    """

    name: str
    first_ns: int | None
    until_ns: int | None
    files: int
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class Frame:
    """The form of an answer, the same for all spans.

    Attributes:
        question: what is answered. notes: about the answer.
        recorded: the window of the answer. None for a trace: it is known after reading.
        is_coarse: whether buckets and ends are those of roll-ups, which take all that they cover.
        undecided: what is decided only while sums are read.
    """

    question: Question
    recorded: Window | None
    notes: tuple[str, ...] = ()
    is_coarse: bool = False
    undecided: tuple[str, ...] = ()

    @property
    def window(self) -> Window:
        """The window of a recording."""
        assert self.recorded is not None
        return self.recorded

    @property
    def full_span(self) -> Span:
        """All I/Os of the question."""
        if self.recorded is None:
            return Span(0, UNSEALED, 0, 1)
        return Span(0, UNSEALED, self.window.first_ns, self.window.until_ns)


class TooCoarseError(IolabError):
    """Sums of a tier are too coarse for the answer, as reading them showed."""

    def __init__(self, tier: str) -> None:
        super().__init__(f"sums of {tier} are too coarse")
        self.tier = tier


class Reading(AbstractContextManager["Reading"]):
    """Spans of a tier while they are read."""

    def __exit__(self, *_: object) -> None:
        """Give up what was opened."""

    def bounds(self) -> Sequence[Bounds]:
        """Values of the I/Os, for a map with equal buckets that depend on them."""
        return []

    @abstractmethod
    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        """Exact sums of the spans, in one part or several. grid: of a map. TooCoarseError."""


class Tier(Protocol):
    """A kind of data that has sums for questions."""

    @property
    def name(self) -> str:
        """As plans print it."""

    def frame(self, question: Question) -> Frame | str:
        """The form of an answer with this tier, or why there is none."""

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        """Spans of which it has the exact sums, or why it has none. They do not overlap."""

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        """What is read for a part of a span that it covers; None if it can't be divided so."""

    def read(self, frame: Frame, spans: Sequence[Span]) -> Reading:
        """Begin to read spans."""

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """What is read for spans, for people."""


@dataclass(frozen=True)
class Absent:
    """A tier that has no sums for a question, and why. No tier is read for it."""

    name: str
    reason: str

    def frame(self, question: Question) -> str:
        """As `Tier.frame`."""
        return self.reason

    def covers(self, frame: Frame) -> str:
        """As `Tier.covers`."""
        return self.reason

    def cost(self, frame: Frame, span: Span) -> None:
        """As `Tier.cost`."""

    def read(self, frame: Frame, spans: Sequence[Span]) -> NoReturn:
        """It is never read, as it covers nothing."""
        raise AssertionError(self.reason)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """As `Tier.parts`."""
        return ()


@dataclass(frozen=True)
class Step:
    """Spans that one tier answers."""

    tier: Tier
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Plan:
    """How a question is answered. lead: the tier that determined the frame. steps: what is read.
    refusals: tiers that can't answer, with their reasons. spare: tiers that are not needed."""

    frame: Frame
    lead: str
    steps: tuple[Step, ...]
    refusals: tuple[tuple[str, str], ...]
    spare: tuple[str, ...]

    @property
    def tiers(self) -> tuple[str, ...]:
        """Names of the tiers that are read; of the first one where nothing is to be read."""
        return tuple(step.tier.name for step in self.steps) or (self.lead,)

    @property
    def notes(self) -> tuple[str, ...]:
        """About the answer, and about what is still undecided."""
        return (*self.frame.notes, *self.frame.undecided)

    def parts(self) -> list[Part]:
        """What is read."""
        return [part for step in self.steps for part in step.tier.parts(self.frame, step.spans)]

    def as_data(self) -> dict[str, Any]:
        """`{"statistic", "tiers", "parts", "refused", "not_needed", "notes"}`, for JSON."""
        return {
            "statistic": self.frame.question.name,
            "tiers": list(self.tiers),
            "parts": [asdict(part) for part in self.parts()],
            "refused": [{"tier": name, "reason": reason} for name, reason in self.refusals],
            "not_needed": list(self.spare),
            "notes": list(self.notes),
        }


def plan(question: Question, tiers: Sequence[Tier]) -> Plan:
    """The plan. The first tier that has a frame determines the form of the answer; it and the tiers
    after it give the sums. UsageError if no tier has one, with the reason of each."""
    refusals: list[tuple[str, str]] = []
    if question.statistic is not None and (places := places_asked(question.statistic)):
        raise UsageError(
            f"no event has the {places[0]}", where=question.name, hint="ask for the device"
        )
    for place, tier in enumerate(tiers):
        frame = tier.frame(question)
        if isinstance(frame, Frame):
            return _divide(frame, tiers[place:], refusals)
        refusals.append((tier.name, frame))
    raise UsageError(
        f"nothing answers '{question.name}'",
        hint="; ".join(f"{name}: {reason}" for name, reason in refusals),
    )


def _divide(frame: Frame, tiers: Sequence[Tier], refusals: list[tuple[str, str]]) -> Plan:
    covered: list[tuple[Tier, Sequence[Span]]] = []
    for tier in tiers:
        spans = tier.covers(frame)
        if isinstance(spans, str):
            refusals.append((tier.name, spans))
        else:
            covered.append((tier, spans))
    spans_by_tier: dict[str, list[Span]] = {tier.name: [] for tier, _ in covered}
    for span, able in _divide_spans(covered):
        if frame.is_coarse and tiers[0] in able:
            continue
        # a tier without cost has nothing of the span
        costs = [
            (cost.weight, place)
            for place, tier in enumerate(able)
            if (cost := tier.cost(frame, span)) is not None and cost.weight
        ]
        if costs:
            _append(spans_by_tier[able[min(costs)[1]].name], span)
    if frame.is_coarse:
        lead, spans = covered[0]
        spans_by_tier[lead.name] = [span for span in spans if lead.cost(frame, span) != Cost(0, 0)]
    steps = tuple(
        Step(tier, tuple(spans_by_tier[tier.name]))
        for tier, _ in covered
        if spans_by_tier[tier.name]
    )
    unused_tiers = tuple(tier.name for tier, _ in covered if not spans_by_tier[tier.name])
    return Plan(frame, tiers[0].name, steps, tuple(refusals), unused_tiers)


def _divide_spans(covered: Sequence[tuple[Tier, Sequence[Span]]]) -> list[tuple[Span, list[Tier]]]:
    """Spans that the I/Os of a question divide into, such that each tier covers a span as a whole
    or not at all, with the tiers that cover it."""
    every = [(tier, span) for tier, spans in covered for span in spans]
    numbers = sorted({end for _, span in every for end in (span.first, span.last + 1)})
    runs: list[list[tuple[Tier, Span]]] = [[] for _ in numbers]
    for tier, span in every:
        for run in range(bisect_left(numbers, span.first), bisect_left(numbers, span.last + 1)):
            runs[run].append((tier, span))
    shared = []
    for (first, past), tiers in zip(pairwise(numbers), runs, strict=False):
        # segments that no other tier divides by time remain whole
        times = sorted({end for _, span in tiers for end in (span.from_ns, span.until_ns)})
        for from_ns, until_ns in pairwise(times):
            able = [
                tier
                for tier, span in tiers
                if span.from_ns <= from_ns and until_ns <= span.until_ns
            ]
            if able:
                shared.append((Span(first, past - 1, from_ns, until_ns), able))
    return shared


def _append(spans: list[Span], span: Span) -> None:
    """Add a span to ascending ones; it becomes a part of the last if it continues that."""
    last = spans[-1] if spans else None
    if last is not None and last.last + 1 == span.first and last[2:] == span[2:]:
        spans[-1] = last._replace(last=span.last)
    elif last is not None and last[:2] == span[:2] and last.until_ns == span.from_ns:
        spans[-1] = last._replace(until_ns=span.until_ns)
    else:
        spans.append(span)


def files_part(name: str, paths: Sequence[Path], times: Sequence[tuple[int, int]]) -> Part:
    """A part of some files, each with its time. FormatError if one can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = sum(pq.read_metadata(pa.BufferReader(map_regular(path))).num_rows for path in paths)
        size = sum(path.stat().st_size for path in paths)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"can't be read: {error}", where=paths[0].parent) from None
    first_ns, until_ns = min(first for first, _ in times), max(until for _, until in times)
    return Part(name, first_ns, until_ns, len(paths), rows, size)
