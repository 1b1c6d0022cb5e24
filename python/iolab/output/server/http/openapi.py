# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, and TypeScript types of the same answers: generated from the routes and
models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from iolab.base.documents import Model

from ...report.model.schema import maps_schema, typescript
from ..alerts.alert import RESERVED
from ..base.models import Problem, Tick
from ..live.stream import PARAMETERS as STREAM
from ..queries import binary
from ..queries.parameters import Parameter
from ..queries.routes import PREFIX, ROUTES, Route
from .actions import ACTIONS, ALERT, Action

SCHEMA_FILE = Path("schemas/api.json")
TYPES_FILE = Path("web/src/generated/api.ts")

_PROBLEMS = {
    "401": "The token is missing or wrong.",
    "403": "Asked by another site, or by a host name that is not this service's.",
    "404": "There is nothing of that name.",
    "405": f"'{RESERVED}' is the path of the log of alerts, which can only be read.",
    "408": "The document did not come in time.",
    "409": "What is served can't answer it, such as a damaged or empty trace.",
    "413": "The document is too large.",
    "415": "A document is application/json.",
    "431": "Address and headers have more than 16 KiB together.",
    "503": "Too many questions at once; ask again.",
}
_OF_ALERTS = ("405",)
_OF_DOCUMENTS = ("408", "413", "415")
REFUSALS = {
    "recording": "no recording is named where several are served",
    "statistic": "the statistic has no such filter, value or breakdown, or none that this path can answer",
    "source": "nothing was recorded of what the statistic comes of",
    "from": "a moment is on no calendar, beyond 64 bits, or a clock's where events count from a start of their own",
    "to": "the span of time is empty",
    "other_from": "the two ranges differ in length",
    "against_from": "the quiet time has no end, is empty, overlaps the time that is looked at, or is too short or too long to compare with",
    "interval": "the interval makes too many columns or too large an answer, is less than 1 ns, or can't be the whole time",
    "drawn": "the statistic has no percentiles",
    "low": "a quantity is of another kind than the map's values, or their range is empty",
    "id": "the text is no id of an I/O, or the recording is a trace",
    "by": "the map cannot be broken down by that field, or the field has no such value",
    "whole numbers": "a whole number is written with a point or an exponent",
    "span": "a span of time ends before it begins",
    "name": "the document has another name than the path",
    "alert": "the alert looks at more than one number, at no time of day, or runs a command that there is not",
    "change": "the statistic can't be kept, is kept already or is not kept, or the moment is in the future",
    "kept": "the recording is a trace or was imported, of which nothing is kept",
    "mark": "the mark ends before it begins, there are too many, there is none of that label and begin, or the recording is a trace",
    "metric": "no results of the history have the metric",
    "share": "the answers take too long, or are too large, to be shared",
}
"""Why a request that meets the schema may be refused with 400, by the parameter or by what the
document is about."""
_OF_BODIES = {
    "Worksheet": ("span", "name"),
    "Sharing": ("span", "share"),
    "Alert": ("recording", "statistic", "name", "alert"),
    "PreviewRequest": ("recording", "statistic", "to", "alert"),
    "KeepLimits": ("kept",),
    "MarkAdd": ("recording", "mark"),
    "MarkRemove": ("recording", "mark"),
}
_OF_KEEPING = ("statistic", "change", "kept")


def document() -> dict[str, Any]:
    """OpenAPI 3.1 of `PREFIX` and /metrics."""
    paths: dict[str, Any] = {
        f"{PREFIX}{route.path}": {"get": _operation(route)} for route in ROUTES
    }
    paths[f"{PREFIX}/stream"] = {
        "get": {
            "operationId": "stream",
            "summary": "Live data as server-sent events: tick once a second, answer for each statistic, problem.",
            "parameters": [_parameter(parameter) for parameter in STREAM],
            "responses": {
                "200": {
                    "description": "Events; their data are Tick, an answer as /query gives it, and Problem.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                },
                **_problems(_reasons(STREAM)),
            },
        }
    }
    paths["/metrics"] = {
        "get": {
            "operationId": "metrics",
            "summary": "The statistics chosen with --metric, for Prometheus.",
            "parameters": [],
            "responses": {
                "200": {
                    "description": "Text, or protobuf with native histograms where `Accept` asks for it.",
                    "content": {"text/plain": {"schema": {"type": "string"}}},
                },
                **_problems(),
            },
        }
    }
    for action in ACTIONS:
        paths.setdefault(f"{PREFIX}{action.path}", {})[action.method.lower()] = _action(action)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "iolab",
            "version": "1",
            "description": "Recordings and traces of I/O; see docs/reference/api.md",
        },
        "paths": paths,
        "security": [{"token": []}, {"cookie": []}],
        "components": {
            "schemas": _schemas("#/components/schemas/{model}")["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "iolab-<port>"},
            },
        },
    }


def write(root: Path) -> list[Path]:
    """Write the document and the types below `root`; returns their paths."""
    texts = {
        SCHEMA_FILE: json.dumps(document(), indent=2, ensure_ascii=False) + "\n",
        TYPES_FILE: typescript(_schemas("#/$defs/{model}"), maps_schema()["$defs"]).replace(
            "`python -m iolab.output.report.model.schema` from the payload's models",
            "`make generate` from the service's models",
        ),
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return [root / path for path in texts]


def _schemas(template: str) -> dict[str, Any]:
    models: set[type[Model] | None] = {Problem, Tick}
    for route in ROUTES:
        models.update(route.models)
    for action in ACTIONS:
        models |= {action.body, action.model}
    return models_json_schema(
        [(model, "serialization") for model in models if model is not None], ref_template=template
    )[1]


def _operation(route: Route) -> dict[str, Any]:
    refs = [_ref(model) for model in route.models]
    schema = {"type": "string"} if not refs else refs[0] if len(refs) == 1 else {"oneOf": refs}
    content: dict[str, Any] = {route.kind: {"schema": schema}}
    if route.binary is not None:
        content[binary.MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
    return {
        "operationId": route.path.strip("/"),
        "summary": route.about,
        "parameters": [_parameter(parameter) for parameter in route.parameters],
        "responses": {
            "200": {"description": "The answer.", "content": content},
            **_problems(_reasons(route.parameters)),
        },
    }


def _action(action: Action) -> dict[str, Any]:
    words = action.path.strip("/").split("/")
    schema = {"type": "string"} if action.model is None else _ref(action.model)
    done = (
        {"204": {"description": "Done."}}
        if action.model is None and not action.file
        else {"200": {"description": "The answer.", "content": {action.kind: {"schema": schema}}}}
    )
    body = (
        {}
        if action.body is None
        else {
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": _ref(action.body)}},
            }
        }
    )
    more = (_OF_DOCUMENTS if action.body is not None else ()) + (
        _OF_ALERTS if ALERT in action.parameters else ()
    )
    return {
        "operationId": "-".join([action.method.lower(), *(word.strip("{}") for word in words)]),
        "summary": action.about,
        "parameters": [_parameter(parameter) for parameter in action.parameters],
        **body,
        "responses": {**done, **_problems(_reasons(action.parameters, action.body), more)},
    }


def _reasons(parameters: Sequence[Parameter], body: type[Model] | None = None) -> list[str]:
    """Why what meets the schema may be refused all the same: with 400."""
    names = [parameter.name for parameter in parameters if parameter.place == "query"]
    if body is not None:
        names += ["whole numbers", *_OF_BODIES.get(body.__name__, _OF_KEEPING)]
    return [words for name, words in REFUSALS.items() if name in names]


def _ref(model: type[Model]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _parameter(each: Parameter) -> dict[str, Any]:
    return {
        "name": each.name,
        "in": each.place,
        "required": each.required,
        "description": each.about,
        "schema": deepcopy(each.schema),
    }


def _problems(reasons: Sequence[str] = (), more: Sequence[str] = ()) -> dict[str, Any]:
    reasons_text = "".join(f"; {words}" for words in ("it is not as the schema says", *reasons))[2:]
    described = {
        "400": f"The question can't be answered; `error` says why: {reasons_text}.",
        **_PROBLEMS,
    }
    return {
        code: {"description": words, "content": {"application/json": {"schema": _ref(Problem)}}}
        for code, words in described.items()
        if code not in (*_OF_DOCUMENTS, *_OF_ALERTS) or code in more
    }
