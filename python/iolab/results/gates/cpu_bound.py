"""Was the load generator or the host out of CPU?"""

from __future__ import annotations

from collections.abc import Iterable

from ...verdict import Reason
from ..facts import RunFacts
from .base import suspect
from .littles_law import SATURATED_CPU


class CpuBoundGate:
    """SUSPECT when a job used 90 % of a CPU on average, or all jobs together 90 % of the host's CPUs.

    Then the number tells how fast the load generator is, not the storage.
    """

    name = "cpu-bound"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """fio's own CPU shares against one CPU and against the host's count, where known."""
        if facts.cpu >= SATURATED_CPU:
            yield suspect("cpu-bound", f"each job used {100 * facts.cpu:.0f} % of a CPU: the load generator is the limit",
                          cpu_share=facts.cpu)
            return
        cpus = facts.host.get("cpus")
        if cpus and facts.jobs and facts.cpu * facts.jobs >= SATURATED_CPU * cpus:
            share = facts.cpu * facts.jobs / cpus
            yield suspect("cpu-bound", f"the jobs used {100 * share:.0f} % of the host's {cpus:.0f} CPUs", cpu_share=share)
