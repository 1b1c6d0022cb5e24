# SPDX-License-Identifier: Apache-2.0
"""Was the load generator or the host out of CPU?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import note, suspect

BUSY_CPU = 0.75
"""Of the host's CPUs: from here on, what waits for a CPU begins to show."""


SATURATED_CPU = 0.9
SHORTEST = 1.0
"""Seconds; in a shorter run what jobs took to begin and to end, which fio counts in, may be more
than what the load took."""


class CpuBoundGate:
    """SUSPECT when a job used 90 % of a CPU on average, or the host's CPUs together were 90 % busy
    over the window.

    Then the number shows how fast the load generator or the host is, not the storage. Where the
    host's CPUs were not recorded, the CPU time of all jobs together replaces it, which does not
    include the kernel's own threads; neither is asked of runs shorter than a second. From 75 % of
    the host's CPUs on it is noted: an emulated host, or a host with other load, often reaches it
    before that. Where clients put the load on the host, its CPUs are the server's: that they are
    busy is a result, and noted.
    """

    name = "cpu-bound"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """fio's own CPU share against one CPU; the host's busy share, or that of all jobs, against
        all CPUs."""
        long_enough = facts.runtime >= SHORTEST
        if long_enough and facts.cpu >= SATURATED_CPU:
            yield suspect(
                "cpu-bound",
                f"each job used {100 * facts.cpu:.0f} % of a CPU: the load generator is the limit",
                cpu_share=facts.cpu,
            )
            return
        if facts.host_busy is not None:
            if facts.host_busy >= SATURATED_CPU and not facts.clients:
                yield suspect(
                    "cpu-bound",
                    f"host CPU-bound: its CPUs were {100 * facts.host_busy:.0f} % busy",
                    cpu_share=facts.host_busy,
                )
            elif facts.host_busy >= BUSY_CPU:
                machine = "server" if facts.clients else "host"
                yield note(
                    "cpu-busy",
                    f"the {machine}'s CPUs were {100 * facts.host_busy:.0f} % busy",
                    cpu_share=facts.host_busy,
                )
            return
        cpus = None if facts.clients else facts.host.get("cpus")
        if long_enough and cpus and facts.jobs and facts.cpu * facts.jobs >= SATURATED_CPU * cpus:
            share = facts.cpu * facts.jobs / cpus
            yield suspect(
                "cpu-bound",
                f"the jobs used {100 * share:.0f} % of the host's {cpus:.0f} CPUs",
                cpu_share=share,
            )
