# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a study file: every problem at once, each with its line, and what would be
right."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from iolab.base.errors import StudyError
from iolab.hosts.base.options import PROBLEMS

from .lines import Path


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        line: from 1; key: as the file would write it; wrong, allowed: in words.
    """

    line: int
    key: str
    wrong: str
    allowed: str

    def text(self, file: str) -> str:
        """`file:line: key: what is wrong; what is allowed`."""
        return f"{file}:{self.line}: {self.key}: {self.wrong}" + (
            f"; {self.allowed}" if self.allowed else ""
        )


class StudyProblems(StudyError):
    """All problems of one study file; prints a line each, in the file's order."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        unique = {
            (problem.line, problem.key, problem.wrong): problem
            for problem in sorted(set(problems), reverse=True)
        }
        self.problems = tuple(sorted(unique.values()))
        first = self.problems[0]
        super().__init__(
            f"{first.key}: {first.wrong}", where=f"{file}:{first.line}", hint=first.allowed or None
        )
        self._file = file

    def __str__(self) -> str:
        return "\n".join(problem.text(self._file) for problem in self.problems)


class Places:
    """Finds the line of a key path, or of the nearest table above it."""

    def __init__(self, lines: Mapping[Path, int]) -> None:
        self._lines = lines

    def has(self, path: Path) -> bool:
        """Whether exactly that key is in the file."""
        return path in self._lines

    def line(self, path: Path, *others: Path) -> int:
        """Line of the first of these keys that is in the file, else of the nearest table above
        `path`."""
        for candidate_path in (*others, path):
            if candidate_path in self._lines:
                return self._lines[candidate_path]
        for length in range(len(path) - 1, 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return 1


@dataclass(frozen=True)
class Complaint:
    """A problem before its line is known: key path, what is wrong, what is allowed."""

    path: Path
    wrong: str
    allowed: str


def complaints(error: ValidationError, model: type[BaseModel]) -> list[Complaint]:
    """pydantic's errors in the project's words. Branches of a union count as one error."""
    complaint_by_path: dict[Path, Complaint] = {}
    for detail in error.errors(include_url=False):
        for complaint in _translate(detail, model):
            complaint_by_path.setdefault(complaint.path, complaint)
    return list(complaint_by_path.values())


_LIMITS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than_equal": "at most",
    "less_than": "less than",
}
_SCALARS = {"str", "int", "float", "bool"}
_WORDS = {
    "missing": ("is missing", ""),
    "string_type": ("is not a text", "write it in quotes"),
    "int_type": ("is not a whole number", ""),
    "int_parsing": ("is not a whole number", ""),
    "int_from_float": ("is not a whole number", ""),
    "float_type": ("is not a number", ""),
    "float_parsing": ("is not a number", ""),
    "bool_type": ("is not true or false", ""),
    "bool_parsing": ("is not true or false", ""),
    "dict_type": ("is not a table", "keys and values"),
    "model_type": ("is not a table", "keys and values"),
    "list_type": ("is not a list", "values in [ ]"),
}


def _translate(each: Any, model: type[BaseModel]) -> list[Complaint]:
    kind, context = each["type"], each.get("ctx", {})
    path = tuple(str(part) for part in each["loc"])
    if kind == PROBLEMS:
        return [
            Complaint((*path, *problem.key), problem.wrong, problem.allowed)
            for problem in context[PROBLEMS]
        ]
    if path and path[-1].startswith("list["):  # the other branch of a level or a list of levels
        return [
            Complaint(path[:-1], f"is {_kind_of(each['input'])}", "a text, a number, true or false")
        ]
    if path and path[-1] in _SCALARS:
        return [
            Complaint(path[:-1], f"is {_kind_of(each['input'])}", "a text, a number, true or false")
        ]
    if kind == "extra_forbidden":
        return [Complaint(path, "is unknown", _advice(path[-1], _fields(model, path[:-1])))]
    if kind == "missing":
        return [Complaint(path, "is missing", _description(model, path))]
    if kind == "value_error":
        wrong, _, allowed = str(context["error"]).partition("; ")
        return [
            Complaint(
                path, f"{each['input']!r} {wrong}" if not wrong.startswith("'") else wrong, allowed
            )
        ]
    if kind == "literal_error":
        return [Complaint(path, f"is {each['input']!r}", f"one of {context['expected']}")]
    if kind in _LIMITS:
        return [
            Complaint(
                path, f"is {each['input']!r}", f"{_LIMITS[kind]} {next(iter(context.values())):g}"
            )
        ]
    if kind == "string_pattern_mismatch":
        return [
            Complaint(
                path,
                f"is {each['input']!r}",
                _description(model, path) or f"of the form {context['pattern']}",
            )
        ]
    wrong, allowed = _WORDS.get(kind, (each["msg"], ""))
    return [
        Complaint(
            path,
            wrong if kind not in _WORDS else f"{each['input']!r} {wrong}",
            allowed or _description(model, path),
        )
    ]


def _advice(word: str, fields: Sequence[str]) -> str:
    """As `near`; in a table with options of a program the word may be one of these."""
    advice = near(word, fields)
    if "options" not in fields or guess(word, fields):
        return advice
    return f"an option of the program is written options.{word}; {advice}"


def near(word: str, known: Sequence[str]) -> str:
    """Advice for an unknown word: what looks like it, and all there is."""
    return f"{guess(word, known)}there are: {', '.join(known)}" if known else "nothing goes here"


def guess(word: str, known: Collection[str]) -> str:
    """`did you mean 'numjobs'? `, with a space behind; empty where nothing looks like it."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean '{close[0]}'? " if close else ""


def _kind_of(value: Any) -> str:
    return (
        "a list"
        if isinstance(value, list)
        else "a table"
        if isinstance(value, dict)
        else f"a {type(value).__name__}"
    )


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The table at a key path, through tables, lists of them and tables by name; None if it is
    unknown."""
    kind: Any = model
    for part in path:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(part)
            kind = None if field is None else field.annotation
        elif get_origin(kind) in (list, dict):
            kind = get_args(kind)[-1]
        else:
            return None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _fields(model: type[BaseModel], path: Path) -> list[str]:
    model_of_table = _model_at(model, path)
    return list(model_of_table.model_fields) if model_of_table is not None else []


def _description(model: type[BaseModel], path: Path) -> str:
    parent = _model_at(model, path[:-1])
    field = None if parent is None else parent.model_fields.get(path[-1])
    return (field.description or "") if field is not None else ""
