# SPDX-License-Identifier: Apache-2.0
"""Did the host stay the same?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import suspect


class EnvironmentGate:
    """SUSPECT when a fact of the host (kernel, fio, scheduler...) differs from that of the first
    run there; of imported files, with an unknown host, from that of the variant's first run."""

    name = "environment"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Each fact that is known on both sides and differs."""
        for name, first in facts.reference.items():
            now = facts.environment.get(name)
            if now is not None and now != first:
                yield suspect(
                    "environment-drift",
                    f"{name} was '{first}' in the first run and is '{now}' here",
                    fact=name,
                    first=first,
                    now=now,
                )
