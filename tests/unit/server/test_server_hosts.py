# SPDX-License-Identifier: Apache-2.0
"""All hosts of a folder as one worksheet: questions of the page, each with `host` as a field, and what is
refused of several recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.app import application
from iolab.output.server.live.stream import tick_of
from iolab.output.server.queries import listing
from iolab.recordings.archive import Archive, push
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import record
from support.recordings import SECOND, START, events
from support.service import TOKEN

API = "/api/v1"
HOSTS = ("<b>db1", "db2")
ALL = "fleet: all hosts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home") / "fleet"
    home.mkdir()
    for seed, host in enumerate(HOSTS):
        record(home / str(seed), segments=2 + seed, host=host, seed=seed)
    return home


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    state = state_in(Store([folder]), folder.parent, folder.parent / "alerts.jsonl")
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        yield client


def get(client: TestClient, path: str, **words: Any) -> dict[str, Any]:
    answer = client.get(f"{API}/{path}", params={"recording": ALL, **words})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def total(folder: Path, seed: int, text: str = "io.ops") -> int:
    answer = query(Recording(folder / str(seed)), text, interval_ns=SECOND)
    return answer.total


def test_all_hosts_are_listed_first(client: TestClient) -> None:
    facts = client.get(f"{API}/recordings").json()["recordings"]
    assert [item["name"] for item in facts] == [ALL, "0", "1"]
    whole, *single = facts
    assert whole["kind"] == "hosts"
    assert whole["hosts"] == {"<b>db1": ["0"], "db2": ["1"]}
    assert whole["first_ns"] == min(item["first_ns"] for item in single)
    assert whole["last_ns"] == max(item["last_ns"] for item in single)
    sums: Counter[str] = Counter()
    for item in single:
        sums.update(item["events"])
    assert whole["events"] == sums


def test_host_is_a_breakdown_of_each_statistic(client: TestClient) -> None:
    by_name = {item["name"]: item for item in get(client, "statistics")["statistics"]}
    for name in ("io.ops", "io.bytes", "file.ops", "io.utilization"):
        fields = [item["field"] for item in by_name[name]["breakdowns"]]
        assert fields[0] == "host"
        assert all("host" in source["fields"] for source in by_name[name]["sources"])
    assert not by_name["zpool.ops"]["available"]


def test_answers_are_the_sums_of_the_recordings(client: TestClient, folder: Path) -> None:
    totals = [total(folder, seed) for seed in range(len(HOSTS))]
    series = get(client, "query", statistic="io.ops", interval="1s")
    assert series["total"] == sum(totals)
    stack = get(client, "query", statistic="io.ops[host]", interval="1s")
    assert {row["key"]: row["total"] for row in stack["keys"]} == dict(
        zip(HOSTS, totals, strict=True)
    )
    assert stack["statistic"] == "io.ops[host]"
    for seed, host in enumerate(HOSTS):
        text = f'io.ops[host="{host}"][op]'
        narrowed = get(client, "query", statistic=text, interval="1s")
        assert sum(row["total"] for row in narrowed["keys"]) == totals[seed]
    heat = get(client, "query", statistic="io.ops[latency]", interval="1s")
    assert heat["events"] == sum(total(folder, seed, "io.ops[latency]") for seed in (0, 1))
    for drawn in ("true", "percentiles"):
        words = {"statistic": "io.ops[latency]", "interval": "1s", "drawn": drawn}
        assert get(client, "query", **words)["events"] == heat["events"]
    assert any("db2: 24 records lost" in note for note in series["notes"])


def test_a_map_has_a_layer_for_each_host(client: TestClient, folder: Path) -> None:
    words = {"statistic": "io.ops[latency]", "by": "host", "interval": "1s"}
    layers = get(client, "layers", key=list(HOSTS), **words)
    assert layers["keys"] == list(HOSTS)
    assert layers["map"]["events"] == sum(total(folder, seed, "io.ops[latency]") for seed in (0, 1))


def test_drill_downs(client: TestClient, folder: Path) -> None:
    whose = get(client, "who", statistic="io.ops[latency]", low="1ms")
    [hosts] = [item for item in whose["dimensions"] if item["field"] == "host"]
    assert {item["value"] for item in hosts["values"]} == set(HOSTS)
    assert sum(item["inside"] for item in hosts["values"]) == whose["inside"]
    assert get(client, "extremes", statistic="io.ops")["moments"]
    span = {"from": str(START), "to": str(START + 2 * SECOND)}
    other = {"other_from": str(START + 2 * SECOND), "other_to": str(START + 4 * SECOND)}
    changes = get(client, "difference", statistic="io.ops[host]", **span, **other)
    assert {item["key"] for item in changes["keys"]} == set(HOSTS)
    # of one host what is of one recording
    page = get(client, "ios", statistic="io.ops[host=db2]", limit="3")
    assert len(page["ios"]) == 3
    tree = get(client, "hierarchy", statistic="file.ops[host=db2][file]")
    assert tree["recording"] == ALL


def test_marks_and_losses_have_their_host(client: TestClient, folder: Path) -> None:
    losses = get(client, "losses")
    single = [
        client.get(f"{API}/losses", params={"recording": str(seed)}).json() for seed in (0, 1)
    ]
    assert losses["totals"]["overrun"] == sum(part["totals"]["overrun"] for part in single)
    assert {loss["words"].partition(":")[0] for loss in losses["losses"]} == set(HOSTS)
    with RecordingWriter.reopen(folder / "1", live=False) as writer:
        writer.mark("a run", START, START + SECOND)
    assert [mark["label"] for mark in get(client, "marks")["marks"]] == ["db2: a run"]
    assert get(client, "kept")["kept"] == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("query", {"statistic": "io.ops[host=db9]"}),
        ("query", {"statistic": "io.ops[latency][host]"}),
        ("query", {"statistic": "io.ops[host>a]"}),
        ("query", {"statistic": "io.utilization"}),
        ("layers", {"statistic": "io.ops[latency]", "by": "rack", "key": "r1"}),
        ("ios", {"statistic": "io.ops"}),
        ("hierarchy", {"statistic": "file.ops[file]"}),
        ("io-layers", {"id": "1"}),
        ("odd", {}),
    ],
)
def test_what_can_not_be_asked_of_all_hosts(
    client: TestClient, path: str, words: dict[str, str]
) -> None:
    answer = client.get(f"{API}/{path}", params={"recording": ALL, **words})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_all_hosts_can_not_be_changed(client: TestClient) -> None:
    mark = {"recording": ALL, "label": "x", "from_ns": START, "until_ns": START + 1, "note": ""}
    keep = {"recording": ALL, "statistic": "io.ops", "backfill": False}
    for path, document in (("marks/add", mark), ("kept/add", keep)):
        answer = client.post(f"{API}/{path}", json=document)
        assert answer.status_code == 400
        assert "host" in answer.json()["error"]


def test_a_damaged_recording_is_left_out_and_named(tmp_path: Path) -> None:
    home = tmp_path / "fleet"
    home.mkdir()
    for seed, host in enumerate(HOSTS):
        record(home / str(seed), host=host, seed=seed)
    store = Store([home])
    (home / "0" / "recording.json").write_text("{")
    facts = listing.facts_of(store, ALL)
    assert (facts.hosts, facts.problem) == ({"db2": ["1"]}, "")
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    state = state_in(store, tmp_path, tmp_path / "alerts.jsonl")
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        answer = get(client, "query", statistic="io.ops")
        assert any(note.startswith("0 is left out: ") for note in answer["notes"])
        (home / "1" / "recording.json").write_text("{")
        facts = listing.facts_of(store, ALL)
        assert facts.problem
        words = {"recording": ALL, "statistic": "io.ops"}
        assert client.get(f"{API}/query", params=words).status_code >= 400


def test_answers_follow_each_recording(tmp_path: Path) -> None:
    home = tmp_path / "fleet"
    home.mkdir()
    for seed, host in enumerate(HOSTS):
        record(home / str(seed), host=host, seed=seed)
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    store = Store([home])
    state = state_in(store, tmp_path, tmp_path / "alerts.jsonl")
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        before = get(client, "query", statistic="io.ops")["total"]
        assert get(client, "query", statistic="io.ops")["total"] == before
        with RecordingWriter.reopen(home / "1", live=False) as writer:
            batch = events(50, 3, start_ns=START + 100 * SECOND)
            writer.append_events(batch)
        more = sum(row["count"] for row in batch.to_pylist())
        assert get(client, "query", statistic="io.ops")["total"] == before + more
        tick = tick_of(store, ALL)
        assert (tick.live, tick.problem) == (False, "")
        record(home / "2", host="later", seed=7)
        client.get(f"{API}/fleet")
        stack = get(client, "query", statistic="io.ops[host]")
        assert {row["key"] for row in stack["keys"]} == {*HOSTS, "later"}


def test_a_live_fleet_ends_before_the_newest_event(tmp_path: Path) -> None:
    home = tmp_path / "fleet"
    home.mkdir()
    writers = [
        RecordingWriter.create(
            home / str(seed), host=host, clock="realtime", origin={"kind": "record"}, live=True
        )
        for seed, host in enumerate(HOSTS)
    ]
    for seed, writer in enumerate(writers):
        writer.append_events(events(400, seed, per_s=40))
    tick = tick_of(Store([home]), ALL)
    assert tick.now_ns is not None
    assert tick.last_ns == tick.now_ns + 2 * SECOND
    assert tick.live
    for writer in writers:
        writer.close()


@pytest.mark.slow
def test_all_hosts_of_an_archive(folder: Path, tmp_path: Path) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    for seed in range(len(HOSTS)):
        push(folder / str(seed), archive)
    store = Store([Path(f"archive:{archive.url}")])
    [name] = store.fleet_names()
    words = {"recording": name, "statistic": "io.ops[host]"}
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    state = state_in(store, tmp_path, tmp_path / "alerts.jsonl")
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        stack = client.get(f"{API}/query", params=words).json()
        assert {row["key"]: row["total"] for row in stack["keys"]} == {
            host: total(folder, seed) for seed, host in enumerate(HOSTS)
        }
