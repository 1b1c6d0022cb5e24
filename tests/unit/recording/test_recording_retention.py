# SPDX-License-Identifier: Apache-2.0
"""Limits by bytes and by age: the oldest sealed segments go, their default maps stay, and it is
said."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import ResultsError
from iolab.recordings.ask.query import heat
from iolab.recordings.ask.question import Question
from iolab.recordings.store import ledger
from iolab.recordings.store.base import layout
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments import sealing
from iolab.recordings.store.segments.segments import noted_segments
from iolab.recordings.store.write import retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples


def create(path: Path, clock: FakeClock, **limits: int) -> RecordingWriter:
    return RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, retention=limits, system=clock
    )


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
    with RecordingWriter.reopen(
        tmp_path / "r", retention={"bytes": sizes[2] + sizes[3]}, system=clock
    ) as writer:
        writer.tick(clock.realtime_ns())
        assert [each.number for each in Recording(tmp_path / "r").segments()] == [3, 4]
        writer.append_events(events(200, 9))
        writer.seal()
    recording = Recording(tmp_path / "r")
    assert sum(each.facts["bytes"] for each in recording.segments()) <= sizes[2] + sizes[3]
    assert recording.summary().bytes["events"] <= sizes[2] + sizes[3]
    assert recording.facts.retention["bytes"] == sizes[2] + sizes[3]


def test_killed_between_saying_and_removing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_what_is_noted_of_segments_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STALE", 5)
    clock = FakeClock(START)
    writer = create(tmp_path / "r", clock, bytes=1, maps_bytes=0)
    for number in range(15):
        writer.append_events(events(1, number))
        writer.seal()
    assert len(noted_segments(tmp_path / "r")) <= 6
    writer.close()


def aging(path: Path, clock: FakeClock, many: int, **limits: int) -> RecordingWriter:
    """A writer that has dropped all but the last of many segments, ten seconds apart."""
    writer = create(path, clock, age_s=5, **limits)
    for number in range(many):
        writer.append_events(events(10, number, start_ns=START + 10 * number * SECOND))
        writer.seal()
        clock.sleep(10)
    return writer


def ios(numbers: range) -> int:
    return sum(sum(events(10, number).column("count").to_pylist()) for number in numbers)


def mapped(path: Path) -> list[int]:
    return [each.number for each in Recording(path).maps("io.size")]


@pytest.mark.slow
def test_maps_stay_readable_when_lines_are_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STALE", 2)
    with aging(tmp_path / "r", FakeClock(START), 15):
        noted = noted_segments(tmp_path / "r")
        assert "names" not in noted[1], "the test means to shorten"
        assert len(noted) == 15
        for y in ("latency", "offset", "size"):
            found = heat(Recording(tmp_path / "r"), y, Question(interval_ns=SECOND))
            assert found.events + found.without_y == ios(range(15))


def test_maps_go_by_age_with_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STALE", 0)
    clock = FakeClock(START)
    with aging(tmp_path / "r", clock, 10, maps_age_s=45) as writer:
        assert mapped(tmp_path / "r") == [6, 7, 8, 9, 10]
        assert min(noted_segments(tmp_path / "r")) >= 5
        # also where nothing more is dropped
        writer.facts.retention["age_s"] = None
        clock.sleep(25)
        writer.tick(clock.realtime_ns())
        assert mapped(tmp_path / "r") == [9, 10]
        found = heat(Recording(tmp_path / "r"), "size", Question(interval_ns=SECOND))
        assert found.events + found.without_y == ios(range(8, 10))
    dropped = Recording(tmp_path / "r").facts.dropped
    assert dropped is not None
    assert (
        START + 70 * SECOND
        <= dropped["maps_until_ns"]
        < START + 80 * SECOND
        == dropped["maps_from_ns"]
    )


def test_maps_go_by_bytes(tmp_path: Path) -> None:
    with aging(tmp_path / "all", FakeClock(START), 10):
        size = (
            sum(
                each.path.stat().st_size
                for name in ("io.latency", "io.offset", "io.size")
                for each in Recording(tmp_path / "all").maps(name)
            )
            // 10
        )
    with aging(tmp_path / "r", FakeClock(START), 10, maps_bytes=size * 4):
        assert 2 <= len(mapped(tmp_path / "r")[:-1]) <= 5
        assert mapped(tmp_path / "r")[-1] == 10
    limits: dict[str, int | None] = {"bytes": 10 << 30, "age_s": 7 * 86400}
    facts = Recording(tmp_path / "r").facts
    for retained, expected in (
        (limits, (1 << 30, 90 * 86400)),
        ({"bytes": 1, "age_s": None}, (16 << 20, None)),
        ({**limits, "age_s": 10**8, "maps_bytes": None}, (None, 10**8)),
    ):
        facts.retention = retained
        assert retention.map_limits(facts) == expected


@pytest.mark.parametrize("step", ["before any map", "after one of three", "before the line"])
def test_killed_while_maps_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(retention, "STALE", 0)
    path, clock = tmp_path / "r", FakeClock(START)
    writer = aging(path, clock, 6)
    writer.facts.retention["maps_age_s"] = 0
    clock.sleep(60)

    class Killed(BaseException):
        pass

    def stops(directory: Path, number: int) -> None:
        if step == "after one of three":
            layout.map_file(directory, number, "io.latency").unlink()
        raise Killed

    def ends(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(
            *(
                (retention, "finish_dropping", ends)
                if step == "before the line"
                else (retention, "_remove_maps", stops)
            )
        )
        with pytest.raises(Killed):
            writer.tick(clock.realtime_ns())
    writer._lock.close()
    Recording(path).maps("io.latency")
    with RecordingWriter.reopen(path, system=clock) as writer:
        writer.append_events(events(5, 6, start_ns=clock.realtime_ns()))
        writer.seal()
        assert layout.sealed_file(path, 7, "events").exists(), (
            "a number is never used again, though no file has it"
        )
        found = heat(
            Recording(path), "size", Question(span=(START + 100 * SECOND, None), interval_ns=SECOND)
        )
        assert found.events + found.without_y == sum(events(5, 6).column("count").to_pylist())
        clock.sleep(20)
        writer.tick(clock.realtime_ns())
        for name in ("io.latency", "io.offset", "io.size"):
            assert list((path / layout.MAPS / name).glob("*.parquet")) == []
    assert noted_segments(path) == {}


def maps_of(path: Path) -> list[int]:
    return layout.sealed_numbers(path / layout.MAPS / "io.latency")


@pytest.mark.parametrize("known", [False, True])
def test_a_moment_without_its_lines_costs_no_map(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(START)
    path = tmp_path / "r"
    with create(path, clock, bytes=1) as writer:
        for number in range(4):
            writer.append_events(events(10, number))
            writer.seal()
    assert maps_of(path) == [1, 2, 3, 4]
    with RecordingWriter.reopen(path, system=clock) as writer:
        if known:
            writer._retention._known_maps(writer.facts)
        writer.append_events(events(10, 5))
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "_status", refused)
            with pytest.raises(
                ResultsError, match=r"segments\.jsonl: can't read what it holds: Input/output error"
            ):
                writer.seal()
        assert maps_of(path) == [1, 2, 3, 4, 5]
        writer.seal()
        assert Recording(path).segments() == []
    assert maps_of(path) == [1, 2, 3, 4, 5]


def refused(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("left", ["", "damaged\n"])
def test_lines_that_say_nothing_cost_no_map(left: str, tmp_path: Path) -> None:
    clock = FakeClock(START)
    path = tmp_path / "r"
    with create(path, clock, bytes=1) as writer:
        for number in range(3):
            writer.append_events(events(10, number))
            writer.seal()
    (path / layout.SEGMENTS).write_text(left)
    facts = Recording(path).facts
    facts.dropped = {**(facts.dropped or {}), "maps_from_ns": 0}
    facts.retention["maps_age_s"] = 10**6
    retention.Retention(path).apply(facts, START)
    assert maps_of(path) == [1, 2, 3]


def test_a_segment_that_is_half_sealed_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(START)
    path = tmp_path / "r"
    with create(path, clock, bytes=2**40) as writer:
        writer.append_events(events(10))
        writer.append_samples(samples(50))
        with monkeypatch.context() as patch:
            patch.setattr(sealing, "_write_samples", full)
            with pytest.raises(ResultsError, match="No space left"):
                writer.seal()
        clock.sleep(1)
        writer.tick(clock.realtime_ns())
        assert set(writer._retention._held) == {1}
        writer.seal()
        assert writer._retention._held[1].bytes == sum(
            layout.sealed_file(path, 1, kind).stat().st_size for kind in layout.KINDS
        )


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
