# SPDX-License-Identifier: Apache-2.0
"""The series in which oddities are searched: of each layer of I/O, all I/Os and the values of fields,
with their rate and their distributions; and counters.

Rates and distributions are compared by equal windows of time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from iolab.base.stats.series.sustained_change import SustainedChange

from ..store.base.counts import HeatCounts, alike
from ..store.base.grids import LogLinear
from ..store.read.recording import Recording
from ..store.read.trace import Trace
from .answers.answers import Series, Stack
from .available import Available
from .query import query
from .question import SECOND, Filter, Statistic

Floats: TypeAlias = "npt.NDArray[np.float64]"
Span: TypeAlias = tuple[int, int]

BITS = 3
"""Buckets of a distribution: two to the power of so many an octave."""
FEWEST = 100
"""A window is compared by its p99 only if it has this many I/Os."""


@dataclass(frozen=True)
class Timeline:
    """Equal windows of one or two spans of time.

    Attributes:
        spans: from and until (ns), multiples of the window's length. Of two the quiet one is first.
        interval_ns: length of a window. quiet: windows that are known to be quiet,
        None where these are searched. least_past: an odd part ends after this window.
    """

    spans: tuple[Span, ...]
    interval_ns: int
    quiet: int | None
    least_past: int = 0

    @property
    def counts(self) -> list[int]:
        """Windows of each span."""
        return [(until - first) // self.interval_ns for first, until in self.spans]

    def begin(self, window: int) -> int:
        """When a window begins (ns)."""
        for (first, _), count in zip(self.spans, self.counts, strict=True):
            if window < count or (first, _) == self.spans[-1]:
                return first + window * self.interval_ns
            window -= count
        raise ValueError("a timeline has a span")

    def end(self, past: int) -> int:
        """When the window before this one ends (ns)."""
        return self.begin(past - 1) + self.interval_ns


@dataclass(frozen=True)
class Distribution:
    """Counts by window and bucket.

    Attributes:
        counts: of shape (windows, buckets). low, high: bounds of the buckets. positions: the middle
        of each, as log2 of the value (ns or bytes). Of offsets: the share of the used range times
        `OFFSET_SCALE`.
    """

    counts: Floats
    low: Floats
    high: Floats
    positions: Floats

    @property
    def totals(self) -> Floats:
        """I/Os by window."""
        return np.asarray(self.counts.sum(axis=1), dtype=float)

    def without(self, other: Distribution) -> Distribution:
        """The rest, without the I/Os of a part of it on the same buckets."""
        return replace(self, counts=np.maximum(0.0, self.counts - other.counts))


FEWEST_COMPARED = 30
"""I/Os in a window that a distribution needs to be compared."""
OFFSET_SCALE = 8.0
"""Octaves that a move over the whole used range of offsets is worth."""


def distances(distribution: Distribution, quiet: int) -> Floats:
    """Wasserstein distance of each window's distribution to that of the first `quiet` windows, in
    octaves. A quiet window is compared with the other quiet ones. nan for too few I/Os."""
    counts, totals = distribution.counts, distribution.totals
    distances_ = np.full(len(counts), np.nan)
    if counts.shape[1] == 0:
        return distances_
    pool = counts[:quiet].sum(axis=0)
    other_counts = np.repeat(pool[None, :], len(counts), axis=0)
    other_counts[:quiet] -= counts[:quiet]
    rest = other_counts.sum(axis=1)
    is_comparable = (totals >= FEWEST_COMPARED) & (rest > 0)
    shares = np.cumsum(counts[is_comparable], axis=1) / totals[is_comparable, None]
    pooled = np.cumsum(other_counts[is_comparable], axis=1) / rest[is_comparable, None]
    steps = np.diff(distribution.positions)
    distances_[is_comparable] = np.abs(shares - pooled)[:, :-1] @ steps
    return distances_


def quantiles(distribution: Distribution, share: float) -> Floats:
    """log2 of a quantile by window; nan where fewer than `FEWEST` I/Os are in it."""
    totals = distribution.totals
    values = np.full(len(totals), np.nan)
    has_enough = totals >= FEWEST
    if has_enough.any():
        cumulated = np.cumsum(distribution.counts[has_enough], axis=1)
        place = np.argmax(cumulated >= np.ceil(share * totals[has_enough])[:, None], axis=1)
        values[has_enough] = distribution.positions[place]
    return values


def in_flight(distribution: Distribution, interval_ns: int) -> Floats:
    """Mean number of I/Os in flight by window: their latencies divided by its length."""
    middles = (distribution.low + distribution.high) / 2
    return np.asarray(distribution.counts @ middles / interval_ns, dtype=float)


class Measures:
    """Asks statistics of a recording or trace, once each, by window of a timeline."""

    def __init__(self, events: Trace | Recording, timeline: Timeline) -> None:
        self.events, self.timeline = events, timeline
        self.asked = 0
        """Questions put so far."""

    def total(self, statistic: Statistic) -> Floats:
        """Values per second (levels: on average) by window, nan where nothing was recorded."""
        parts = []
        for answer, span in self._answers(statistic):
            assert isinstance(answer, Series)
            parts.append(self._place(answer, answer.values, span))
        return np.concatenate(parts)

    def by_key(self, statistic: Statistic) -> dict[str, Floats]:
        """The same for each value of the breakdown; 0 where a value did not occur."""
        answers = self._answers(statistic)
        keys: dict[str, None] = {}
        for answer, _ in answers:
            assert isinstance(answer, Stack)
            keys.update(dict.fromkeys(answer.keys))
        parts_by_key: dict[str, list[Floats]] = {key: [] for key in keys}
        for answer, span in answers:
            assert isinstance(answer, Stack)
            rows = dict(zip(answer.keys, answer.values, strict=True))
            empty = np.zeros(answer.values.shape[1])
            for key in keys:
                parts_by_key[key].append(self._place(answer, rows.get(key, empty), span))
        return {key: np.concatenate(parts) for key, parts in parts_by_key.items()}

    def distribution(self, statistic: Statistic, frame: Distribution | None = None) -> Distribution:
        """Counts of a map by window. `frame`: a distribution of which this one is a part, the
        buckets of which it takes."""
        maps = []
        for answer, _ in self._answers(statistic):
            assert isinstance(answer, HeatCounts)
            if isinstance(answer.grid, LogLinear):
                answer = answer.coarser(steps=max(0, answer.grid.bits - BITS))
            maps.append(answer)
        maps = alike(maps) if len(maps) > 1 else maps
        filled_maps = [heat_map for heat_map in maps if len(heat_map.count)]
        windows = sum(self.timeline.counts)
        if not filled_maps:
            return _empty(windows) if frame is None else replace(frame, counts=0 * frame.counts)
        grid = filled_maps[0].grid
        first = min(int(heat_map.index.min()) for heat_map in filled_maps)
        last = max(int(heat_map.index.max()) for heat_map in filled_maps)
        bounds = grid.bounds(first, last)
        low, high = bounds[:-1], bounds[1:]
        counts = np.zeros((windows, len(low)))
        begin = 0
        for heat_map, (start, _), count in zip(
            maps, self.timeline.spans, self.timeline.counts, strict=True
        ):
            column = heat_map.column + (heat_map.t0_ns - start) // self.timeline.interval_ns
            inside = (column >= 0) & (column < count)
            np.add.at(
                counts,
                (begin + column[inside], heat_map.index[inside] - first),
                heat_map.count[inside].astype(float),
            )
            begin += count
        if frame is not None:
            return _on(frame, low, counts)
        middle = (low + high - 1) / 2
        if isinstance(grid, LogLinear):
            positions = np.log2(np.maximum(1.0, middle))
        else:
            positions = OFFSET_SCALE * (middle - low[0]) / max(1.0, high[-1] - low[0])
        return Distribution(counts, low, high, positions)

    def _answers(self, statistic: Statistic) -> list[tuple[Series | Stack | HeatCounts, Span]]:
        self.asked += len(self.timeline.spans)
        return [
            (
                query(
                    self.events,
                    statistic,
                    from_ns=span[0],
                    until_ns=span[1],
                    interval_ns=self.timeline.interval_ns,
                ),
                span,
            )
            for span in self.timeline.spans
        ]

    def _place(self, answer: Series | Stack, values: Floats, span: Span) -> Floats:
        """Values by window of a span: an answer may begin later and end earlier."""
        count = (span[1] - span[0]) // self.timeline.interval_ns
        placed = np.full(count, np.nan)
        shift = (answer.t0_ns - span[0]) // self.timeline.interval_ns
        first, last = max(0, shift), min(count, shift + len(values))
        if first < last:
            placed[first:last] = values[first - shift : last - shift]
        return placed


def with_filters(
    statistic: Statistic, filters: tuple[Filter, ...], breakdown: str | None
) -> Statistic:
    """The statistic under more conditions, with another breakdown."""
    return replace(statistic, filters=(*statistic.filters, *filters), breakdown=breakdown)


def _empty(windows: int) -> Distribution:
    nothing = np.zeros(0)
    return Distribution(np.zeros((windows, 0)), nothing, nothing, nothing)


def _on(frame: Distribution, low: Floats, counts: Floats) -> Distribution:
    """Counts on the buckets of a frame that contain them."""
    counts_on_frame = np.zeros_like(frame.counts)
    if len(frame.low) and len(low):
        place = np.clip(np.searchsorted(frame.low, low, "right") - 1, 0, len(frame.low) - 1)
        for bucket, at in enumerate(place.tolist()):
            counts_on_frame[:, at] += counts[:, bucket]
    return replace(frame, counts=counts_on_frame)


MOST_OCTAVES = 10.0
"""Changes count as much as this at most: something that appears has no finite ratio."""

DIMENSIONS = ("device", "process", "client", "file", "op", "job", "mount", "error")
"""Fields that are compared, the preferred name first where two values mean the same I/Os."""
LEAST_SHARE = 0.01
"""Share of all I/Os below which a value is not compared separately; errors always are."""
MOST_KEYS = 8
"""Values of a field that are compared: those with the most I/Os."""

LAYERS = ("io", "file", "nfs", "app")
"""Groups of statistics of single I/Os."""
_WEIGHTS = {"appears": 2.0, "size": 1.5, "offset": 1.5, "queue": 0.8, "tail": 0.3, "value": 0.5}
"""What a kind of change counts when findings are ranked. What is issued explains how it is served;
a tail is a hundredth of the I/Os; counters say less than single I/Os."""


@dataclass(frozen=True)
class Subject:
    """Which I/Os: those with one of these values of a field; all of them without a field.

    Attributes:
        aliases: other fields and values that mean the same I/Os.
    """

    field: str = ""
    values: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def filters(self) -> tuple[Filter, ...]:
        """As conditions of a statistic."""
        return (Filter(self.field, "=", self.values),) if self.field else ()


@dataclass
class SubjectSeries:
    """A number per window of one quantity of a subject.

    Attributes:
        at: the numbers (octaves) for a number of quiet windows.
        resolution: least standard deviation of a number.
        rises: whether only larger numbers are odd.
        share: of all I/Os that the subject has.
        rest: the same numbers without some values of the field. None where too little is left.
        change, q: the result of the search.
        nothing: a rate (log2). Below it next to nothing happens.
    """

    group: str
    subject: Subject
    quantity: str
    statistic: Statistic
    timeline: Timeline
    at: Callable[[int], Floats]
    resolution: float
    rises: bool
    share: Callable[[SustainedChange], float]
    rest: Callable[[Sequence[str]], Callable[[int], Floats] | None] | None = None
    change: SustainedChange | None = None
    q: float = 1.0
    nothing: float = -math.inf

    @property
    def octaves(self) -> float:
        """The size of its change, log2."""
        if self.change is None:
            return 0.0
        return max(-MOST_OCTAVES, min(MOST_OCTAVES, self.change.effect))

    def score(self) -> float:
        """The size of its change by the share of I/Os, for the ranking."""
        assert self.change is not None
        kind = self.quantity
        if kind == "rate" and self.change.before < self.nothing and self.octaves > 0:
            kind = "appears"
        return abs(self.octaves) * math.sqrt(self.share(self.change)) * _WEIGHTS.get(kind, 1.0)


@dataclass
class Layer:
    """The I/Os of one layer: all of them, and the values of fields."""

    statistic: Statistic
    total: Floats
    keys: dict[tuple[str, str], Floats] = field(default_factory=dict)
    aliases: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)


def layers(measures: Measures, facts: Sequence[Available]) -> Iterable[Layer]:
    """The layers of I/O that are recorded, with their values of fields."""
    for fact in facts:
        name, _, measure = fact.entry.name.partition(".")
        if name not in LAYERS or measure != "ops" or fact.counted:
            continue
        statistic = Statistic(name, "ops")
        group = Layer(statistic, measures.total(statistic))
        if not np.nansum(group.total):
            continue
        for dimension in DIMENSIONS:
            if dimension in fact.breakdowns and dimension in fact.entry.breakdowns:
                _add_keys(
                    group, dimension, measures.by_key(replace(statistic, breakdown=dimension))
                )
        yield group


def _add_keys(group: Layer, dimension: str, rates: dict[str, Floats]) -> None:
    """The values of a field with enough I/Os; those that mean the same I/Os as another value, or
    all of them, are its aliases."""
    total = float(np.nansum(group.total))
    windows = np.nan_to_num(group.total)
    shares = {
        key: max(
            float(np.nansum(rate)) / total,
            _largest_share(np.nan_to_num(rate), windows),
        )
        for key, rate in rates.items()
    }
    least = 0.0 if dimension == "error" else LEAST_SHARE
    keys = [key for key in sorted(shares, key=lambda key: -shares[key]) if shares[key] >= least]
    for key in keys[:MOST_KEYS]:
        if key == "unknown" or (dimension == "error" and key == "none"):
            continue
        rate = np.nan_to_num(rates[key])
        same = next(
            (
                other
                for other, other_rate in {("", ""): group.total, **group.keys}.items()
                if np.abs(rate - np.nan_to_num(other_rate)).sum() <= 0.01 * rate.sum()
            ),
            None,
        )
        if same is None:
            group.keys[dimension, key] = rates[key]
        else:
            group.aliases.setdefault(same, []).append((dimension, key))


def _largest_share(rate: Floats, total: Floats) -> float:
    """Share of all I/Os in the tenth of the time where it is largest."""
    size = max(1, len(rate) // 10)
    kernel = np.ones(size)
    of_all = np.convolve(total, kernel, "valid")
    part = np.convolve(rate, kernel, "valid")
    busy = of_all > 0.05 * of_all.max()
    return float((part[busy] / of_all[busy]).max()) if busy.any() else 0.0


def series_of_layer(
    measures: Measures, group: Layer, facts: Sequence[Available]
) -> list[SubjectSeries]:
    """What is compared of a layer."""
    entry = next(fact for fact in facts if fact.entry.name == f"{group.statistic.group}.ops")
    maps = [name for name in ("latency", "size", "offset") if name in entry.breakdowns]
    has_several_devices = sum(name == "device" for name, _ in group.keys) > 1
    frames: dict[str, Distribution] = {}
    parts: dict[tuple[str, str, str], Distribution] = {}
    all_series = []
    subjects = {("", ""): group.total, **group.keys}
    for (dimension, key), rate in subjects.items():
        subject = Subject(
            dimension, (key,) if dimension else (), tuple(group.aliases.get((dimension, key), ()))
        )
        all_series.append(_rate_series(measures.timeline, group, subject, rate))
        for y in maps:
            if y == "offset" and not dimension and has_several_devices:
                continue
            statistic = with_filters(group.statistic, subject.filters, y)
            counts = measures.distribution(statistic, frames.get(y) if dimension else None)
            if not dimension:
                frames[y] = counts
            parts[y, dimension, key] = counts
            all_series += _distribution_series(measures.timeline, group, subject, statistic, counts)
    for series in all_series:
        if series.quantity == "rate":
            series.rest = _rate_rest(group, series)
        elif series.subject.field:
            of = "latency" if series.quantity in ("tail", "queue") else series.quantity
            if of in frames:
                series.rest = _distribution_rest(frames[of], parts, of, series)
    return all_series


def _share(group: Layer, rate: Floats, timeline: Timeline) -> Callable[[SustainedChange], float]:
    part, total = np.nan_to_num(rate), np.nan_to_num(group.total)

    def share(change: SustainedChange) -> float:
        shares = [
            part[span].sum() / total[span].sum() if total[span].sum() else 0.0
            for span in (slice(0, change.first), slice(change.first, change.past))
        ]
        return min(1.0, float(max(shares)))

    return share


def _rate_series(timeline: Timeline, group: Layer, subject: Subject, rate: Floats) -> SubjectSeries:
    # so much is next to nothing: a share of all I/Os that nobody would look at
    least = (0.0001 if subject.field == "error" else 0.005) * float(np.nanmean(group.total))
    seconds = timeline.interval_ns / SECOND
    noise = 1 / (math.log(2) * math.sqrt(float(np.nanmean(rate)) * seconds + 1))
    name = with_filters(group.statistic, (), subject.field or None)
    return SubjectSeries(
        group.statistic.group,
        subject,
        "rate",
        name,
        timeline,
        lambda _: np.log2(rate + least),
        math.hypot(0.02, noise * float(np.nanmean(rate) / (np.nanmean(rate) + least))),
        False,
        _share(group, rate, timeline),
        nothing=math.log2(least) + 1.0,
    )


def _distribution_series(
    timeline: Timeline, group: Layer, subject: Subject, statistic: Statistic, counts: Distribution
) -> list[SubjectSeries]:
    y = statistic.breakdown
    assert y is not None
    rate = counts.totals / (timeline.interval_ns / SECOND)
    share = _share(group, rate, timeline)

    def make_series(quantity: str, at: Callable[[int], Floats], rises: bool) -> SubjectSeries:
        return SubjectSeries(
            group.statistic.group,
            subject,
            quantity,
            statistic,
            timeline,
            at,
            0.05,
            rises,
            share,
        )

    all_series = [make_series(y, lambda quiet: distances(counts, quiet), True)]
    if y == "latency":
        all_series.append(make_series("tail", lambda _: quantiles(counts, 0.99), False))
        all_series.append(make_series("queue", lambda _: _depth(counts, timeline), False))
    return all_series


def _depth(counts: Distribution, timeline: Timeline) -> Floats:
    depth = np.log2(in_flight(counts, timeline.interval_ns) + 0.05)
    depth[counts.totals == 0] = np.nan
    return np.asarray(depth, dtype=float)


def _rate_rest(
    group: Layer, one: SubjectSeries
) -> Callable[[Sequence[str]], Callable[[int], Floats] | None]:
    def rest(values: Sequence[str]) -> Callable[[int], Floats] | None:
        remaining = group.total - sum(
            np.nan_to_num(group.keys[one.subject.field, value]) for value in values
        )
        if np.nansum(remaining) < LEAST_SHARE * np.nansum(group.total):
            return None
        least = 0.005 * float(np.nanmean(group.total))
        return lambda _: np.log2(np.maximum(0.0, remaining) + least)

    return rest


def _distribution_rest(
    whole: Distribution, parts: dict[tuple[str, str, str], Distribution], y: str, one: SubjectSeries
) -> Callable[[Sequence[str]], Callable[[int], Floats] | None]:
    def rest(values: Sequence[str]) -> Callable[[int], Floats] | None:
        remaining = whole
        for value in values:
            remaining = remaining.without(parts[y, one.subject.field, value])
        if remaining.counts.sum() < LEAST_SHARE * whole.counts.sum():
            return None
        if one.quantity == "tail":
            return lambda _: quantiles(remaining, 0.99)
        if one.quantity == "queue":
            return lambda _: _depth(remaining, one.timeline)
        return lambda quiet: distances(remaining, quiet)

    return rest


def series_of_counters(measures: Measures, facts: Sequence[Available]) -> list[SubjectSeries]:
    """What is compared of counters: each by its first field."""
    all_series = []
    for fact in facts:
        if not fact.counted:
            continue
        group, _, name = fact.entry.name.partition(".")
        dimension = next((name for name in fact.breakdowns if name != "utilization"), None)
        statistic = Statistic(group, name, (), dimension)
        rates = {"": measures.total(statistic)} if dimension is None else measures.by_key(statistic)
        means = {key: float(np.nanmean(np.abs(rate))) for key, rate in rates.items() if _any(rate)}
        largest = max(means.values(), default=0.0)
        if not largest:
            continue
        is_share = fact.entry.measure == "share"
        least = 0.05 if is_share else 0.02 * largest
        for key in sorted(means, key=lambda key: -means[key])[:MOST_KEYS]:
            rate = rates[key]
            subject = Subject(dimension, (key,)) if dimension is not None else Subject(group)
            weight = 1.0 if is_share else min(1.0, means[key] / sum(means.values()))
            all_series.append(
                SubjectSeries(
                    fact.entry.name,
                    subject,
                    "value",
                    statistic,
                    measures.timeline,
                    lambda _, rate=rate, least=least: np.log2(np.maximum(0.0, rate) + least),  # type: ignore[misc]
                    0.05,
                    False,
                    lambda _, weight=weight: weight,  # type: ignore[misc]
                )
            )
    return all_series


def _any(rate: Floats) -> bool:
    return bool(np.isfinite(rate).any())
