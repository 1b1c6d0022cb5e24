# SPDX-License-Identifier: Apache-2.0
"""From a study file's text to its tables: what TOML and the tables' own models say, each complaint
with its line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from iolab.base.errors import StudyError

from ..model import StudyFile
from .problems import Places, Problem, StudyProblems, complaints


def read_text(path: Path) -> str:
    """The file's text; StudyError where it can't be read."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(
            f"is not UTF-8 text (byte {error.start})", where=path, hint="a study is a TOML file"
        ) from None
    except OSError as error:
        raise StudyError(f"can't be read: {error.strerror or error}", where=path) from None


def parse_tables(text: str, path: Path) -> dict[str, Any]:
    """Its tables; StudyError with line and column where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error))
        words = str(error)[: place.start()] if place else str(error)
        lines = text.split("\n")
        line, column = (
            (int(place[1]), int(place[2]))
            if place and place[1]
            else (len(lines), len(lines[-1]) + 1)
        )
        raise StudyError(
            f"not valid TOML: {words[:1].lower()}{words[1:]}",
            where=f"{path}:{line}:{column}",
            hint="see https://toml.io for how tables, texts and lists are written",
        ) from None
    except RecursionError:
        raise StudyError("not valid TOML: nested too deeply", where=path) from None


def validate(
    data: dict[str, Any],
    places: Places,
    problems: list[Problem],
    left_out: set[str],
    path: Path,
    *,
    plain: bool,
) -> StudyFile:
    """The file's tables. What is wrong in `[study]`, `[factors]`, hooks, actions or at the top is
    noted and left out, so that the rest is checked too; anything else wrong ends it here. Names of
    factors left out are added to `left_out`."""
    while True:
        try:
            return StudyFile.model_validate(data)
        except ValidationError as error:
            complaint_list = complaints(error, StudyFile)
        for complaint in complaint_list:
            key = (
                ("factors", *complaint.path[2:])
                if plain and complaint.path[:2] == ("factors", "0")
                else complaint.path
            )
            problems.append(
                Problem(places.line(key), ".".join(key), complaint.wrong, complaint.allowed)
            )
        keys = {_removable(complaint.path) for complaint in complaint_list}
        for place in {key[1] for key in keys if key[:1] == ("factors",)}:
            keys |= _with_zipped(data["factors"][int(place)], place)
        left_out.update(key[2] for key in keys if key[:1] == ("factors",))
        if [key for key in keys if not _remove(data, key)]:
            raise StudyProblems(str(path), problems)


def _removable(path: tuple[str, ...]) -> tuple[str, ...]:
    """What can be left out with that key, so that the rest may be checked: a key of `[study]`, a
    factor, all hooks, all actions, an unknown table. Empty where it is none of these."""
    depth = {"study": 2, "factors": 3, "hooks": 1, "actions": 1}.get(
        path[0], 0 if path[0] in StudyFile.model_fields else 1
    )
    return path[:depth] if len(path) >= depth else ()


def _with_zipped(given: dict[str, Any], place: str) -> set[tuple[str, ...]]:
    """`zip` and `exclude` of a set, and the factors that go in step: without one of them the others
    can't be judged."""
    groups = given.get("zip")
    zipped = (
        {
            name
            for group in groups
            if isinstance(group, list)
            for name in group
            if isinstance(name, str)
        }
        if isinstance(groups, list)
        else set()
    )
    return {("factors", place, name) for name in {"zip", "exclude", *zipped} if name in given}


def _remove(data: dict[str, Any], key: tuple[str, ...]) -> bool:
    table: Any = data
    for part in key[:-1]:
        table = table[int(part)] if isinstance(table, list) else table.get(part)
    return bool(key) and isinstance(table, dict) and table.pop(key[-1], table) is not table
