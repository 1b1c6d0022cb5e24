# SPDX-License-Identifier: Apache-2.0
"""Oddities with numbers and in sentences: values before and since, as the same questions answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from iolab.base.units import format_number, format_quantity

from ..store.base.counts import HeatCounts
from ..store.read.recording import Recording
from ..store.read.trace import Trace
from .answers.answers import OWN_CLOCK_NS, Series, Stack
from .odd_series import Span, Subject
from .oddities import Change, Oddities, Oddity
from .query import query
from .question import Statistic

_MIDDLE, _TAIL, _MOST = (0.5,), (0.99,), (0.05, 0.95)
_SHARES = {
    "latency": (_MIDDLE, _MOST),
    "tail": (_TAIL,),
    "size": (_MIDDLE, _MOST),
    "offset": (_MOST,),
}
"""Percentiles that a change of a map is stated by: the first in which it is visible, else the last."""
_DIGITS, _MOST_DIGITS = 3, 7
"""Digits of a value, and of values that differ little."""
_BAND = (0.05, 0.999)
"""Percentiles of a map between which its odd values lie."""


@dataclass(frozen=True)
class Numbers:
    """A change in numbers.

    Attributes:
        before, since: percentiles of a map, or the mean per second (levels: the mean), in `unit`:
        "ns", "B", "1/s", "B/s", "1" or "". low, high: the values between which the odd I/Os of a
        map lie, None where it is no map. shares: the percentiles, none where it is a mean.
    """

    before: tuple[float, ...]
    since: tuple[float, ...]
    unit: str
    low: int | None = None
    high: int | None = None
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Statement:
    """An oddity in a sentence, with the numbers of its changes in their order."""

    oddity: Oddity
    numbers: tuple[Numbers, ...]
    sentence: str


def statements(events: Trace | Recording, found: Oddities) -> list[Statement]:
    """A sentence for each oddity, with the numbers in it."""
    return [
        _statement(
            oddity, tuple(_numbers(events, oddity, change, found) for change in oddity.changes)
        )
        for oddity in found.oddities
    ]


def _numbers(events: Trace | Recording, oddity: Oddity, change: Change, found: Oddities) -> Numbers:
    odd = (oddity.from_ns, oddity.until_ns)
    quiet = found.quiet
    if change.quantity in _SHARES:
        maps = [_map(events, change.statistic, span) for span in (quiet, odd)]
        unit = "ns" if change.quantity in ("latency", "tail") else "B"
        shares, before, since = _visible(maps, _SHARES[change.quantity], unit)
        low, high = _band(maps[1])
        if change.quantity == "tail" and since:
            low = int((before[0] + since[0]) / 2) if before else low
        return Numbers(before, since, unit, low, high, shares)
    if change.quantity == "queue":
        maps = [_map(events, change.statistic, span) for span in (quiet, odd)]
        depths = [(_depth(counts, span),) for counts, span in zip(maps, (quiet, odd), strict=True)]
        return Numbers(depths[0], depths[1], "", *_band(maps[1]))
    means = [_mean(events, change.statistic, oddity.subject, span) for span in (quiet, odd)]
    return Numbers((means[0],), (means[1],), change.statistic.entry.unit)


def _map(events: Trace | Recording, statistic: Statistic, span: Span) -> HeatCounts:
    answer = query(events, statistic, from_ns=span[0], until_ns=span[1], columns=2)
    assert isinstance(answer, HeatCounts)
    return answer


def _visible(
    maps: Sequence[HeatCounts], choices: Sequence[tuple[float, ...]], unit: str
) -> tuple[tuple[float, ...], ...]:
    """(percentiles, values before, values since): the first choice that differs as printed."""
    for shares in choices:
        before, since = (_percentiles(heat_map, shares) for heat_map in maps)
        if _value_words(before, unit, _DIGITS) != _value_words(since, unit, _DIGITS):
            break
    return shares, before, since


def _percentiles(counts: HeatCounts, shares: Sequence[float]) -> tuple[float, ...]:
    """The largest value of the bucket that holds each percentile; none without I/Os."""
    return tuple(float(past - 1) for _, past in _buckets(counts, shares))


def _band(counts: HeatCounts) -> tuple[int | None, int | None]:
    """(least value, past the largest value) of the buckets between the percentiles of `_BAND`."""
    buckets = _buckets(counts, _BAND)
    return (buckets[0][0], buckets[1][1]) if buckets else (None, None)


def _buckets(counts: HeatCounts, shares: Sequence[float]) -> list[tuple[int, int]]:
    """(least value, past the largest value) of the bucket that holds each percentile; none without
    I/Os."""
    index, count = counts.by_index()
    if not len(index):
        return []
    cumulated = np.cumsum(count)
    ranks = [max(1, int(np.ceil(round(share * cumulated[-1], 9)))) for share in shares]
    first = int(index[0])
    bounds = counts.grid.bounds(first, int(index[-1]))
    places = [int(index[int(np.searchsorted(cumulated, rank))]) - first for rank in ranks]
    return [(int(bounds[place]), int(bounds[place + 1])) for place in places]


def _depth(counts: HeatCounts, span: Span) -> float:
    """Mean number of I/Os in flight: the sum of their latencies by the time."""
    index, count = counts.by_index()
    if not len(index):
        return 0.0
    first = int(index[0])
    bounds = counts.grid.bounds(first, int(index[-1]))
    middles = (bounds[index - first] + bounds[index - first + 1] - 1) / 2
    return float((middles * count).sum() / (span[1] - span[0]))


def _mean(events: Trace | Recording, statistic: Statistic, subject: Subject, span: Span) -> float:
    """Per second (levels: on average) of the subject's values together."""
    answer = query(events, statistic, from_ns=span[0], until_ns=span[1], columns=2)
    if isinstance(answer, Series):
        return answer.mean
    assert isinstance(answer, Stack)
    rows = [place for place, key in enumerate(answer.keys) if key in subject.values]
    if answer.averages is not None:
        return float(np.mean([answer.averages[place] for place in rows])) if rows else 0.0
    seconds = answer.covered_ns / 1e9
    return sum(answer.totals[place] for place in rows) / seconds if seconds else 0.0


def _statement(oddity: Oddity, numbers: tuple[Numbers, ...]) -> Statement:
    # several statistics may state the same, such as one map under two conditions
    words = dict.fromkeys(
        _change_words(change, number)
        for change, number in zip(oddity.changes, numbers, strict=True)
    )
    changes = "; ".join([*words][:3])
    alone = " alone" if oddity.changes[0].alone else ""
    sentence = f"{subject_words(oddity.subject)}{alone}: {changes}, {_when(oddity)}"
    return Statement(oddity, numbers, sentence)


def subject_words(subject: Subject) -> str:
    """A subject as sentences begin: 'loop4', 'process backup', 'processes db and fio', 'all I/Os'."""
    if not subject.values:
        return subject.field or "all I/Os"
    *most, last = subject.values
    values = f"{', '.join(most)} and {last}" if most else last
    if subject.field == "device":
        return values
    plural = "es" if subject.field.endswith("s") else "s"
    return f"{subject.field}{plural if most else ''} {values}"


def _change_words(change: Change, numbers: Numbers) -> str:
    for digits in range(_DIGITS, _MOST_DIGITS + 1):
        before, since = (
            _value_words(values, numbers.unit, digits) for values in (numbers.before, numbers.since)
        )
        if before != since:
            break
    group = change.statistic.group
    # the same quantity of block I/Os and of calls can be in one sentence
    counted = "I/Os" if group == "io" else f"{group} calls"
    of_calls = "" if group == "io" else f" of {counted}"
    if numbers.shares == _MIDDLE:
        title = f"median {change.quantity}{of_calls} "
    elif numbers.shares == _MOST:
        title = f"{change.quantity}{of_calls} (p5 to p95) "
    else:
        title = {
            "rate": "",
            "tail": f"p99 of latency{of_calls} ",
            "queue": f"{counted} in flight ",
        }.get(change.quantity, f"{group}.{change.statistic.name} ")
    if numbers.unit == "1/s":
        before, since = f"{before} {counted}/s", f"{since} {counted}/s"
    return f"{title}{before} → {since}"


def _value_words(values: tuple[float, ...], unit: str, digits: int) -> str:
    """Values with their unit, which is left out of rates."""
    return " to ".join(_quantity(value, unit, digits) for value in values) or "none"


def _quantity(value: float, unit: str, digits: int) -> str:
    if unit == "ns":
        return format_quantity(value / 1e9, "s", digits)
    if unit == "1":
        return f"{100 * value:.{digits}g} %"
    if unit in ("B", "B/s"):
        return format_quantity(value, unit, digits)
    if unit == "1/s" and digits == _DIGITS and value >= 10:
        return f"{value:,.0f}".replace(",", " ")
    return "below 0.001" if 0 < value < 0.001 else format_number(value, digits - 1)


def _when(oddity: Oddity) -> str:
    if oddity.lasting:
        return f"since {moment_words(oddity.from_ns)}"
    for digits in (1, 3, 6):
        begin, end = (moment_words(moment, digits) for moment in (oddity.from_ns, oddity.until_ns))
        if begin != end:
            break
    return f"{begin} to {end}"


def moment_words(moment_ns: int, digits: int = 1) -> str:
    """The time of day (UTC), or seconds since the start of a trace with a clock of its own; with so
    many digits of a second."""
    if moment_ns < OWN_CLOCK_NS:
        return f"{moment_ns / 1e9:.{digits}f} s"
    seconds, part = divmod(moment_ns // 10 ** (9 - digits), 10**digits)
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}.{part:0{digits}}"


def as_data(found: Oddities, stated: Sequence[Statement]) -> dict[str, Any]:
    """For JSON."""
    return {
        "quiet_from_ns": found.quiet[0],
        "quiet_until_ns": found.quiet[1],
        "from_ns": found.looked_at[0],
        "until_ns": found.looked_at[1],
        "interval_ns": found.interval_ns,
        "compared": found.compared,
        "notes": list(found.notes),
        "oddities": [_oddity_data(statement) for statement in stated],
    }


def _oddity_data(stated: Statement) -> dict[str, Any]:
    oddity = stated.oddity
    return {
        "sentence": stated.sentence,
        "field": oddity.subject.field,
        "values": list(oddity.subject.values),
        "aliases": [{"field": name, "value": value} for name, value in oddity.subject.aliases],
        "alone": oddity.changes[0].alone,
        "from_ns": oddity.from_ns,
        "until_ns": oddity.until_ns,
        "lasting": oddity.lasting,
        "score": oddity.score,
        "changes": [
            {
                "quantity": change.quantity,
                "statistic": str(statistic_of(change, oddity.subject)),
                "unit": numbers.unit,
                "before": list(numbers.before),
                "since": list(numbers.since),
                "octaves": change.octaves,
                "q": change.q,
                "share": change.share,
                "low": numbers.low,
                "high": numbers.high,
            }
            for change, numbers in zip(oddity.changes, stated.numbers, strict=True)
        ],
    }


def statistic_of(change: Change, subject: Subject) -> Statistic:
    """The statistic that shows a change: a map of the subject, or numbers by the field's values."""
    if change.quantity in ("rate", "value"):
        return replace(change.statistic, breakdown=subject.field if subject.values else None)
    return change.statistic
