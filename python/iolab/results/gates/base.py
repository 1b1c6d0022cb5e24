"""What a gate is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ...verdict import Level, Reason
from ..facts import RunFacts


class Gate(Protocol):
    """Looks at the facts of one run and says what speaks against (or about) its numbers."""

    name: str

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Reasons, none when all is well. Never raises for odd evidence: what isn't there can't be judged."""
        ...


def invalid(code: str, text: str, **data: object) -> Reason:
    """A reason that takes the run out of every estimate."""
    return Reason(code, Level.INVALID, text, data)


def suspect(code: str, text: str, **data: object) -> Reason:
    """A reason that leaves the run in, footnoted."""
    return Reason(code, Level.SUSPECT, text, data)


def note(code: str, text: str, **data: object) -> Reason:
    """Something a reader should know that takes nothing away."""
    return Reason(code, Level.OK, text, data)
