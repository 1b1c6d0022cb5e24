# SPDX-License-Identifier: Apache-2.0
"""What a gate is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from iolab.base import registry
from iolab.base.errors import PluginError
from iolab.base.verdict import Level, Reason

from ..facts.run_facts import RunFacts


class Gate(Protocol):
    """Looks at the facts of one run and says what speaks against (or about) its numbers."""

    name: str

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Reasons, none when all is well. Never raises for odd evidence: what isn't there can't be
        judged."""


def judge(facts: RunFacts) -> Iterator[Reason]:
    """The reasons of every registered gate, those of installed packages included.

    A third party's gate that fails makes the run SUSPECT: the run was not judged as that gate's
    user expects.
    """
    for name in registry.names("gate"):
        try:
            gate: Gate = registry.load("gate", name)()
            reasons = list(gate.judge(facts))
        except Exception as error:
            if name in registry.built_in("gate"):
                raise
            what = (
                error.message
                if isinstance(error, PluginError)
                else f"the gate '{name}' failed: {type(error).__name__}: {error}"
            )
            reasons = [suspect("gate-failed", what, gate=name)]
        yield from reasons


def invalid(code: str, text: str, **data: object) -> Reason:
    """A reason that takes the run out of every estimate."""
    return Reason(code, Level.INVALID, text, data)


def suspect(code: str, text: str, **data: object) -> Reason:
    """A reason that leaves the run in, footnoted."""
    return Reason(code, Level.SUSPECT, text, data)


def note(code: str, text: str, **data: object) -> Reason:
    """Something a reader should know that takes nothing away."""
    return Reason(code, Level.OK, text, data)
