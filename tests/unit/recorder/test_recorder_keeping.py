# SPDX-License-Identifier: Apache-2.0
"""The keeper beside a writer: what is sealed is kept, and what goes wrong there is told and harms
nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.files import definitions
from iolab.recordings.ask.kept.files.paths import DEFINITIONS
from iolab.recordings.ask.kept.manage import begin, defaults
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.record.session import KeepingSink
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import START, events
from support.waiting import until


def writer(path: Path) -> RecordingWriter:
    return RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    )


def test_what_is_sealed_is_kept_by_the_end(tmp_path: Path) -> None:
    told: list[str] = []
    sink = KeepingSink(writer(tmp_path / "r"), told.append)
    begin(tmp_path / "r", ["block"], None, START)
    for number in range(3):
        sink.append_events(events(100, number))
        sink.seal()
        sink.tick(START + number)
    sink.append_events(events(100, 3))
    sink.close()
    assert told == []
    rows = manage.list_kept(tmp_path / "r")
    assert [row["statistic"] for row in rows] == defaults(["block"])
    assert {(row["state"], row["segments"]) for row in rows} == {("kept", 4)}
    # one that goes on keeps what it kept, and nothing more unless it is asked for
    assert begin(
        tmp_path / "r", ["block", "counters"], None, START
    ) == definitions.read_definitions(tmp_path / "r")
    after = begin(tmp_path / "r", ["block"], ["io.ops[ op ]", "io.ops[process]"], START)
    assert after is not None
    assert list(after.statistics) == [*defaults(["block"]), "io.ops[process]"]


@pytest.mark.parametrize("fault", ["damaged definitions", "a fault of its own"])
def test_what_goes_wrong_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    path = tmp_path / "r"
    told: list[str] = []
    held = writer(path)
    begin(path, ["block"], None, START)
    if fault == "damaged definitions":
        (path / DEFINITIONS).write_text("{")
    else:

        def failing(_: Keeper) -> bool:
            raise RuntimeError("no such luck")

        monkeypatch.setattr(Keeper, "look", failing)
    sink = KeepingSink(held, told.append)

    def heard() -> list[str]:
        sink.tick(START)
        return told

    until(heard, "what went wrong")
    for _ in range(5):
        sink.append_events(events(10))
        sink.tick(START)
    sink.close()
    assert len(told) == 1
    assert told[0].startswith("statistics are not kept: ")
    assert Recording(path).summary().rows == 50
