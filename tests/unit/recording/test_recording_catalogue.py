# SPDX-License-Identifier: Apache-2.0
"""One question reads the metadata of a recording once, though segments come and go meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab import _core
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.engine.engine import Engine
from iolab.recordings.ask.kept.files.paths import DEFINITIONS
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.catalogue import Catalogue
from iolab.recordings.store.ledger import FRESH_NS, append_line
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write import retention
from iolab.recordings.store.write.writer import RecordingWriter
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
            folder = named.get("dir_fd")
            place = "" if folder is None else f"{Path(f'/proc/self/fd/{folder}').readlink()}/"
            _counted[f"stat {place}{path}"] += 1
        return really(path, *arguments, **named)

    really_sealed = _core.sealed_statuses

    def sealed_statuses(folder: Path, after: int) -> Any:
        statuses, has_vanished = really_sealed(folder, after)
        assert _counted is not None
        place = folder.readlink() if folder.parts[1] == "proc" else folder
        _counted.update(f"stat {place}/{number:06}.parquet" for number in statuses)
        return statuses, has_vanished

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        patch.setattr(_core, "sealed_statuses", sealed_statuses)
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
    path: Path, segments: int, question: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> Counter[str]:
    """File operations of a question, after another or the same one."""
    recording = recorded(path, segments)
    # a file that changed a moment ago is read again
    time.sleep(2 * FRESH_NS / 1e9)
    query(recording, first)
    with counted(monkeypatch) as found:
        query(recording, question)
    return Counter({name: count for name, count in found.items() if str(path) in name})


@pytest.mark.slow
@pytest.mark.parametrize("question", ["io.ops", "io.ops[latency]", "io.ops[process]"])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_question_has_constant_file_operations_and_some_for_each_file(
    question: str, is_repeated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = question if is_repeated else "io.bytes" if question == "io.ops" else "io.ops"
    few = operations(tmp_path / "few", 10, question, first, monkeypatch)
    many = operations(tmp_path / "many", 40, question, first, monkeypatch)
    for found in (few, many):
        for name in METADATA:
            counts = {key: count for key, count in found.items() if key.endswith(f"/{name}")}
            assert sum(n for key, n in counts.items() if key.startswith("open")) <= 1, counts
            # the status says whether it was replaced or deleted meanwhile
            assert sum(counts.values()) <= 3, counts
    constant, opened, statuses = [], [], []
    for found in (few, many):
        of_files = {key: n for key, n in found.items() if key.endswith(".parquet")}
        statuses.append(sum(n for key, n in of_files.items() if key.startswith("stat")))
        opened.append(sum(of_files.values()) - statuses[-1])
        constant.append(sum(found.values()) - sum(of_files.values()))
    assert constant[0] == constant[1] <= (30 if is_repeated else 45)
    # a segment has its events and three maps, of which one kind is read
    if is_repeated:
        assert opened == [0, 0]
        assert statuses == [4 * 10, 4 * 40]
    else:
        assert opened[1] <= 40
        assert statuses[1] <= 6 * 40


def _damage_events(path: Path) -> None:
    """Change a byte; size and times of content remain."""
    file = path / "events/000002.parquet"
    times, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def _grow(path: Path) -> None:
    with RecordingWriter.reopen(path) as writer:
        writer.append_segment([events(ROWS, 7, start_ns=START + 7 * SECOND)])


def _append_unsealed(path: Path) -> None:
    with RecordingWriter.reopen(path) as writer:
        writer.append_events(events(ROWS, 7, start_ns=START + 7 * SECOND))


def _note_loss(path: Path) -> None:
    line = {"source": "block", "kind": "overrun", "from_ns": START, "until_ns": START + SECOND}
    append_line(path / "losses/losses.jsonl", {**line, "count": 12})


def _delete_segment(path: Path) -> None:
    facts = read_facts(path)
    facts.dropped = {
        "through": 1,
        "until_ns": START + SECOND - 1,
        "segments": 1,
        "events": {"block": ROWS},
        "bytes": 1,
        "maps_until_ns": START + SECOND,
    }
    facts.write(path)
    retention.finish_dropping(path, facts)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a damaged file of events": _damage_events,
    "a missing file of events": lambda path: (path / "events/000001.parquet").unlink(),
    "a missing map": lambda path: (path / "histograms/1s/io.latency/000001.parquet").unlink(),
    "a cut map": lambda path: os.truncate(path / "histograms/1s/io.offset/000001.parquet", 8),
    "another segment": _grow,
    "unsealed events": _append_unsealed,
    "a loss": _note_loss,
    "a deleted segment": _delete_segment,
    "a missing lock": lambda path: (path / "lock").unlink(),
    "a damaged list of kept statistics": lambda path: (path / DEFINITIONS).write_text("{"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("question", ["io.ops[op]", "io.ops[process]"])
def test_an_answer_is_remembered_until_the_recording_changes(
    change: str, question: str, tmp_path: Path
) -> None:
    recording = recorded(tmp_path / "r", 3)
    before, repeated = query(recording, question), query(recording, question)
    assert isinstance(before, Stack)
    assert isinstance(repeated, Stack)
    assert repeated.values is before.values
    assert recording.catalogue() is recording.catalogue()
    CHANGES[change](recording.path)
    after, fresh = query(recording, question), query(Recording(recording.path), question)
    assert isinstance(after, Stack)
    assert after.values is not before.values
    assert isinstance(fresh, Stack)
    assert (after.keys, after.totals, after.notes) == (fresh.keys, fresh.totals, fresh.notes)
    assert np.array_equal(after.values, fresh.values, equal_nan=True)
    assert after.lost_at == fresh.lost_at


def test_a_remembered_answer_can_not_be_written(tmp_path: Path) -> None:
    answer = query(recorded(tmp_path / "r", 1), "io.ops")
    assert isinstance(answer, Series)
    with pytest.raises(ValueError, match="read-only"):
        answer.values[0] = 1


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
    assert recording.damaged_files() == []


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
