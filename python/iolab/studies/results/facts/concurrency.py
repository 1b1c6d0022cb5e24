# SPDX-License-Identifier: Apache-2.0
"""How many I/Os a load could have in flight, and how sure that is: a run made here knows its jobs,
another's file may not say."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from iolab.formats.core.tables import FioJob

from .run_facts import (
    RunFacts,
    effective_depth,
    is_of_several_sections,
    mean_latency,
    parts_of,
    seconds_of,
    threads_of,
)

DEPTH_FACTORS = ("iodepth", "io_depth", "queue_depth", "queuedepth", "qdepth", "qd", "depth")
"""Factors of a layout that name how many I/Os a job keeps in flight."""

_ALONE = 0.05
"""Seconds a thread by which runtimes added up may differ from the longest times numjobs, where the
entry has no thread of another job."""

_TICK = 0.002
"""Seconds by which fio's runtimes, in whole milliseconds, may be too short."""

_DEEPEST_CLASS = 64
"""The last class of `iodepth_level` has no upper end."""

ENTRY_MAY_BE_SEVERAL = "its entry may be the sum of several jobs (group_reporting), and the file doesn't say of how many"
DEPTH_UNKNOWN = "the file doesn't say how many I/Os each of its jobs kept in flight"


@dataclass(frozen=True)
class Concurrency:
    """I/Os that can be in flight over all jobs of a run.

    Attributes:
        value: the figure to show the load against; None where it is unknown.
        most: more cannot have been in flight; None where the evidence doesn't rule out any number.
        is_told: whether jobs and depth are both said by the plan, the file or the layout, so that
        less in flight means time outside I/O. unknown: what the evidence doesn't say, in words,
        empty where it says all. plausible: where an entry has jobs of several sections and the
        depth of one, what the jobs hold if that depth is the largest; None elsewhere.
    """

    value: float | None
    most: float | None
    is_told: bool
    unknown: str = ""
    plausible: float | None = None


@dataclass(frozen=True)
class _Entry:
    threads: float
    depth: float
    most_threads: float | None
    most_depth: float | None
    has_threads: bool
    has_depth: bool
    is_mixed: bool


def concurrency_of(facts: RunFacts) -> Concurrency:
    """The plan's own figure for a run made here; for another's, what its result proves and what it
    says.

    Proof: separate entries of a group are a thread each. `job_runtime` is the sum of the threads'
    runtimes. Depths are seen in `iodepth_level`, or are requested by the echoed options of a
    single thread. Without proof nothing is too much.
    """
    if facts.plan.status != "imported" or facts.fio is None:
        return Concurrency(facts.concurrency, facts.concurrency, is_told=True)
    jobs = [job for job in facts.fio.jobs if job.directions]
    if not jobs:
        return Concurrency(None, None, is_told=False)
    names = Counter((job.origin, job.group, job.name) for job in facts.fio.jobs)
    layout = _depth_factor(facts)
    entries = [_entry(job, layout, names[job.origin, job.group, job.name]) for job in jobs]
    has_threads, has_depth = (
        all(entry.has_threads for entry in entries),
        all(entry.has_depth for entry in entries),
    )
    value = sum(entry.threads * entry.depth for entry in entries)
    if not has_threads and facts.plan.jobs is not None:
        has_threads, value = (
            True,
            value * max(1.0, facts.plan.jobs / sum(entry.threads for entry in entries)),
        )
    most = 0.0
    for entry in entries:
        most += (
            entry.most_threads * entry.most_depth
            if entry.most_threads is not None and entry.most_depth is not None
            else math.inf
        )
    most *= 1 + _TICK / facts.runtime if facts.runtime > 0 else 1
    unknown = (
        ENTRY_MAY_BE_SEVERAL
        if any(entry.most_threads is None for entry in entries)
        else DEPTH_UNKNOWN
    )
    is_mixed = any(entry.is_mixed for entry in entries)
    plausible = value if is_mixed else None
    is_told = has_threads and has_depth
    if most < math.inf:
        return Concurrency(value if has_depth else None, most, is_told, plausible=plausible)
    return Concurrency(value if has_depth else None, None, is_told, unknown, plausible)


def in_flight(facts: RunFacts) -> tuple[float, float, float] | None:
    """(I/Os in flight by Little's law, those of them that are syncs, mean latency in seconds) of a
    closed loop; None for open loops and without I/O.

    Each entry separately, since jobs of different speed and length don't share a mean: the time
    that its I/Os took in all over the time that it ran.
    """
    if (
        facts.offered_iops is not None
        or facts.runtime <= 0
        or facts.fio is None
        or facts.pooled is None
    ):
        return None
    jobs = (facts.pooled,) if facts.is_over_time else facts.fio.jobs
    inside, syncs, waited, ios = 0.0, 0.0, 0.0, 0.0
    for job in jobs:
        seconds = seconds_of(job)
        for name, direction in parts_of(job.directions).items():
            latency = mean_latency(direction)
            if latency is None or seconds <= 0:
                continue
            count = direction.iops * direction.runtime or direction.ios
            inside += count * latency.mean / seconds
            syncs += count * latency.mean / seconds if name == "sync" else 0.0
            waited += direction.ios * latency.mean
            ios += direction.ios
    return (inside, syncs, waited / ios) if ios else None


def _entry(job: FioJob, in_layout: int | None, alike: int) -> _Entry:
    """What one entry says and proves; `alike` entries of its group have its name."""
    threads, most_threads, has_threads = threads_of(job, seconds_of(job), alike)
    stated_depth = (
        (effective_depth(job.options) or job.asked_depth or 1) if job.options else job.asked_depth
    )
    depth = in_layout if stated_depth is None else stated_depth
    if depth is None and job.deepest == 1:
        depth = 1
    is_mixed = is_of_several_sections(job)
    limits = (
        [2 * job.deepest - 1] if job.deepest is not None and job.deepest < _DEEPEST_CLASS else []
    )
    if (
        stated_depth is not None
        and (job.deepest is None or job.deepest <= stated_depth)
        and _is_of_all(job, most_threads)
    ):
        limits.append(stated_depth)
    return _Entry(
        threads,
        depth or 1,
        most_threads,
        min(limits, default=None),
        has_threads,
        depth is not None and _agrees(job, depth) and not is_mixed,
        is_mixed,
    )


def _is_of_all(job: FioJob, most_threads: float | None) -> bool:
    """Whether an entry's options are those of all its threads: of several jobs in one entry fio
    echoes those of one."""
    if most_threads is None:
        return False
    echoed = job.options.get("numjobs", "")
    return any(
        abs(most_threads - many) * seconds_of(job) <= _ALONE * many
        for many in {1, int(echoed) if echoed.isdecimal() else 1}
    )


def _agrees(job: FioJob, depth: int) -> bool:
    """Whether a depth fits the depths that were seen; without options the engine may be a kind that
    holds one I/O whatever was requested."""
    if job.deepest is None:
        return True
    return job.deepest <= depth and (
        bool(job.options) or job.deepest == _DEEPEST_CLASS or depth < 2 * job.deepest
    )


def _depth_factor(facts: RunFacts) -> int | None:
    depths = (facts.plan.factors.get(name) for name in DEPTH_FACTORS)
    return next((value for value in depths if isinstance(value, int) and value > 0), None)
