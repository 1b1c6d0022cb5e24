# SPDX-License-Identifier: Apache-2.0
"""The terminal and the service give the same numbers for the same name: every statistic of the
catalogue, by every field."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from iolab.cli.main import run
from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.app import application
from iolab.recordings.ask.available import available
from iolab.recordings.ask.language.catalogue import CATALOGUE
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.depth import depth
from support.recordings import SECOND, START, events
from support.service import TOKEN

SECONDS = 6
OBJECTS = {
    "device": ("sda", "sda1", "loop0"),
    "cpu": ("", "cpu0", "cpu1"),
    "interface": ("eth0", "lo"),
    "mount": ("/", "/data"),
    "peer": ("others", "10.0.0.1", "127.0.0.1"),
    "pool": ("tank", "dozer"),
    "server": ("", "alpha\t/mnt/a\tREAD", "beta\t/mnt/b c\tWRITE"),
    None: ("",),
}


def readings(seed: int) -> pa.RecordBatch:
    """Every field of every counter, growing at random."""
    chance = random.Random(seed)
    wanted = {
        (entry.counter.source, thing, field)
        for entry in CATALOGUE.values()
        if entry.counter
        for thing in OBJECTS[entry.counter.object]
        for field in entry.counter.read
    }
    rows = []
    for source, thing, field in sorted(wanted):
        value = 1000
        for at in range(SECONDS + 1):
            rows.append((source, START + at * SECOND, thing, field, value))
            value += chance.randrange(1000)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, each.type)
            for column, each in zip(zip(*rows, strict=True), SAMPLES, strict=True)
        ],
        schema=SAMPLES,
    )


def calls_of_samba() -> pa.RecordBatch:
    """System calls of Samba's server."""
    calls = events(300, 8, source="syscall", per_s=60)
    process = pa.array(["smbd"] * len(calls), calls.schema.field("process").type)
    return calls.set_column(calls.schema.get_field_index("process"), "process", process)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("all") / "r"
    with RecordingWriter.create(
        place, host="here", clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for number, source in enumerate(("block", "syscall", "fio", "nfs", "zpool", "zpool-sizes")):
            writer.append_events(events(300, number, source=source, per_s=60))
        writer.append_events(calls_of_samba())
        writer.append_samples(readings(7))
        writer.seal()
        # what is not sealed yet counts as well
        writer.append_events(events(60, 9, start_ns=START + 5 * SECOND, per_s=60))
    return place


@pytest.fixture(scope="module")
def service(recording: Path) -> Iterator[TestClient]:
    with TestClient(
        application(Store([recording]), Door(["127.0.0.1"], 8750, token=TOKEN)),
        base_url="http://127.0.0.1:8750",
    ) as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        yield client


def names(recording: Path) -> list[str]:
    """Every statistic, and its breakdowns: all of them at full depth, else one, chosen at random."""
    chance = random.Random(447)
    names: list[str] = []
    for statistic in available(Recording(recording)):
        assert statistic.source, statistic.why_not
        name, fields = statistic.entry.name, statistic.breakdowns
        sample = chance.sample(fields, min(len(fields), depth(1, len(fields))))
        names += [name, *(f"{name}[{field}]" for field in sample)]
    return names


@pytest.mark.slow
def test_every_statistic_is_the_same_in_both(
    recording: Path, service: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    statistics = names(recording)
    assert len(statistics) > depth(60, 100)
    assert {name.partition("[")[0] for name in statistics} == set(CATALOGUE)
    for name in statistics:
        assert run(["query", str(recording), name, "--format", "json", "--interval", "1s"]) == 0
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        answer = service.get(
            "/api/v1/query", params={"statistic": name, "interval": "1s", "top": "1000"}
        )
        assert answer.status_code == 200, (name, answer.text)
        told = answer.json()
        assert {key: told.get(key) for key in said} == said, name
        kind = said["kind"]
        assert (
            said["count"]
            if kind == "heat"
            else said["keys"]
            if kind == "stack"
            else any(said["values"])
        ), name
