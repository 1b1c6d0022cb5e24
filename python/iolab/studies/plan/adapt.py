# SPDX-License-Identifier: Apache-2.0
"""Changes of a study that are made without touching its file: fewer cells, another runtime,
another target, an A/A arm.

Changes work on the parsed tables before anything is checked, so that a changed study is checked as
a whole. They are kept with the results (`Study.changes`), so that `study.toml` and they give the
same plan again.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iolab.base.errors import UsageError

from .file.problems import near

AGAIN = "-again"
"""Ending of the name of the arm that `again` adds."""


@dataclass(frozen=True)
class Changes:
    """What differs from the file.

    Attributes:
        only: factor to the levels to keep, as typed; variants: names of the arms to keep. Empty
        keeps all. repetitions, runtime, seed: instead of the file's; None keeps them. `runtime`
        as the file would write it. target: keys of `[target]` (dotted for tables below) to values
        as typed; an empty value takes the key out. workload: keys of `[workload]` likewise, such as
        `options.size`.
        load: keys of `[load]` likewise, such as `hosts`.
        until: rules that end the study once they are decided; at_most: blocks at which it ends then.
        again: add the arm `<baseline>-again`, the same as the baseline in everything.
        builds: names of builds, or `NAME=SOURCES`; each is a variant instead of the file's, the
        first the baseline.
        reduced: apply the file's `[reduced]` as well; the other changes override it.
    """

    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    variants: Sequence[str] = ()
    repetitions: int | None = None
    runtime: str | None = None
    seed: int | None = None
    target: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    workload: Mapping[str, str] = field(default_factory=dict)
    load: Mapping[str, str] = field(default_factory=dict)
    builds: Sequence[str] = ()
    reduced: bool = False
    until: Sequence[str] = ()
    at_most: int | None = None

    def __bool__(self) -> bool:
        return self != Changes()

    def as_data(self) -> dict[str, Any]:
        """As plain data, for the manifest; what isn't changed is missing."""
        values: dict[str, Any] = {
            "only": {name: list(levels) for name, levels in self.only.items()},
            "variants": list(self.variants),
            "repetitions": self.repetitions,
            "runtime": self.runtime,
            "seed": self.seed,
            "target": dict(self.target),
            "workload": dict(self.workload),
            "load": dict(self.load),
            "again": self.again,
            "builds": list(self.builds),
            "reduced": self.reduced,
            "until": list(self.until),
            "at_most": self.at_most,
        }
        return {
            key: value
            for key, value in values.items()
            if value or (value is not None and type(value) is int)
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Changes:
        """What `as_data` wrote."""
        return cls(
            only={name: tuple(levels) for name, levels in data.get("only", {}).items()},
            variants=tuple(data.get("variants", ())),
            repetitions=data.get("repetitions"),
            runtime=data.get("runtime"),
            seed=data.get("seed"),
            target=dict(data.get("target", {})),
            again=bool(data.get("again", False)),
            workload=dict(data.get("workload", {})),
            load=dict(data.get("load", {})),
            builds=tuple(data.get("builds", ())),
            reduced=bool(data.get("reduced", False)),
            until=tuple(data.get("until", ())),
            at_most=data.get("at_most"),
        )

    def arguments(self) -> list[str]:
        """As arguments of `iolab run`."""
        options = [
            part
            for name, levels in self.only.items()
            for part in ("--only", f"{name}={','.join(levels)}")
        ]
        options += [part for name in self.variants for part in ("--variant", name)]
        for flag, value in (
            ("--repetitions", self.repetitions),
            ("--runtime", self.runtime),
            ("--seed", self.seed),
            ("--at-most", self.at_most),
        ):
            options += [flag, str(value)] if value is not None else []
        options += [
            part for key, value in self.target.items() for part in ("--target", f"{key}={value}")
        ]
        options += [
            part
            for key, value in self.workload.items()
            for part in ("--workload", f"{key}={value}")
        ]
        options += [
            part for key, value in self.load.items() for part in ("--load", f"{key}={value}")
        ]
        options += [part for rule in self.until for part in ("--until-decided", rule)]
        options += [part for name in self.builds for part in ("--build", name)]
        return [
            *options,
            *(["--a-a"] if self.again else []),
            *(["--reduced"] if self.reduced else []),
        ]

    def expand(self, data: Mapping[str, Any]) -> Changes:
        """With the changes that the `[reduced]` table of the study's tables makes.

        Values that the table cannot have are left as they are: the check of the study reports them.
        Raises UsageError where the study has no such table.
        """
        if not self.reduced:
            return self
        table = data.get("reduced")
        if not isinstance(table, dict):
            raise UsageError(
                "the study has no [reduced] table",
                where="--reduced",
                hint="choose with --only, --runtime and --repetitions",
            )
        levels, runtime, repetitions = (
            table.get(key) for key in ("only", "runtime", "repetitions")
        )
        only = {
            name: tuple(map(_level_text, kept if isinstance(kept, list) else [kept]))
            for name, kept in (levels if isinstance(levels, dict) else {}).items()
        }
        return replace(
            self,
            only={**only, **self.only},
            repetitions=repetitions if self.repetitions is None else self.repetitions,
            runtime=runtime if self.runtime is None else self.runtime,
            target={**flatten(table.get("target")), **self.target},
            workload={**flatten(table.get("workload")), **self.workload},
        )


def flatten(table: Any) -> dict[str, str]:
    """The keys of a table, dotted for tables below it, with values as `--target` takes them."""
    if not isinstance(table, dict):
        return {}
    values: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            values |= {f"{key}.{below}": text for below, text in flatten(value).items()}
        else:
            values[str(key)] = (
                _level_text(value)
                if isinstance(value, bool | int | float)
                else (json.dumps(value, ensure_ascii=False))
            )
    return values


def _level_text(level: Any) -> str:
    """A level or a number as a user types it."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def parse_only(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`numjobs=1,8` and `bs=4k` as a mapping; a factor named twice adds up. UsageError for what is
    no `factor=level`."""
    levels_of: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, levels = text.partition("=")
        parts = tuple(part.strip() for part in levels.split(","))
        if not equals or not name.strip() or not all(parts):
            raise UsageError(
                f"'{text}' names no level",
                where="--only",
                hint="write factor=level or factor=level,level",
            )
        levels_of[name.strip()] = (*levels_of.get(name.strip(), ()), *parts)
    return levels_of


def parse_target(texts: Iterable[str], flag: str = "--target") -> dict[str, str]:
    """`path=/mnt/x` and `loop.size=2g` as a mapping. UsageError for what is no `key=value`, or a
    key given twice."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not all(part.strip() for part in key.split(".")):
            raise UsageError(
                f"'{text}' is not a key=value",
                where=flag,
                hint="such as path=/mnt/x; 'key=' takes a key out",
            )
        if key.strip() in values:
            raise UsageError(f"'{key.strip()}' is given twice", where=flag)
        values[key.strip()] = value.strip()
    return values


def adapt(data: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """A study's tables with everything changed but `only`, which is about combinations of levels
    and comes later.

    Tables of the wrong type are left as they are: the check of the study reports them. Raises
    UsageError where a change names something that does not exist.
    """
    changes = changes.expand(data)
    tables = copy.deepcopy(dict(data))
    study = tables.setdefault("study", {})
    if isinstance(study, dict):
        if changes.repetitions is not None:
            study["repetitions"] = changes.repetitions
        if changes.seed is not None:
            study["seed"] = changes.seed
    until = {"rules": list(changes.until), "at_most": changes.at_most}
    rules = {key: value for key, value in until.items() if value}
    if rules and isinstance(tables.setdefault("until", {}), dict):
        tables["until"].update(rules)
    if changes.runtime is not None:
        _set_runtime(tables, changes.runtime)
    if changes.target:
        _set_keys(tables, "target", changes.target)
    if changes.workload:
        _set_keys(tables, "workload", changes.workload)
    if changes.load:
        _set_keys(tables, "load", changes.load)
    if changes.builds:
        _set_builds(tables, changes.builds)
    if changes.variants:
        _keep_variants(tables, changes.variants)
    if changes.again:
        _add_again(tables)
    return tables


def _set_runtime(data: dict[str, Any], runtime: str) -> None:
    tables = [data, *_variant_tables(data).values()]
    for place, table in enumerate(tables):
        workload = table.get("workload")
        if not isinstance(workload, dict) or (place > 0 and "runtime" not in workload):
            continue
        if "{" in str(workload.get("runtime", "")):
            raise UsageError(
                "the study sweeps workload.runtime as a factor",
                where="--runtime",
                hint="choose a level with --only",
            )
        workload["runtime"] = runtime


def _set_keys(data: dict[str, Any], kind: str, changes: Mapping[str, str]) -> None:
    """Change keys of `[target]`, `[workload]` or `[load]`, `kind`."""
    table_of_kind = data.get(kind, {})
    if not isinstance(table_of_kind, dict):
        return
    if changes.get("kind", table_of_kind.get("kind")) != table_of_kind.get("kind", "directory"):
        table_of_kind = {}  # another kind has other keys
    for key, text in changes.items():
        for variant, table in _variant_tables(data).items():
            if _value_at(table, (kind, *key.split("."))) is not None:
                raise UsageError(
                    f"variant '{variant}' sets {kind}.{key} itself",
                    where=f"--{kind}",
                    hint="it is what the study compares; change the file",
                )
        *above, last = key.split(".")
        table = table_of_kind
        for part in above:
            below = table.get(part)
            table[part] = below if isinstance(below, dict) else {}
            table = table[part]
        if text:
            table[last] = _value_of(text)
        else:
            table.pop(last, None)
    data[kind] = table_of_kind


def _value_of(text: str) -> Any:
    """A value as TOML writes it, `2`, `true`, `["a", "b"]`; anything else is a text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, str | int | float | bool | list | dict) else text


def _keep_variants(data: dict[str, Any], names: Sequence[str]) -> None:
    tables = _variant_tables(data) or {"baseline": {}}
    for name in names:
        if name not in tables:
            raise UsageError(
                f"no variant is called '{name}'", where="--variant", hint=near(name, list(tables))
            )
    data["variants"] = {name: table for name, table in tables.items() if name in names}
    study = data["study"]
    if (
        isinstance(study, dict)
        and study.get("baseline") in list(tables)
        and study["baseline"] not in names
    ):
        del study["baseline"]


def _set_builds(data: dict[str, Any], names: Sequence[str]) -> None:
    """Make each build a variant, instead of the study's. `NAME=SOURCES` gives a build of `[builds]`
    other sources; a name that is not in `[builds]` takes everything else from the first build."""
    tables = data.get("builds")
    if isinstance(tables, dict) and tables:
        _set_program_builds(data, tables, names)
        return
    target = data.get("target")
    if not isinstance(target, dict) or target.get("kind") != "zpool":
        raise UsageError(
            "only a target of kind zpool has builds, and the study has no [builds]",
            where="--build",
            hint="add [builds.NAME] to the study, or --target kind=zpool with devices and layout",
        )
    if sources := [name for name in names if "=" in name]:
        raise UsageError(
            f"'{sources[0]}' is not the name of a build of OpenZFS",
            where="--build",
            hint="iolab ab takes NAME=SOURCES, and makes the build",
        )
    if len(set(names)) < len(names):
        raise UsageError(f"a build is given twice: {', '.join(names)}", where="--build")
    data["variants"] = {name: {"target": {"build": name}} for name in names}
    study = data["study"]
    if isinstance(study, dict):
        study["baseline"] = names[0]


def _set_program_builds(data: dict[str, Any], tables: dict[str, Any], words: Sequence[str]) -> None:
    names = [word.partition("=")[0] for word in words]
    if len(set(names)) < len(names):
        raise UsageError(f"a build is given twice: {', '.join(names)}", where="--build")
    builds = dict(tables)
    for word in words:
        name, equals, sources = word.partition("=")
        if equals:
            template = tables.get(name, next(iter(tables.values())))
            builds[name] = {**(template if isinstance(template, dict) else {}), "sources": sources}
        elif name not in tables:
            raise UsageError(
                f"the study has no build '{name}'", where="--build", hint=near(name, list(tables))
            )
    data["builds"] = builds
    data["variants"] = {name: {"build": name} for name in names}
    study = data["study"]
    if isinstance(study, dict):
        study["baseline"] = names[0]


def _add_again(data: dict[str, Any]) -> None:
    variants = _variant_tables(data) or {"baseline": {}}
    study = data["study"]
    baseline = (study.get("baseline") if isinstance(study, dict) else None) or next(iter(variants))
    if not isinstance(baseline, str) or baseline not in variants:
        return  # the check of the study reports it with its line
    name = f"{baseline}{AGAIN}"
    if name in variants:
        raise UsageError(
            f"the study has a variant '{name}' of its own",
            where="--a-a",
            hint="rename that variant",
        )
    data["variants"] = {**variants, name: copy.deepcopy(variants[baseline])}


def _variant_tables(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    variants = data.get("variants")
    tables = variants if isinstance(variants, dict) else {}
    return {name: table for name, table in tables.items() if isinstance(table, dict)}


def _value_at(table: Any, path: Sequence[str]) -> Any:
    for part in path:
        table = table.get(part) if isinstance(table, Mapping) else None
    return table
