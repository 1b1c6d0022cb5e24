# SPDX-License-Identifier: Apache-2.0
"""Reading fio's job files (fio(1), "Job File Format"), as tolerantly as fio reads them and a little
more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from iolab.hosts.base.options import OptionProblem

from .names import ALIASES, INCLUDE, KNOWN

_HEADER = re.compile(r"\[([^\]]+)\]\s*(?:[;#].*)?")
_VARIABLE = re.compile(r"\$\{[^}]*\}")
KEY = "job"
"""Key of a workload's table under which problems with its job file are reported."""


@dataclass(frozen=True)
class Section:
    """A job of a job file with all its options, those of `[global]` before it included."""

    name: str
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)


def read_job_file(text: str) -> tuple[tuple[Section, ...], list[OptionProblem]]:
    """The sections of a job file in order, and what is wrong with it.

    `;` and `#` begin comments anywhere in a line; an option without a value is 1; a `[global]`
    holds for the sections after it and adds to those before it; names that fio takes for another
    come back as that other one (`blocksize` as `bs`). Environment variables and `include` are
    problems: a study's own files must contain all that it runs. A problem has the line's number and
    known names of options, and no other text: the file may be any that a study names.
    """
    sections: list[tuple[str, dict[str, str | int | float | bool]]] = []
    common: dict[str, str | int | float | bool] = {}
    problems: list[OptionProblem] = []
    current: dict[str, str | int | float | bool] | None = None

    def problem(number: int, wrong: str, allowed: str) -> None:
        problems.append(OptionProblem((KEY,), f"line {number}: {wrong}", allowed))

    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare[0] in ";#":
            continue
        if bare.startswith("["):
            header = _HEADER.fullmatch(bare)
            if header is None:
                problem(number, "not a section's head", "write [name]")
                current = {}
            elif header[1] == "global":
                current = common
            else:
                current = dict(common)
                sections.append((header[1], current))
            continue
        bare = re.split(r"[;#]", bare, maxsplit=1)[0].strip()
        if bare.lower().startswith(INCLUDE):
            problem(number, "includes another file", "write its lines into this one")
            continue
        if current is None:
            problem(number, "an option before the first section", "begin with [global] or [name]")
            current = {}
        name, equals, value = (part.strip() for part in bare.partition("="))
        label = name if name in KNOWN else "an option"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
            problem(number, "not an option", "write name or name=value")
        elif _VARIABLE.search(value):
            problem(
                number,
                f"{label} is taken from the environment",
                "write the value, or set it in workload.options",
            )
        elif equals and not value:
            problem(number, f"{label} has no value", "write name or name=value")
        else:
            current[ALIASES.get(name, name)] = value if equals else 1
    if not sections and not problems:
        problem(1, "has no section but [global]", "a job is a section of its own, such as [job]")
    return tuple(Section(name, options) for name, options in sections), problems
