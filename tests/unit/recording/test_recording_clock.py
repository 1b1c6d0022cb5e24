# SPDX-License-Identifier: Apache-2.0
"""What a writer does when is told by a clock that nobody sets; a session's ends are those of what
was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.recordings.store.base.metadata import Begun, Facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments.sealing import write_segment
from iolab.recordings.store.write import writer as writing
from iolab.recordings.store.write.writer import RecordingWriter
from support.clocks import SetClock
from support.recordings import SECOND, START, events, samples

HOUR = 3600


def create(path: Path, clock: SetClock, **more: Any) -> RecordingWriter:
    facts = Facts("here", "realtime", {"kind": "record"}, retention=more.pop("retention", {}))
    return RecordingWriter.begin(path, facts, system=clock, **more)


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
    assert [(each["from_ns"], each["until_ns"]) for each in recording.facts.sessions] == [
        (START, START + 600 * SECOND)
    ]


@pytest.mark.slow
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
        # after the age they go; set back, what is labelled with times to come stays until they are
        # over
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
    ends = [
        ((each["from_ns"] or 0) - START, (each["until_ns"] or 0) - START)
        for each in recording.facts.sessions
    ]
    assert [(first / SECOND, until / SECOND) for first, until in ends] == [
        (0, 39.5),
        (140.5, 159.5),
        (-339.5, -320.5),
    ]
    gaps = [
        ((first - START) / SECOND, (until - START) / SECOND) for first, until in recording.gaps()
    ]
    assert gaps == [(-320.5, 0), (39.5, 140.5)]
    assert recording.losses() == []


def test_sealing_at_the_end_is_no_time_of_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(START)
    writer = create(tmp_path / "r", clock)
    writer.append_events(events(10, start_ns=START))

    def slow(*args: Any) -> Any:
        clock.sleep(30)
        return write_segment(*args)

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
    assert (
        json.loads((tmp_path / "r/recording.json").read_text())["sessions"][0]["from_ns"]
        == START + 8 * SECOND
    )
    writer.close()
    [session] = Recording(tmp_path / "r").facts.sessions
    assert session == {
        "from_ns": START + 8 * SECOND,
        "until_ns": START + 16 * SECOND + 1,
        "monotonic_ns": 0,
        "realtime_ns": START + SECOND,
    }


@pytest.mark.parametrize(("back", "losses"), [(0, 1), (HOUR, 0)])
def test_killed_then_set_back_then_gone_on_with(back: int, losses: int, tmp_path: Path) -> None:
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
    assert (len(recording.gaps()), len(recording.losses())) == (1, losses)
    assert recording.facts.sessions[0]["from_ns"] == START
    assert (
        START + 9 * SECOND < (recording.facts.sessions[0]["until_ns"] or 0) <= START + 10 * SECOND
    )


def test_what_an_earlier_session_recorded_is_no_gap(tmp_path: Path) -> None:
    """Sessions from 0 to 100 and 40 to 50; what comes next is killed at 120, and gone on with at
    170."""
    clock, path = SetClock(START), tmp_path / "r"

    def record(writer: RecordingWriter, seconds: int) -> None:
        for _ in range(seconds):
            writer.append_events(events(10, start_ns=clock.realtime_ns()))
            clock.sleep(1)
            writer.tick(clock.realtime_ns())

    with create(path, clock) as writer:
        record(writer, 100)
    clock.set_ahead(-60)
    writer = RecordingWriter.reopen(path, system=clock, begun=begun(clock))
    record(writer, 10)
    writer._lock.close()
    clock.sleep(60)
    writer = RecordingWriter.reopen(path, system=clock, begun=begun(clock))
    record(writer, 10)
    writer._lock.close()
    clock.sleep(50)
    # within what was noted
    with RecordingWriter.reopen(path, system=clock, begun=begun(clock)) as writer:
        record(writer, 10)
    recording = Recording(path)
    ends = [
        ((each["from_ns"] or 0) - START, (each["until_ns"] or 0) - START)
        for each in recording.facts.sessions
    ]
    assert [(first // SECOND, until // SECOND) for first, until in ends] == [
        (0, 100),
        (40, 50),
        (110, 120),
        (170, 180),
    ]
    expected = [
        (START + first * SECOND, START + until * SECOND)
        for first, until in ((100, 110), (120, 170))
    ]
    assert recording.gaps() == expected
    assert [(loss["from_ns"], loss["until_ns"]) for loss in recording.losses()] == expected
    assert recording.breaks("diskstats") == sorted(
        [(START + 40 * SECOND - 1, START + 50 * SECOND + 1), *expected]
    )


def test_what_was_noted_as_a_gap_is_none_where_it_was_recorded_later(tmp_path: Path) -> None:
    clock, path = SetClock(START), tmp_path / "r"
    for seconds, set_ahead in ((100, 0), (10, 40), (10, -30)):
        clock.set_ahead(set_ahead)
        writer = (
            create(path, clock)
            if not path.exists()
            else RecordingWriter.reopen(path, system=clock, begun=begun(clock))
        )
        for _ in range(seconds):
            writer.append_events(events(10, start_ns=clock.realtime_ns()))
            clock.sleep(1)
            writer.tick(clock.realtime_ns())
        writer._lock.close()
    RecordingWriter.reopen(path, system=clock, begun=begun(clock)).close()
    assert [(first - START, until - START) for first, until in Recording(path).gaps()] == [
        (100 * SECOND, 120 * SECOND),
        (130 * SECOND, 140 * SECOND),
    ]
