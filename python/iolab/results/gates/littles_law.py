"""Does the load obey Little's law?"""

from __future__ import annotations

from collections.abc import Iterable

from ...units import format_number, format_quantity
from ...verdict import Reason
from ..facts import RunFacts, mean_latency
from .base import invalid, note, suspect

HIGH = 1.03
LOW = 0.97
SLOW_SECONDS = 100e-6
"""Above this mean latency the time a job spends between I/Os can't explain a gap."""
SATURATED_CPU = 0.9


def concurrency_reason(in_flight: float, concurrency: float, latency: float, cpu_bound: bool | None) -> Reason | None:
    """The reason, if any, that L = `in_flight` against C = `concurrency` gives; `cpu_bound` None for published numbers."""
    ratio = in_flight / concurrency
    data = {"in_flight": in_flight, "concurrency": concurrency, "ratio": ratio}
    if ratio > HIGH and cpu_bound is not None:
        text = (f"Little's law: {format_number(in_flight)} I/Os in flight by rate and latency, but only {format_number(concurrency)} can "
                "be: a unit or a field is wrong")
        return invalid("littles-law", text, **data)
    if ratio < LOW or ratio > HIGH:
        share = (f"time outside I/O: {format_number(100 * (1 - ratio), 3)} %" if ratio < LOW
                 else f"more I/Os in flight than jobs: L/C = {format_number(ratio)}")
        if cpu_bound is False and latency >= SLOW_SECONDS:
            return suspect("time-outside-io", f"{share} at a mean latency of {format_quantity(latency, 's', 3)}", **data)
        return note("time-outside-io", share, **data)
    return None


class LittlesLawGate:
    """L = rate x mean latency against C = jobs x effective depth, closed loops only (Little 1961).

    L > 1.03 C is a unit or field error: INVALID. L < 0.97 C is time that jobs spend outside I/O: a note, and SUSPECT
    only where the mean latency is at least 100 µs and neither a job saturates its CPU nor anyone the host's. Of a set of
    files it is never more than a note: they have to be opened, and some jobs are through before the others.
    """

    name = "littles-law"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The in-flight count over all operations, syncs included, against what the jobs can hold."""
        found = in_flight(facts)
        if found is None or not facts.concurrency:
            return
        saturated = max(facts.cpu, facts.host_busy or 0.0) >= SATURATED_CPU or "files" in facts.plan.extra
        reason = concurrency_reason(found[0], facts.concurrency, found[1], saturated)
        if reason is not None:
            yield reason


def in_flight(facts: RunFacts) -> tuple[float, float] | None:
    """(I/Os in flight by Little's law, mean latency in seconds) of a closed loop; None for open loops and without I/O."""
    if facts.offered_iops is not None or not facts.jobs or facts.runtime <= 0:
        return None
    inside, waited, ios = 0.0, 0.0, 0.0
    for direction in facts.parts.values():
        latency = mean_latency(direction)
        if latency is None:
            continue
        rate = direction.iops or direction.ios / facts.runtime
        inside += rate * latency.mean
        waited += direction.ios * latency.mean
        ios += direction.ios
    return (inside, waited / ios) if ios else None
