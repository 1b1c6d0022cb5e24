"""Could memory have held what was read?"""

from __future__ import annotations

from collections.abc import Iterable

from ...units import format_quantity
from ...verdict import Reason
from ..facts import RunFacts
from .base import note


class WorkingSetGate:
    """A note when buffered reads went over less data than the host has memory: the cache may have served them."""

    name = "working-set"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The size of the files against the host's memory, for reads without direct I/O."""
        memory, size = facts.host.get("memory_bytes"), facts.data_bytes
        if not memory or size is None or "read" not in facts.directions or facts.options.get("direct") == "1":
            return
        if size < memory:
            yield note("fits-in-memory", f"reads over {format_quantity(size, 'B', 3)} on a host with "
                       f"{format_quantity(memory, 'B', 3)} of memory: a cache may have served them",
                       working_set_bytes=size, memory_bytes=memory)
