# SPDX-License-Identifier: Apache-2.0
"""The start page's data: folders, studies with their headlines, histories, damaged and hostile
directories."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.base.errors import UsageError
from iolab.output.server.base import store
from iolab.output.server.base.store import Store, kind_of, search
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.app import application
from iolab.output.server.reports import studies
from iolab.output.server.reports.studies import StudyIndex, stamp_of, study_facts
from support.recordings import events
from support.service import TOKEN, recorded
from support.studies import CHANGE, history_of_studies
from support.waiting import PATIENCE, until

API = "/api/v1"
COUNT = 12


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve studies with recordings and their history; never changed by a test."""
    return history_of_studies(tmp_path_factory.mktemp("nights"), COUNT)


@contextmanager
def asking(store: Store, data: Path) -> Iterator[TestClient]:
    """A client of a service, of which every study has been read."""
    state = state_in(store, data, data / "alerts.jsonl")
    state.start.studies._ends.set()  # the test reads, not a thread
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        client.get(f"{API}/start")
        while state.start.studies.read_next():
            pass
        yield client


def start(client: TestClient) -> dict[str, Any]:
    answer = client.get(f"{API}/start")
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def test_a_folder_is_served_with_everything_in_it(home: Path, tmp_path: Path) -> None:
    store = Store([home])
    assert len(store.results) == COUNT
    assert store.names == [f"results/night-{number:02}/here" for number in range(1, COUNT + 1)]
    with asking(store, tmp_path) as client:
        document = start(client)
    assert [study["name"] for study in document["studies"]] == [
        f"results/night-{number:02}" for number in range(COUNT, 0, -1)
    ]
    newest = document["studies"][0]
    assert newest["state"] == "read"
    assert newest["levels"] == {"OK": 2}
    assert newest["runs"] == 2
    assert newest["sentences"][0]["section"] == "write.iops"
    assert newest["recordings"] == ["results/night-12/here"]
    assert newest["histories"] == ["history"]
    assert document["histories"][0]["entries"] == COUNT
    assert document["recordings"] == []


def test_facts_are_those_of_the_report(home: Path) -> None:
    from iolab.output.report.assemble import assemble
    from iolab.studies.results.open.results import Results

    path = home / "results/night-03"
    payload, _ = assemble(Results(path))
    sentences = [text for card in payload.cover.cards for text in card.sentences]
    assert study_facts(path).sentences == sentences[: studies.MOST_SENTENCES]


def test_results_without_recordings_are_served(home: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(home / "results/night-01", bare)
    shutil.rmtree(bare / "recordings")
    with asking(Store([bare]), tmp_path / "data") as client:
        document = start(client)
        assert [study["recordings"] for study in document["studies"]] == [[]]
        assert client.get("/").text.count("/start.js") == 1
        assert client.get(f"{API}/recordings").json()["recordings"] == []


def test_a_lone_recording_has_the_worksheet_at_the_root(home: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "rec").close()
    with asking(Store([tmp_path / "rec"]), tmp_path / "data") as client:
        assert "/live.js" in client.get("/").text
        assert "/start.js" in client.get("/start").text
        assert [item["name"] for item in start(client)["recordings"]] == ["rec"]
    with asking(Store([tmp_path / "rec", home]), tmp_path / "data") as client:
        assert "/start.js" in client.get("/").text
        assert "/live.js" in client.get("/?recording=rec").text
        assert "/live.js" in client.get("/worksheet").text


def test_damaged_and_hostile_directories_have_one_line_each(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(home / "results/night-01", folder / "good")
    for name, file, content in (
        ("torn", "manifest.json", "{"),
        ("deep", "manifest.json", "[" * 100_000),
        ("list", "hosts.json", "[]"),
        ("history", "history.json", '{"schema": 1}'),
    ):
        (folder / name).mkdir()
        (folder / name / file).write_text(content)
    for name, file in (
        ("fifo", "manifest.json"),
        ("pipe", "recording.json"),
        ("stuck", "history.json"),
    ):
        (folder / name).mkdir()
        os.mkfifo(folder / name / file)
    (folder / "loop").symlink_to(folder)
    shutil.copytree(home / "results/night-02", folder / "<img src=x>")
    with asking(Store([folder]), tmp_path / "data") as client:
        document = start(client)
        report = client.get("/report/%3Cimg%20src%3Dx%3E")
        assert report.status_code == 200
        assert "<img src=x>" not in report.text
        assert client.get("/report/torn").status_code == 409
        assert client.get("/report/../../etc/passwd").status_code == 404
    states = {study["name"]: study["state"] for study in document["studies"]}
    assert states == {
        "good": "read",
        "<img src=x>": "read",
        **dict.fromkeys(("torn", "deep", "list", "fifo"), "unreadable"),
    }
    problems = [study["problem"] for study in document["studies"] if study["problem"]]
    problems += [item["problem"] for item in document["histories"]]
    problems += [item["problem"] for item in document["recordings"]]
    assert len(problems) == 7
    assert all(problem and "\n" not in problem and len(problem) < 400 for problem in problems)


def test_a_folder_is_searched_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path.joinpath(*"abcdef")
    below.mkdir(parents=True)
    (below / "manifest.json").touch()
    (tmp_path / "a/manifest.txt").touch()
    assert search(tmp_path).places == []
    near = tmp_path / "a/b/c/d/manifest.json"
    near.touch()
    assert search(tmp_path).places == [("results", near.parent)]
    assert kind_of(tmp_path / "a") == "folder"
    monkeypatch.setattr(store, "MOST", 3)
    assert [path for path, _ in search(tmp_path).problems] == [tmp_path]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        Store([tmp_path])
    assert str(tmp_path) in str(refused.value)


def test_what_is_added_to_a_folder_is_served(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(home / "results/night-01", folder / "one")
    store = Store([folder])
    shutil.copytree(home / "results/night-02", folder / "two")
    recorded(folder / "one/recordings/there").close()
    store.refresh()
    assert sorted(store.results) == ["one", "two"]
    assert sorted(store.names) == ["one/here", "one/there", "two/here"]
    store.refresh()
    assert len(store.names) == 3


def test_results_of_a_history_are_served(home: Path) -> None:
    store = Store([home / "history"])
    assert sorted(store.results) == [f"night-{number:02}" for number in range(1, COUNT + 1)]


def test_the_index_is_used_until_a_study_changes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    for number in (1, 2):
        shutil.copytree(home / f"results/night-{number:02}", folder / str(number))
    first = StudyIndex(Store([folder]), tmp_path / "studies.json")
    until(lambda: first.facts()[1] == 0, "both studies in the index")
    first.close(PATIENCE)
    read = []
    facts_of = studies.study_facts

    def counted(path: Path) -> Any:
        read.append(path.name)
        return facts_of(path)

    monkeypatch.setattr(studies, "study_facts", counted)
    again = StudyIndex(Store([folder]), tmp_path / "studies.json")
    facts, waiting = again.facts()
    assert waiting == 0
    assert {study.state for study in facts} == {"read"}
    assert read == []
    (folder / "2/runs/new").mkdir()
    facts, waiting = again.facts()
    assert waiting == 1
    assert {study.state for study in facts} == {"read"}
    again.close()
    assert read in (["2"], [])


def test_caches_that_reading_stores_do_not_change_a_study(home: Path, tmp_path: Path) -> None:
    study = tmp_path / "folder/1"
    shutil.copytree(home / "results/night-01", study)
    for cache in (study / "caches.json", *study.glob("*.parquet")):
        cache.unlink(missing_ok=True)
    index = StudyIndex(Store([study]), None)
    index._ends.set()  # the test reads, not a thread
    assert index.facts()[1] == 1
    assert index.read_next()
    assert (study / "caches.json").exists()
    assert index.facts()[1] == 0


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1}', '{"schema": 9}', "[" * 99_999])
def test_a_damaged_index_is_read_again(home: Path, tmp_path: Path, content: str) -> None:
    file = tmp_path / "studies.json"
    file.write_text(content)
    index = StudyIndex(Store([home / "results/night-01"]), file)
    index._ends.set()
    assert index.facts()[1] == 1


def test_a_stamp_changes_with_the_journal(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "results/night-01", tmp_path / "one")
    before = stamp_of(tmp_path / "one")
    assert stamp_of(tmp_path / "one") == before
    (tmp_path / "one/journal.jsonl").write_text("{}\n")
    assert stamp_of(tmp_path / "one") != before
    assert stamp_of(tmp_path / "missing").strip() == ""


def test_a_change_leads_to_the_runs_on_both_sides(home: Path, tmp_path: Path) -> None:
    with asking(Store([home]), tmp_path) as client:
        answer = client.get(f"{API}/history", params={"history": "history"}).json()
        series = next(item for item in answer["series"] if item["metric"] == "write.iops")
        (change,) = series["changes"]
        assert (change["before"], change["after"]) == (CHANGE - 1, CHANGE)
        assert -42 < change["change"] < -38
        assert change["improves"] is False
        assert answer["left"] == 0
        assert answer["entries"][0]["served"] == "results/night-01"
        sides, counts = [], []
        for entry in (change["before"], change["after"]):
            words = {"history": "history", "metric": "write.iops", "cell": series["cell"]}
            sides.append(client.get(f"{API}/cell-runs", params={**words, "entry": entry}).json())
        for entry, side in zip((CHANGE - 1, CHANGE), sides, strict=True):
            assert side["study"] == f"results/night-{entry:02}"
            assert len(side["runs"]) == 2
            for run in side["runs"]:
                assert run["recording"] == f"results/night-{entry:02}/here"
                words = {
                    "recording": run["recording"],
                    "statistic": run["graph"],
                    "from": run["from_ns"],
                    "to": run["until_ns"],
                    "drawn": "true",
                }
                counts.append(client.get(f"{API}/query", params=words).json()["events"])
        recorded_counts = []
        for entry, rows in ((CHANGE - 1, 1000 // 4), (CHANGE, 607 // 4)):
            batch = events(rows, entry, per_s=rows).to_pydict()
            pairs = zip(batch["count"], batch["latency_ns"], strict=True)
            total = sum(count for count, latency in pairs if latency is not None)
            recorded_counts += [total, total]  # two runs
        assert counts == recorded_counts
        assert sides[0]["runs"][0]["value"] == 1001


def test_questions_about_a_history_are_checked(home: Path, tmp_path: Path) -> None:
    with asking(Store([home]), tmp_path) as client:
        for path, words, status in (
            ("history", {}, 400),
            ("history", {"history": "../history"}, 404),
            ("history", {"history": "history", "metric": "x.y"}, 400),
            ("cell-runs", {"history": "history", "entry": "x", "metric": "a", "cell": "b"}, 400),
            ("cell-runs", {"history": "history", "entry": "99", "metric": "a", "cell": "b"}, 404),
            ("cell-runs", {"history": "history", "entry": "1", "metric": "a"}, 400),
        ):
            answer = client.get(f"{API}/{path}", params=words)
            assert answer.status_code == status, (path, words, answer.text)
            assert json.loads(answer.text)["error"]
        words = {"history": "history", "entry": "1", "metric": "a", "cell": "nothing"}
        assert client.get(f"{API}/cell-runs", params=words).json()["runs"] == []
