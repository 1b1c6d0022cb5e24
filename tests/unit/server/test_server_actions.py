# SPDX-License-Identifier: Apache-2.0
"""Worksheets that are saved and shared, and statistics that are kept: what can be changed, and what
is refused."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.output.report.page import html
from iolab.output.server.base.json_store import LARGEST, JsonStore, folder
from iolab.output.server.base.store import NotServed, Store
from iolab.output.server.base.worksheet import Sharing, Worksheet, list_saved
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import AppState, state_in
from iolab.output.server.http.app import application
from iolab.output.server.reports.share import share
from support.golden import Golden
from support.recordings import START
from support.service import TOKEN, watched

API = "/api/v1"
GRAPH = {
    "id": "g1",
    "statistic": "io.ops[latency]",
    "source": "",
    "painter": "",
    "by": "op",
    "highlights": ["read"],
    "mode": "rainbow",
    "colour": "rank",
    "crop": 0.001,
    "scale": "",
    "rows": {"low": 0, "high": 1e9},
    "overlays": True,
    "panel": "second",
    "hierarchy": "",
    "width": 2,
    "height": 260,
    "synced": False,
    "span": {"from": START, "until": START + 10**9},
}


def sheet(name: str = "one", **changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": name,
        "recording": "rec",
        "time": {"live": 60},
        "compare": {"from": START, "until": START + 5},
        "colours": {"device=sda": 3},
        "graphs": [GRAPH],
        **changes,
    }


def shelf_of(path: Path) -> JsonStore[Worksheet]:
    return JsonStore(path, Worksheet, "worksheet")


def test_worksheets_are_saved_listed_opened_and_deleted(
    client: TestClient, state: AppState
) -> None:
    assert client.get(f"{API}/worksheets").json() == {"schema": 1, "worksheets": []}
    assert not state.worksheets.directory.exists(), "nothing is made before something is saved"
    for name in ("one", "Two - b.2"):
        assert client.put(f"{API}/worksheets/{name}", json=sheet(name)).json() == sheet(name)
    assert client.get(f"{API}/worksheets/one").json() == sheet()
    changed = sheet(time={"from": START, "until": START + 10**9}, graphs=[])
    assert client.put(f"{API}/worksheets/one", json=changed).status_code == 200
    assert client.get(f"{API}/worksheets/one").json() == changed
    saved = client.get(f"{API}/worksheets").json()["worksheets"]
    assert [
        (each["name"], each["recording"], each["graphs"], each["problem"]) for each in saved
    ] == [("Two - b.2", "rec", 1, ""), ("one", "rec", 0, "")]
    [path] = [path for path in state.worksheets.directory.iterdir() if path.name == "one.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.worksheets.directory.stat().st_mode) == 0o700
    assert json.loads(path.read_text()) == changed
    answer = client.delete(f"{API}/worksheets/one")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (
        client.delete(f"{API}/worksheets/one").status_code
        == client.get(f"{API}/worksheets/one").status_code
        == 404
    )


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "%2e",
        "%2e%2e",
        ".hidden",
        " x",
        "a%2Fb",
        "..%2F..%2Fetc%2Fpasswd",
        "a%00b",
        "x" * 65,
        "%C3%BC",
        "a%0A",
        "-" * 5000,
        "*",
    ],
)
def test_names_lead_nowhere_else(name: str, client: TestClient, state: AppState) -> None:
    before = sorted(state.worksheets.directory.parent.parent.rglob("*"))
    for method in ("GET", "PUT", "DELETE"):
        answer = client.request(
            method, f"{API}/worksheets/{name}", json=sheet() if method == "PUT" else None
        )
        assert answer.status_code in (400, 404, 405), (method, answer.text)
    assert sorted(state.worksheets.directory.parent.parent.rglob("*")) == before


@given(st.text(max_size=80))
def test_whatever_the_name_only_files_of_the_shelf_are_touched(name: str) -> None:
    shelf = shelf_of(Path("/nowhere/worksheets"))
    for act in (shelf.read, shelf.remove, lambda name: shelf.path(name)):
        try:
            found = act(name)
        except (NotServed, UsageError, FormatError):
            continue
        assert isinstance(found, Path)
        assert found.parent == shelf.directory
        assert ".." not in found.parts


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (json.dumps(sheet("two")).encode(), 400),
        (json.dumps(sheet(extra=1)).encode(), 400),
        (json.dumps(sheet(schema=2)).encode(), 400),
        (json.dumps(sheet(time={"live": -1})).encode(), 400),
        (json.dumps(sheet(time={"live": 1e400})).encode(), 400),
        (json.dumps(sheet(time={"from": 5, "until": 5})).encode(), 400),
        (json.dumps(sheet(graphs=[{}])).encode(), 400),
        (json.dumps(sheet(graphs=[GRAPH] * 65)).encode(), 400),
        (json.dumps(sheet(graphs=[{**GRAPH, "crop": 0.3}])).encode(), 400),
        (json.dumps(sheet(compare={"from": 2**70, "until": 2**71})).encode(), 400),
        (json.dumps(sheet()).encode() + b" " * LARGEST, 413),
    ],
)
def test_documents_that_are_no_worksheet(
    body: bytes, status: int, client: TestClient, state: AppState, golden: Golden
) -> None:
    answer = client.put(
        f"{API}/worksheets/one", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status
    golden("server/no-worksheet", answer.json()["error"])
    assert "function-" not in answer.json()["error"]
    assert len(answer.content) < 1000
    assert list_saved(state.worksheets).worksheets == []


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_what_a_form_of_another_page_could_send_is_no_document(
    kind: str, client: TestClient
) -> None:
    assert (
        client.put(
            f"{API}/worksheets/one", content=json.dumps(sheet()), headers={"content-type": kind}
        ).status_code
        == 415
    )


def test_a_body_without_a_length_is_bounded(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 65536

    answer = client.put(
        f"{API}/worksheets/one", content=endless(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"\x00" * 100, b"x" * (LARGEST + 1), json.dumps(sheet(schema=7)).encode()],
)
def test_a_damaged_file_is_listed_with_its_problem(
    content: bytes, client: TestClient, state: AppState
) -> None:
    state.worksheets.write("good", Worksheet.model_validate(sheet("good")))
    (state.worksheets.directory / "bad.json").write_bytes(content)
    assert client.get(f"{API}/worksheets/bad").status_code == 409
    bad, good = client.get(f"{API}/worksheets").json()["worksheets"]
    assert (bad["name"], good["problem"]) == ("bad", "")
    assert bad["problem"]
    assert client.put(f"{API}/worksheets/bad", json=sheet("bad")).status_code == 200, (
        "it can be replaced"
    )


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path)
    secret = tmp_path.parent / "secret"
    secret.write_text(json.dumps(sheet("link")))
    (tmp_path / "link.json").symlink_to(secret)
    (tmp_path / "folder.json").mkdir()
    import os

    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(FormatError):
            shelf.read(name)
    assert all(each.problem for each in list_saved(shelf).worksheets)
    shelf.write("link", Worksheet.model_validate(sheet("link", graphs=[])))
    assert json.loads(secret.read_text())["graphs"], "a link is replaced, not followed"


def test_a_shelf_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IolabError, match="can't be saved"):
        shelf_of(tmp_path / "file" / "worksheets").write("one", Worksheet.model_validate(sheet()))
    assert list_saved(shelf_of(tmp_path / "none")).worksheets == []


def test_the_shelf_is_bounded(tmp_path: Path) -> None:
    shelf = JsonStore(tmp_path, Worksheet, "worksheet", 2)
    for name in ("a", "b"):
        shelf.write(name, Worksheet.model_validate(sheet(name)))
    with pytest.raises(UsageError, match="are the most"):
        shelf.write("c", Worksheet.model_validate(sheet("c")))
    shelf.write("a", Worksheet.model_validate(sheet("a", graphs=[])))


def test_where_worksheets_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder({"XDG_DATA_HOME": "/x"}) == Path("/x/iolab")
    monkeypatch.setenv("HOME", "/home/someone")
    assert (
        folder({})
        == folder({"XDG_DATA_HOME": "relative"})
        == Path("/home/someone/.local/share/iolab")
    )


QUESTIONS = [
    "query?from=-5s&statistic=io.ops%5Blatency%5D&recording=rec&drawn=true",
    "query?statistic=io.ops%5Bop%5D&recording=rec&interval=whole",
    "marks?recording=rec",
    "losses?recording=rec",
    "layers?recording=rec&statistic=io.ops%5Blatency%5D&by=op&key=read&key=write",
    "recordings",
]
REFUSED = [
    "query?recording=rec&statistic=nothing",
    "query?recording=..%2Frec&statistic=io.ops",
    "stream?recording=rec",
    "worksheets",
    "../../etc/passwd",
    "export?recording=rec&statistic=io.ops",
    "query?%ff=%fe",
    "query?a",
    "query",
    "",
    "x" * 30_000,
    "query?" + "&".join(f"statistic=io.ops{n}" for n in range(300)),
]


@pytest.fixture
def bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the built page."""
    monkeypatch.setattr(
        html, "bundle_file", lambda name: "let x = 1;" if name.endswith(".js") else "p{}"
    )


def inside(text: str, name: str) -> Any:
    [found] = re.findall(
        rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.DOTALL
    )
    return json.loads(found)


@pytest.mark.slow
@pytest.mark.usefixtures("bundle")
def test_a_shared_file_holds_the_answers_that_were_asked_for(client: TestClient) -> None:
    answer = client.post(
        f"{API}/share", json={"worksheet": sheet(), "questions": [*QUESTIONS, *REFUSED]}
    )
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="worksheet.html"'
    held = inside(answer.text, "iolab-answers")
    assert held["worksheet"] == sheet()
    assert list(held["answers"]) == QUESTIONS
    for question in QUESTIONS:
        assert held["answers"][question] == client.get(f"{API}/{question}").json()
    [facts] = held["recordings"]
    assert (facts["name"], facts["live"]) == ("rec", False)
    assert {each["name"] for each in held["statistics"]} >= {"io.ops", "io.bytes"}
    assert set(inside(answer.text, "iolab-colours")) == {"light", "dark"}
    assert "default-src 'none'" in answer.text


@pytest.mark.usefixtures("bundle")
def test_nothing_in_a_shared_file_can_end_its_element(store: Store) -> None:
    evil = "</script><script>alert(1)</script><!--"
    made = share(
        store,
        Sharing.model_validate(
            {
                "worksheet": sheet(graphs=[{**GRAPH, "highlights": [evil]}]),
                "questions": [f"query?statistic={evil}", "recordings"],
            }
        ),
    )
    assert "alert(1)</script>" not in made
    assert made.count("<script") == 3
    assert inside(made, "iolab-answers")["worksheet"]["graphs"][0]["highlights"] == [evil]


@pytest.mark.usefixtures("bundle")
def test_a_shared_file_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.output.server.reports.share.LARGEST", 1000)
    with pytest.raises(UsageError, match="the answers have more"):
        share(store, Sharing.model_validate({"worksheet": sheet(), "questions": QUESTIONS}))
    monkeypatch.setattr("iolab.output.server.reports.share.LONGEST_S", -1.0)
    with pytest.raises(UsageError, match="the answers take more"):
        share(store, Sharing.model_validate({"worksheet": sheet(), "questions": QUESTIONS}))
    with pytest.raises(ValueError, match="questions"):
        Sharing.model_validate({"worksheet": sheet(), "questions": ["recordings"] * 257})


@pytest.fixture
def keeping(tmp_path: Path, trace: Path, door: Door) -> Iterator[TestClient]:
    watched(tmp_path / "rec")
    state = state_in(Store([tmp_path / "rec", trace]), tmp_path, tmp_path / "log")
    with TestClient(
        application(state, door),
        base_url="http://127.0.0.1:8750",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as client:
        yield client


def test_statistics_are_kept_paused_resumed_pruned_and_dropped(keeping: TestClient) -> None:
    one = {"recording": "rec", "statistic": "io.ops[latency]"}

    def change(way: str, **more: Any) -> Any:
        answer = keeping.post(f"{API}/kept/{way}", json={**one, **more})
        assert answer.status_code == 200, answer.text
        assert keeping.get(f"{API}/kept", params={"recording": "rec"}).json() == answer.json()
        return answer.json()["kept"]

    assert keeping.get(f"{API}/kept", params={"recording": "rec"}).json()["kept"] == []
    [made] = change("add", backfill=True)
    assert (made["statistic"], made["state"], made["kind"]) == ("io.ops[latency]", "kept", "heat")
    assert made["bytes"] == sum(tier["bytes"] for tier in made["tiers"]) > 0
    assert change("pause")[0]["state"] == "paused"
    assert change("resume")[0]["state"] == "kept"
    assert change("prune", before_ns=0, tier="1s")[0]["rows"] == made["rows"]
    [pruned] = change("prune", before_ns=START + 3_600 * 10**9)
    assert pruned["rows"] < made["rows"]
    assert change("drop") == []


def test_limits_are_shown_and_set(keeping: TestClient) -> None:
    def asked(recording: str = "rec") -> Any:
        return keeping.get(f"{API}/kept", params={"recording": recording}).json()["limits"]

    first = asked()
    assert first == {
        "bytes": 1 << 30,
        "cpu_share": 0.05,
        "retention": {"1s": 7 * 86400, "1m": 14 * 86400, "1h": 90 * 86400},
        "used_bytes": 0,
        "pending": False,
    }
    assert asked("t.csv") is None
    keeping.post(
        f"{API}/kept/add",
        json={"recording": "rec", "statistic": "io.ops[latency]", "backfill": True},
    )
    wanted = {"bytes": None, "cpu_share": 0.5, "retention": {"1s": 3600, "1h": 10**8}}
    answer = keeping.post(f"{API}/kept/limits", json={"recording": "rec", **wanted})
    assert answer.status_code == 200, answer.text
    assert answer.json()["limits"] == asked()
    used = asked().pop("used_bytes")
    assert asked() == {
        **wanted,
        "retention": {"1s": 3600, "1m": 14 * 86400, "1h": 10**8},
        "used_bytes": used,
        "pending": False,
    }
    assert used == sum(each["bytes"] for each in answer.json()["kept"]) > 0


LIMITS: dict[str, Any] = {"recording": "rec", "bytes": None, "cpu_share": None, "retention": {}}


@pytest.mark.parametrize(
    ("way", "body", "status"),
    [
        ("limits", {"recording": "rec"}, 400),
        ("limits", {**LIMITS, "bytes": 0}, 400),
        ("limits", {**LIMITS, "cpu_share": 7}, 400),
        ("limits", {**LIMITS, "cpu_share": "all"}, 400),
        ("limits", {**LIMITS, "retention": {"1d": 5}}, 400),
        ("limits", {**LIMITS, "retention": {"1s": -1}}, 400),
        ("limits", {**LIMITS, "retention": {"1s": 10**9}}, 400),
        ("limits", {**LIMITS, "recording": "../x"}, 404),
        ("limits", {**LIMITS, "recording": "t.csv"}, 400),
        ("limits", {**LIMITS, "more": 1}, 400),
        ("prune", {"recording": "rec", "statistic": "io.ops", "before_ns": 0, "tier": "1d"}, 400),
        ("add", {"recording": "rec", "statistic": "io.ops[latency]"}, 400),
        ("add", {"recording": "rec", "statistic": "io.opps", "backfill": True}, 400),
        ("add", {"recording": "../rec", "statistic": "io.ops", "backfill": True}, 404),
        ("add", {"recording": "t.csv", "statistic": "io.ops", "backfill": True}, 400),
        (
            "add",
            {
                "recording": "rec",
                "statistic": "io.ops[process=" + "x" * 4000 + "]",
                "backfill": True,
            },
            400,
        ),
        ("pause", {"recording": "rec", "statistic": "io.ops"}, 400),
        ("drop", {"recording": "rec", "statistic": ""}, 400),
        ("prune", {"recording": "rec", "statistic": "io.ops", "before_ns": "yesterday"}, 400),
        ("explode", {}, 404),
    ],
)
def test_what_can_not_be_kept(
    way: str, body: dict[str, Any], status: int, keeping: TestClient, golden: Golden
) -> None:
    answer = keeping.post(f"{API}/kept/{way}", json=body)
    assert answer.status_code == status
    golden("server/not-kept", f"{way}\n{answer.json()['error']}")
    assert keeping.get(f"{API}/kept", params={"recording": "t.csv"}).json()["kept"] == []
