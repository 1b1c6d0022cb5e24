# SPDX-License-Identifier: Apache-2.0
"""One question reads the metadata of a recording once, though segments come and go meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from iolab.recording.base.checked_files import FRESH_NS
from iolab.recording.base.metadata import read_facts
from iolab.recording.catalogue import Catalogue
from iolab.recording.read.recording import Recording
from iolab.recording.write import retention
from iolab.recording.write.writer import RecordingWriter
from iolab.statistics.answers.answers import Series, Stack
from iolab.statistics.ask.query import query
from iolab.statistics.engine.engine import Engine
from support.recordings import SECOND, START, events

METADATA = (
    "recording.json",
    "segments.jsonl",
    "lock",
    "losses.jsonl",
    "marks.jsonl",
    "processes.jsonl",
)
ROWS = 20

_counted: Counter[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _counted is not None and event in ("open", "os.listdir", "os.scandir"):
        _counted[f"{event} {arguments[0]}"] += 1


sys.addaudithook(_hook)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """File operations by kind and path: opening, listing, asking for the status."""
    global _counted
    really = os.stat

    def stat(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
        if _counted is not None:
            _counted[f"stat {path}"] += 1
        return really(path, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        _counted = Counter()
        try:
            yield _counted
        finally:
            _counted = None


def recorded(path: Path, segments: int) -> Recording:
    with RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for number in range(segments):
            writer.append_segment([events(ROWS, number, start_ns=START + number * SECOND)])
    return Recording(path)


def operations(
    path: Path, segments: int, question: str, monkeypatch: pytest.MonkeyPatch
) -> Counter[str]:
    recording = recorded(path, segments)
    # a file that changed a moment ago is read again
    time.sleep(2 * FRESH_NS / 1e9)
    query(recording, question)
    with counted(monkeypatch) as found:
        query(recording, question)
    return Counter({name: count for name, count in found.items() if str(path) in name})


@pytest.mark.slow
@pytest.mark.parametrize("question", ["io.ops", "io.ops[latency]", "io.ops[process]"])
def test_a_question_reads_each_file_of_metadata_once(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = operations(tmp_path / "few", 10, question, monkeypatch)
    many = operations(tmp_path / "many", 40, question, monkeypatch)
    for found in (few, many):
        for name in METADATA:
            counts = {key: count for key, count in found.items() if key.endswith(f"/{name}")}
            assert sum(n for key, n in counts.items() if key.startswith("open")) <= 1, counts
            # the status says whether it was replaced or deleted meanwhile
            assert sum(counts.values()) <= 3, counts
        assert all(count <= 4 for count in found.values()), found.most_common(3)
    opens = [
        sum(n for key, n in each.items() if not key.startswith("stat")) for each in (few, many)
    ]
    assert opens[1] == opens[0]
    # a segment has its events and three maps, of which one kind is read
    assert sum(many.values()) - sum(few.values()) <= 30 * 7


def test_segments_deleted_during_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes what a question is about to read: the answer is that of what remains, as if
    it had been asked a moment later."""
    recording = recorded(tmp_path / "r", 6)
    deleted: list[bool] = []
    really = Engine.files

    def files(self: Engine, name: str, parts: Any) -> None:
        if not deleted:
            deleted.append(True)
            facts = read_facts(tmp_path / "r")
            facts.dropped = {
                "through": 2,
                "until_ns": START + 2 * SECOND - 1,
                "segments": 2,
                "events": {"block": 2 * ROWS},
                "bytes": 1,
                "maps_until_ns": START + 2 * SECOND,
            }
            facts.write(tmp_path / "r")
            retention.finish_dropping(tmp_path / "r", facts)
        really(self, name, parts)

    monkeypatch.setattr(Engine, "files", files)
    found = query(recording, "io.ops[process]", from_ns=START)
    after = query(recording, "io.ops[process]", from_ns=START)
    assert deleted
    assert found.total == after.total > 0
    assert isinstance(found, Stack)
    assert isinstance(after, Stack)
    assert found.notes == after.notes
    assert recording.damaged() == []


def test_a_file_deleted_while_it_is_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(tmp_path / "r", 3)
    asked: list[bool] = []
    really = Engine.ask

    def ask(self: Engine, *arguments: Any) -> dict[str, Any]:
        if not asked:
            (tmp_path / "r/events/000001.parquet").unlink()
        asked.append(True)
        return really(self, *arguments)

    monkeypatch.setattr(Engine, "ask", ask)
    found = query(recording, "io.ops[process]")
    assert len(asked) > 1
    assert isinstance(found, Stack)
    assert any("000001.parquet" in note for note in found.notes)


def test_segments_sealed_during_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that meets a recording that grows tells of one moment: neither is a row missing,
    nor counted twice."""
    path = tmp_path / "r"
    writer = RecordingWriter.create(path, host="", clock="realtime", origin={"kind": "record"})
    writer.append_events(events(ROWS))
    total = sum(events(ROWS).column("count").to_pylist())
    sealed: list[bool] = []
    really = Catalogue.read.__func__  # type: ignore[attr-defined]

    def read(cls: type[Catalogue], *arguments: Any) -> Catalogue:
        found: Catalogue = really(cls, *arguments)
        if not sealed:
            sealed.append(True)
            writer.seal()
            writer.append_events(events(ROWS, 2, start_ns=START + SECOND))
        return found

    monkeypatch.setattr(Catalogue, "read", classmethod(read))
    first = query(Recording(path), "io.ops")
    assert isinstance(first, Series)
    assert sealed
    assert first.total == total
    assert query(Recording(path), "io.ops").total == total + sum(
        events(ROWS, 2).column("count").to_pylist()
    )
    writer.close()


def test_all_of_a_frozen_recording_is_of_one_moment(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r", 3)
    frozen = recording.frozen()
    with RecordingWriter.reopen(tmp_path / "r") as writer:
        writer.append_segment([events(ROWS, 9, start_ns=START + 9 * SECOND)])
    assert [each.number for each in frozen.segments()] == [1, 2, 3]
    assert len(frozen.maps("io.latency")) == 3
    assert frozen.frozen() is frozen
    assert [each.number for each in recording.segments()] == [1, 2, 3, 4]
