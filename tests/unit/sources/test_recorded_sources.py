# SPDX-License-Identifier: Apache-2.0
"""block and syscall in a study: what a run keeps of a recorder that dies, suspends a source, or
goes silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.sources.block import BlockSource
from support.acting import fake_host

STATUS = "/r/status.json"


@pytest.fixture
def host() -> FakeHost:
    return fake_host()


def tell(host: FakeHost, **changes: Any) -> None:
    status = {
        "schema": 1,
        "state": "recording",
        "deaths": 0,
        "written_ns": host.clock.realtime_ns(),
        "events": {"block": 5},
        "lost": {"block": 0},
        "suspended": {},
        "troubles": [],
    }
    host.files[STATUS] = json.dumps({**status, **changes})


def begun(host: FakeHost, directory: Path) -> BlockSource:
    tell(host)
    source = BlockSource(BlockSource.options(), host, host.clock, ("sda",))  # type: ignore[arg-type]
    source.attach("/r")
    assert source.unfit() is None
    source.start(directory)
    return source


def second(host: FakeHost, source: BlockSource, **changes: Any) -> None:
    host.clock.sleep(1.0)
    tell(host, **changes)
    source.poll()


def test_without_a_recorder_it_is_unfit(host: FakeHost) -> None:
    source = BlockSource(BlockSource.options(), host, host.clock, ())  # type: ignore[arg-type]
    assert source.unfit() == "no recorder runs"
    source.attach("/r")
    assert source.unfit()


def test_its_log_has_the_recorders_counts(host: FakeHost, tmp_path: Path) -> None:
    source = begun(host, tmp_path)
    second(host, source, events={"block": 105}, lost={"block": 2})
    source.stop()
    lines = [
        line
        for line in (tmp_path / "block.log").read_text().splitlines()
        if not line.startswith("@")
    ]
    assert lines == ["# iolab block 1", "events 5", "lost 0", "events 105", "lost 2"]
    assert source.latest() == {"block.events": 100.0}
    assert (source.readings, source.lost, source.trouble) == (2, 0, "")


@pytest.mark.parametrize(
    "changes",
    [{"state": "waiting"}, {"state": "ended"}, {"suspended": {"block": "over the budget"}}],
)
def test_seconds_without_recording_are_missed_readings(
    changes: dict[str, Any], host: FakeHost, tmp_path: Path
) -> None:
    source = begun(host, tmp_path)
    for _ in range(3):
        second(host, source, **changes)
    second(host, source)
    assert (source.readings, source.lost) == (2, 3)


def test_a_recorder_that_goes_silent_is_noticed(host: FakeHost, tmp_path: Path) -> None:
    source = begun(host, tmp_path)
    for _ in range(9):
        host.clock.sleep(1.0)
        source.poll()
    assert (source.readings, source.lost) == (3, 7)


def test_a_death_during_the_run_is_told_one_before_it_is_not(
    host: FakeHost, tmp_path: Path
) -> None:
    tell(host, deaths=1, troubles=["long ago"])
    source = BlockSource(BlockSource.options(), host, host.clock, ())  # type: ignore[arg-type]
    source.attach("/r")
    source.start(tmp_path)
    second(host, source, deaths=1, troubles=["long ago"])
    assert source.trouble == ""
    second(host, source, deaths=2, troubles=["long ago", "the probe died: killed"], state="waiting")
    assert source.trouble == "the probe died: killed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noise",
        "[]",
        "{}",
        '{"state": 5, "written_ns": "x"}',
        '{"state": "recording", "written_ns": true}',
    ],
)
def test_a_damaged_status_is_a_missed_reading(text: str, host: FakeHost, tmp_path: Path) -> None:
    source = begun(host, tmp_path)
    host.clock.sleep(1.0)
    host.files[STATUS] = text
    source.poll()
    assert (source.readings, source.lost) == (1, 1)
