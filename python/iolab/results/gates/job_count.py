"""Did as many jobs run as were planned?"""

from __future__ import annotations

from collections.abc import Iterable

from ...verdict import Reason
from ..facts import RunFacts
from .base import invalid


class JobCountGate:
    """INVALID when fio's entries are neither one per planned job nor one per group, or its echo names another numjobs.

    group_reporting is a flag, which fio doesn't echo; an entry for each group and host is therefore allowed.
    """

    name = "job-count"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Entries against the plan, and the echo against the plan."""
        planned = facts.plan.jobs
        if planned is None or facts.fio is None or not facts.fio.jobs:
            return
        entries = len(facts.fio.jobs)
        sections = facts.plan.extra.get("sections")
        if isinstance(sections, int):  # each has its own numjobs, and its own way to report
            most = planned * sections * len({job.hostname for job in facts.fio.jobs})
            if not len({job.group for job in facts.fio.jobs}) <= entries <= most:
                yield invalid("job-count", f"fio reports {entries} jobs, planned were {planned}", planned=planned, entries=entries)
            return
        echoed = facts.options.get("numjobs", "")
        if echoed.isdigit() and int(echoed) != planned:
            yield invalid("job-count", f"fio ran numjobs={echoed}, planned were {planned}", planned=planned, echoed=int(echoed))
            return
        hosts = len({job.hostname for job in facts.fio.jobs})
        groups = len({(job.hostname, job.group) for job in facts.fio.jobs})
        if entries not in {groups, planned, planned * hosts}:
            yield invalid("job-count", f"fio reports {entries} jobs, planned were {planned}", planned=planned, entries=entries)
