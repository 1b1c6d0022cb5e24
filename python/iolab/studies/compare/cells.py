# SPDX-License-Identifier: Apache-2.0
"""One cell of one arm, and the pairing of two arms: block by block, or session by session."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from iolab.base.metrics import LEAST_BEYOND, Metric, share_beyond
from iolab.base.stats.means import log_mean_interval, mean_interval
from iolab.base.verdict import Level

from ..results.evidence.model import SESSION, Run
from .axes import Axes, key_of
from .model import Estimate, Key

Pair = tuple[Run, Run]
SessionKey = tuple[object, ...]
"""Boot id, or results directory and host, and which stretch of these it is."""

Sessions = dict[SessionKey, list[Run]]


def takes_turns(first: Sequence[Run], second: Sequence[Run], pairs: Sequence[Pair]) -> bool:
    """Whether pairs of two arms are blocks, so that both runs of a pair share a session.

    Runs of a study in sessions never are, nor runs of different results directories. Runs that iolab
    made in one results directory always are: the study's order is made of blocks. Imported runs are,
    where fio's times do not contradict. Then the pairs of one host follow each other, and none
    begins before another has ended. Runs without a time contradict nothing: the others decide.
    """
    sources = [{run.results for run in arm} for arm in (first, second)]
    if first and second and sources[0].isdisjoint(sources[1]):
        return False
    if any(SESSION in run.plan.extra for run in (*first, *second)):
        return False
    if not has_foreign_order((*first, *second)):
        return True
    spans: dict[str, list[tuple[int, int]]] = {}
    for pair in pairs:
        times = [time for run in pair if (time := middle(run)) is not None]
        if times:
            spans.setdefault(pair[0].plan.host, []).append((min(times), max(times)))
    return all(
        earlier[1] <= later[0]
        for host in spans.values()
        for earlier, later in pairwise(sorted(host))
    )


def has_foreign_order(runs: Iterable[Run]) -> bool:
    """Whether the order of the runs is known from their times only: that of imported runs."""
    return any(run.plan.status == "imported" for run in runs)


def without_order(runs: Iterable[Run]) -> int:
    """How many runs have no time, or the same time as another one."""
    times = [(run.plan.host, middle(run)) for run in runs]
    counts = Counter(times)
    return sum(time[1] is None or counts[time] > 1 for time in times)


def middle(run: Run) -> int | None:
    """The middle of the run's window, realtime nanoseconds; None where it has no times."""
    return None if run.window is None else sum(run.window) // 2


def sessions_of(first: Iterable[Run], second: Iterable[Run]) -> tuple[Sessions, Sessions]:
    """The sessions of two arms.

    Runs belong together that have the same session of one study and the same boot id. Without a
    session these have the same boot id, or else the same results directory and host.
    Of these, in the order of their times, each contiguous stretch of one arm is a session.
    """
    groups: dict[tuple[str, ...], list[tuple[int, Run]]] = {}
    for arm, runs in enumerate((first, second)):
        for run in runs:
            name: tuple[str, ...] = ("results", run.results, run.plan.host)
            if run.boot:
                name = ("boot", run.boot)
            if SESSION in run.plan.extra:
                session = str(run.plan.extra[SESSION])
                name = ("session", run.results, run.plan.host, run.boot, session)
            groups.setdefault(name, []).append((arm, run))
    sessions: tuple[Sessions, Sessions] = ({}, {})
    for name, group in groups.items():
        timed = sorted(
            ((time, arm, run) for arm, run in group if (time := middle(run)) is not None),
            key=lambda member: member[0],
        )
        stretch, last = 0, timed[0][1] if timed else group[0][0]
        for _, arm, run in timed:
            stretch += arm != last
            last = arm
            sessions[arm].setdefault((*name, stretch), []).append(run)
        for arm, run in group:
            if middle(run) is not None:
                continue
            # a run without a time makes no session of its own: it is added to the first of its arm
            own = [key for key in sessions[arm] if key[:-1] == name]
            stretch += not own
            sessions[arm].setdefault(own[0] if own else (*name, stretch), []).append(run)
    return sessions


def is_alternating(first: Iterable[Run], second: Iterable[Run]) -> bool:
    """Whether not all runs of one arm were before those of the other; True where times are missing."""
    times = [[middle(run) for run in arm] for arm in (first, second)]
    known_times = [[time for time in arm if time is not None] for arm in times]
    if not all(known_times):
        return True
    return min(known_times[0]) < max(known_times[1]) and min(known_times[1]) < max(known_times[0])


BlockKey = tuple[object, ...]
"""What must agree for two runs to be a pair: results directory, block, host, levels of ignored
factors, and which of equals it is."""

SessionValues = dict[SessionKey, list[float]]
"""The values of the runs of each session."""


@dataclass
class ArmCell:
    """Runs of one variant at one place. `valid` maps what makes a pair to (value, run); `left_out`
    are the others."""

    valid: dict[BlockKey, tuple[float, Run]] = field(default_factory=dict)
    left_out: dict[BlockKey, Run] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """Runs that count, in block order."""
        return [run for _, run in self.valid.values()]

    @property
    def is_saturated(self) -> bool:
        """Whether an offered rate was not reached in one of them."""
        return any(run.verdict.has("saturated") for run in self.runs)


@dataclass(frozen=True)
class Pairing:
    """Two arms of one cell. Where they took turns, the unit of repetition is the block; where they
    did not, it is the session.

    Attributes:
        differences: (of logarithms, or plain) per block, shape (pairs,); blocks: their keys.
        dropped: blocks where one side is INVALID, missing or without the metric; without: those of
        them that left for the metric alone. zero: whether a value of zero forbids a ratio of
        logarithms. zero_change: then the ratio of the arithmetic means less 1, where the baseline has
        a mean: -1 where all values of the variant are zero.
        sessions: where the arms did not take turns: of the baseline and of the variant the values
        (logarithms, or plain) of each session. is_by_sessions: whether the arms did not take turns;
        then there are no differences, and `dropped` counts runs. is_alternating: whether sessions of
        one arm were not all before those of the other. unordered: runs with an unknown place in the
        order, where only their times state it. is_tail: whether the metric is the tail of the
        sample in one of the arms.
    """

    differences: NDArray[np.float64]
    blocks: tuple[BlockKey, ...]
    dropped: int
    without: int = 0
    zero: bool = False
    zero_change: float | None = None
    sessions: tuple[SessionValues, SessionValues] | None = None
    is_alternating: bool = True
    is_by_sessions: bool = False
    unordered: int = 0
    is_tail: bool = False

    @property
    def has_change(self) -> bool:
        """Whether a change can be stated."""
        return self.sessions is not None or len(self.differences) > 0


def collect(
    runs: Iterable[Run], metric: Metric, axes: Axes
) -> dict[tuple[Key, Key, Key, str], ArmCell]:
    """Every arm's cells by table, row, column and variant."""
    cells: dict[tuple[Key, Key, Key, str], ArmCell] = {}
    equals = Counter[tuple[object, ...]]()
    for run in sorted(runs, key=lambda run: (run.plan.block, run.plan.repetition, run.id)):
        place = (
            key_of(run, axes.tables),
            key_of(run, axes.rows),
            key_of(run, axes.cols),
            run.variant,
        )
        cell = cells.setdefault(place, ArmCell())
        key: BlockKey = (
            run.results,
            run.plan.block,
            run.plan.host,
            *key_of(run, axes.ignored),
        )
        ordinal = equals[place, key]
        equals[place, key] += 1
        value = run.value(metric.name)
        if run.verdict.level is Level.INVALID or value is None or not math.isfinite(value):
            cell.left_out[(*key, ordinal)] = run
        else:
            cell.valid[(*key, ordinal)] = (value, run)
    if metric.name.partition(".")[2] in _THROUGHPUT:
        _count_idle_runs(cells)
    return cells


_THROUGHPUT = ("iops", "bw")
"""Metrics, after their operation, of which a run without any I/O has the value zero."""


def _count_idle_runs(cells: Mapping[tuple[Key, Key, Key, str], ArmCell]) -> None:
    """Runs without any I/O, INVALID for that alone, have a throughput of zero where a run of either
    arm measured it in their cell: excluding them would leave the survivors."""
    measured = {place[:3] for place, cell in cells.items() if cell.valid}
    for place, cell in cells.items():
        for key, run in list(cell.left_out.items()):
            if place[:3] in measured and {reason.code for reason in run.verdict.blames} == {
                "no-io"
            }:
                cell.valid[key] = (0.0, cell.left_out.pop(key))


def is_tail(runs: Sequence[Run], metric: Metric) -> bool:
    """Whether fewer than `LEAST_BEYOND` I/Os of a run are beyond a percentile, in half of the runs
    or more; always for the minimum and the maximum. Runs without a number of I/Os are not known to
    be short of them."""
    share = share_beyond(metric.name)
    if share is None or not runs:
        return False
    operation = metric.name.partition(".")[0]
    counts = [run.value(f"{operation}.ios") for run in runs]
    known = [count for count in counts if count is not None]
    few = sum(count * share < LEAST_BEYOND * (1 - 1e-9) for count in known)
    return share == 0 or (bool(known) and 2 * few >= len(known))


def pair(baseline: ArmCell | None, variant: ArmCell | None, metric: Metric) -> Pairing:
    """The pairing of two arms, see `Pairing`."""
    first, second = baseline or ArmCell(), variant or ArmCell()
    return replace(
        _pair(first, second, metric),
        is_tail=any(is_tail(arm.runs, metric) for arm in (first, second)),
    )


def _pair(first: ArmCell, second: ArmCell, metric: Metric) -> Pairing:
    """Pairs of blocks that are valid on both sides, where the arms took turns; a block that lacks
    one side leaves whole, and is counted. Else the sessions of both arms."""
    every = dict.fromkeys((*first.valid, *second.valid, *first.left_out, *second.left_out))
    common = [key for key in first.valid if key in second.valid]
    if not takes_turns(
        first.runs, second.runs, [(first.valid[key][1], second.valid[key][1]) for key in common]
    ):
        return _by_sessions(first, second, metric)
    values = np.array(
        [(first.valid[key][0], second.valid[key][0]) for key in common], np.float64
    ).reshape(-1, 2)
    dropped = len(every) - len(common)
    without = sum(_sound(first, key) and _sound(second, key) for key in every) - len(common)
    if metric.change != "difference" and np.any(values <= 0):
        return Pairing(
            np.empty(0),
            (),
            dropped,
            without,
            zero=True,
            zero_change=_zero_change(values[:, 0], values[:, 1]),
        )
    every_run = (*first.runs, *second.runs)
    return Pairing(
        values[:, 1] - values[:, 0]
        if metric.change == "difference"
        else np.log(values[:, 1] / values[:, 0]),
        tuple(common),
        dropped,
        without,
        unordered=without_order(every_run) if has_foreign_order(every_run) else 0,
    )


def _by_sessions(first: ArmCell, second: ArmCell, metric: Metric) -> Pairing:
    """The sessions of both arms, of hosts and levels of ignored factors that both have."""
    kinds = [{key[2:-1] for key in arm.valid} for arm in (first, second)]
    kept = [
        {run.id: (value, run) for key, (value, run) in arm.valid.items() if key[2:-1] in both}
        for arm in (first, second)
        for both in (kinds[0] & kinds[1],)
    ]
    runs = [[run for _, run in arm.values()] for arm in kept]
    every = (*first.left_out.values(), *second.left_out.values())
    without = sum(run.verdict.level is not Level.INVALID for run in every)
    dropped = len(every) + sum(len(arm.valid) for arm in (first, second)) - sum(map(len, runs))
    nothing = Pairing(np.empty(0), (), dropped, without, is_by_sessions=True)
    if not all(runs):
        return nothing
    is_ratio = metric.change != "difference"
    if is_ratio and any(value <= 0 for arm in kept for value, _ in arm.values()):
        change = _zero_change(*([value for value, _ in arm.values()] for arm in kept))
        return replace(nothing, zero=True, zero_change=change)
    sessions = sessions_of(*runs)
    values = [
        {
            name: [math.log(arm[run.id][0]) if is_ratio else arm[run.id][0] for run in session]
            for name, session in of_arm.items()
        }
        for arm, of_arm in zip(kept, sessions, strict=True)
    ]
    every_run = (*runs[0], *runs[1])
    return replace(
        nothing,
        sessions=(values[0], values[1]),
        is_alternating=is_alternating(*runs),
        unordered=without_order(every_run) if has_foreign_order(every_run) else 0,
    )


def _zero_change(
    first: Sequence[float] | NDArray[np.float64], second: Sequence[float] | NDArray[np.float64]
) -> float | None:
    mean = float(np.mean(first))
    return float(np.mean(second)) / mean - 1 if mean > 0 else None


def _sound(arm: ArmCell, key: BlockKey) -> bool:
    """Whether the arm has a run there that counts, with or without the metric."""
    return key in arm.valid or (
        key in arm.left_out and arm.left_out[key].verdict.level is not Level.INVALID
    )


def estimate(arm: ArmCell, metric: Metric, confidence: float) -> Estimate:
    """One arm's own value and interval."""
    values = [value for value, _ in arm.valid.values()]
    mean, low, high = mean_of(values, metric, confidence) if values else (None, None, None)
    level = worst(run.verdict.level for run in (arm.runs or list(arm.left_out.values())))
    return Estimate(
        mean,
        low,
        high,
        tuple(values),
        tuple(run.id for run in arm.runs),
        level,
        tuple(run.id for run in arm.left_out.values()),
        tuple(run.value(metric.name) for run in arm.left_out.values()),
    )


def mean_of(
    values: Sequence[float], metric: Metric, confidence: float
) -> tuple[float, float | None, float | None]:
    """Mean of one or more runs with its interval: geometric, or arithmetic where the metric is
    compared by difference or a value is 0."""
    if metric.change == "difference" or min(values) <= 0:
        return mean_interval(values, confidence)
    return log_mean_interval(values, confidence)


def worst(levels: Iterable[Level]) -> Level:
    """The worst of some levels; OK without any."""
    return max(levels, key=lambda level: level.rank, default=Level.OK)


def scale_of(metric: Metric) -> Callable[[float], float]:
    """From a mean of differences to a change: the fraction behind a log ratio, or the difference
    itself."""
    if metric.change == "difference":
        return float
    return lambda value: math.expm1(value)
