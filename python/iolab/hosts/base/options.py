# SPDX-License-Identifier: Apache-2.0
"""Types for the option models of plugins, so that every plugin reads a duration or a size alike and
names bad keys alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic_core import PydanticCustomError

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size, parse_fio_time


class Options(BaseModel):
    """Base of every plugin's option model: unknown keys are errors, values don't change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def consent(self) -> tuple[tuple[str, str], ...]:
        """What these options run or change that the user must agree to first: (key, text) each."""
        return ()


class OptionProblem(NamedTuple):
    """What is wrong with one key of a free table, where a model's own fields can't say it.

    Attributes:
        key: path below the field that is validated, such as `("size",)`.
        wrong: what is wrong; allowed: what would be right.
    """

    key: tuple[str, ...]
    wrong: str
    allowed: str


PROBLEMS = "option_problems"
"""Type of the validation error that carries `OptionProblem`s in its context, under the same key."""


def problems_error(problems: Sequence[OptionProblem]) -> PydanticCustomError:
    """An error for a validator to raise that reports several keys at once."""
    text = "; ".join(
        f"{'.'.join(problem.key)}: {problem.wrong}; {problem.allowed}" for problem in problems
    )
    return PydanticCustomError(PROBLEMS, "{text}", {"text": text, PROBLEMS: list(problems)})


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(
            "is not a duration; write seconds or a unit: 60, '90s', '2m', '1h30m', '500ms'"
        )
    try:
        return parse_fio_time(value)
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from None


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("is not a size; write it as fio does: 8k, 128k, 64M, 1g")
    try:
        return parse_fio_size(value)
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from None


_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {
            "type": "string",
            "pattern": r"^\s*\d+(\.\d+)?\s*([A-Za-z]+\s*\d+(\.\d+)?\s*)*[A-Za-z]*\s*$",
        },
    ]
}
_SIZE_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^\s*\d+\s*([kmgtpKMGTP]?i?[bB]?)\s*$"},
    ]
}

Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema(_DURATION_SCHEMA)]
"""Seconds; written as a number of seconds or with a unit, as fio does."""

Size = Annotated[int, BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
"""Bytes; written as a number of bytes or with a unit, as fio does (k is 1024)."""
