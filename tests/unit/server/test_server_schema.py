"""The OpenAPI document, and the service held to it by requests made up from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from iolab.server.app import application
from iolab.server.guard import Door
from iolab.server.openapi import document
from iolab.server.routes import ROUTES
from iolab.server.store import Store
from support.service import TOKEN

load_all_checks()
HELD = CHECKS.get_by_names(["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"])
KNOWN = {"recording": ["rec", "t.csv"], "statistic": ["io.ops", "io.bytes[op]", "io.ops[latency]", "io.ops[op=write][offset]"],
         "from": ["-10s", "1s"], "to": ["3s", "-1s"], "interval": ["1s"],
         "other_from": ["4s"], "other_to": ["6s"], "by": ["op", "process"], "low": ["1us"], "high": ["10ms"], "source": ["block", "csv"]}
"""What is there, so that answers are held to the document as well as refusals."""
ENDING = {*(f"/api/v1{route.path}" for route in ROUTES), "/metrics"}


def test_every_path_is_in_the_document() -> None:
    found = document()
    assert set(found["paths"]) == {*ENDING, "/api/v1/stream"}
    for path in found["paths"].values():
        assert {"200", "400", "401", "403"} <= set(path["get"]["responses"])


@pytest.fixture(scope="module")
def apis(store: Store) -> dict[str, Any]:
    """By the document as it is, and with parameters of which most name what is there."""
    return {"any": loaded(document(), store), "known": loaded(with_known(document()), store)}


def with_known(found: dict[str, Any]) -> dict[str, Any]:
    for path in found["paths"].values():
        for parameter in path["get"]["parameters"]:
            if parameter["name"] == "key":
                parameter["schema"]["items"] = {"enum": ["read", "write"]}
            if parameter["name"] in KNOWN:
                parameter["schema"] = {"enum": KNOWN[parameter["name"]]}
            parameter["required"] |= parameter["name"] == "recording"
    return found


def loaded(found: dict[str, Any], store: Store) -> Any:
    del found["paths"]["/api/v1/stream"]  # it does not end
    inside = application(store, Door(["testserver"], 80, token=TOKEN))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/openapi.json":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
            await send({"type": "http.response.body", "body": json.dumps(found).encode()})
        else:
            await inside(scope, receive, send)

    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.parametrize(("which", "mode"), [
    ("known", GenerationMode.POSITIVE), ("any", GenerationMode.POSITIVE), ("any", GenerationMode.NEGATIVE)])
@pytest.mark.parametrize("path", sorted(ENDING))
def test_the_service_does_what_the_document_says(path: str, which: str, mode: GenerationMode, apis: dict[str, Any]) -> None:
    operation = apis[which][path]["GET"]
    if mode is GenerationMode.NEGATIVE and not document()["paths"][path]["get"]["parameters"]:
        return  # nothing about it can be wrong
    statuses = set()

    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=20, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
              suppress_health_check=list(HealthCheck))
    def holds(case: Any) -> None:
        answer = case.call_and_validate(headers={"authorization": f"Bearer {TOKEN}"}, checks=HELD)
        statuses.add(answer.status_code)

    holds()
    if which == "known":
        assert 200 in statuses
