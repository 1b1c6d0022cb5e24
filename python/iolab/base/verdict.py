# SPDX-License-Identifier: Apache-2.0
"""Whether a number can be trusted: a level with its reasons, which travels with the number
everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Level(Enum):
    """How far a run can be trusted. UNJUDGED is for published numbers, which have no evidence."""

    OK = "OK"
    UNJUDGED = "UNJUDGED"
    SUSPECT = "SUSPECT"
    INVALID = "INVALID"

    @property
    def rank(self) -> int:
        """Order from trusted (0) to refused (3)."""
        return list(Level).index(self)


@dataclass(frozen=True)
class Reason:
    """Why a gate spoke. A reason of level OK is a note: it explains and takes nothing away.

    Attributes:
        code: stable name for programs, such as `stall`.
        level: what the reason does to the run.
        text: the reason in words, with its figures.
        data: the same figures for programs; base units, units in the keys.
    """

    code: str
    level: Level
    text: str
    data: dict[str, Any] = field(default_factory=dict, hash=False)

    def as_json(self) -> dict[str, Any]:
        """Plain data: `{"code", "level", "text", **data}`."""
        level = "NOTE" if self.level is Level.OK else self.level.value
        return {"code": self.code, "level": level, **self.data, "text": self.text}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reason:
        """The reason that `as_json` wrote."""
        rest = {key: value for key, value in data.items() if key not in ("code", "level", "text")}
        level = Level.OK if data["level"] == "NOTE" else Level(data["level"])
        return cls(data["code"], level, data["text"], rest)


@dataclass(frozen=True)
class Verdict:
    """The worst of the gates' reasons, with all of them."""

    level: Level
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, reasons: Iterable[Reason], *, judged: bool = True) -> Verdict:
        """The verdict of these reasons, the worst first; `judged=False` starts from UNJUDGED (a
        published table)."""
        listed = tuple(sorted(reasons, key=lambda reason: -reason.level.rank))
        levels = [reason.level for reason in listed] + [Level.OK if judged else Level.UNJUDGED]
        return cls(max(levels, key=lambda level: level.rank), listed)

    @property
    def blames(self) -> tuple[Reason, ...]:
        """The reasons that took something away."""
        return tuple(reason for reason in self.reasons if reason.level is not Level.OK)

    @property
    def notes(self) -> tuple[Reason, ...]:
        """The reasons that only explain."""
        return tuple(reason for reason in self.reasons if reason.level is Level.OK)

    def has(self, code: str) -> bool:
        """Whether a reason of that code is there."""
        return any(reason.code == code for reason in self.reasons)

    def as_json(self) -> dict[str, Any]:
        """`{"level": "SUSPECT", "reasons": [...]}`, as `show --format json` prints it."""
        return {"level": self.level.value, "reasons": [reason.as_json() for reason in self.reasons]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Verdict:
        """The verdict that `as_json` wrote."""
        return cls(
            Level(data["level"]), tuple(Reason.from_json(reason) for reason in data["reasons"])
        )
