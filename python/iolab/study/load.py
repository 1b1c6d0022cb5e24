"""Reading a study file: from text to cells whose options every plugin has accepted."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from .. import registry
from ..errors import StudyError, UsageError
from ..hosts.options import Options
from .cells import Cell, CellBuilder
from .lines import key_lines
from .model import StudyFile
from .problems import Places, Problem, StudyProblems, complaints, near


@dataclass(frozen=True)
class Study:
    """A study, checked.

    Attributes:
        file: where it was read; text: its very words, kept with the results.
        name, description, baseline, repetitions, seed, order: as in the file, defaults filled in.
        variants: names in the file's order; factors: name to levels.
        cells: every variant at every combination of levels, in the file's order, variant by variant.
        sources: name to options.
    """

    file: Path
    text: str
    name: str
    description: str
    baseline: str
    repetitions: int
    seed: int
    order: str
    variants: tuple[str, ...]
    factors: Mapping[str, tuple[Any, ...]]
    cells: tuple[Cell, ...]
    sources: Mapping[str, Options]

    def resolved(self) -> dict[str, Any]:
        """The study as plain data with every default filled in, for the manifest."""
        return {
            "study": {"name": self.name, "description": self.description, "baseline": self.baseline,
                      "repetitions": self.repetitions, "seed": self.seed, "order": self.order},
            "factors": {name: list(levels) for name, levels in self.factors.items()},
            "sources": {name: options.model_dump(mode="json") for name, options in self.sources.items()},
            "cells": [{"variant": cell.variant, "factors": dict(cell.factors), **cell.resolved()} for cell in self.cells],
        }


def load_study(path: Path) -> Study:
    """Read and check a study file.

    Raises StudyError where it can't be read or is no TOML, StudyProblems with everything that is wrong otherwise.
    """
    text = _read(path)
    data = _parse(text, path)
    places = Places(key_lines(text))
    problems: list[Problem] = []
    left_out: set[str] = set()
    file = _validated(data, places, problems, left_out, path)
    name = file.study.name or _name_from(path, problems)
    variants = tuple(file.variants)
    baseline = file.study.baseline or variants[0]
    if baseline not in variants:
        problems.append(Problem(places.line(("study", "baseline")), "study.baseline", f"no variant is called '{baseline}'",
                                near(baseline, variants)))
    sources = _sources(file, places, problems)
    builder = CellBuilder(file, places, problems, left_out)
    cells = tuple(itertools.chain.from_iterable(builder.cells_of(variant) for variant in variants))
    if problems:
        raise StudyProblems(str(path), problems)
    return Study(path, text, name, file.study.description, baseline, file.study.repetitions, file.study.seed, file.study.order,
                 variants, {factor: tuple(levels) for factor, levels in file.factors.items()}, cells, sources)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(f"is not UTF-8 text (byte {error.start})", where=path, hint="a study is a TOML file") from None
    except OSError as error:
        raise StudyError(f"can't be read: {error.strerror or error}", where=path) from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        words = str(error)[:place.start()] if place else str(error)
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        raise StudyError(f"not valid TOML: {words[:1].lower()}{words[1:]}", where=f"{path}:{line}",
                         hint="see https://toml.io for how tables, texts and lists are written") from None
    except RecursionError:
        raise StudyError("not valid TOML: nested too deeply", where=path) from None


def _validated(data: dict[str, Any], places: Places, problems: list[Problem], left_out: set[str], path: Path) -> StudyFile:
    """The file's tables. What is wrong in `[study]`, `[factors]` or at the top is noted and left out, so that the rest is
    checked too; anything else wrong ends it here. Names of factors left out are added to `left_out`."""
    while True:
        try:
            return StudyFile.model_validate(data)
        except ValidationError as error:
            found = complaints(error, StudyFile)
        problems += [Problem(places.line(each.path), ".".join(each.path), each.wrong, each.allowed) for each in found]
        left_out.update(each.path[1] for each in found if len(each.path) > 1 and each.path[0] == "factors")
        if not all(_removed(data, each.path) for each in found):
            raise StudyProblems(str(path), problems)


def _removed(data: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Remove a key of `[study]`, a factor or an unknown table; False where it is none of these."""
    if len(path) > 1 and path[0] in ("study", "factors") and isinstance(data.get(path[0]), dict):
        data[path[0]].pop(path[1], None)
        return True
    if len(path) == 1 and path[0] not in StudyFile.model_fields:
        return data.pop(path[0], None) is not None
    return False


def _name_from(path: Path, problems: list[Problem]) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).lstrip(".-_")
    if not name:
        problems.append(Problem(1, "study.name", f"can't be taken from the file's name '{path.name}'",
                                "write name = \"...\" in [study]"))
    return name


def _sources(file: StudyFile, places: Places, problems: list[Problem]) -> dict[str, Options]:
    found: dict[str, Options] = {}
    for name, given in file.sources.items():
        try:
            model = registry.load("source", name).options
            found[name] = cast(Options, model.model_validate(given))
        except UsageError as error:
            problems.append(Problem(places.line(("sources", name)), f"sources.{name}", error.message, error.hint or ""))
        except ValidationError as error:
            for each in complaints(error, model):
                path = ("sources", name, *each.path)
                problems.append(Problem(places.line(path), ".".join(path), each.wrong, each.allowed))
    return found
