"""Limits by bytes and by age: the oldest sealed segments go, their default maps stay, and it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.clock import FakeClock
from iolab.recording import layout, retention
from iolab.recording.recording import Recording
from iolab.recording.segments import noted_segments
from iolab.recording.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples


def create(path: Path, clock: FakeClock, **limits: int) -> RecordingWriter:
    return RecordingWriter.create(path, host="", clock="realtime", origin={"kind": "record"}, retention=limits, system=clock)


def test_by_age(tmp_path: Path) -> None:
    clock = FakeClock(START)
    writer = create(tmp_path / "r", clock, age_s=100)
    for number in range(5):
        writer.append_events(events(10, number, start_ns=START + 40 * number * SECOND))
        writer.append_samples(samples(2, start_ns=START + 40 * number * SECOND))
        writer.seal()
    recording = Recording(tmp_path / "r")
    assert len(recording.segments()) == 5
    clock.sleep(145)
    writer.tick(clock.realtime_ns())
    assert [each.number for each in recording.segments()] == [3, 4, 5]
    assert [each.number for each in recording.sample_segments()] == [3, 4, 5]
    assert [each.number for each in recording.maps("io.latency")] == [1, 2, 3, 4, 5]
    counts = [sum(events(10, number).column("count").to_pylist()) for number in range(2)]
    dropped = recording.facts.dropped
    assert dropped is not None
    assert dropped["through"] == 2
    assert dropped["segments"] == 2
    assert dropped["events"] == {"block": sum(counts)}
    assert START + 40 * SECOND <= dropped["until_ns"] < START + 45 * SECOND
    clock.sleep(40)
    writer.tick(clock.realtime_ns())
    assert recording.facts.dropped is not None
    assert recording.facts.dropped["segments"] == 3
    assert recording.losses() == []
    writer.close()


def test_by_bytes(tmp_path: Path) -> None:
    clock = FakeClock(START)
    writer = create(tmp_path / "r", clock)
    for number in range(4):
        writer.append_events(events(200, number))
        writer.seal()
    writer.close()
    sizes = [each.facts["bytes"] for each in Recording(tmp_path / "r").segments()]
    with RecordingWriter.reopen(tmp_path / "r", retention={"bytes": sizes[2] + sizes[3]}, system=clock) as writer:
        writer.tick(clock.realtime_ns())
        assert [each.number for each in Recording(tmp_path / "r").segments()] == [3, 4]
        writer.append_events(events(200, 9))
        writer.seal()
    recording = Recording(tmp_path / "r")
    assert sum(each.facts["bytes"] for each in recording.segments()) <= sizes[2] + sizes[3]
    assert recording.summary().bytes["events"] <= sizes[2] + sizes[3]
    assert recording.facts.retention["bytes"] == sizes[2] + sizes[3]


def test_killed_between_saying_and_removing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(START)
    writer = create(tmp_path / "r", clock, bytes=1)
    writer.append_events(events(10))
    monkeypatch.setattr(retention, "finish_dropping", lambda *_: None)
    writer.seal()
    monkeypatch.undo()
    assert layout.sealed_file(tmp_path / "r", 1, "events").exists()
    assert Recording(tmp_path / "r").segments() == []
    writer._lock.close()
    with RecordingWriter.reopen(tmp_path / "r", system=clock) as writer:
        assert not layout.sealed_file(tmp_path / "r", 1, "events").exists()
        writer.append_events(events(5))
        assert layout.hot_file(tmp_path / "r", 2, "events").exists(), "a number is never used again"
    assert Recording(tmp_path / "r").facts.dropped["segments"] == 2  # type: ignore[index]


def test_what_is_noted_of_segments_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STALE", 5)
    clock = FakeClock(START)
    writer = create(tmp_path / "r", clock, bytes=1)
    for number in range(15):
        writer.append_events(events(1, number))
        writer.seal()
    assert len(noted_segments(tmp_path / "r")) <= 6
    writer.close()
