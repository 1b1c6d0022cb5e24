# SPDX-License-Identifier: Apache-2.0
"""Could memory have held what was read?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.units import format_quantity
from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import note


class WorkingSetGate:
    """A note when buffered reads went over less data than the host has memory: the cache may have
    served them.

    None where the cache was cold when the run began, and each block was read once.
    """

    name = "working-set"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The size of the files against the host's memory, for reads without direct I/O."""
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
