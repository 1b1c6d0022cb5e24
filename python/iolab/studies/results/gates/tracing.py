# SPDX-License-Identifier: Apache-2.0
"""Was the kernel traced by somebody else while the load ran?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import note


class TracingGate:
    """A note when kernel tracing that is not the study's own was on at the run's start or end: what
    is traced takes longer."""

    name = "tracing"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """One note for all that was on."""
        tracing = facts.plan.extra.get("tracing")
        if isinstance(tracing, list) and tracing:
            yield note(
                "tracing",
                f"the kernel was traced during the run: {'; '.join(map(str, tracing))}",
                traced=len(tracing),
            )
