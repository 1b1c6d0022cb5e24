"""Did the load run as long as asked?"""

from __future__ import annotations

from collections.abc import Iterable

from ...units import format_number
from ...verdict import Reason
from ..facts.run_facts import RunFacts
from .base import invalid, note, suspect

SHORT = 0.98
LONG = 1.05
SLACK = 1.0
"""Seconds over the asked runtime that never matter: fio checks the time between I/Os."""


class RuntimeGate:
    """INVALID below 98 % of the asked runtime (unless the asked size was done by then), SUSPECT above 105 % and a second; of a set
    of files INVALID where it wasn't done within the runtime.

    An interrupted fio writes a healthy-looking rate over a shortened runtime; a straggler stretches the runtime of its
    group, and with it dilutes the rate (total I/Os over the longest job's time).
    """

    name = "runtime"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The measured runtime against the asked one."""
        asked, ran = facts.asked_runtime, facts.runtime
        if not asked or not facts.directions:
            return
        if "files" in facts.plan.extra:
            if not facts.ended_by_size:
                yield invalid("runtime", f"the files were not all done within {format_number(asked)} s", seconds=ran, asked_seconds=asked)
            return
        times = f"{format_number(ran)} s of {format_number(asked)} s"
        if ran < SHORT * asked:
            moved = sum(direction.size_bytes for direction in facts.parts.values())
            time_based = facts.plan.extra.get("time_based")
            if not time_based and facts.asked_bytes is not None and moved >= facts.asked_bytes:
                yield note("ended-by-size", f"the asked size was done after {times}", seconds=ran, asked_seconds=asked)
            else:
                yield invalid("runtime", f"the load ended early, after {times}", seconds=ran, asked_seconds=asked)
        elif ran > LONG * asked + SLACK:
            yield suspect("runtime", f"the load overran: {times}", seconds=ran, asked_seconds=asked)
