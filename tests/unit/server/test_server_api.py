# SPDX-License-Identifier: Apache-2.0
"""What the service answers: the same numbers as the terminal, and a problem in words for whatever
can't be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.cli.main import run
from iolab.output.server.http.access import Door
from iolab.output.server.http.app import application
from iolab.output.server.queries.routes import ROUTES
from support.golden import Golden
from support.recordings import SECOND, START
from support.service import TOKEN, recorded

STATISTICS = [
    "io.ops",
    "io.bytes[op=write]",
    "io.ops[device]",
    "io.ops[op=read,write][process]",
    "io.ops[latency]",
    "io.ops[latency>=100us][size]",
    "io.ops[device=sda][offset]",
    "io.ops[queue]",
]


def asked(client: TestClient, path: str, **words: str) -> Any:
    answer = client.get(f"/api/v1/{path}", params=words)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_terminal_and_the_service_give_the_same_numbers(
    statistic: str, client: TestClient, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            [
                "query",
                str(recording),
                statistic,
                "--format",
                "json",
                "--from",
                "1s",
                "--to",
                "-1s",
                "--interval",
                "500ms",
                "--top",
                "1000",
            ]
        )
        == 0
    )
    terminal = json.loads(capsys.readouterr().out)
    service = asked(
        client,
        "query",
        recording="rec",
        statistic=statistic,
        **{"from": "1s", "to": "-1s"},
        interval="500ms",
        top="1000",
    )
    assert service == terminal
    assert service["kind"] in ("series", "stack", "heat")


def test_a_trace_answers_as_well(client: TestClient) -> None:
    found = asked(client, "query", recording="t.csv", statistic="io.ops[op]", interval="1s")
    assert {layer["key"]: layer["values"] for layer in found["keys"]} == {
        "read": [1000] * 5,
        "write": [100] * 5,
    }
    assert found["others"] is None
    assert (
        asked(client, "query", recording="t.csv", statistic="io.ops[op]", top="1")["others"][
            "total"
        ]
        == 500
    )


def test_moments_may_be_nanoseconds(client: TestClient) -> None:
    words = {"recording": "rec", "statistic": "io.ops"}
    found = asked(
        client, "query", **words, **{"from": str(START + 10**9), "to": str(START + 2 * 10**9)}
    )
    assert (found["first_ns"], found["until_ns"]) == (START + 10**9, START + 2 * 10**9)
    assert (
        found["total"] == asked(client, "query", **words, **{"from": "1s", "to": "2s"})["total"] > 0
    )


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("top", [[], ["--top", "2"]])
def test_csv_is_what_the_terminal_writes(
    statistic: str,
    top: list[str],
    client: TestClient,
    recording: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert (
        run(
            [
                "query",
                str(recording),
                statistic,
                "--format",
                "csv",
                "--from",
                "1s",
                "--interval",
                "500ms",
                *top,
            ]
        )
        == 0
    )
    words = {"recording": "rec", "statistic": statistic, "from": "1s", "interval": "500ms"} | (
        {"top": top[1]} if top else {}
    )
    answer = client.get("/api/v1/export", params=words)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.content == capsysbinary.readouterr().out


def test_a_drawn_map_has_every_count(client: TestClient) -> None:
    words = {"recording": "rec", "statistic": "io.ops[latency]"}
    plain, drawn = asked(client, "query", **words), asked(client, "query", **words, drawn="true")
    assert drawn["kind"] == "map"
    assert sum(drawn["group"]["maps"][0]["cells"]["counts"]) == sum(plain["count"])
    assert (
        asked(
            client, "query", recording="rec", statistic="io.ops[latency>=1h][latency]", drawn="true"
        )["group"]
        is None
    )


def test_a_drawn_map_tells_the_time_that_it_answers_for(client: TestClient) -> None:
    words = {
        "recording": "rec",
        "statistic": "io.ops[latency>=5ms][latency]",
        "drawn": "true",
        "interval": "10ms",
    }
    part = asked(
        client, "query", **words, **{"from": str(START + 2 * SECOND), "to": str(START + 3 * SECOND)}
    )
    first, past = part["window"]
    assert part["group"]["columns"] < past - first == 100
    assert (part["t0_ns"] + first * 10_000_000, part["t0_ns"] + past * 10_000_000) == (
        START + 2 * SECOND,
        START + 3 * SECOND,
    )


def test_what_is_served_and_what_can_be_asked(client: TestClient) -> None:
    rec, trace = asked(client, "recordings")["recordings"]
    assert (rec["name"], rec["kind"], rec["host"], rec["clock"], rec["live"]) == (
        "rec",
        "recording",
        "there",
        "realtime",
        False,
    )
    assert (
        rec["events"]["block"]
        == asked(client, "query", recording="rec", statistic="io.ops")["total"]
    )
    assert (trace["name"], trace["kind"], trace["events"]) == ("t.csv", "trace", {"csv": 5500})
    found = {
        each["name"]: each for each in asked(client, "statistics", recording="rec")["statistics"]
    }
    assert found["io.ops"]["available"]
    assert {"field": "latency", "kind": "heat"} in found["io.ops"]["breakdowns"]
    assert {"field": "device", "kind": "stack"} in found["io.ops"]["breakdowns"]
    assert not found["app.ops"]["available"]
    assert "fio" in found["app.ops"]["why_not"]
    of_trace = {
        each["name"]: each for each in asked(client, "statistics", recording="t.csv")["statistics"]
    }["io.ops"]
    assert [each["field"] for each in of_trace["breakdowns"]] == [
        "op",
        "process",
        "file",
        "latency",
        "offset",
        "size",
    ]
    assert of_trace["sources"][0]["fields"] == [each["field"] for each in of_trace["breakdowns"]]
    assert {
        "field": "client",
        "kind": "stack",
        "why_not": "only a table with a column of that name has the client",
    } in of_trace["lacking"]
    assert {"field": "queue", "kind": "heat", "why_not": "csv events have no queue"} in of_trace[
        "lacking"
    ]


def test_marks_and_losses(client: TestClient) -> None:
    [mark] = asked(client, "marks", recording="rec")["marks"]
    assert (mark["label"], mark["link"], mark["facts"]) == ("run 1", "runs/0001", {"variant": "a"})
    found = asked(client, "losses", recording="rec")
    assert found["totals"] == {"overrun": 17}
    assert found["losses"][0]["count"] == 17
    assert (
        asked(client, "losses", recording="t.csv")["losses"]
        == asked(client, "marks", recording="t.csv")["marks"]
        == []
    )


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("seconds", [(-61, -1), (3600, 3661)], ids=["before", "after"])
def test_a_span_in_which_nothing_was_recorded_is_answered_with_nothing(
    statistic: str, seconds: tuple[int, int], client: TestClient
) -> None:
    first, until = (START + each * SECOND for each in seconds)
    words = {
        "recording": "rec",
        "statistic": statistic,
        "from": str(first),
        "to": str(until),
        "interval": "1s",
    }
    answer = asked(client, "query", **words)
    assert not sum(answer["count"]) if answer["kind"] == "heat" else not answer["total"]
    asked(client, "query", **words, drawn="true")
    if statistic.endswith(("latency]", "size]")):
        asked(client, "query", **words, drawn="percentiles")


@pytest.mark.parametrize(
    ("path", "words", "status"),
    [
        ("query", {"statistic": "io.ops"}, 400),
        ("query", {"recording": "rec"}, 400),
        ("query", {"recording": "../rec", "statistic": "io.ops"}, 404),
        ("query", {"recording": "/etc/passwd", "statistic": "io.ops"}, 404),
        ("query", {"recording": "rec", "statistic": "io.opps"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops[file=../../etc/passwd"}, 400),
        ("query", {"recording": "rec", "statistic": "file.ops"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "source": "../../x"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "from": "yesterday"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "to": "99999-01-01"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "interval": "0s"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "interval": "1ns"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "from": "2s", "to": "1s"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "columns": "1e9"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "top": "-1"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops", "token": "x"}, 400),
        ("query", {"recording": "rec", "statistic": "io.ops\0"}, 400),
        ("query", {"recording": "rec", "statistic": "x" * 5000}, 400),
        ("who", {"recording": "rec", "statistic": "io.ops[op]"}, 400),
        (
            "who",
            {"recording": "rec", "statistic": "io.ops[latency]", "low": "2s", "high": "1s"},
            400,
        ),
        ("hierarchy", {"recording": "rec", "statistic": "io.ops[op]"}, 400),
        ("nothing", {}, 404),
        ("../../../etc/passwd", {}, 404),
    ],
)
def test_what_can_not_be_asked(
    path: str, words: dict[str, str], status: int, client: TestClient, golden: Golden
) -> None:
    answer = client.get(f"/api/v1/{path}", params=words)
    assert answer.status_code == status
    golden("server/not-asked", f"{path}\n{answer.json()['error']}")
    assert "/tmp" not in answer.text
    assert len(answer.content) < 10_000


def test_a_double_parameter_is_refused(client: TestClient) -> None:
    assert (
        client.get("/api/v1/query?recording=rec&statistic=io.ops&statistic=io.bytes").status_code
        == 400
    )


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_path_names_the_parameters_that_it_takes(route: Any, client: TestClient) -> None:
    answer = client.get(f"/api/v1{route.path}", params={"surely_unknown": "1"})
    assert answer.status_code == 400
    assert all(parameter.name in answer.json()["hint"] for parameter in route.parameters)


def test_what_became_damaged_is_listed_with_its_problem(tmp_path: Path) -> None:
    from iolab.output.server.base.store import Store
    from iolab.output.server.queries.listing import recordings

    path = tmp_path / "gone.csv"
    path.write_text("time:ms,latency:us\n1,2\n")
    store = Store([path])
    path.write_bytes(b"\x00\xff" * 50)
    [facts] = recordings(store, {}).recordings
    assert facts.problem
    assert facts.first_ns is None
    path.unlink()
    assert recordings(store, {}).recordings[0].problem.startswith("does not exist any more")


@pytest.mark.parametrize(
    "damage",
    [
        {"sources": {"block": 5}},
        {"sessions": [{"from_ns": "x", "until_ns": 5}]},
        {"dropped": {"through": "x"}},
        {"retention": {"bytes": "x"}},
        {"clock": "sundial"},
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [True, False], ids=["before", "meanwhile"])
def test_a_damaged_recording_is_no_harm_to_others(
    before: bool, damage: dict[str, Any], tmp_path: Path
) -> None:
    from iolab.base.errors import ResultsError
    from iolab.output.server.base.store import Store
    from iolab.output.server.prometheus.metrics import Exporter

    for name in ("good", "bad"):
        recorded(tmp_path / name).close()
    facts = tmp_path / "bad/recording.json"
    harmed = json.dumps({**json.loads(facts.read_text()), **damage})
    if before:
        facts.write_text(harmed)
        with pytest.raises(ResultsError, match="is damaged"):
            Store([tmp_path / "bad"])
    store = Store([tmp_path / "good", tmp_path / "bad"])
    facts.write_text(harmed)
    exporter, door = Exporter(store, ["io.ops"]), Door(["127.0.0.1"], 8750, token=TOKEN)
    with TestClient(
        application(store, door, exporter),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as client:
        good, bad = client.get("/api/v1/recordings").json()["recordings"]
        assert (good["name"], good["problem"], bad["name"]) == ("good", "", "bad")
        assert bad["problem"].startswith(f"is damaged: {next(iter(damage))}")
        assert 'recording="good"' in client.get("/metrics").text
        assert client.get("/api/v1/query?recording=good&statistic=io.ops").status_code == 200
        answer = client.get("/api/v1/query?recording=bad&statistic=io.ops")
        assert (answer.status_code, answer.json()["error"]) == (409, bad["problem"])


def test_what_was_removed_is_gone_until_it_is_back(tmp_path: Path) -> None:
    from iolab.output.server.base.store import Store
    from iolab.output.server.live.stream import tick_of

    recorded(tmp_path / "rec").close()
    store = Store([tmp_path / "rec"])
    with TestClient(
        application(store, Door(["127.0.0.1"], 8750, token=TOKEN)),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as client:
        before = asked(client, "query", statistic="io.ops[op]")
        (tmp_path / "rec").rename(tmp_path / "elsewhere")
        for path in (
            "query?statistic=io.ops",
            "statistics",
            "losses",
            "who?statistic=io.ops[latency]",
        ):
            answer = client.get(f"/api/v1/{path}")
            assert (answer.status_code, answer.json()["error"]) == (
                409,
                "does not exist any more: it was removed or moved",
            )
        assert (
            client.get("/api/v1/recordings").json()["recordings"][0]["problem"]
            == "does not exist any more: it was removed or moved"
        )
        assert tick_of(store, "rec").problem == "does not exist any more: it was removed or moved"
        (tmp_path / "elsewhere").rename(tmp_path / "rec")
        assert tick_of(store, "rec").problem == ""
        assert asked(client, "query", statistic="io.ops[op]") == before
