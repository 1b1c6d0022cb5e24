"""What a writer does when is told by a clock that nobody sets; a session's ends are those of what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.recording import writer as writing
from iolab.recording.facts import Begun
from iolab.recording.recording import Recording
from iolab.recording.writer import RecordingWriter
from support.clocks import SetClock
from support.recordings import SECOND, START, events, samples

HOUR = 3600


def create(path: Path, clock: SetClock, **more: Any) -> RecordingWriter:
    return RecordingWriter.create(path, host="here", clock="realtime", origin={"kind": "record"}, system=clock, **more)


def begun(clock: SetClock) -> Begun:
    return Begun(clock.realtime_ns(), round(clock.monotonic() * 1e9), clock.realtime_ns())


@pytest.mark.parametrize("step", [0, 59, 61, 8 * HOUR, -59, -61, -8 * HOUR])
def test_a_clock_that_is_set_neither_seals_nor_drops(step: int, tmp_path: Path) -> None:
    """The times that come go on as if it had not been set."""
    clock = SetClock(START)
    writer = create(tmp_path / "r", clock, retention={"age_s": HOUR})
    for second in range(600):
        if second == 250:
            clock.set_ahead(step)
        clock.sleep(1)
        writer.append_samples(samples(1, start_ns=START + second * SECOND))
        writer.tick(START + (second + 1) * SECOND)
    recording = Recording(tmp_path / "r")
    assert [each.kind for each in recording.sample_segments()].count("sealed") in (9, 10)
    writer.close()
    assert sum(sum(each.sources.values()) for each in recording.sample_segments()) == 600
    assert recording.facts.dropped is None
    assert [(each["from_ns"], each["until_ns"]) for each in recording.facts.sessions] == [(START, START + 600 * SECOND)]


@pytest.mark.parametrize("step", [8 * HOUR, -8 * HOUR])
def test_what_came_a_moment_ago_is_not_old_by_a_new_time(step: int, tmp_path: Path) -> None:
    clock = SetClock(START)
    with create(tmp_path / "r", clock, retention={"age_s": HOUR}) as writer:
        def record(minutes: int) -> None:
            for _ in range(minutes):
                writer.append_events(events(1, start_ns=clock.realtime_ns()))
                clock.sleep(60)
                writer.tick(clock.realtime_ns())

        writer.tick(clock.realtime_ns())
        record(10)
        clock.set_ahead(step)
        writer.renew(begun(clock))
        record(10)
        assert Recording(tmp_path / "r").facts.dropped is None
        record(54)
        dropped = Recording(tmp_path / "r").facts.dropped
        # after the age they go; set back, what is labelled with times to come stays until they are over
        assert (dropped or {}).get("segments") == (14 if step > 0 else None)


def test_a_session_ends_where_the_clock_is_set(tmp_path: Path) -> None:
    clock = SetClock(START)
    writer = create(tmp_path / "r", clock)
    for step in (0, 0.5, 100, -500):
        clock.set_ahead(step)
        writer.renew(begun(clock))
        writer.append_events(events(10, start_ns=clock.realtime_ns()))
        clock.sleep(20)
        writer.tick(clock.realtime_ns() - SECOND)
    writer.close()
    recording = Recording(tmp_path / "r")
    ends = [((each["from_ns"] or 0) - START, (each["until_ns"] or 0) - START) for each in recording.facts.sessions]
    assert [(first / SECOND, until / SECOND) for first, until in ends] == [(0, 39.5), (140.5, 159.5), (-339.5, -320.5)]
    assert recording.gaps() == [(START + round(39.5 * SECOND), START + round(140.5 * SECOND))]
    assert recording.losses() == []


def test_sealing_at_the_end_is_no_time_of_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock(START)
    writer = create(tmp_path / "r", clock)
    writer.append_events(events(10, start_ns=START))
    really = writing.write_segment

    def slow(*args: Any) -> Any:
        clock.sleep(30)
        return really(*args)

    monkeypatch.setattr(writing, "write_segment", slow)
    clock.sleep(5)
    writer.close()
    assert Recording(tmp_path / "r").facts.sessions[0]["until_ns"] == START + 5 * SECOND


def test_a_session_holds_its_first_and_its_last_event(tmp_path: Path) -> None:
    clock = SetClock(START + SECOND)
    writer = create(tmp_path / "r", clock, begun=Begun(START + 10 * SECOND, 0, START + SECOND))
    clock.sleep(20)
    writer.append_events(events(1, start_ns=START + 8 * SECOND))
    writer.tick(START + 15 * SECOND)
    # of a clock that was set
    writer.append_events(events(1, start_ns=START - HOUR * SECOND))
    writer.append_events(events(1, start_ns=START + HOUR * SECOND))
    writer.append_events(events(1, start_ns=START + 16 * SECOND))
    assert json.loads((tmp_path / "r/recording.json").read_text())["sessions"][0]["from_ns"] == START + 8 * SECOND
    writer.close()
    [session] = Recording(tmp_path / "r").facts.sessions
    assert session == {"from_ns": START + 8 * SECOND, "until_ns": START + 16 * SECOND + 1, "monotonic_ns": 0, "realtime_ns": START + SECOND}


@pytest.mark.parametrize(("back", "gaps"), [(0, 1), (HOUR, 0)])
def test_killed_then_set_back_then_gone_on_with(back: int, gaps: int, tmp_path: Path) -> None:
    clock = SetClock(START)
    writer = create(tmp_path / "r", clock)
    for _ in range(10):
        writer.append_events(events(1, start_ns=clock.realtime_ns()))
        clock.sleep(1)
        writer.tick(clock.realtime_ns())
    writer._lock.close()
    clock.set_ahead(-back)
    clock.sleep(5)
    RecordingWriter.reopen(tmp_path / "r", system=clock).close()
    recording = Recording(tmp_path / "r")
    assert len(recording.gaps()) == len(recording.losses()) == gaps
    assert recording.facts.sessions[0]["from_ns"] == START
    assert START + 9 * SECOND < (recording.facts.sessions[0]["until_ns"] or 0) <= START + 10 * SECOND
