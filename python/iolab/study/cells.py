"""From a study's tables to its cells: each variant at each combination of factor levels, every option accepted by its plugin."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from .. import registry
from ..errors import UsageError
from ..hosts.options import Options
from .model import Scalar, StudyFile
from .problems import Places, Problem, complaints, near
from .substitute import filled, mentions, overridden

_KINDS = ("target", "workload")


@dataclass(frozen=True)
class Cell:
    """One combination of factor levels of one variant.

    Attributes:
        target_kind, workload_kind: names of the plugins; target, workload: their options, checked.
    """

    variant: str
    factors: Mapping[str, Scalar]
    target_kind: str
    target: Options
    workload_kind: str
    workload: Options

    def resolved(self) -> dict[str, Any]:
        """Its tables as plain data."""
        return {"target": {"kind": self.target_kind, **self.target.model_dump(mode="json")},
                "workload": {"kind": self.workload_kind, **self.workload.model_dump(mode="json")}}

    def identity(self) -> str:
        """A word that is the same for the same cell of the same variant."""
        return f"{self.variant} {json.dumps(dict(self.factors), sort_keys=True)}"

    def label(self) -> str:
        """`variant 'v', numjobs=4`: for messages."""
        levels = ", ".join(f"{name}={level}" for name, level in self.factors.items())
        return f"variant '{self.variant}'" + (f", {levels}" if levels else "")


class CellBuilder:
    """Builds cells and gathers what is wrong with them."""

    def __init__(self, file: StudyFile, places: Places, problems: list[Problem], left_out: Set[str] = frozenset()) -> None:
        """`left_out`: factors that are wrong by themselves; with any there are no cells, but the rest is still checked."""
        self._file, self._places, self._problems, self._left_out = file, places, problems, left_out

    def cells_of(self, variant: str) -> Iterator[Cell]:
        """Cells of a variant in the file's order, the first factor slowest; none where its tables are wrong."""
        changes = self._file.variants[variant]
        tables = {"target": overridden(self._file.target, changes.target),
                  "workload": overridden(self._file.workload, changes.workload)}
        plugins = {kind: self._plugin(variant, kind, tables[kind]) for kind in _KINDS}
        if None in plugins.values():
            return
        workload = plugins["workload"]
        assert workload is not None
        if not self._place_factors(variant, tables, workload) or self._left_out:
            self._check_the_rest(variant, tables, plugins)
            return
        for combination in itertools.product(*self._file.factors.values()):
            factors = dict(zip(self._file.factors, combination, strict=True))
            options = {kind: self._options(variant, kind, filled(tables[kind], factors), plugins[kind]) for kind in _KINDS}
            target, load = options["target"], options["workload"]
            if target is not None and load is not None:
                yield Cell(variant, factors, tables["target"]["kind"], target, tables["workload"]["kind"], load)

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

    def _place_factors(self, variant: str, tables: dict[str, dict[str, Any]], workload: Any) -> bool:
        """Give factors that no `{}` mentions their option; report mentions of nothing and factors without effect."""
        known = self._file.factors
        mentioned = set()
        sound = True
        for kind in _KINDS:
            for path, name in mentions(tables[kind]):
                mentioned.add(name)
                if name not in known and name not in self._left_out:
                    sound = False
                    self._report(variant, (kind, *path), f"mentions {{{name}}}, which is no factor",
                                 near(name, list(known)) if known else "factors stand in [factors]; write '{{' for a brace")
        for name in known:
            if name in mentioned:
                continue
            place = workload.place_of(name)
            if place is None:
                sound = False
                self._report(variant, ("factors", name), "is used nowhere", f"write \"{{{name}}}\" in an option")
                continue
            table = tables["workload"] = dict(tables["workload"])
            for part in place[:-1]:
                below = table.get(part, {})
                table[part] = dict(below) if isinstance(below, Mapping) else {}
                table = table[part]
            if place[-1] in table:
                sound = False
                key = ".".join(("workload", *place))
                self._report(variant, ("factors", name), f"{key} is set as well",
                             f"take {key} out, or write \"{{{name}}}\" there")
                continue
            table[place[-1]] = f"{{{name}}}"
        return sound

    def _check_the_rest(self, variant: str, tables: Mapping[str, Mapping[str, Any]], plugins: Mapping[str, Any]) -> None:
        """With factors in the wrong place there are no cells; what stands there without a factor can still be checked."""
        levels = {name: levels[0] for name, levels in self._file.factors.items()}
        for kind in _KINDS:
            self._options(variant, kind, filled(tables[kind], levels), plugins[kind], unfilled=True)

    def _options(self, variant: str, kind: str, table: dict[str, Any], plugin: Any, *, unfilled: bool = False) -> Options | None:
        """A plugin's options, or None with its complaints reported; `unfilled`: not those about a value with a `{`."""
        given = {key: value for key, value in table.items() if key != "kind"}
        try:
            return cast(Options, plugin.options.model_validate(given))
        except ValidationError as error:
            for each in complaints(error, plugin.options):
                if not (unfilled and "{" in str(_value_at(given, each.path))):
                    self._report(variant, (kind, *each.path), each.wrong, each.allowed)
            return None

    def _report(self, variant: str, path: tuple[str, ...], wrong: str, allowed: str) -> None:
        """Note a problem at the variant's own key where it has one, else at the study's, else at the factor of that name."""
        own = ("variants", variant, *path)
        others = (own,) if self._places.has(own) or self._places.has(path) else (("factors", path[-1]),)
        line = self._places.line(path, *others)
        self._problems.append(Problem(line, ".".join(own if self._places.has(own) else path), wrong, allowed))


def _value_at(table: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        table = table.get(part) if isinstance(table, Mapping) else None
    return table
