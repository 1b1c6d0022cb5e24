# SPDX-License-Identifier: Apache-2.0
"""Did as many jobs run as were planned?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import invalid, suspect


class JobCountGate:
    """INVALID when fio's entries are neither one per planned job nor one per group, or its echo
    names another numjobs.

    group_reporting is a flag, which fio doesn't echo; an entry for each group and host is therefore
    allowed. The layout of an imported run is no plan: SUSPECT where fio's echo, its entries or the
    runtimes that it adds up say otherwise.
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
            most = planned * sections * len({job.origin for job in facts.fio.jobs})
            if not len({job.group for job in facts.fio.jobs}) <= entries <= most:
                yield invalid(
                    "job-count",
                    f"fio reports {entries} jobs, planned were {planned}",
                    planned=planned,
                    entries=entries,
                )
            return
        echoed = facts.options.get("numjobs", "")
        hosts = len({job.origin for job in facts.fio.jobs})
        groups = len({(job.origin, job.group) for job in facts.fio.jobs})
        names = len({job.name for job in facts.fio.jobs})
        imported = facts.plan.status == "imported"
        speak, said = (suspect, "the layout says") if imported else (invalid, "planned were")
        proven = facts.proven_jobs
        if proven is not None and not {proven, entries} & {
            planned * times for times in (1, hosts, names, hosts * names)
        }:
            yield suspect(
                "job-count",
                f"fio ran {proven} job{'' if proven == 1 else 's'}, the layout says {planned}",
                planned=planned,
                ran=proven,
            )
        elif echoed.isdigit() and planned not in (
            {int(echoed), int(echoed) * hosts, entries}
            if imported
            else {int(echoed) * (len(facts.clients) or 1)}
        ):
            yield speak(
                "job-count",
                f"fio ran numjobs={echoed}, {said} {planned}",
                planned=planned,
                echoed=int(echoed),
            )
        elif entries not in {groups, planned, planned * hosts} | (
            {planned * hosts * names} if imported else set()
        ):
            yield speak(
                "job-count",
                f"fio reports {entries} jobs, {said} {planned}",
                planned=planned,
                entries=entries,
            )
