# SPDX-License-Identifier: Apache-2.0
"""Marks through the service: users set and remove them, hostile documents change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.app import application
from iolab.recordings.store.read.recording import Recording
from support.recordings import SECOND, START
from support.service import TOKEN, recorded

API = "/api/v1"


@pytest.fixture
def marked(tmp_path: Path, trace: Path, door: Door) -> Any:
    """A client of a recording of its own and a trace."""
    recorded(tmp_path / "own", seconds=2).close()
    state = state_in(Store([tmp_path / "own", trace]), tmp_path / "home", tmp_path / "a.jsonl")
    with TestClient(application(state, door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        yield client


def plain(**changes: Any) -> dict[str, Any]:
    return {
        "recording": "own",
        "label": "here",
        "from_ns": START,
        "until_ns": START + SECOND,
        "note": "why",
        **changes,
    }


def test_a_mark_is_set_seen_and_removed(marked: TestClient, tmp_path: Path) -> None:
    assert marked.post(f"{API}/marks/add", json=plain()).status_code == 200
    found = marked.get(f"{API}/marks?recording=own").json()["marks"]
    assert [(mark["label"], mark["kind"], mark["facts"]) for mark in found] == [
        ("run 1", "run", {"variant": "a"}),
        ("here", "user", {"note": "why"}),
    ]
    assert len(Recording(tmp_path / "own").marks()) == 2
    removed = {"recording": "own", "label": "here", "from_ns": START}
    answer = marked.post(f"{API}/marks/remove", json=removed)
    assert [mark["label"] for mark in answer.json()["marks"]] == ["run 1"]
    assert marked.post(f"{API}/marks/remove", json=removed).status_code == 400


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"label": ""}, 400),
        ({"label": "  "}, 400),
        ({"label": "a\nb"}, 400),
        ({"label": "x" * 201}, 400),
        ({"note": "x" * 4001}, 400),
        ({"from_ns": -1}, 400),
        ({"from_ns": 1.5}, 400),
        ({"from_ns": START + 2 * SECOND}, 400),
        ({"until_ns": 2**63}, 400),
        ({"until_ns": None}, 400),
        ({"kind": "run"}, 400),
        ({"recording": "t.csv"}, 400),
        ({"recording": "nothing"}, 404),
    ],
)
def test_what_is_refused(
    marked: TestClient, tmp_path: Path, changes: dict[str, Any], code: int
) -> None:
    assert marked.post(f"{API}/marks/add", json=plain(**changes)).status_code == code
    assert len(Recording(tmp_path / "own").marks()) == 1
