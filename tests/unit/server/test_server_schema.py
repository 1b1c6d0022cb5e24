# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, and the service held to it by requests made up from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from starlette.testclient import TestClient

from iolab.output.server.alerts.alert import Alert
from iolab.output.server.base.store import Store
from iolab.output.server.base.worksheet import Worksheet
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import ACTIONS, AppState, state_in
from iolab.output.server.http.app import application
from iolab.output.server.http.openapi import REFUSALS, document
from iolab.output.server.queries.routes import ROUTES
from iolab.recordings.ask.attribution import Rectangle
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.question import parse
from iolab.recordings.ask.single_ios import list_ios
from iolab.recordings.store.write.user_marks import add_mark
from support.depth import depth
from support.recordings import START
from support.service import TOKEN, watched

load_all_checks()
REFUSED = {"400", "401", "403", "404", "409", "413", "415", "431"}
CONFIG = {
    "checks": {
        "negative_data_rejection": {"expected-statuses": [*sorted(REFUSED), "405"]},
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", *sorted(REFUSED - {"413", "415"})]
        },
    }
}
"""A request that meets the schema may be refused with 400 for a reason that the document gives: see
`is_refused_with_reason`."""
REASONS = {
    "recording": "^which recording is not said$",
    "statistic": "has no |is due|names no field|there is no (statistic|dimension|map)|can't be|comes of counters|^a map is not|^a value is",
    "source": "^holds no (events|counters)|comes of counters, and a trace has none$|^nothing answers",
    "from": "is not a moment|is a clock's time",
    "to": "^the span of time is empty$",
    "other_from": "^the two ranges differ in length$",
    "against_from": r"^the quiet time (has no end|is empty|overlaps)|^too little time to compare with|columns, and \d+ are possible",
    "interval": "columns|numbers, and|is no interval of this|at least 1 ns|longer than nothing|hundred years",
    "drawn": "percentiles",
    "id": "is no I/O$|^a trace holds one layer$|^holds no events",
    "low": "range of values|"
    "is a (time|size), not|is not a (unit|time|size)|unknown unit|has no unit|range .*is empty|is not a whole number of",
    "by": "^a map cannot be broken down by|^there is no .* '",
    "whole numbers": r"Input should be (a valid integer|\d)",
    "span": "begins before it ends$",
    "name": "has another name than the path$",
    "alert": "^an alert on a percentile|^percentiles are of|"
    "^an alert looks at one number|is not a time of day|is not a day, in|^there is no command",
    "change": "is kept already$|is not kept$|is in the future|the most that",
    "mark": "ends before it begins|are the most of a recording|no such mark|^a trace has no marks",
    "kept": "^of a trace nothing is kept$|^was imported",
    "metric": "^no results of the history have the metric",
    "share": "^the answers (have|take) more than",
}
"""The words in which each of `REFUSALS` is told."""
KNOWN = {
    "recording": ["rec", "t.csv"],
    "statistic": ["io.ops", "io.bytes[op]", "io.ops[latency]", "io.ops[op=write][offset]"],
    "from": ["-10s", "1s"],
    "to": ["3s", "-1s"],
    "interval": ["1s"],
    "other_from": ["4s"],
    "other_to": ["6s"],
    "by": ["op", "process"],
    "name": ["one"],
    "low": ["1us"],
    "high": ["10ms"],
    "source": ["block", "csv"],
}
"""What is there, so that answers are held to the document as well as refusals."""
UNDERSTOOD = {
    "from": [
        "0",
        " 30s ",
        "-10m",
        "- 1.5h",
        "12:00:05",
        "9:30",
        "2026-03-01T12:00:05.25+01:00",
        "20260301T1200",
        "1700000000000000000",
        "2d",
        "3 min",
        "1h30m",
        "-1m 30s",
    ],
    "to": ["-1d", "5us", "5µs"],
    "interval": ["whole", "10 ms", "1m", "1.5h", "2d", "1m30s"],
    "low": ["8KiB", "0", "1.5ms", "3µs"],
    "statistic": [
        "io.ops [latency]",
        "io.ops[op=read] [ offset ] ",
        "cpu.utilization[mode!=idle]",
        'io.ops[file="a]"]',
    ],
}
"""Words that are understood, whatever is there."""
OF_MAPS = ("who", "layers")
"""Paths whose statistic is a map."""
ONE = Worksheet.model_validate(
    {
        "schema": 1,
        "name": "one",
        "recording": "rec",
        "time": {"live": 60},
        "compare": None,
        "graphs": [],
    }
)
WATCHED = Alert.model_validate(
    {
        "name": "one",
        "recording": "rec",
        "statistic": "io.ops",
        "exceeds": 5,
        "falls_below": None,
        "for_seconds": 1,
        "only_during": "",
        "repost_minutes": 0,
        "also_when_clear": True,
        "actions": [],
    }
)
OPERATIONS = sorted(
    [
        *((f"/api/v1{route.path}", "get") for route in ROUTES),
        ("/metrics", "get"),
        *((f"/api/v1{action.path}", action.method.lower()) for action in ACTIONS),
    ]
)
"""Path and method of everything that comes to an end."""


def test_every_path_is_in_the_document() -> None:
    found = document()
    assert {(path, method) for path, ways in found["paths"].items() for method in ways} == {
        *OPERATIONS,
        ("/api/v1/stream", "get"),
    }
    for path in found["paths"].values():
        for way in path.values():
            assert {"400", "401", "403"} < set(way["responses"])
            assert {"200", "204"} & set(way["responses"])


def patterns(name: str, *paths: str) -> list[str]:
    """Of a parameter, on these paths or on all that take it."""
    found = [
        each["schema"].get("pattern")
        for path, ways in document()["paths"].items()
        for way in ways.values()
        for each in way["parameters"]
        if each["name"] == name and (not paths or path.rpartition("/")[2] in paths)
    ]
    return [each for each in found if each is not None]


@pytest.mark.parametrize("name", sorted(UNDERSTOOD))
def test_patterns_leave_nothing_out_that_is_understood(name: str) -> None:
    maps = patterns("statistic", *OF_MAPS)
    assert patterns(name)
    for pattern in patterns(name):
        words = [word for word in [*KNOWN[name], *UNDERSTOOD[name]] if not re.search(pattern, word)]
        assert [
            word
            for word in words
            if pattern not in maps or word.rstrip(" ]").endswith(("latency", "offset"))
        ] == []


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("who", "from", ["soon", "1x", "-", "10:", ""]),
        ("query", "interval", ["fast", "wholes", "1 fortnight"]),
        ("query", "interval", ["0s", "10", "0.0 ms"]),
        ("who", "to", ["2026-13-01", "2026-02-32", "12:60:", "1.5", "2026-3-1"]),
        ("who", "statistic", ["io.ops", "io.ops[op]", "io.ops[latency>1us]"]),
        ("layers", "statistic", ["io.ops", "io.bytes[op]"]),
        ("who", "low", ["ms", "-1ms", "1ms 2"]),
        ("query", "source", ["bl\0ck"]),
        (
            "query",
            "statistic",
            ["0", "io", "io.op", "io.opsx", "io.ops latency", "io.ops[latency", "io.ops[file=\0]"],
        ),
    ],
)
def test_what_patterns_leave_out_is_refused(
    path: str, name: str, words: list[str], state: AppState
) -> None:
    client = TestClient(
        application(state, Door(["testserver"], 80, token=TOKEN)),
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    asked = {
        "recording": "rec",
        "statistic": "io.ops[latency]",
        **(
            {"low": "1us", "high": "1s"}
            if path == "who"
            else {"by": "op", "key": "read"}
            if path == "layers"
            else {}
        ),
    }
    assert client.get(f"/api/v1/{path}", params=asked).status_code == 200
    for word in words:
        assert not any(re.search(pattern, word) for pattern in patterns(name, path)), word
        assert client.get(f"/api/v1/{path}", params={**asked, name: word}).status_code == 400, word


def test_a_moment_is_as_long_as_the_document_says(state: AppState) -> None:
    client = TestClient(
        application(state, Door(["testserver"], 80, token=TOKEN)),
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    for size, status in ((64, 200), (65, 400)):
        asked = {"recording": "rec", "statistic": "io.ops", "from": "1s".zfill(size)}
        assert client.get("/api/v1/query", params=asked).status_code == status


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, trace: Path) -> AppState:
    """Of a recording of its own, in which may be kept whatever comes."""
    home = tmp_path_factory.mktemp("state")
    watched(home / "rec")
    return state_in(Store([home / "rec", trace]), home, home / "alerts.jsonl")


@pytest.fixture(scope="module")
def apis(state: AppState) -> dict[str, Any]:
    """By the document as it is, and with parameters of which most name what is there."""
    return {"any": loaded(document(), state), "known": loaded(with_known(document(), state), state)}


def with_known(found: dict[str, Any], state: AppState) -> dict[str, Any]:
    page = list_ios(state.store.open("rec"), parse("io.ops"), Rectangle(), limit=3)
    ids = [io.id for io in page.ios]
    for ways in found["paths"].values():
        for way in ways.values():
            for parameter in way["parameters"]:
                if parameter["name"] == "key":
                    parameter["schema"]["items"] = {"enum": ["read", "write"]}
                if parameter["name"] in KNOWN:
                    parameter["schema"] = {
                        "enum": [
                            word
                            for word in KNOWN[parameter["name"]]
                            if re.search(parameter["schema"].get("pattern", ""), word)
                        ]
                    }
                if parameter["name"] == "id":
                    parameter["schema"] = {"enum": ids}
                parameter["required"] |= parameter["name"] == "recording"
    models = found["components"]["schemas"]
    models["Worksheet"]["properties"]["name"] = models["Alert"]["properties"]["name"] = {
        "const": "one"
    }
    models["Alert"]["properties"] |= {
        "recording": {"const": "rec"},
        "statistic": {"const": "io.ops"},
        "exceeds": {"const": 5},
        "falls_below": {"const": None},
        "percentile": {"const": ""},
        "only_during": {"const": ""},
        "actions": {"const": []},
    }
    for name in ("KeepAdd", "KeepChange", "KeepPrune"):
        models[name]["properties"]["recording"] = {"const": "rec"}
        models[name]["properties"]["statistic"] = {"const": "io.ops[op]"}
    models["KeepAdd"]["properties"]["backfill"] = {"const": True}
    times = {"from_ns": {"const": START}, "until_ns": {"const": START + 5 * 10**9}}
    models["PreviewRequest"]["properties"] |= times
    named = {"recording": {"const": "rec"}, "label": {"const": "here"}}
    models["MarkAdd"]["properties"] |= named | times
    models["MarkRemove"]["properties"] |= named | {"from_ns": times["from_ns"]}
    models["KeepLimits"]["properties"] |= {
        "recording": {"const": "rec"},
        "retention": {"enum": [{}, {"1s": 3600}, {"1h": 10**8}]},
    }
    return found


def loaded(found: dict[str, Any], state: AppState) -> Any:
    del found["paths"]["/api/v1/stream"]  # it does not end
    inside = application(state, Door(["testserver"], 80, token=TOKEN))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/openapi.json":
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(b"content-type", b"application/json")],
                }
            )
            await send({"type": "http.response.body", "body": json.dumps(found).encode()})
        else:
            await inside(scope, receive, send)

    return schemathesis.openapi.from_asgi(
        "/openapi.json", app, config=SchemathesisConfig.from_dict(CONFIG)
    )


def prepared(state: AppState, path: str) -> None:
    """What a path acts on is there; what it adds is not."""
    state.worksheets.write("one", ONE)
    state.watch.put("one", WATCHED)
    if path.endswith("/marks/remove"):
        recording = state.store.recording("rec")
        assert recording is not None
        add_mark(recording, "here", START, START, "")
    if "/kept/" in path:
        place = state.store.path("rec")
        if kept := [row["statistic"] for row in manage.list_kept(place)]:
            manage.drop(place, kept)
        if not path.endswith("/add"):
            manage.add(place, ["io.ops[op]"], backfill=True)


def is_documented(error: str, description: str) -> bool:
    """Whether what meets the schema was refused for one of the reasons that are described."""
    return any(
        re.search(REASONS[name], error) for name, words in REFUSALS.items() if words in description
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "mode"),
    [
        ("known", GenerationMode.POSITIVE),
        ("any", GenerationMode.POSITIVE),
        ("any", GenerationMode.NEGATIVE),
    ],
)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_service_does_what_the_document_says(
    path: str, method: str, which: str, mode: GenerationMode, apis: dict[str, Any], state: AppState
) -> None:
    operation = apis[which][path][method.upper()]
    described = document()["paths"][path][method]
    if (
        mode is GenerationMode.NEGATIVE
        and not described["parameters"]
        and "requestBody" not in described
    ):
        return  # nothing about it can be wrong
    prepared(state, path)
    statuses = set()

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=depth(8, 48) if which == "known" else depth(2, 12),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: Any) -> None:
        answer = case.call_and_validate(
            headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS.get_all()
        )
        statuses.add(answer.status_code)
        if mode is GenerationMode.POSITIVE and answer.status_code == 400:
            assert is_documented(
                answer.json()["error"], described["responses"]["400"]["description"]
            )

    holds()
    # no history and no archive is served here; test_server_start.py and test_server_fleet.py ask
    if which == "known" and not path.endswith(("/history", "/cell-runs", "/fleet")):
        assert statuses & {200, 204}
