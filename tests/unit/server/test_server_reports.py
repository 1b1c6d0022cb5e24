# SPDX-License-Identifier: Apache-2.0
"""Reports of the results whose recordings are served, and the ways between a run and what was
recorded of it."""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from iolab.base.errors import ResultsError
from iolab.cli.main import run
from iolab.output.report.page import html
from iolab.output.server.base.store import Store
from iolab.output.server.base.thread_pool import Busy, Workers
from iolab.output.server.http.access import POLICY, Door
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.app import application
from iolab.output.server.reports.reports import Reports
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.open.multi_host import Hosts, write_hosts
from iolab.studies.results.open.results import Results
from support.fio_files import job, output
from support.recordings import SECOND, START, events, samples
from support.report_page import page_data
from support.service import TOKEN
from support.waiting import PATIENCE

API = "/api/v1"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """(results of four runs with the recording of them, the runs' ids)."""
    base = tmp_path_factory.mktemp("study")
    for variant in ("old", "new"):
        for repetition in (1, 2):
            place = base / "tree" / variant / f"rep{repetition}"
            place.mkdir(parents=True)
            (place / "fio.json").write_text(output(job(iops=1000 + repetition)))
    assert (
        run(
            [
                "import",
                str(base / "tree"),
                "--layout",
                "{variant}/rep{repetition:int}",
                "-o",
                str(base / "results"),
            ]
        )
        == 0
    )
    ids = [each.id for each in Results(base / "results").runs]
    place = base / "results/recordings/here"
    with RecordingWriter.create(
        place, host="here", clock="realtime", origin={"kind": "run"}, live=False
    ) as writer:
        for number, name in enumerate(ids):
            writer.append_events(
                events(100, number, start_ns=START + number * 10 * SECOND, per_s=100)
            )
            writer.mark(
                name,
                START + number * 10 * SECOND,
                START + (number * 10 + 1) * SECOND,
                "run",
                f"runs/{name}",
                {"variant": "v"},
            )
        writer.mark("by hand", START, None)
    return base / "results", ids


@pytest.fixture
def client(
    study: tuple[Path, list[str]],
    recording: Path,
    tmp_path: Path,
    door: Door,
    monkeypatch: pytest.MonkeyPatch,
) -> TestClient:
    monkeypatch.setattr(
        html, "bundle_file", lambda name: "let x = 1;" if name.endswith(".js") else "p{}"
    )
    state = state_in(Store([study[0], recording]), tmp_path, tmp_path / "log")
    return TestClient(
        application(state, door),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    )


def test_a_run_leads_to_its_report_and_back(
    client: TestClient, study: tuple[Path, list[str]]
) -> None:
    _, ids = study
    marks = client.get(f"{API}/marks", params={"recording": "results/here"}).json()["marks"]
    told = [(mark["facts"].get("report"), mark["facts"].get("run")) for mark in marks]
    assert told == [*(("results", each) for each in ids), (None, None)]
    assert marks[0]["facts"]["variant"] == "v"
    verdicts = {run.id: run.verdict.level.value for run in Results(study[0]).runs}
    assert [mark["facts"].get("verdict") for mark in marks] == [*map(verdicts.get, ids), None]
    assert [mark["facts"].get("repetition") for mark in marks] == [1, 2, 1, 2, None]
    answer = client.get("/report/results")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert page_data(answer.text, "iolab-report")["runs"]["ids"] == ids
    for number, detail in enumerate(page_data(answer.text, "iolab-details")["runs"]):
        first, *evidence = detail["links"]
        place = urlsplit(first["href"])
        assert (place.scheme, place.netloc, place.path) == ("", "", "/")
        assert parse_qs(place.query) == {
            "recording": ["results/here"],
            "from": [str(START + number * 10 * SECOND)],
            "to": [str(START + (number * 10 + 1) * SECOND)],
            "graph": ["io.ops[latency]"],
        }
        assert [each["text"] for each in evidence]
        assert all(each["href"] is None for each in evidence)


def test_the_way_back_shows_what_was_recorded(
    study: tuple[Path, list[str]], tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        html, "bundle_file", lambda name: "let x = 1;" if name.endswith(".js") else "p{}"
    )
    counted = shutil.copytree(
        study[0], tmp_path / "results", ignore=shutil.ignore_patterns("recordings")
    )
    with RecordingWriter.create(
        counted / "recordings/here", host="", clock="realtime", origin={"kind": "run"}, live=False
    ) as writer:
        writer.mark(study[1][0], START, START + 10 * SECOND, "run", f"runs/{study[1][0]}")
    with RecordingWriter.create(
        counted / "recordings/there", host="", clock="realtime", origin={"kind": "run"}, live=False
    ) as writer:
        writer.append_samples(samples(20))
        writer.mark(study[1][0], START, START + 10 * SECOND, "run", f"runs/{study[1][0]}")
    state = state_in(Store([counted]), tmp_path, tmp_path / "log")
    client = TestClient(
        application(state, door),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    links = page_data(client.get("/report/results").text, "iolab-details")["runs"][0]["links"]
    places = {
        parse_qs(urlsplit(each["href"]).query)["recording"][0]: parse_qs(
            urlsplit(each["href"]).query
        )
        for each in links
        if each["href"]
    }
    assert "graph" not in places["results/here"], "nothing was recorded but the mark"
    [graph] = places["results/there"]["graph"]
    asked = client.get(
        f"{API}/query",
        params={
            "recording": "results/there",
            "statistic": graph,
            "from": places["results/there"]["from"],
            "to": places["results/there"]["to"],
        },
    )
    assert asked.status_code == 200, asked.text


def test_a_report_may_run_its_own_script_alone(client: TestClient) -> None:
    answer = client.get("/report/results")
    [policy] = answer.headers.get_list("content-security-policy")
    assert re.search(r"script-src 'sha256-[^']+';", policy)
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy
    assert policy.endswith("frame-ancestors 'none'")
    assert client.get("/").headers["content-security-policy"] == POLICY


def test_a_report_is_made_anew_when_its_evidence_changes(
    client: TestClient, study: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    before = html.render

    def counted(*arguments: Any) -> str:
        made.append(1)
        return before(*arguments)

    monkeypatch.setattr(html, "render", counted)
    first = client.get("/report/results").text
    assert client.get("/report/results").text == first
    assert len(made) == 1
    (study[0] / "runs" / study[1][0] / "note.txt").write_text("seen")
    assert client.get("/report/results").status_code == 200
    assert len(made) == 2


def test_reports_that_take_long_leave_threads_for_questions(
    study: tuple[Path, list[str]], door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, made, looked, workers = threading.Event(), [], [], Workers()
    held = Reports.page_if_current

    def slow(*_: Any) -> str:
        made.append(threading.current_thread().name)
        assert go_on.wait(PATIENCE)
        return "<p>made</p>"

    def counted(self: Reports, name: str) -> str | None:
        looked.append(name)
        return held(self, name)

    monkeypatch.setattr(Reports, "_make_page", slow)
    monkeypatch.setattr(Reports, "page_if_current", counted)
    monkeypatch.setattr("iolab.output.server.reports.reports.MOST_WAITING", 5)
    app = application(Store([study[0]]), door, workers=workers)

    async def asked() -> tuple[int, list[int], int]:
        transport = httpx.ASGITransport(app=app)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8750", headers=headers
        ) as client:
            reports = [asyncio.create_task(client.get("/report/results")) for _ in range(5)]
            # each looked once, and the one that makes it once more; nothing else is under way
            while not (len(looked) == 6 and made and workers._held == 1):
                await asyncio.sleep(0.01)
            for _ in range(20):
                await asyncio.sleep(0)
            question = await asyncio.wait_for(
                client.get(f"{API}/query", params={"statistic": "io.ops"}), PATIENCE
            )
            more = await asyncio.wait_for(client.get("/report/results"), PATIENCE)
            go_on.set()
            return (
                question.status_code,
                [each.status_code for each in await asyncio.gather(*reports)],
                more.status_code,
            )

    try:
        assert asyncio.run(asked()) == (200, [200] * 5, 503)
    finally:
        go_on.set()
    assert len(made) == 1


def test_a_report_is_not_made_twice_at_once(
    study: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports(Store([study[0]]))

    def nested(*_: Any) -> str:
        with pytest.raises(Busy):
            reports.page("results")
        return "made"

    monkeypatch.setattr(reports, "_make_page", nested)
    assert reports.page_if_current("results") is None
    assert reports.page("results") == reports.page_if_current("results") == "made"


@pytest.mark.parametrize(
    "name",
    [
        "nothing",
        "rec",
        "results/here",
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "results%00",
        "x" * 5000,
    ],
)
def test_there_is_no_other_report(name: str, client: TestClient) -> None:
    assert client.get(f"/report/{name}").status_code in (200 if name == ".." else 404, 404)
    assert client.post("/report/results").status_code == 405


def test_results_of_several_hosts_are_served_host_by_host(
    study: tuple[Path, list[str]], tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        html, "bundle_file", lambda name: "let x = 1;" if name.endswith(".js") else "p{}"
    )
    for name in ("one", "two", "bare"):
        shutil.copytree(study[0], tmp_path / "all" / name)
    shutil.rmtree(tmp_path / "all/bare/recordings")
    write_hosts(
        tmp_path / "all", Hosts({name: f"root@{name}" for name in ("one", "two", "bare", "never")})
    )
    store = Store([tmp_path / "all"])
    client = TestClient(
        application(store, door),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    assert store.names == ["one/here", "two/here"], (
        "a host of which nothing was recorded stops no other"
    )
    for name in ("one", "two"):
        found = client.get(
            f"{API}/query", params={"recording": f"{name}/here", "statistic": "io.ops"}
        ).json()
        assert found["total"] > 0
        mark = client.get(f"{API}/marks", params={"recording": f"{name}/here"}).json()["marks"][0]
        assert mark["facts"]["report"] == name
        assert (
            page_data(client.get(f"/report/{name}").text, "iolab-report")["runs"]["ids"] == study[1]
        )
    shutil.rmtree(tmp_path / "all/one/recordings")
    shutil.rmtree(tmp_path / "all/two/recordings")
    without = Store([tmp_path / "all"])
    assert (without.names, list(without.results)) == ([], ["all"]), "the results are served as one"
    client = TestClient(
        application(without, door),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    assert client.get("/report/all").status_code == 200
    (tmp_path / "all/hosts.json").write_text("{")
    with pytest.raises(ResultsError, match="damaged"):
        Store([tmp_path / "all"])


def test_damaged_results_are_a_problem_of_their_report_alone(
    study: tuple[Path, list[str]], tmp_path: Path, door: Door
) -> None:
    place = tmp_path / "results"
    shutil.copytree(study[0], place)
    (place / "manifest.json").write_text("{")
    client = TestClient(
        application(Store([place]), door),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    answer = client.get("/report/results")
    assert answer.status_code == 409
    assert answer.json()["error"]
    assert client.get(f"{API}/query", params={"statistic": "io.ops"}).status_code == 200
