# SPDX-License-Identifier: Apache-2.0
"""The changes in a history: change points of every series, with false discoveries controlled over
all of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.files import EVIDENCE, read_regular, write_atomically
from iolab.base.integrity import has_own_digest, with_own_digest
from iolab.base.metrics import Metric
from iolab.base.stats.arrays import Floats
from iolab.base.stats.multiple import benjamini_hochberg
from iolab.base.stats.series.changepoints import (
    STEP_SHARE,
    TREND_SHARE,
    ChangePoint,
    Changes,
    NoiseChange,
)
from iolab.base.stats.series.changepoints import find_changes as search
from iolab.base.stats.series.trend import Trend
from iolab.base.untrusted_text import parse_json

from ..compare.axes import level_text
from .store import Entry, History, SeriesValues

CACHE_FILE = "changes.json"
_VERSION = 3
"""Of the search for change points: a cache of another one is not used."""

ALPHA = 0.05
MOST_METRICS = 4
"""Metrics that are searched where none is named: the first headline ones."""

_AnyChange = TypeVar("_AnyChange", ChangePoint, NoiseChange, Trend)


@dataclass(frozen=True)
class Finding:
    """A change of a series.

    Attributes:
        change: as `compare.model.Change` has it: a fraction for ratios, else a difference; low,
        high: its 95 % interval.
        before, after: the last entry before the change and the first after it. earliest, latest:
        the first entry after it, as a 95 % range.
        p: of the search within the series; q: Benjamini-Hochberg over all series.
        improves: whether its direction is the metric's better one; None without direction.
    """

    change: float
    low: float
    high: float
    before: Entry
    after: Entry
    earliest: Entry
    latest: Entry
    p: float
    q: float
    improves: bool | None


@dataclass(frozen=True)
class NoiseFinding:
    """A change of the noise of a series: of the standard deviation of its values around their mean.

    Attributes:
        ratio: after divided by before; low, high: its 95 % interval for normal noise.
        before, after, earliest, latest, p: as those of a `Finding`. q: over the searches for noise
        in all series.
    """

    ratio: float
    low: float
    high: float
    before: Entry
    after: Entry
    earliest: Entry
    latest: Entry
    p: float
    q: float


@dataclass(frozen=True)
class TrendFinding:
    """A steady trend of a series.

    Attributes:
        change: from the first value to the last, as that of a `Finding`; low, high: its 95 %
        interval.
        first, last: entries of these values.
        p: of the slope, with the autocorrelation that trend and steps leave; q: over the trends of
        all series.
        improves: whether its direction is the metric's better one; None without direction.
    """

    change: float
    low: float
    high: float
    first: Entry
    last: Entry
    p: float
    q: float
    improves: bool | None


@dataclass(frozen=True)
class Course:
    """A series with its changes.

    Attributes:
        metric: of the values. findings, noise: significant changes of the mean and of the noise, in
        order of time; with a trend, of what it leaves. trend: a steady slope over all values.
    """

    metric: Metric
    series: SeriesValues
    findings: tuple[Finding, ...]
    noise: tuple[NoiseFinding, ...] = ()
    trend: TrendFinding | None = None

    @property
    def has_change(self) -> bool:
        """Whether anything of the series changed."""
        return bool(self.findings or self.noise or self.trend)

    @property
    def current(self) -> Floats:
        """The values since the last change."""
        if not self.findings:
            return self.series.values
        first = self.series.entries.index(self.findings[-1].after.number)
        return self.series.values[first:]


def selected_metrics(history: History, names: Sequence[str] = ()) -> list[Metric]:
    """The named metrics; without names the first `MOST_METRICS` headline ones. UsageError for a
    metric that the history lacks."""
    metrics = history.metrics()
    for name in names:
        if name not in {metric.name for metric in metrics}:
            history.series(name)  # raises
    named = [metric for metric in metrics if metric.name in names]
    headline = [metric for metric in metrics if metric.headline]
    return named or headline[:MOST_METRICS] or metrics[:1]


def find_changes(
    history: History,
    metrics: Sequence[Metric],
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    alpha: float = ALPHA,
) -> list[Course]:
    """Every series of some metrics with its significant changes.

    A change is significant where its q is at most alpha. q is over all series that are searched,
    for changes of the mean, of the noise, and trends apart. A series without a change counts as a
    test with p = 1. Changes of the mean and trends share alpha.

    Raises UsageError for a metric that the history lacks, and where no series meets `where`.
    """
    courses = [
        (metric, series)
        for metric in metrics
        for series in history.series(metric.name)
        if meets(series.variant, series.factors, where or {})
    ]
    if not courses:
        raise UsageError("no series meets the conditions", where="--where")
    searched = _search(history, [_scaled_values(metric, series) for metric, series in courses])
    means = _significant([changes.means for changes in searched], alpha, STEP_SHARE)
    noise = _significant([changes.noise for changes in searched], alpha)
    slopes = [() if changes.trend is None else (changes.trend,) for changes in searched]
    trends = _significant(slopes, alpha, TREND_SHARE)
    return [
        Course(
            metric,
            series,
            tuple(_finding(history, metric, series, change, q) for change, q in of_mean),
            tuple(_noise_finding(history, series, change, q) for change, q in of_noise),
            next((_trend_finding(history, metric, series, *trend) for trend in trend_of), None),
        )
        for (metric, series), of_mean, of_noise, trend_of in zip(
            courses, means, noise, trends, strict=True
        )
    ]


def _significant(
    series: Sequence[Sequence[_AnyChange]], alpha: float, share: float = 1.0
) -> list[list[tuple[_AnyChange, float]]]:
    """Changes of each series with q up to `alpha`, and q: over all series, of tests that have this
    share of alpha."""
    tests = [[min(1.0, change.p / share) for change in changes] or [1.0] for changes in series]
    q_values = iter(benjamini_hochberg([p for p_values in tests for p in p_values]))
    result = []
    for changes, p_values in zip(series, tests, strict=True):
        levels = [next(q_values) for _ in p_values]
        pairs = zip(changes, levels, strict=False)
        result.append([(change, q) for change, q in pairs if q is not None and q <= alpha])
    return result


def meets(variant: str, factors: Mapping[str, object], where: Mapping[str, Sequence[str]]) -> bool:
    """Whether a cell of a variant meets all conditions."""
    levels = {"variant": variant, **factors}
    return all(
        name in levels and level_text(levels[name]) in allowed for name, allowed in where.items()
    )


def is_ratio(metric: Metric, values: Floats) -> bool:
    """Whether changes are ratios: zeros have none, and are compared by difference."""
    return metric.change == "ratio" and bool(np.all(values > 0))


def _scaled_values(metric: Metric, series: SeriesValues) -> Floats:
    return np.log(series.values) if is_ratio(metric, series.values) else series.values


def _search(history: History, series: Sequence[Floats]) -> list[Changes]:
    """Changes of every series, from the cache where the values are the same."""
    cache = _read_cache(history)
    names = [hashlib.sha256(values.tobytes()).hexdigest()[:24] for values in series]
    changes = {name: cache[name] for name in names if name in cache}
    missing = [place for place, name in enumerate(names) if name not in changes]
    for place in missing:
        changes[names[place]] = search(series[place], level=ALPHA)
    if missing:
        _write_cache(history, {**cache, **changes} if len(cache) < 100_000 else changes)
    return [changes[name] for name in names]


def _read_cache(history: History) -> dict[str, Changes]:
    try:
        text = read_regular(history.path / CACHE_FILE, limit=EVIDENCE)
        data = parse_json(text)
        if not has_own_digest(text) or data["version"] != _VERSION:
            return {}
        return {
            str(name): Changes(
                tuple(ChangePoint(**change) for change in changes["means"]),
                tuple(NoiseChange(**change) for change in changes["noise"]),
                None if changes["trend"] is None else Trend(**changes["trend"]),
            )
            for name, changes in data["series"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_cache(history: History, series: Mapping[str, Changes]) -> None:
    document = {
        "version": _VERSION,
        "series": {name: asdict(changes) for name, changes in series.items()},
    }
    try:
        write_atomically(
            history.path / CACHE_FILE, with_own_digest(json.dumps(document)), durable=False
        )
    except OSError:
        return  # a history that may only be read


def _finding(
    history: History, metric: Metric, series: SeriesValues, change: ChangePoint, q: float
) -> Finding:
    entries = [history.entry(number) for number in series.entries]
    is_log = is_ratio(metric, series.values)
    difference = change.after - change.before
    value, low, high = (
        math.expm1(end) if is_log else end for end in (difference, change.low, change.high)
    )
    return Finding(
        value,
        low,
        high,
        entries[change.place - 1],
        entries[change.place],
        entries[change.earliest],
        entries[change.latest],
        change.p,
        q,
        None if metric.better is None else (value > 0) == (metric.better == "higher"),
    )


def _trend_finding(
    history: History, metric: Metric, series: SeriesValues, trend: Trend, q: float
) -> TrendFinding:
    is_log = is_ratio(metric, series.values)
    value, low, high = (
        math.expm1(end) if is_log else end for end in (trend.change, trend.low, trend.high)
    )
    return TrendFinding(
        value,
        low,
        high,
        history.entry(series.entries[0]),
        history.entry(series.entries[-1]),
        trend.p,
        q,
        None if metric.better is None else (value > 0) == (metric.better == "higher"),
    )


def _noise_finding(
    history: History, series: SeriesValues, change: NoiseChange, q: float
) -> NoiseFinding:
    entries = [history.entry(number) for number in series.entries]
    return NoiseFinding(
        change.ratio,
        change.low,
        change.high,
        entries[change.place - 1],
        entries[change.place],
        entries[change.earliest],
        entries[change.latest],
        change.p,
        q,
    )


def environment_changes(before: Entry, after: Entry) -> list[tuple[str, str, str]]:
    """Facts in which the environments of two entries differ: name, before, after."""
    names = dict.fromkeys([*before.environment, *after.environment])
    return [
        (name, before.environment.get(name, ""), after.environment.get(name, ""))
        for name in names
        if before.environment.get(name, "") != after.environment.get(name, "")
    ]
