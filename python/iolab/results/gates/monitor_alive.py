"""Did the monitors live through the window?"""

from __future__ import annotations

from collections.abc import Iterable

from ...verdict import Reason
from ..facts import RunFacts
from .base import invalid

SHARE = 0.9


class MonitorAliveGate:
    """INVALID when a monitor that was planned left nothing, or a device has less than 90 % (less one) of the samples due.

    A monitor that died takes its numbers' meaning with it: an average over the first ten seconds isn't one over sixty.
    """

    name = "monitor-alive"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Planned sources against files, samples got against samples due."""
        planned = list(facts.plan.extra.get("sources", ()))
        if planned and not facts.monitor_files and not facts.damaged:
            yield invalid("monitor-missing", f"the monitors {', '.join(planned)} left nothing", sources=planned)
        if facts.runtime <= 0:
            return
        for name, samples in facts.devices.items():
            got = max((len(values) for values in samples.columns.values()), default=0)
            due = facts.runtime / samples.interval
            if got < SHARE * due - 1:
                yield invalid("monitor-dead", f"the monitor of {name} has {got} of {due:.0f} samples", device=name,
                              samples=got, due=round(due))
