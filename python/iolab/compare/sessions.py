# SPDX-License-Identifier: Apache-2.0
"""Sessions of runs: contiguous runs of one arm on one boot, and whether two arms took turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from ..results.evidence.model import SESSION, Run

Pair = tuple[Run, Run]
SessionKey = tuple[object, ...]
"""Boot id, or results directory and host, and which stretch of these it is."""

Sessions = dict[SessionKey, list[Run]]


def takes_turns(first: Sequence[Run], second: Sequence[Run], pairs: Sequence[Pair]) -> bool:
    """Whether pairs of two arms are blocks, so that both runs of a pair share a session.

    Runs of a study in sessions never are, nor runs of different results directories. Runs that iolab made in one results directory
    always are: the study's order is made of blocks. Imported runs are, where fio's times do not
    contradict: the pairs of one host follow each other, and none begins before another has ended.
    """
    sources = [{run.results for run in arm} for arm in (first, second)]
    if first and second and sources[0].isdisjoint(sources[1]):
        return False
    if any(SESSION in run.plan.extra for run in (*first, *second)):
        return False
    if not has_foreign_order((*first, *second)) or has_unknown_order((*first, *second)):
        return True
    spans: dict[str, list[tuple[int, int]]] = {}
    for pair in pairs:
        times = [time for run in pair if (time := middle(run)) is not None]
        spans.setdefault(pair[0].plan.host, []).append((min(times), max(times)))
    return all(
        earlier[1] < later[0]
        for host in spans.values()
        for earlier, later in pairwise(sorted(host))
    )


def has_foreign_order(runs: Iterable[Run]) -> bool:
    """Whether the order of the runs is known from their times only: that of imported runs."""
    return any(run.plan.status == "imported" for run in runs)


def has_unknown_order(runs: Iterable[Run]) -> bool:
    """Whether a run has no time, or the same time as another one."""
    times = [(run.plan.host, middle(run)) for run in runs]
    return any(time is None for _, time in times) or len(set(times)) < len(times)


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
        if not has_unknown_order(run for _, run in group):
            group.sort(key=lambda member: middle(member[1]) or 0)
        stretch, last = 0, group[0][0]
        for arm, run in group:
            stretch += arm != last
            last = arm
            sessions[arm].setdefault((*name, stretch), []).append(run)
    return sessions


def is_alternating(first: Iterable[Run], second: Iterable[Run]) -> bool:
    """Whether not all runs of one arm were before those of the other; True where times are missing."""
    times = [[middle(run) for run in arm] for arm in (first, second)]
    known_times = [[time for time in arm if time is not None] for arm in times]
    if not all(known_times):
        return True
    return min(known_times[0]) < max(known_times[1]) and min(known_times[1]) < max(known_times[0])
