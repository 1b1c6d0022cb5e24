"""Cumulative reports among terse lines: `--status-interval` repeats every job's line, and nothing marks a report's end.

Clones of a job (numjobs without group_reporting) have equal names as well, so names alone don't tell them from
reports. But reports grow evenly from the start, the last excepted, which comes when the jobs end; and what was counted
stays counted, so that bytes and extremes of latency only grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..core.tables import FioJob


def last_report(jobs: Sequence[FioJob]) -> tuple[list[FioJob], int]:
    """The jobs of the last report, and how many reports there were (one: all lines are jobs)."""
    total = len(jobs)
    for size in range(1, total // 2 + 1):
        if total % size == 0 and _grows([jobs[start : start + size] for start in range(0, total, size)]):
            return list(jobs[-size:]), total // size
    return list(jobs), 1


def _grows(reports: Sequence[Sequence[FioJob]]) -> bool:
    """Whether every report has the same jobs, each of them further on than in the report before."""
    names = [[(job.name, job.group) for job in report] for report in reports]
    if any(one != names[0] for one in names):
        return False
    if not all(_continues(old, new) for before, after in pairwise(reports) for old, new in zip(before, after, strict=True)):
        return False
    runtimes = [max(map(_runtime, report)) for report in reports]
    steps = [after - before for before, after in pairwise(runtimes)]
    if len(reports) == 2:
        return runtimes[1] >= 1.5 * runtimes[0]
    # the first report comes one interval after the start, like each of the next
    return all(0.5 * runtimes[0] <= step <= 2 * runtimes[0] for step in steps[:-1])


def _continues(old: FioJob, new: FioJob) -> bool:
    if not old.directions.keys() <= new.directions.keys():
        return False
    for operation, before in old.directions.items():
        after = new.directions[operation]
        if after.runtime < before.runtime or after.size_bytes < before.size_bytes:
            return False
        for kind, latency in before.latencies.items():
            later = after.latencies.get(kind)
            if later is None or later.minimum > latency.minimum or later.maximum < latency.maximum:
                return False
    return True


def _runtime(job: FioJob) -> float:
    return max((direction.runtime for direction in job.directions.values()), default=0.0)
