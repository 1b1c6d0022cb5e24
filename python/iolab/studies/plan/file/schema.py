# SPDX-License-Identifier: Apache-2.0
"""The study file's JSON Schema, for editors and for whoever writes studies by program: complete,
with every plugin's options.

`python -m iolab.studies.plan.file.schema schemas/study.schema.json` writes it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from iolab.base import registry

from ..cells.cells import HOST, KERNEL, KERNEL_NAME
from ..cells.expressions import takes_size
from ..client_hosts import ClientHosts
from ..model import StudyFile, VariantTable

_ID = "https://json-schema.org/draft/2020-12/schema"
_MENTION = {
    "type": "string",
    "pattern": r"\{[A-Za-z_][A-Za-z0-9_-]*\}",
    "description": "a factor's level is filled in",
}

_KERNEL = (
    "name of a kernel that 'iolab rig build --kernel' added, or \"default\": the machine of the rig is "
    'started with it; different kernels need order = "sessions"'
)
_HOST = "where the study runs: the host of the target, written as after --host, which overrides it"

_EXPRESSION = {
    "type": "string",
    "pattern": r"[-+*/(A-Za-z_]",
    "description": "an expression of sizes, memory, cpus and factors, such as 0.25 * memory",
}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a study file, built from the models that read it and from the
    registry's built-ins.

    What the schema can't say (a size among fio's options after variants and factors are filled in,
    unique levels) is left to `load_study`; whatever that accepts, the schema accepts.
    """
    schema = StudyFile.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    properties = schema["properties"]
    for kind in ("target", "workload"):
        tables = [_table(kind, name, definitions) for name in registry.built_in(kind)]
        # A variant may bring the rest, so nothing but the kind can be demanded of the study's own
        # table.
        properties[kind] = {"description": properties[kind]["description"], "anyOf": tables}
    clients = _variables(ClientHosts.model_json_schema())
    properties["load"] = {"description": properties["load"]["description"], **clients}
    sets = properties["factors"]
    properties["factors"] = {
        "description": sets["description"],
        "anyOf": [sets["items"], {"type": "array", "items": sets["items"]}],
    }
    properties["sources"] = {
        "description": properties["sources"]["description"],
        "anyOf": [
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    name: _options("source", name, definitions)
                    for name in registry.built_in("source")
                },
            },
            {"type": "array", "items": {"enum": registry.built_in("source")}, "uniqueItems": True},
        ],
    }
    variant = definitions[VariantTable.__name__]["properties"]
    for kind in ("target", "workload"):
        variant[kind] = {
            "description": variant[kind]["description"],
            "anyOf": [
                {**_table(kind, name, definitions), "required": []}
                for name in registry.built_in(kind)
            ],
        }
    variant["load"] = {"description": variant["load"]["description"], **clients, "required": []}
    return {"$schema": _ID, "title": "iolab study", **_tidy(schema)}


def _tidy(value: Any, *, names: bool = False) -> Any:
    """Without what only pydantic needs: titles made of field names, and null, which TOML doesn't
    have.

    `names`: whether the keys of `value` are names of properties, any of which may be called
    `title`.
    """
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    tidied = {
        key: _tidy(below, names=key in ("properties", "$defs"))
        for key, below in value.items()
        if names or (key != "title" and not (key == "default" and below is None))
    }
    branches = tidied.get("anyOf")
    if isinstance(branches, list) and not names:
        flat = [
            inner
            for branch in branches
            for inner in (branch["anyOf"] if set(branch) == {"anyOf"} else [branch])
        ]
        branches = [branch for branch in flat if branch != {"type": "null"}]
        tidied = {key: below for key, below in tidied.items() if key != "anyOf"}
        tidied.update(
            branches[0]
            if len(branches) == 1 and not set(branches[0]) & set(tidied)
            else {"anyOf": branches}
        )
    return tidied


def _table(kind: str, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A plugin's table with its `kind`; any value may be written with a factor's `{name}` in it, a
    size as an expression."""
    options = _options(kind, name, definitions, variable=True)
    said = {"const": name, "description": registry.summary(kind, name)}
    required = ["kind"] if kind == "workload" else []
    texts = {
        HOST: {"type": "string", "description": _HOST},
        KERNEL: {"type": "string", "pattern": KERNEL_NAME, "description": _KERNEL},
    }
    host = texts if kind == "target" else {}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {"kind": said, **host, **options["properties"]},
        "required": required,
    }


def _options(
    kind: str, name: str, definitions: dict[str, Any], *, variable: bool = False
) -> dict[str, Any]:
    schema: dict[str, Any] = registry.load(kind, name).options.model_json_schema()
    below = schema.pop("$defs", {})
    for table in (schema, *below.values()) if variable else ():
        _variables(table)
    definitions.update(below)
    return schema


def _variables(table: dict[str, Any]) -> dict[str, Any]:
    """A table any option of which takes a text with a factor in it as well; the same object."""
    table["properties"] = {
        key: _variable(key, value) for key, value in table.get("properties", {}).items()
    }
    return table


def _variable(key: str, value: dict[str, Any]) -> dict[str, Any]:
    """An option that takes a text with a factor in it as well, or an expression where it is a size."""
    kept: dict[str, Any] = {
        field: value[field] for field in ("description", "default") if field in value
    }
    bare: dict[str, Any] = {
        field: below
        for field, below in value.items()
        if field not in ("title", "description", "default")
    }
    if bare.get("type") != "object":  # an open table's values may be anything as they are
        bare = {"anyOf": [bare, _MENTION, *([_EXPRESSION] if takes_size(key) else [])]}
    return {**bare, **kept}


def main(arguments: list[str]) -> None:
    """Write the schema to the path given."""
    if len(arguments) != 1:
        raise SystemExit("usage: python -m iolab.studies.plan.file.schema PATH")
    Path(arguments[0]).write_text(
        json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
