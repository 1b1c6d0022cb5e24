# SPDX-License-Identifier: Apache-2.0
"""Commands that a study runs around and inside its runs: hooks, and actions at a time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from iolab.hosts.base.options import OptionProblem, problems_error

Level = Literal["study", "variant", "block", "run"]

LEVELS: tuple[Level, ...] = ("study", "variant", "block", "run")
"""What a hook surrounds. The hooks of a variant run when the study enters and leaves it."""


@dataclass(frozen=True)
class Command:
    """One command: `arguments` are executed unchanged; a text of the study became `("sh", "-c",
    text)`.

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


_ONE = "a text for the shell, or a list with a program and its arguments"
_MANY = "a text, or a list of commands, each a text for the shell or a list with a program and its arguments"


def _problem(given: Any) -> str | None:
    parts = given if isinstance(given, list) else [given]
    if not parts or not all(isinstance(part, str) for part in parts):
        return "is not a command"
    if any("\0" in part for part in parts) or not parts[0].strip():
        return "is an empty command" if not parts[0].strip() else "has a null character"
    return None


def _command_of(given: str | list[str]) -> Command:
    return (
        Command(("sh", "-c", given), given)
        if isinstance(given, str)
        else Command(tuple(given), shlex.join(given))
    )


def _one(given: Any) -> Command:
    if isinstance(given, Command):
        return given
    wrong = _problem(given)
    if wrong is not None:
        raise problems_error([OptionProblem((), wrong, _ONE)])
    return _command_of(given)


def _many(commands: Any) -> tuple[Command, ...]:
    if isinstance(commands, tuple):
        return commands
    if isinstance(commands, str):
        commands = [commands]
    if not isinstance(commands, list):
        raise problems_error([OptionProblem((), "is not a list of commands", _MANY)])
    wrong = [
        OptionProblem((str(place),), said, _ONE)
        for place, item in enumerate(commands)
        if (said := _problem(item)) is not None
    ]
    if wrong:
        raise problems_error(wrong)
    return tuple(_command_of(item) for item in commands)


_WORD = {"type": "string", "pattern": r"\S"}
_ONE_SCHEMA = {"anyOf": [_WORD, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}

OneCommand = Annotated[Command, PlainValidator(_one), WithJsonSchema(_ONE_SCHEMA)]
"""A command of a study file: a text goes to the shell (`sh -c`), a list is executed unchanged."""

CommandList = Annotated[
    tuple[Command, ...],
    PlainValidator(_many),
    WithJsonSchema({"anyOf": [_WORD, {"type": "array", "items": _ONE_SCHEMA}]}),
]
"""Commands in order: a text is one, a list holds one in each place."""
