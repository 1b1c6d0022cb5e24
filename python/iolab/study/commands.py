"""Commands that a study runs around and inside its runs: hooks, and actions at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["study", "variant", "block", "run"]

LEVELS: tuple[Level, ...] = ("study", "variant", "block", "run")
"""What a hook stands around. A variant's hooks run whenever the study comes to it from another variant, and leaves it."""


@dataclass(frozen=True)
class Command:
    """One command: `arguments` are executed as they stand; a text of the study became `("sh", "-c", text)`.

    `text` is how the study has it, for records and messages.
    """

    arguments: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Hooks:
    """Commands before and after something, each list in order; what isn't named has none."""

    before: Mapping[Level, tuple[Command, ...]] = field(default_factory=dict)
    after: Mapping[Level, tuple[Command, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Action:
    """Something done inside every run: a command, or a mark alone.

    Attributes:
        at: seconds from the start of the measured window.
        mark: its name, by which the windows before and after it are compared.
        command: None for a mark alone.
    """

    at: float
    mark: str
    command: Command | None = None
