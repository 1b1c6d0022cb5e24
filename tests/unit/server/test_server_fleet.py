# SPDX-License-Identifier: Apache-2.0
"""The fleet over the service: a row for each host of an archive, and worksheets of archived
recordings, which can't be changed."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.base.errors import UsageError
from iolab.output.server.base.archives import FRESH_S, ServedArchive
from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.app import application
from iolab.output.server.queries.fleet import fleet as fleet_rows
from iolab.recordings.archive import Archive, push
from iolab.recordings.archive.labels import set_labels
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from support.archives import record
from support.recordings import SECOND, START
from support.service import TOKEN

pytestmark = pytest.mark.slow
API = "/api/v1"
HOSTS = ("<b>db1", "db2")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(an archive of two hosts, the folder with their recordings)."""
    home = tmp_path_factory.mktemp("fleet")
    archive = Archive.open(str(home / "archive"), create=True)
    for seed, host in enumerate(HOSTS):
        record(home / str(seed), segments=2 + seed, host=host, seed=seed)
        push(home / str(seed), archive)
    set_labels(archive, HOSTS[1], {"rack": "<i>r1"})
    return home / "archive", home


@pytest.fixture(scope="module")
def client(fleet: tuple[Path, Path]) -> Iterator[TestClient]:
    archive, home = fleet
    state = state_in(Store([Path(f"archive:{archive}")]), home / "data", home / "alerts.jsonl")
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        yield client


def rows(client: TestClient, **words: Any) -> dict[str, Any]:
    document: dict[str, Any] = client.get(f"{API}/fleet", params=words).json()
    return document


def test_each_host_has_the_answer_of_its_recording(
    client: TestClient, fleet: tuple[Path, Path]
) -> None:
    answer = rows(client, measure="iops", columns=400)
    assert [host["host"] for host in answer["hosts"]] == list(HOSTS)
    for seed, host in enumerate(answer["hosts"]):
        series = query(Recording(fleet[1] / str(seed)), "io.ops", interval_ns=answer["interval_ns"])
        assert isinstance(series, Series)
        first = (series.t0_ns - answer["t0_ns"]) // answer["interval_ns"]
        values = [math.nan if value is None else value for value in host["values"]]
        assert len(values) == answer["columns"]
        expected = [float(value) for value in series.values]
        part = values[first : first + len(expected)]
        assert part == pytest.approx(expected[: len(part)], nan_ok=True)


@pytest.mark.parametrize(
    ("measure", "low", "high"),
    [("p99", 1, 10**12), ("utilization", 0.01, 1), ("losses", 1, 10**6)],
)
def test_each_measure_has_values(client: TestClient, measure: str, low: float, high: float) -> None:
    answer = rows(client, measure=measure)
    for host in answer["hosts"]:
        numbers = [value for value in host["values"] if value is not None]
        assert low <= max(numbers) <= high
        assert host["problem"] == ""
    # the pause between two sessions
    assert None in answer["hosts"][0]["values"]


def test_a_row_for_each_value_of_a_label(client: TestClient) -> None:
    alone, racks = rows(client, measure="iops"), rows(client, measure="iops", rows="rack")
    assert (alone["by"], racks["by"], racks["labels"]) == ("host", "rack", ["rack"])
    assert [(row["host"], row["hosts"]) for row in racks["hosts"]] == [("-", 1), ("<i>r1", 1)]
    assert [row["values"] for row in racks["hosts"]] == [row["values"] for row in alone["hosts"]]
    assert racks["hosts"][0]["recordings"] == []


def test_hosts_with_one_label_add_up(fleet: tuple[Path, Path], tmp_path: Path) -> None:
    archive = Archive.open(str(fleet[0]))
    set_labels(archive, HOSTS[0], {"role": "db"})
    set_labels(archive, HOSTS[1], {"role": "db"})
    store = Store([Path(f"archive:{fleet[0]}")])
    for measure in ("iops", "losses", "p99", "utilization"):
        hosts = fleet_rows(store, {"measure": measure}).hosts
        [row] = fleet_rows(store, {"measure": measure, "rows": "role"}).hosts
        assert (row.host, row.hosts) == ("db", 2)
        for value, *parts in zip(row.values, *(host.values for host in hosts), strict=True):
            known = [part for part in parts if part is not None]
            if not known:
                assert value is None
                continue
            assert value is not None
            if measure in ("iops", "losses"):
                assert value == pytest.approx(sum(known))
            elif measure == "utilization":
                assert value == max(known)
            else:
                assert min(known) <= value <= max(known)
    set_labels(archive, HOSTS[0], {"role": ""})
    set_labels(archive, HOSTS[1], {"role": ""})


def test_recordings_of_a_folder_are_hosts_too(
    client: TestClient, fleet: tuple[Path, Path], tmp_path: Path
) -> None:
    for seed in range(len(HOSTS)):
        (tmp_path / "all").mkdir(exist_ok=True)
        shutil.copytree(fleet[1] / str(seed), tmp_path / "all" / str(seed))
    store = Store([tmp_path / "all"])
    assert store.is_fleet
    for measure in ("iops", "p99", "utilization", "losses"):
        local, archived = fleet_rows(store, {"measure": measure}), rows(client, measure=measure)
        assert not local.live
        assert local.archives == [str(tmp_path / "all")]
        by_host = {row.host: row.values for row in local.hosts}
        assert by_host == {row["host"]: row["values"] for row in archived["hosts"]}
    # one of them alone is no fleet, and a damaged one is left out
    assert not Store([tmp_path / "all" / "0"]).fleets()
    (tmp_path / "all" / "1" / "recording.json").write_text("{")
    assert [row.host for row in fleet_rows(store, {}).hosts] == [HOSTS[0]]
    with pytest.raises(UsageError):
        fleet_rows(store, {"archive": str(tmp_path)})


def test_a_span_of_time_is_chosen(client: TestClient) -> None:
    answer = rows(client, **{"from": str(START + 2 * SECOND), "to": str(START + 5 * SECOND)})
    assert answer["t0_ns"] == START + 2 * SECOND
    assert answer["columns"] * answer["interval_ns"] == 3 * SECOND
    assert answer["first_ns"] < answer["t0_ns"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"archive": "elsewhere"}, 404),
        ({"measure": "p98"}, 400),
        ({"rows": "row"}, 400),
        ({"columns": "0"}, 400),
        ({"from": "20s", "to": "10s"}, 400),
    ],
)
def test_what_can_not_be_asked(client: TestClient, words: dict[str, str], code: int) -> None:
    answer = client.get(f"{API}/fleet", params=words)
    assert answer.status_code == code
    assert answer.json()["error"]


def test_the_page_and_worksheets_of_hosts(client: TestClient) -> None:
    assert "/fleet.js" in client.get("/").text
    [first, _] = rows(client)["hosts"]
    name = first["recordings"][0]["name"]
    facts = client.get(f"{API}/recordings").json()["recordings"]
    assert [item["host"] for item in facts if item["name"] == name] == ["<b>db1"]
    for path in ("statistics", "marks", "losses", "kept"):
        assert client.get(f"{API}/{path}", params={"recording": name}).status_code == 200
    for statistic in ("io.ops[process]", "io.ops[latency]", "io.utilization"):
        words = {"recording": name, "statistic": statistic}
        assert client.get(f"{API}/query", params=words).status_code == 200
    boxes = {"recording": name, "statistic": "io.ops[latency]", "low": "1us", "high": "1s"}
    assert client.get(f"{API}/who", params=boxes).json()["inside"] > 0


def test_an_archived_recording_can_not_be_changed(client: TestClient) -> None:
    name = rows(client)["hosts"][0]["recordings"][0]["name"]
    mark = {"recording": name, "label": "x", "from_ns": START, "until_ns": START + 1, "note": ""}
    keep = {"recording": name, "statistic": "io.ops", "backfill": False}
    for path, document in (("marks/add", mark), ("kept/add", keep)):
        answer = client.post(f"{API}/{path}", json=document)
        assert answer.status_code == 400
        assert "archive" in answer.json()["error"]


def test_what_is_pushed_later_is_served_after_a_while(tmp_path: Path) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    now = [0.0]
    served = ServedArchive(archive.url, now=lambda: now[0])
    record(tmp_path / "rec", segments=2)
    push(tmp_path / "rec", archive)
    assert served.listing().recordings == {}
    now[0] = FRESH_S
    [key] = served.listing().recordings
    assert served.open(key) is served.open(key)


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Store([Path(f"archive:presto:/{tmp_path}")])
