# SPDX-License-Identifier: Apache-2.0
"""A recording, a trace and the service of both: asked in process, or on a socket of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.actions import AppState, state_in
from iolab.output.server.http.app import application
from support.service import TOKEN, Served, recorded, serving


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("served") / "rec"
    writer = recorded(path)
    yield path
    writer.close()


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds: every ms a read of 8 KiB by fio, every 10 ms a write of 128 KiB by dd."""
    path = tmp_path_factory.mktemp("traces") / "t.csv"
    lines = [
        f"{at},{100 + at % 7},{8192 * at},8192,read,fio,/data/{at % 3}/x\n" for at in range(5000)
    ]
    lines += [f"{at},5000,{131072 * at},131072,write,dd,/b\n" for at in range(0, 5000, 10)]
    path.write_text("time:ms,latency:us,offset:bytes,size:bytes,op,process,file\n" + "".join(lines))
    return path


@pytest.fixture(scope="session")
def store(recording: Path, trace: Path) -> Store:
    return Store([recording, trace])


@pytest.fixture(scope="session")
def door() -> Door:
    return Door(["127.0.0.1", "localhost"], 8750, token=TOKEN)


@pytest.fixture
def state(store: Store, tmp_path: Path) -> AppState:
    return state_in(store, tmp_path / "home", tmp_path / "home" / "alerts.jsonl")


@pytest.fixture
def anyone(state: AppState, door: Door) -> Iterator[TestClient]:
    """Who has no token."""
    with TestClient(
        application(state, door), base_url="http://127.0.0.1:8750", follow_redirects=False
    ) as client:
        yield client


@pytest.fixture
def client(anyone: TestClient) -> TestClient:
    """Who has the token."""
    anyone.headers["authorization"] = f"Bearer {TOKEN}"
    return anyone


@pytest.fixture
def served(store: Store) -> Iterator[Served]:
    """Serve on a socket; `served(store, metrics=...)`, the fixtures' store unless another is given."""
    with ExitStack() as stack:
        yield lambda other=store, **options: stack.enter_context(serving(other, **options))
