# SPDX-License-Identifier: Apache-2.0
"""What is odd: the values of fields that differ most from the minutes before, in what is issued and
in how it is served.

Time is divided into equal windows. For each statistic and each value of each field, a number per
window is the distance from the quiet time. It is log2 of a rate, or the Wasserstein distance of a
distribution in octaves. `stats.sustained_change` finds the part that differs most and judges it by the
variation of the quiet windows. Benjamini-Hochberg bounds the share of false findings over all of
them. A finding that a smaller set of values explains is attributed to that set: without these
values, nothing is odd any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.stats.multiple import benjamini_hochberg
from iolab.base.stats.series.sustained_change import LEAST_QUIET, sustained_change

from ..store.read.recording import Recording
from ..store.read.trace import STDIN, Trace
from .attribution import OWN
from .available import Available, available
from .odd_series import (
    DIMENSIONS,
    LAYERS,
    Floats,
    Measures,
    Span,
    Subject,
    SubjectSeries,
    Timeline,
    layers,
    series_of_counters,
    series_of_layer,
    with_filters,
)
from .question import SECOND, Statistic

FALSE_SHARE = 0.01
"""Share of false findings that is allowed among all findings."""
LEAST_OCTAVES = math.log2(1.25)
"""Changes by less than a quarter are ordinary, however certain they are."""
MOST_VALUES = 4
"""Values that a finding is attributed to, at most."""

WINDOWS = 120
"""Windows of time, about."""
IOS_PER_WINDOW = 200
"""I/Os in a window at least, on average."""
LONGEST_NS = 600 * SECOND
"""Time that is searched where no range is given."""
BEFORE_NS = (60 * SECOND, 300 * SECOND)
"""Time before a given range that it is compared with: at least, at most."""

_DEMAND = ("rate", "size", "offset")
"""Quantities of what is issued; the others are of how it is served."""


@dataclass(frozen=True)
class Change:
    """A change of one statistic of a subject.

    Attributes:
        quantity: rate, latency, tail (p99 of latency), size, offset, queue (I/Os in flight), or
        value (of counters).
        statistic: what shows it: a map, or numbers over time.
        octaves: scale-free size, log2. It is negative where the value falls.
        q: false-discovery rate.
        share: of all I/Os that the subject has, the larger one of the quiet and the odd time.
        score: by which changes are ranked.
        alone: whether without the subject nothing is odd.
    """

    quantity: str
    statistic: Statistic
    octaves: float
    q: float
    share: float
    score: float
    alone: bool


@dataclass(frozen=True)
class Oddity:
    """A subject with its changes, the strongest first. from_ns, until_ns: when; `lasting`: whether
    it lasts until the end of the time that was looked at."""

    subject: Subject
    changes: tuple[Change, ...]
    from_ns: int
    until_ns: int
    lasting: bool

    @property
    def score(self) -> float:
        """That of its strongest change."""
        return self.changes[0].score


@dataclass(frozen=True)
class Oddities:
    """What is odd, the strongest first.

    Attributes:
        quiet: from and until (ns) of the time that was compared with. looked_at: of the time that
        was searched. interval_ns: length of a window. compared: how many series were compared.
        notes: what to know about the answer.
    """

    oddities: tuple[Oddity, ...]
    quiet: Span
    looked_at: Span
    interval_ns: int
    compared: int
    notes: tuple[str, ...] = ()


def oddities(
    events: Trace | Recording,
    *,
    looked_at: tuple[int | None, int | None] = (None, None),
    against: Span | None = None,
    ends: Span,
    is_own_included: bool = False,
) -> Oddities:
    """What differs most.

    Args:
        looked_at: from and until (ns), None where left open. An odd part ends after `from`. It is
        compared with up to five minutes before it. If nothing is before it, it is compared with the
        time before the strongest change. Both open: the last ten minutes. against: a quiet time to
        compare with. ends: (first, last) ns of what was recorded. is_own_included: whether iolab's
        own processes are subjects; else a note has the number of their series.
    UsageError where too little time is there to compare with.
    """
    if isinstance(events, Trace) and events.path == STDIN:
        raise UsageError(
            "standard input can be read only once", hint="save the trace into a file first"
        )
    frozen = events.frozen() if isinstance(events, Recording) else events
    facts = [fact for fact in available(frozen) if not fact.why_not]
    timeline = _timeline(frozen, facts, looked_at, against, ends)
    measures = Measures(frozen, timeline)
    series = [
        subject_series
        for layer in layers(measures, facts)
        for subject_series in series_of_layer(measures, layer, facts)
    ]
    counted = _counter_timeline(timeline)
    if counted is not None:
        series += series_of_counters(Measures(frozen, counted), facts)
    own = [] if is_own_included else [item for item in series if _is_own(item.subject)]
    series = [item for item in series if is_own_included or not _is_own(item.subject)]
    _judge(series)
    findings = _attribute([subject_series for subject_series in series if _is_odd(subject_series)])
    oddities = [_refine(measures, finding, timeline) for finding in findings]
    return Oddities(
        tuple(sorted(oddities, key=lambda each: -each.score)),
        _quiet_span(timeline, oddities),
        (timeline.begin(timeline.least_past), timeline.spans[-1][1]),
        timeline.interval_ns,
        len(series),
        (
            *(() if any(fact.entry.name.startswith(LAYERS) for fact in facts) else (_NO_EVENTS,)),
            *((f"{len(own)} series of iolab's own processes are left out",) if own else ()),
        ),
    )


def _is_own(subject: Subject) -> bool:
    """Whether it is iolab's own processes alone."""
    named = [value for field, value in subject.aliases if field == "process"]
    named += subject.values if subject.field == "process" else ()
    return bool(named) and set(named) <= set(OWN)


def _quiet_span(timeline: Timeline, oddities: Sequence[Oddity]) -> Span:
    """The time in which nothing was odd yet, or that was chosen to be quiet."""
    first, until = timeline.spans[0]
    if timeline.quiet is not None:
        return first, until
    return first, max(first, min((oddity.from_ns for oddity in oddities), default=until))


_NO_EVENTS = "no single I/Os are recorded here: only counters are compared"


def _timeline(
    events: Trace | Recording,
    facts: Sequence[Available],
    looked_at: tuple[int | None, int | None],
    against: Span | None,
    ends: Span,
) -> Timeline:
    """Windows of the time that is compared."""
    first, past = ends[0], ends[1] + 1
    from_ns = looked_at[0]
    until = past if looked_at[1] is None else min(past, looked_at[1])
    if from_ns is None:
        from_ns = first if looked_at[1] is not None else max(first, until - LONGEST_NS)
        begin = from_ns
    else:
        before = max(BEFORE_NS[0], min(BEFORE_NS[1], 2 * (until - from_ns)))
        begin = max(first, from_ns - before)
    if from_ns >= until:
        raise UsageError("the span of time is empty", hint="it must begin before it ends")
    if against is not None:
        if against[0] >= against[1]:
            raise UsageError("the quiet time is empty", hint="it must begin before it ends")
        if against[0] < until and from_ns < against[1]:
            raise UsageError(
                "the quiet time overlaps the time that is looked at", hint="choose another one"
            )
        shortest = min(against[1] - against[0], 10 * (until - from_ns))
        interval = _interval(shortest, _rate(events, facts, (from_ns, until)))
        spans = tuple(_whole_windows(span, interval) for span in (against, (from_ns, until)))
        quiet = (spans[0][1] - spans[0][0]) // interval
        if quiet < LEAST_QUIET or spans[1][0] >= spans[1][1]:
            raise _too_short(interval)
        return Timeline(spans, interval, quiet, quiet)
    interval = _interval(until - begin, _rate(events, facts, (begin, until)))
    span = _whole_windows((begin, until), interval)
    if (span[1] - span[0]) // interval <= LEAST_QUIET:
        raise _too_short(interval)
    least = max(0, (from_ns - span[0]) // interval)
    return Timeline((span,), interval, None, least)


def _too_short(interval_ns: int) -> UsageError:
    return UsageError(
        f"too little time to compare with: it has to have {LEAST_QUIET} windows of "
        f"{interval_ns / SECOND:g} s",
        hint="choose a longer range, or another one for --against",
    )


def _rate(events: Trace | Recording, facts: Sequence[Available], span: Span) -> float:
    """I/Os per ns of the layer with the most, over a span."""
    from .answers.answers import Series
    from .query import query

    most = 0
    for fact in facts:
        group, _, name = fact.entry.name.partition(".")
        if group in LAYERS and name == "ops" and not fact.counted:
            answer = query(events, fact.entry.name, from_ns=span[0], until_ns=span[1], columns=2)
            assert isinstance(answer, Series)
            most = max(most, answer.total)
    return most / (span[1] - span[0])


def _interval(length_ns: int, rate: float) -> int:
    """1, 2 or 5 times a power of ten (ns): about `WINDOWS` windows, with enough I/Os each; a second
    at least without I/Os."""
    length = max(length_ns / WINDOWS, IOS_PER_WINDOW / rate if rate else SECOND)
    if rate:
        length = min(length, length_ns / (LEAST_QUIET + 2))
    length *= 1.1
    decade = 10 ** max(0, math.floor(math.log10(max(1.0, length))))
    return int(max((step * decade for step in (1, 2, 5) if step * decade <= length), default=1))


def _whole_windows(span: Span, interval: int) -> Span:
    """The windows that lie within a span."""
    return -(-span[0] // interval) * interval, span[1] // interval * interval


def _counter_timeline(timeline: Timeline) -> Timeline | None:
    """Windows for counters, which are read once a second; None where there are too few."""
    if timeline.interval_ns >= SECOND:
        return timeline
    spans = tuple(_whole_windows(span, SECOND) for span in timeline.spans)
    if any(until - first < SECOND for first, until in spans):
        return None
    counts = [(until - first) // SECOND for first, until in spans]
    if counts[0] <= LEAST_QUIET:
        return None
    scale = SECOND // timeline.interval_ns
    quiet = None if timeline.quiet is None else counts[0]
    return Timeline(spans, SECOND, quiet, counts[0] if quiet else timeline.least_past // scale)


def _judge(series: Sequence[SubjectSeries]) -> None:
    """Give each series its change and q value."""
    p_values: list[float | None] = []
    for subject_series in series:
        quiet, parts = subject_series.timeline.quiet, 0
        if quiet is None:
            quiet, parts = _quiet_windows(subject_series)
        subject_series.change = None
        if LEAST_QUIET <= quiet < sum(subject_series.timeline.counts):
            subject_series.change = sustained_change(
                subject_series.at(quiet),
                quiet,
                resolution=subject_series.resolution,
                rises=subject_series.rises,
            )
        if subject_series.change is None:
            p_values.append(None)
        else:
            # the quiet time was searched for among all parts of the series
            p_values.append(
                min(1.0, subject_series.change.p * max(1.0, parts / subject_series.change.parts))
            )
    for subject_series, q in zip(series, benjamini_hochberg(p_values), strict=True):
        subject_series.q = 1.0 if q is None else q


def _quiet_windows(subject_series: SubjectSeries) -> tuple[int, int]:
    """(windows before the strongest change of a series, how many parts were compared for it)."""
    windows = sum(subject_series.timeline.counts)
    least = max(LEAST_QUIET, windows // 8)
    change = sustained_change(
        subject_series.at(least),
        None,
        resolution=subject_series.resolution,
        rises=subject_series.rises,
    )
    if change is None:
        return 0, 0
    # the window before it may hold the beginning of the change already
    return max(LEAST_QUIET, change.first - 1), change.parts


def _is_odd(one: SubjectSeries) -> bool:
    return (
        one.change is not None
        and one.q <= FALSE_SHARE
        and abs(one.octaves) >= LEAST_OCTAVES
        and one.change.past > one.timeline.least_past
    )


def _attribute(odd: Sequence[SubjectSeries]) -> list[tuple[Oddity, SubjectSeries]]:
    """Findings by subject: of each quantity of a layer the smallest set of values that explains it."""
    changes: list[tuple[Subject, Change, SubjectSeries]] = []
    kinds = dict.fromkeys((odd_series.group, odd_series.quantity) for odd_series in odd)
    for group, quantity in kinds:
        unexplained = sorted(
            (
                odd_series
                for odd_series in odd
                if (odd_series.group, odd_series.quantity) == (group, quantity)
            ),
            key=lambda one: (-round(one.score(), 2), _place(one.subject)),
        )
        while unexplained:
            subject, alone, explained = _smallest(unexplained)
            strongest = next(
                odd_series
                for odd_series in unexplained
                if odd_series.subject.field == subject.field
                and set(odd_series.subject.values) <= set(subject.values)
            )
            assert strongest.change is not None
            changes.append((subject, _change(strongest, subject, alone), strongest))
            unexplained = [odd_series for odd_series in unexplained if odd_series not in explained]
    by_subject: dict[tuple[str, tuple[str, ...]], list[tuple[Subject, Change, SubjectSeries]]] = {}
    for change_of_subject in changes:
        by_subject.setdefault(
            (change_of_subject[0].field, tuple(sorted(change_of_subject[0].values))), []
        ).append(change_of_subject)
    findings = []
    for members in by_subject.values():
        most = max(change.score for _, change, _ in members)
        members = sorted(members, key=lambda member: _rank(member[1], most))
        subject, _, strongest = max(members, key=lambda member: member[1].score)
        assert strongest.change is not None
        timeline = strongest.timeline
        findings.append(
            (
                Oddity(
                    subject,
                    tuple(change for _, change, _ in members),
                    timeline.begin(strongest.change.first),
                    timeline.end(strongest.change.past),
                    strongest.change.past == sum(timeline.counts),
                ),
                strongest,
            )
        )
    return findings


def _place(subject: Subject) -> int:
    return DIMENSIONS.index(subject.field) if subject.field in DIMENSIONS else len(DIMENSIONS)


def _rank(change: Change, most: float) -> tuple[int, float]:
    """Order of the changes of a subject: what is issued before how it is served, where it is about
    as strong."""
    is_cause = change.quantity in _DEMAND and change.score >= 0.5 * most
    return (0 if is_cause else 1, -change.score)


def _change(one: SubjectSeries, subject: Subject, alone: bool) -> Change:
    assert one.change is not None
    statistic = one.statistic
    if one.quantity not in ("rate", "value") and subject.field:
        statistic = replace(statistic, filters=subject.filters)
    return Change(
        one.quantity,
        statistic,
        one.octaves,
        one.q,
        one.share(one.change),
        one.score(),
        alone,
    )


def _smallest(left: Sequence[SubjectSeries]) -> tuple[Subject, bool, list[SubjectSeries]]:
    """(the smallest set of values that explains the strongest of these changes, whether nothing is
    odd without it, which of the changes it explains)."""
    all_ios = next((series for series in left if not series.subject.field), None)
    values = [series for series in left if series.subject.field and series.rest is not None]
    if not values:
        return left[0].subject, False, list(left)
    candidates = [value for value in values if all_ios is None or _spans(value, all_ios)]
    sets = [
        _alike(candidate, values) for candidate in candidates if _explains(candidate, [candidate])
    ]
    if not sets:
        fields = dict.fromkeys(candidate.subject.field for candidate in candidates)
        grown = (_grown(candidates, name) for name in fields)
        sets = [value_set for value_set in grown if value_set is not None]
    if sets:
        # a short part of a value with few of the odd I/Os explains nothing but itself
        most = max(_mass(values) for values in sets)
        smallest = min((values for values in sets if _mass(values) >= 0.5 * most), key=_dilution)
    elif all_ios is not None:
        return all_ios.subject, False, [series for series in left if _overlap(all_ios, series)]
    else:
        smallest = [values[0]]
    best = smallest[0]
    subject = replace(
        best.subject,
        values=tuple(series.subject.values[0] for series in smallest),
        aliases=best.subject.aliases if len(smallest) == 1 else (),
    )
    explained = [
        series
        for series in left
        if series in smallest
        or (_overlap(best, series) and series.subject.field != best.subject.field)
    ]
    return subject, bool(sets), explained


def _mass(chosen: Sequence[SubjectSeries]) -> float:
    """How much is odd: octaves by I/Os by time."""
    return sum(
        abs(series.octaves)
        * series.share(series.change)
        * (series.change.past - series.change.first)
        for series in chosen
        if series.change is not None
    )


def _dilution(chosen: Sequence[SubjectSeries]) -> tuple[float, float, int]:
    """The less, the more concentrated a change is in a set of values."""
    assert chosen[0].change is not None
    octaves = sum(abs(series.octaves) for series in chosen) / len(chosen)
    share = sum(series.share(series.change) for series in chosen if series.change is not None)
    return -round(2 * octaves), share, _place(chosen[0].subject)


def _spans(one: SubjectSeries, whole: SubjectSeries) -> bool:
    """Whether a change covers most of the time of that of all I/Os, where they overlap."""
    assert one.change is not None
    assert whole.change is not None
    common = min(one.change.past, whole.change.past) - max(one.change.first, whole.change.first)
    return common <= 0 or 2 * common >= whole.change.past - whole.change.first


def _alike(best: SubjectSeries, values: Sequence[SubjectSeries]) -> list[SubjectSeries]:
    """A value, and the others of its field that changed as much in the same time."""
    alike = [
        other
        for other in values
        if other is not best
        and other.subject.field == best.subject.field
        and _overlap(best, other)
        and abs(other.octaves) >= 0.5 * abs(best.octaves)
        and other.octaves * best.octaves > 0
    ]
    return [best, *alike[: MOST_VALUES - 1]]


def _grown(values: Sequence[SubjectSeries], name: str) -> list[SubjectSeries] | None:
    """Values of a field that explain a change together, the strongest first; None where none do."""
    best = next(value for value in values if value.subject.field == name)
    alike = _alike(best, values)
    for size in range(2, len(alike) + 1):
        if _explains(best, alike[:size]):
            return alike[:size]
    return None


def _overlap(one: SubjectSeries, other: SubjectSeries) -> bool:
    assert one.change is not None
    assert other.change is not None
    return one.change.first < other.change.past and other.change.first < one.change.past


def _explains(best: SubjectSeries, chosen: Sequence[SubjectSeries]) -> bool:
    """Whether without these values nothing is odd in the same time, though much is left."""
    assert best.rest is not None
    assert best.change is not None
    rest = best.rest([series.subject.values[0] for series in chosen])
    if rest is None:
        return False
    values = rest(best.change.first)
    before = values[: best.change.first]
    after = values[best.change.first : best.change.past]
    if not np.isfinite(before).any() or not np.isfinite(after).any():
        return False
    effect = abs(float(np.nanmean(after) - np.nanmean(before)))
    return effect < max(LEAST_OCTAVES, 0.1 * abs(best.octaves))


FINE = 20
"""Parts of a window by which the beginning of a change is searched."""
FINEST_NS = 10**6


def _refine(measures: Measures, found: tuple[Oddity, SubjectSeries], timeline: Timeline) -> Oddity:
    """The oddity with its beginning, and its end where it ends, at a finer resolution."""
    oddity, strongest = found
    assert strongest.change is not None
    interval = max(FINEST_NS, strongest.timeline.interval_ns // FINE)
    if strongest.quantity == "value" or interval >= strongest.timeline.interval_ns:
        return oddity

    def edge(at: int) -> int:
        window = strongest.timeline.interval_ns
        low = max(strongest.timeline.spans[-1][0], at - 2 * window)
        high = min(strongest.timeline.spans[-1][1], at + 2 * window)
        if (high - low) // interval < 4:
            return at
        fine = Timeline((_whole_windows((low, high), interval),), interval, None)
        values = _fine_values(Measures(measures.events, fine), strongest, oddity.subject)
        place = _split(values)
        return at if place is None else fine.begin(place)

    begin = edge(oddity.from_ns)
    end = oddity.until_ns if oddity.lasting else edge(oddity.until_ns)
    # both edges of a short part may be the same place
    return replace(oddity, from_ns=begin, until_ns=end) if begin < end else oddity


def _fine_values(measures: Measures, one: SubjectSeries, subject: Subject) -> Floats:
    """A number per fine window that moves with the change."""
    statistic = with_filters(Statistic(one.group, "ops"), subject.filters, None)
    if one.quantity == "rate":
        return np.log2(measures.total(statistic) + 1.0)
    y = one.statistic.breakdown
    assert y is not None
    counts = measures.distribution(replace(statistic, breakdown=y))
    totals = counts.totals
    means = np.full(len(totals), np.nan)
    has_ios = totals > 0
    positions = counts.positions
    if one.quantity == "tail" and len(positions):
        # what lies above the middle between the tails before and after
        assert one.change is not None
        positions = (positions > (one.change.before + one.change.after) / 2).astype(float)
    means[has_ios] = (counts.counts[has_ios] @ positions) / totals[has_ios]
    return means


def _split(values: Floats) -> int | None:
    """The place at which a series is best divided into two with a mean each."""
    valid = np.flatnonzero(np.isfinite(values))
    if len(valid) < 4:
        return None
    plain = values[valid] - values[valid].mean()
    size = np.arange(1, len(plain))
    score = np.abs(np.cumsum(plain)[:-1]) / np.sqrt(size * (len(plain) - size))
    return int(valid[int(np.argmax(score)) + 1])
