# SPDX-License-Identifier: Apache-2.0
"""Could memory have held what was read?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.units import format_number, format_quantity
from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import note

FROM_DISK = 0.1
"""Below this share of the I/Os that were read, requests of the disks leave no doubt for a load that
reads at random: the kernel merges few of them."""
LARGEST = 4 << 20
"""Bytes of the largest request that common disks take (max_hw_sectors_kb): sequential reads can't
need fewer."""
_ENOUGH_READS = 1000
_ENOUGH_SECONDS = 0.5
"""fio looks at the disks' counters four times a second."""


class WorkingSetGate:
    """A note when the disks below the files did not do the reads (fio's `disk_util`), direct or
    not: a cache served them. Else a note when buffered reads went over less data than the host has memory: the cache may have
    served them.

    None where the cache was cold when the run began, and each block was read once.
    """

    name = "working-set"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Requests of fio's disks against the load's reads; the size of the files against the
        host's memory, for reads without direct I/O."""
        cached = _from_cache(facts)
        if cached is not None:
            yield cached
            return
        memory, size = facts.host.get("memory_bytes"), facts.data_bytes
        if (
            not memory
            or size is None
            or "read" not in facts.directions
            or facts.options.get("direct") == "1"
        ):
            return
        if size >= memory:
            return
        cold = facts.plan.extra.get("cold") is True
        if cold and _each_once(facts, size):
            return
        served = (
            "cold at the start, a cache may have served what was read again"
            if cold
            else "a cache may have served them"
        )
        yield note(
            "fits-in-memory",
            f"reads over {format_quantity(size, 'B', 3)} on a host with "
            f"{format_quantity(memory, 'B', 3)} of memory: {served}",
            working_set_bytes=size,
            memory_bytes=memory,
        )


def _from_cache(facts: RunFacts) -> Reason | None:
    """A note where fio's disks have too few read requests for what the jobs read.

    The requests are those of the whole invocation and of all layers that fio lists, so that they
    are too many rather than too few.
    """
    read, fio = facts.parts.get("read"), facts.fio
    if read is None or fio is None or fio.disk_reads is None or facts.clients or facts.processes:
        return None
    requests = fio.disk_reads
    if read.ios < _ENOUGH_READS or read.runtime < _ENOUGH_SECONDS:
        return None
    pattern = facts.options.get("rw", facts.options.get("readwrite", ""))
    if len(fio.jobs) == 1 and pattern.startswith("rand"):
        needed = FROM_DISK * read.ios
    else:
        needed = read.size_bytes / LARGEST
    if requests >= needed:
        return None
    return note(
        "cached-reads",
        f"a cache served the load: {format_number(read.ios)} reads, and {requests} read requests "
        "of the disks below (fio's disk_util)",
        reads=read.ios,
        disk_reads=requests,
    )


def _each_once(facts: RunFacts, size: int) -> bool:
    """Whether no block was read twice: no more was read than there is, and nothing was written
    first or chosen again and again."""
    planned = facts.plan.extra.get("options")
    options = {**facts.options, **(planned if isinstance(planned, dict) else {})}
    repeats = any(
        str(options.get(name, 0)) not in ("0", "False", "random")
        for name in ("norandommap", "random_distribution")
    )
    return (
        not repeats
        and facts.ended_by_size
        and facts.parts.keys() <= {"read"}
        and facts.parts["read"].size_bytes <= size
    )
