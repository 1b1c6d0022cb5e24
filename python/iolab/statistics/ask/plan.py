# SPDX-License-Identifier: Apache-2.0
"""The plan of a question: which tier answers it, why not another, and what is read for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...errors import UsageError
from ..answers.answers import Answer
from ..question import Question


@dataclass(frozen=True)
class Part:
    """What is read of one kind of data.

    Attributes:
        name: of the kind. first_ns, until_ns: the time that it is of, None where nobody knows
        before it was read. files: how many; 0 for rows in memory. rows, bytes: to read, None where
        nobody knows.
    """

    name: str
    first_ns: int | None
    until_ns: int | None
    files: int
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class Coverage:
    """A tier answers. answer: gives the answer. parts: says what is read for it. notes: what is
    decided only while it is read."""

    answer: Callable[[], Answer]
    parts: Callable[[], Sequence[Part]]
    notes: tuple[str, ...] = ()


class Tier(Protocol):
    """Data that answers questions."""

    @property
    def name(self) -> str:
        """As plans print it."""
        ...

    def covers(self, question: Question) -> Coverage | str:
        """How it answers a question, or why it doesn't."""
        ...


@dataclass(frozen=True)
class Plan:
    """How a question is answered. tier: by what. refusals: tiers that were preferred, with their
    reasons. spare: tiers not asked."""

    question: Question
    tier: str
    coverage: Coverage
    refusals: tuple[tuple[str, str], ...]
    spare: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """`{"statistic", "tier", "parts", "refused", "not_needed", "notes"}`, for JSON."""
        parts = [
            {
                "name": each.name,
                "first_ns": each.first_ns,
                "until_ns": each.until_ns,
                "files": each.files,
                "rows": each.rows,
                "bytes": each.bytes,
            }
            for each in self.coverage.parts()
        ]
        return {
            "statistic": self.question.name,
            "tier": self.tier,
            "parts": parts,
            "refused": [{"tier": name, "reason": reason} for name, reason in self.refusals],
            "not_needed": list(self.spare),
            "notes": list(self.coverage.notes),
        }


def plan(question: Question, tiers: Sequence[Tier]) -> Plan:
    """The plan: the first tier that covers a question answers it. UsageError where none does, with
    the reason of each."""
    refusals: list[tuple[str, str]] = []
    for place, tier in enumerate(tiers):
        found = tier.covers(question)
        if isinstance(found, Coverage):
            return Plan(
                question,
                tier.name,
                found,
                tuple(refusals),
                tuple(each.name for each in tiers[place + 1 :]),
            )
        refusals.append((tier.name, found))
    raise UsageError(
        f"nothing answers '{question.name}'",
        hint="; ".join(f"{name}: {reason}" for name, reason in refusals),
    )
