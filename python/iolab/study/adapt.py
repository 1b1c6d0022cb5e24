# SPDX-License-Identifier: Apache-2.0
"""What a caller changes about a study without touching its file: fewer cells, another runtime,
another target, an A/A arm.

Changes work on the parsed tables before anything is checked, so that a changed study is checked as
a whole. They are kept with the results (`Study.changes`), so that `study.toml` and they give the
same plan again.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError
from .problems import near

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
        again: add the arm `<baseline>-again`, the same as the baseline in everything.
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

    def __bool__(self) -> bool:
        return self != Changes()

    def as_data(self) -> dict[str, Any]:
        """As plain data, for the manifest; what isn't changed is missing."""
        document: dict[str, Any] = {
            "only": {name: list(levels) for name, levels in self.only.items()},
            "variants": list(self.variants),
            "repetitions": self.repetitions,
            "runtime": self.runtime,
            "seed": self.seed,
            "target": dict(self.target),
            "workload": dict(self.workload),
            "load": dict(self.load),
            "again": self.again,
        }
        return {
            key: value
            for key, value in document.items()
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
        return [*options, *(["--a-a"] if self.again else [])]


def parse_only(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`numjobs=1,8` and `bs=4k` as a mapping; a factor named twice adds up. UsageError for what is
    no `factor=level`."""
    levels_by_factor: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, levels = text.partition("=")
        parts = tuple(part.strip() for part in levels.split(","))
        if not equals or not name.strip() or not all(parts):
            raise UsageError(
                f"'{text}' names no level",
                where="--only",
                hint="write factor=level or factor=level,level",
            )
        levels_by_factor[name.strip()] = (*levels_by_factor.get(name.strip(), ()), *parts)
    return levels_by_factor


def parse_target(texts: Iterable[str], flag: str = "--target") -> dict[str, str]:
    """`path=/mnt/x` and `loop.size=2g` as a mapping. UsageError for what is no `key=value`, or a
    key given twice."""
    settings: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not all(part.strip() for part in key.split(".")):
            raise UsageError(
                f"'{text}' is not a key=value",
                where=flag,
                hint="such as path=/mnt/x; 'key=' takes a key out",
            )
        if key.strip() in settings:
            raise UsageError(f"'{key.strip()}' is given twice", where=flag)
        settings[key.strip()] = value.strip()
    return settings


def adapted(data: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """A study's tables with everything changed but `only`, which is about combinations of levels
    and comes later.

    Tables that aren't what they should be are left as they are: whoever checks the study says so.
    Raises UsageError where a change names what isn't there.
    """
    document = copy.deepcopy(dict(data))
    study = document.setdefault("study", {})
    if isinstance(study, dict):
        if changes.repetitions is not None:
            study["repetitions"] = changes.repetitions
        if changes.seed is not None:
            study["seed"] = changes.seed
    if changes.runtime is not None:
        _set_runtime(document, changes.runtime)
    if changes.target:
        _set_keys(document, "target", changes.target)
    if changes.workload:
        _set_keys(document, "workload", changes.workload)
    if changes.load:
        _set_keys(document, "load", changes.load)
    if changes.variants:
        _keep_variants(document, changes.variants)
    if changes.again:
        _add_again(document)
    return document


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
    tables = data.get(kind, {})
    if not isinstance(tables, dict):
        return
    if changes.get("kind", tables.get("kind")) != tables.get("kind", "directory"):
        tables = {}  # another kind has other keys
    for key, text in changes.items():
        for variant, table in _variant_tables(data).items():
            if _value_at(table, (kind, *key.split("."))) is not None:
                raise UsageError(
                    f"variant '{variant}' sets {kind}.{key} itself",
                    where=f"--{kind}",
                    hint="it is what the study compares; change the file instead",
                )
        *above, last = key.split(".")
        table = tables
        for part in above:
            below = table.get(part)
            table[part] = below if isinstance(below, dict) else {}
            table = table[part]
        if text:
            table[last] = _value_of(text)
        else:
            table.pop(last, None)
    data[kind] = tables


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


def _add_again(data: dict[str, Any]) -> None:
    variants = _variant_tables(data) or {"baseline": {}}
    study = data["study"]
    baseline = (study.get("baseline") if isinstance(study, dict) else None) or next(iter(variants))
    if not isinstance(baseline, str) or baseline not in variants:
        return  # the study's own mistake, told with its line
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
