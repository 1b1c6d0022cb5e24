# SPDX-License-Identifier: Apache-2.0
"""Reading a study file: from text to cells with options that every plugin has accepted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from iolab.base import registry
from iolab.base.errors import StudyError, UsageError
from iolab.hosts.base.host import Host
from iolab.hosts.base.options import Options
from iolab.hosts.facts.host_facts import host_facts
from iolab.hosts.kinds.local import LocalHost

from ..adapt import Changes, adapt
from ..builds import BuildTable
from ..cells.cells import HOST, Cell, CellBuilder
from ..cells.factors import levels_of, sweeps
from ..cells.order import session_order
from ..commands import Action, Command, Hooks
from ..model import SessionTable, StudyFile
from ..profile import Profiling, profile_problems
from .lines import key_lines
from .problems import Places, Problem, StudyProblems, complaints, near
from .rig_tables import RigTable
from .tables import parse_tables, read_text, validate

if TYPE_CHECKING:
    from ...compare.rules.sequential import Until


@dataclass(frozen=True)
class Study:
    """A study, checked.

    Attributes:
        file: where it was read; text: its very words, kept with the results.
        name, description, baseline, repetitions, seed, order: as in the file, defaults filled in.
        variants: names in the file's order; factors: name to levels.
        cells: every variant at every combination of levels, in the file's order, variant by
        variant. sources: name to options.
        hooks: commands around the study and its parts; variant_hooks: variant to (setup, teardown),
        which run whenever
            the study comes to the variant from another, and leaves it.
        actions: what is done inside every run, by time.
        revisions: name to the path of a git work tree, to record its revision.
        directory: what relative paths of the study's own files start from.
        changes: what differs from the text.
        profiling: what is profiled, in runs of their own; None for nothing.
        rig: the disposable machine that the file describes; None where it describes none.
        hosts: other machines that the text itself names; they are reached only if the user agrees.
        session_order: variant of each session, empty unless `order` is "sessions"; session_begin:
        commands before each; session_reboot: whether these restart the host.
        builds: programs that are compiled before the runs of cells that name them.
        until: what ends it before `repetitions` blocks; None where their number is fixed.
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
    hooks: Hooks = field(default_factory=Hooks)
    variant_hooks: Mapping[str, tuple[tuple[Command, ...], tuple[Command, ...]]] = field(
        default_factory=dict
    )
    actions: tuple[Action, ...] = ()
    revisions: Mapping[str, str] = field(default_factory=dict)
    directory: Path = Path()
    changes: Changes = field(default_factory=Changes)
    profiling: Profiling | None = None
    hosts: tuple[str, ...] = ()
    rig: RigTable | None = None
    until: Until | None = None
    session_order: tuple[str, ...] = ()
    session_begin: tuple[Command, ...] = ()
    session_reboot: bool = False
    builds: Mapping[str, BuildTable] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """The study as plain data with every default filled in, for the manifest."""
        return {
            "study": {
                "name": self.name,
                "description": self.description,
                "baseline": self.baseline,
                "repetitions": self.repetitions,
                "seed": self.seed,
                "order": self.order,
                "revisions": dict(self.revisions),
            },
            "factors": {name: list(levels) for name, levels in self.factors.items()},
            "sources": {
                name: options.model_dump(mode="json") for name, options in self.sources.items()
            },
            "hooks": {
                when: {
                    level: [command.text for command in commands]
                    for level, commands in below.items()
                }
                for when, below in (("before", self.hooks.before), ("after", self.hooks.after))
                if below
            },
            "variants": {
                name: {
                    "setup": [command.text for command in self.variant_hooks[name][0]],
                    "teardown": [command.text for command in self.variant_hooks[name][1]],
                }
                if name in self.variant_hooks
                else {}
                for name in self.variants
            },
            "actions": [
                {
                    "at": action.at,
                    "mark": action.mark,
                    "command": action.command.text if action.command else None,
                }
                for action in self.actions
            ],
            **({} if self.profiling is None else {"profile": self.profiling.as_data()}),
            **(
                {
                    "session": {
                        "order": list(self.session_order),
                        "begin": [command.text for command in self.session_begin],
                        "reboot": self.session_reboot,
                    }
                }
                if self.session_order
                else {}
            ),
            **({} if self.until is None else {"until": self.until.as_data()}),
            **(
                {"builds": {name: table.as_data() for name, table in self.builds.items()}}
                if self.builds
                else {}
            ),
            "changes": self.changes.as_data(),
            "directory": str(self.directory),
            "cells": [
                {"variant": cell.variant, "factors": dict(cell.factors), **cell.as_data()}
                for cell in self.cells
            ],
        }

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels that variants need; empty for the kernel that runs."""
        return tuple(dict.fromkeys(cell.kernel for cell in self.cells if cell.kernel is not None))

    @property
    def restarts(self) -> bool:
        """Whether each session begins with a restart of the host."""
        return self.session_reboot or bool(self.session_order and self.kernels)

    @property
    def consent(self) -> tuple[tuple[str, str], ...]:
        """What the user must agree to, since a study may come from anywhere.

        These are the commands that it would run, and options of its loads that are not known to be
        harmless: (key, such as `hooks.block.before`; text) each."""
        commands: list[tuple[str, Command]] = [
            (f"builds.{name}.{key}", command)
            for name, table in self.builds.items()
            for key, build_commands in (
                ("commands", table.commands),
                ("version", (table.version,) if table.version else ()),
            )
            for command in build_commands
        ]
        texts = [(place, command.text) for place, command in commands]
        texts += dict.fromkeys(
            (f"workload.{key}", text)
            for cell in self.cells
            for key, text in cell.workload.consent()
        )
        commands = [
            (f"hooks.{level}.{when}", command)
            for when, below in (("before", self.hooks.before), ("after", self.hooks.after))
            for level, level_commands in below.items()
            for command in level_commands
        ]
        commands += [("session.begin", command) for command in self.session_begin]
        for variant, parts in self.variant_hooks.items():
            commands += [
                (f"variants.{variant}.{name}", command)
                for name, variant_commands in zip(("setup", "teardown"), parts, strict=True)
                for command in variant_commands
            ]
        commands += [
            (f"actions, at {action.at:g} s", action.command)
            for action in self.actions
            if action.command is not None
        ]
        return (*texts, *((place, command.text) for place, command in commands))


def study_name(path: Path) -> str:
    """The name of a study by its text alone, without a host. Empty if the name is invalid, which
    `load_study` reports.

    Raises StudyError if it cannot be read or is not TOML.
    """
    table = parse_tables(read_text(path), path).get("study")
    name = table.get("name") if isinstance(table, dict) else None
    if not name:
        return _name_from(path, [])
    return name if isinstance(name, str) else ""


def is_in_sessions(path: Path) -> bool:
    """Whether a study measures its variants in sessions, by its text alone.

    Raises StudyError if it cannot be read or is not TOML.
    """
    table = parse_tables(read_text(path), path).get("study")
    return isinstance(table, dict) and table.get("order") == "sessions"


def has_builds(path: Path) -> bool:
    """Whether a study has builds of programs, by its text alone.

    Raises StudyError if it cannot be read or is not TOML.
    """
    return bool(parse_tables(read_text(path), path).get("builds"))


def target_host(path: Path, changes: Changes | None = None) -> str | None:
    """What names the host of the target, `[target] host`; None if the study leaves it to its caller.

    Raises StudyError if the file cannot be read, is not TOML, or has something else there.
    """
    target = adapt(parse_tables(read_text(path), path), changes or Changes()).get("target")
    word = target.get(HOST) if isinstance(target, dict) else None
    if word is not None and not isinstance(word, str):
        raise StudyError("target.host is not a text", where=path, hint="write it as after --host")
    return word


def load_study(
    path: Path,
    changes: Changes | None = None,
    *,
    host: Host | None = None,
    directory: Path | None = None,
) -> Study:
    """Read and check a study file.

    Args:
        changes: what differs from the file.
        host: expressions use its facts; this machine by default.
        directory: what relative paths of the study's own files start from; the file's own unless
        given.

    Raises StudyError where it can't be read or is no TOML, StudyProblems with everything that is
    wrong otherwise, UsageError where the changes name what isn't there.
    """
    requested = changes or Changes()
    text = read_text(path)
    data = adapt(parse_tables(text, path), requested)
    plain = not isinstance(data.get("factors"), list)
    if isinstance(data.get("factors"), dict):
        data["factors"] = [data["factors"]]
    places = Places(key_lines(text))
    problems: list[Problem] = []
    left_out: set[str] = set()
    file = validate(data, places, problems, left_out, path, plain=plain)
    name = file.study.name or _name_from(path, problems)
    variants = tuple(file.variants)
    baseline = file.study.baseline or variants[0]
    if baseline not in variants:
        problems.append(
            Problem(
                places.line(("study", "baseline")),
                "study.baseline",
                f"no variant is called '{baseline}'",
                near(baseline, variants),
            )
        )
    sources = _sources(file, places, problems)
    kept = requested.expand(data).only
    swept = sweeps(file.factors, {} if left_out else kept, plain=plain)
    home = directory if directory is not None else path.parent.absolute()
    builder = CellBuilder(
        file, places, problems, swept, facts=_facts(host), directory=home, left_out=left_out
    )
    cells = tuple(itertools.chain.from_iterable(builder.cells_of(variant) for variant in variants))
    _check_actions(file, cells, places, problems)
    profiling = _profiling(file, cells, places, problems)
    until = None if file.until is None else _until(file, requested, places, problems)
    _check_sessions(file, places, problems)
    _check_kernels(file, cells, places, problems)
    if problems:
        raise StudyProblems(str(path), problems)
    session = file.session if file.session is not None else SessionTable()
    has_sessions = file.study.order == "sessions"
    return Study(
        path,
        text,
        name,
        file.study.description,
        baseline,
        file.study.repetitions if until is None else until.at_most,
        file.study.seed,
        file.study.order,
        variants,
        levels_of(swept),
        cells,
        sources,
        file.hooks_given(),
        file.variant_hooks(),
        tuple(sorted((table.action() for table in file.actions), key=lambda action: action.at)),
        file.study.revisions,
        home,
        requested,
        profiling,
        _named_hosts(file, cells, requested),
        file.rig,
        until,
        session_order(variants, session.count) if has_sessions else (),
        session.begin if has_sessions else (),
        session.reboot,
        file.builds,
    )


def _named_hosts(file: StudyFile, cells: Sequence[Cell], changes: Changes) -> tuple[str, ...]:
    """Other machines that the text names; those that the user names in its place do not count."""
    words: list[str] = []
    if HOST not in changes.target:
        words.append(str(file.target.get(HOST, "local")))
    if "hosts" not in changes.load:
        words += [word for cell in cells if cell.load for word in cell.load.hosts]
    return tuple(
        word for word in dict.fromkeys(words) if word != "local" and not word.startswith("rig:")
    )


def _facts(host: Host | None) -> dict[str, Any]:
    facts = host_facts(host or LocalHost()).facts
    return {"memory": facts.get("memory_bytes"), "cpus": facts.get("cpus")}


def _check_actions(
    file: StudyFile, cells: Sequence[Cell], places: Places, problems: list[Problem]
) -> None:
    """An action must fall within every run's window."""
    runtimes = [
        float(runtime)
        for cell in cells
        if isinstance(runtime := getattr(cell.workload, "runtime", None), int | float)
    ]
    for place, table in enumerate(file.actions):
        if runtimes and table.at >= min(runtimes):
            key = ("actions", str(place), "at")
            problems.append(
                Problem(
                    places.line(key),
                    ".".join(key),
                    f"{table.at:g} s is not before the end of every run",
                    f"less than the runtime, {min(runtimes):g} s",
                )
            )


def _profiling(
    file: StudyFile, cells: Sequence[Cell], places: Places, problems: list[Problem]
) -> Profiling | None:
    """What is to be profiled: cells that the file has, at a time within every such run's window."""
    if file.profile is None:
        return None
    profiling = file.profile.profiling()
    runtimes = [
        float(runtime)
        for cell in cells
        if isinstance(runtime := getattr(cell.workload, "runtime", None), int | float)
        and profiling.takes(cell.factors)
    ]
    for problem in profile_problems(profiling, file.factors, runtimes):
        path = ("profile", *problem.key)
        problems.append(Problem(places.line(path), ".".join(path), problem.wrong, problem.allowed))
    return profiling


def _check_kernels(
    file: StudyFile, cells: Sequence[Cell], places: Places, problems: list[Problem]
) -> None:
    """Different kernels need sessions, which restart the host without commands."""
    kernels = {cell.kernel for cell in cells}
    if kernels <= {None}:
        return
    wrong: tuple[tuple[str, ...], str, str] | None = None
    if None in kernels:
        wrong = (("target", "kernel"), "is missing in some variants", "name one in [target]")
    elif len(kernels) > 1 and file.study.order != "sessions":
        names = ", ".join(sorted(str(kernel) for kernel in kernels))
        wrong = (
            ("study", "order"),
            f'must be "sessions" for several kernels ({names})',
            'order = "sessions"',
        )
    elif file.session is not None and file.session.begin:
        wrong = (
            ("session", "begin"),
            "cannot be combined with target.kernel, which restarts the host",
            "leave one of both out",
        )
    if wrong is not None:
        key, what, allowed = wrong
        problems.append(Problem(places.line(key), ".".join(key), what, allowed))


def _check_sessions(file: StudyFile, places: Places, problems: list[Problem]) -> None:
    """What does not go together with sessions."""
    if file.study.order != "sessions":
        if file.session is not None:
            line = places.line(("session",))
            problems.append(
                Problem(line, "session", "is not used", 'write order = "sessions" in [study]')
            )
        return
    for key, value, why in (
        ("until", file.until, "blocks that all variants share"),
        ("profile", file.profile, "all variants on one boot"),
    ):
        if value is not None:
            problems.append(
                Problem(places.line((key,)), key, f'needs {why}, not order = "sessions"', "")
            )


def _until(
    file: StudyFile, changes: Changes, places: Places, problems: list[Problem]
) -> Until | None:
    """The looks at which the study may end; what is wrong with them is added to `problems`."""
    from ...compare.rules.sequential import plan_until

    table = file.until
    assert table is not None
    wrong, allowed = "", ""
    if changes.repetitions is not None:
        wrong, allowed = "decides the number of blocks", "leave --repetitions out, or --at-most N"
    elif len(file.variants) < 2:
        wrong, allowed = "needs a variant to compare with the baseline", "[variants.NAME]"
    else:
        try:
            return plan_until(table.rules, table.at_most, table.alpha, table.spending)
        except UsageError as error:
            wrong, allowed = error.message, error.hint or ""
    problems.append(Problem(places.line(("until",)), "until", wrong, allowed))
    return None


def _name_from(path: Path, problems: list[Problem]) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).lstrip(".-_")
    if not name:
        problems.append(
            Problem(
                1,
                "study.name",
                f"can't be taken from the file's name '{path.name}'",
                'write name = "..." in [study]',
            )
        )
    return name


def _sources(file: StudyFile, places: Places, problems: list[Problem]) -> dict[str, Options]:
    sources: dict[str, Options] = {}
    for name, options in file.sources.items():
        try:
            model = registry.load("source", name).options
            sources[name] = cast(Options, model.model_validate(options))
        except UsageError as error:
            problems.append(
                Problem(
                    places.line(("sources", name)),
                    f"sources.{name}",
                    error.message,
                    error.hint or "",
                )
            )
        except ValidationError as error:
            for complaint in complaints(error, model):
                path = ("sources", name, *complaint.path)
                problems.append(
                    Problem(places.line(path), ".".join(path), complaint.wrong, complaint.allowed)
                )
    return sources
