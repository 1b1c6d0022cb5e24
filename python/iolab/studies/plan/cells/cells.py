# SPDX-License-Identifier: Apache-2.0
"""From a study's tables to its cells: each variant at each combination of factor levels, every
option accepted by its plugin.

Variants override tables of the study, factors replace `{name}` in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from iolab.base import registry
from iolab.base.errors import UsageError
from iolab.hosts.base.options import Options

from ..builds import FACTOR as BUILD
from ..client_hosts import FACTOR, ClientHosts
from ..file.lines import Path as KeyPath
from ..file.problems import Complaint, Places, Problem, complaints, guess, near
from ..model import StudyFile
from .expressions import ExpressionError, is_expression, names_in, size_of, takes_size
from .factors import Scalar, Sweep

_MENTION = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def overridden(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The table with changes laid over it, table by table; neither is altered."""
    merged = dict(table)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = (
            overridden(below, value)
            if isinstance(below, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """(key path, text) of every string of a table."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from texts(below, (*path, str(key)))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from texts(below, (*path, str(index)))
    elif isinstance(value, str):
        yield path, value


def mentions(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """(key path, name) of every `{name}` in the strings of a table."""
    for path, text in texts(value):
        yield from (
            (path, match[1].strip()) for match in _MENTION.finditer(text) if match[1] is not None
        )


def fill(value: Any, factors: Mapping[str, Any]) -> Any:
    """The value with every `{name}` of a known factor replaced; `{{` and `}}` are braces.

    A string that is nothing but one mention takes the level itself, a number stays a number:
    `"{numjobs}"` is 4, not "4".
    """
    if isinstance(value, Mapping):
        return {key: fill(below, factors) for key, below in value.items()}
    if isinstance(value, list):
        return [fill(below, factors) for below in value]
    if not isinstance(value, str):
        return value
    mention = _MENTION.fullmatch(value.strip())
    if mention and mention[1] is not None and mention[1].strip() in factors:
        return factors[mention[1].strip()]
    return _MENTION.sub(lambda match: _replacement(match, factors), value)


def _replacement(match: re.Match[str], factors: Mapping[str, Any]) -> str:
    if match[1] is None:
        return match[0][0]
    level = factors.get(match[1].strip())
    if level is None:
        return match[0]
    return str(int(level)) if isinstance(level, bool) else str(level)


_KINDS = ("target", "workload")
_LOAD = "load"
"""A third table of cells, where the study has client hosts."""
HOST = "host"
"""Key of `[target]` that belongs to no plugin: where the study runs by default."""
KERNEL = "kernel"
"""Key of `[target]` that belongs to no plugin: the kernel that the host is started with."""
KERNEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class _ClientHosts:
    """`[load]`, as the plugin of a table."""

    options = ClientHosts


@dataclass(frozen=True)
class Cell:
    """One combination of factor levels of one variant.

    Attributes:
        target_kind, workload_kind: names of the plugins; target, workload: their options, checked.
        load: the client hosts; None where the load runs on the host of the target.
        build: the name of its build in `[builds]`; None for the programs of the host.
        kernel: the name of the kernel of the host; None for the running kernel.
    """

    variant: str
    factors: Mapping[str, Scalar]
    target_kind: str
    target: Options
    workload_kind: str
    workload: Options
    load: ClientHosts | None = None
    build: str | None = None
    kernel: str | None = None

    def as_data(self) -> dict[str, Any]:
        """Its tables as plain data."""
        kernel = {} if self.kernel is None else {KERNEL: self.kernel}
        return {
            "target": {"kind": self.target_kind, **kernel, **self.target.model_dump(mode="json")},
            "workload": {"kind": self.workload_kind, **self.workload.model_dump(mode="json")},
            **({} if self.load is None else {_LOAD: self.load.model_dump(mode="json")}),
            **({} if self.build is None else {BUILD: self.build}),
        }

    def identity(self) -> str:
        """A word that is the same for the same cell of the same variant."""
        return f"{self.variant} {json.dumps(dict(self.factors), sort_keys=True)}"

    def label(self) -> str:
        """`variant 'v', numjobs=4`: for messages."""
        levels = ", ".join(f"{name}={level}" for name, level in self.factors.items())
        return f"variant '{self.variant}'" + (f", {levels}" if levels else "")


class CellBuilder:
    """Builds cells and gathers what is wrong with them."""

    def __init__(
        self,
        file: StudyFile,
        places: Places,
        problems: list[Problem],
        sweeps: Sequence[Sweep],
        *,
        facts: Mapping[str, Any],
        directory: Path,
        left_out: Set[str] = frozenset(),
    ) -> None:
        """Takes what all cells share.

        Args:
            facts: what expressions of sizes may name, None for what the host doesn't tell.
            directory: what relative paths of the study's own files start from; plugins' validators
            get it as context. left_out: factors that are wrong by themselves; with any there are no
            cells, but the rest is still checked.
        """
        self._file, self._places, self._problems, self._left_out = file, places, problems, left_out
        self._sweeps, self._facts, self._context = sweeps, facts, {"directory": directory}
        self._wrong_builds: set[str] = set()
        self._known = list(dict.fromkeys(name for sweep in sweeps for name in sweep.names))

    def cells_of(self, variant: str) -> Iterator[Cell]:
        """Cells of a variant in the file's order, the first factor slowest; none where its tables
        are wrong."""
        changes = self._file.variants[variant]
        tables = {
            "target": overridden(self._file.target, changes.target),
            "workload": overridden(self._file.workload, changes.workload),
        }
        tables["target"].pop(HOST, None)
        kernel = self._kernel(variant, tables["target"].pop(KERNEL, None))
        plugins = {kind: self._plugin(variant, kind, tables[kind]) for kind in _KINDS}
        if None in plugins.values():
            return
        if self._file.load or changes.load:
            tables[_LOAD] = overridden(self._file.load, changes.load)
            plugins[_LOAD] = _ClientHosts
        for sweep in self._sweeps:
            placed = dict(tables)
            build_text = self._build_text(variant, placed, sweep)
            if (
                not self._place_factors(variant, placed, plugins["workload"], sweep, build_text)
                or self._left_out
            ):
                self._check_the_rest(variant, placed, plugins, sweep)
                continue
            for factors in sweep.combinations:
                options = {
                    kind: self._options(
                        variant, kind, fill(placed[kind], factors), plugins[kind], factors
                    )
                    for kind in placed
                }
                target, workload = options["target"], options["workload"]
                build = None if build_text is None else str(fill(build_text, factors))
                if not self._check_build(variant, build, is_on_clients=_LOAD in placed):
                    continue
                if target is not None and workload is not None and None not in options.values():
                    yield Cell(
                        variant,
                        factors,
                        placed["target"]["kind"],
                        target,
                        placed["workload"]["kind"],
                        workload,
                        cast(ClientHosts | None, options.get(_LOAD)),
                        build,
                        kernel,
                    )

    def _kernel(self, variant: str, name: Any) -> str | None:
        """The name of a kernel; reports another value."""
        if name is None or (isinstance(name, str) and re.fullmatch(KERNEL_NAME, name)):
            return name
        self._report(
            variant,
            ("target", KERNEL),
            "is not the name of a kernel",
            'letters, digits, ".", "_" and "-", such as "backport"; variants have one kernel each',
        )
        return None

    def _build_text(
        self, variant: str, tables: Mapping[str, Mapping[str, Any]], sweep: Sweep
    ) -> str | None:
        """The name of the variant's build as written, or the factor that selects it."""
        text = self._file.variants[variant].build
        if text is not None or not self._file.builds or BUILD not in sweep.names:
            return text
        is_mentioned = any(name == BUILD for kind in tables for _, name in mentions(tables[kind]))
        return None if is_mentioned else f"{{{BUILD}}}"

    def _check_build(self, variant: str, build: str | None, *, is_on_clients: bool) -> bool:
        """Whether the study has the build and can run it; reports each problem once."""
        if build is None:
            return True
        if build in self._file.builds and not is_on_clients:
            return True
        if build not in self._wrong_builds:
            self._wrong_builds.add(build)
            wrong, allowed = f"no build is called '{build}'", near(build, list(self._file.builds))
            if build in self._file.builds:
                wrong, allowed = "client hosts of [load] can't run builds", "leave [load] out"
            self._report(variant, (BUILD,), wrong, allowed)
        return False

    def _plugin(self, variant: str, kind: str, table: Mapping[str, Any]) -> Any:
        name = table.get("kind")
        if name is None:
            self._report(variant, (kind, "kind"), "is missing", near("", registry.names(kind)))
            return None
        try:
            return registry.load(kind, str(name))
        except UsageError as error:
            self._report(variant, (kind, "kind"), error.message, error.hint or "")
            return None

    def _place_factors(
        self,
        variant: str,
        tables: dict[str, dict[str, Any]],
        workload: Any,
        sweep: Sweep,
        build_text: str | None,
    ) -> bool:
        """Give factors that nothing mentions their option; report mentions of nothing and factors
        without effect."""
        mentioned: set[str] = set()
        named: set[str] = set()
        sound = True
        texts_of = {**tables, **({} if build_text is None else {BUILD: build_text})}
        for kind, table_or_text in texts_of.items():
            for path, name in mentions(table_or_text):
                mentioned.add(name)
                if name in sweep.names or name in self._left_out:
                    continue
                sound = False
                if name in self._known:
                    self._note(
                        sweep.key,
                        f"has no factor '{name}', which {'.'.join((kind, *path))} mentions",
                        "give it a level here as well",
                    )
                else:
                    self._report(
                        variant,
                        (kind, *path),
                        f"mentions {{{name}}}, which is not a factor",
                        near(name, self._known)
                        if self._known
                        else "factors are in [factors]; write '{{' for a brace",
                    )
            named.update(
                name
                for path, text in texts(table_or_text)
                if path and takes_size(path[-1])
                for name in names_in(text)
            )
        for name in sweep.names:
            if name in mentioned:
                continue
            kind = _LOAD if name == FACTOR and _LOAD in tables else "workload"
            place = (name,) if kind == _LOAD else workload.place_of(name)
            if (
                place is None and name in named
            ):  # in the expression of a size, which takes an option's place from no factor
                continue
            if place is None:
                sound = False
                self._report(
                    variant,
                    (*sweep.key, name),
                    "is used nowhere",
                    f'{guess(name, workload.factors())}write "{{{name}}}" in an option',
                )
                continue
            table = tables[kind] = dict(tables[kind])
            for part in place[:-1]:
                below = table.get(part, {})
                table[part] = dict(below) if isinstance(below, Mapping) else {}
                table = table[part]
            if place[-1] in table:
                sound = False
                key = ".".join((kind, *place))
                self._report(
                    variant,
                    (*sweep.key, name),
                    f"{key} is set as well",
                    f'take {key} out, or write "{{{name}}}" there',
                )
                continue
            table[place[-1]] = f"{{{name}}}"
        return sound

    def _check_the_rest(
        self,
        variant: str,
        tables: Mapping[str, Mapping[str, Any]],
        plugins: Mapping[str, Any],
        sweep: Sweep,
    ) -> None:
        """Check values without a factor; factors in the wrong place give no cells."""
        factors = next(iter(sweep.combinations), {})
        for kind in tables:
            self._options(
                variant, kind, fill(tables[kind], factors), plugins[kind], factors, unfilled=True
            )

    def _options(
        self,
        variant: str,
        kind: str,
        table: dict[str, Any],
        plugin: Any,
        factors: Mapping[str, Scalar],
        *,
        unfilled: bool = False,
    ) -> Options | None:
        """A plugin's options, or None with its complaints reported; `unfilled`: not those about a
        value with a `{`."""
        given_options = {key: value for key, value in table.items() if key != "kind"}
        wrong: list[Complaint] = []
        given_options = compute_sizes(given_options, {**self._facts, **factors}, wrong)
        options: Options | None = None
        try:
            options = cast(
                Options, plugin.options.model_validate(given_options, context=self._context)
            )
        except ValidationError as error:
            complained_paths = {complaint.path for complaint in wrong}
            wrong += [
                complaint
                for complaint in complaints(error, plugin.options)
                if complaint.path not in complained_paths
            ]
        for complaint in wrong:
            if not (unfilled and "{" in str(_value_at(given_options, complaint.path))):
                self._report(variant, (kind, *complaint.path), complaint.wrong, complaint.allowed)
        return None if wrong else options

    def _report(self, variant: str, path: tuple[str, ...], wrong: str, allowed: str) -> None:
        """Note a problem at the variant's own key where it has one, else at the study's, else at
        the factor of that name."""
        own = ("variants", variant, *path)
        if self._places.has(own) or self._places.has(path):
            self._note(own if self._places.has(own) else path, wrong, allowed, path)
            return
        factor = next(
            (key for sweep in self._sweeps if self._places.has(key := (*sweep.key, path[-1]))), None
        )
        self._problems.append(
            Problem(
                self._places.line(path, *([factor] if factor else [])),
                ".".join(path),
                wrong,
                allowed,
            )
        )

    def _note(
        self, key: tuple[str, ...], wrong: str, allowed: str, *others: tuple[str, ...]
    ) -> None:
        self._problems.append(
            Problem(self._places.line(key, *others), ".".join(key), wrong, allowed)
        )


def compute_sizes(
    table: Any, names: Mapping[str, Any], wrong: list[Complaint], path: tuple[str, ...] = ()
) -> Any:
    """The table with every size that is an expression computed; what can't be is left and
    complained of."""
    if isinstance(table, Mapping):
        return {
            key: compute_sizes(below, names, wrong, (*path, str(key)))
            for key, below in table.items()
        }
    if (
        not isinstance(table, str)
        or not path
        or not takes_size(path[-1])
        or not is_expression(table, names)
    ):
        return table
    try:
        return size_of(table, names)
    except ExpressionError as error:
        wrong.append(Complaint(path, error.wrong, error.allowed))
        return table


def _value_at(table: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        table = table.get(part) if isinstance(table, Mapping) else None
    return table
