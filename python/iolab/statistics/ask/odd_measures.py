# SPDX-License-Identifier: Apache-2.0
"""What is compared when oddities are searched: rates and distributions of values of fields, by equal
windows of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...recording.base.counts import HeatCounts, alike
from ...recording.base.grids import LogLinear
from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ..answers.answers import Series, Stack
from ..question import Filter, Statistic
from .query import query

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
        found: dict[str, list[Floats]] = {key: [] for key in keys}
        for answer, span in answers:
            assert isinstance(answer, Stack)
            rows = dict(zip(answer.keys, answer.values, strict=True))
            empty = np.zeros(answer.values.shape[1])
            for key in keys:
                found[key].append(self._place(answer, rows.get(key, empty), span))
        return {key: np.concatenate(parts) for key, parts in found.items()}

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
        for each, (start, _), count in zip(
            maps, self.timeline.spans, self.timeline.counts, strict=True
        ):
            column = each.column + (each.t0_ns - start) // self.timeline.interval_ns
            inside = (column >= 0) & (column < count)
            np.add.at(
                counts,
                (begin + column[inside], each.index[inside] - first),
                each.count[inside].astype(float),
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
