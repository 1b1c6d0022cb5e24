"""Cumulative reports among terse lines: `--status-interval` repeats every job's line, and nothing marks a report's end.

Clones of a job (numjobs without group_reporting) have equal names as well, so names alone don't tell them from
reports. Reports start near zero and grow evenly; clones all run for about as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .tables import FioJob


def last_report(jobs: Sequence[FioJob]) -> tuple[list[FioJob], int]:
    """The jobs of the last report, and how many reports there were (one: all lines are jobs)."""
    total = len(jobs)
    for size in range(1, total // 2 + 1):
        if total % size == 0 and _grows([jobs[start : start + size] for start in range(0, total, size)]):
            return list(jobs[-size:]), total // size
    return list(jobs), 1


def _grows(reports: Sequence[Sequence[FioJob]]) -> bool:
    """Whether every report has the same jobs, each with clearly more runtime and bytes than in the report before."""
    names = [[(job.name, job.group) for job in report] for report in reports]
    if any(one != names[0] for one in names):
        return False
    for before, after in pairwise(reports):
        for old, new in zip(before, after, strict=True):
            if _runtime(new) < _runtime(old) + 0.25 or _bytes(new) <= _bytes(old):
                return False
    runtimes = [max(_runtime(job) for job in report) for report in reports]
    step = (runtimes[-1] - runtimes[0]) / (len(runtimes) - 1)
    # the first report comes one interval after the start; of two, the second has half as much again at least
    return runtimes[0] <= 2 * step


def _runtime(job: FioJob) -> float:
    return max((direction.runtime for direction in job.directions.values()), default=0.0)


def _bytes(job: FioJob) -> int:
    return sum(direction.size_bytes for direction in job.directions.values())
