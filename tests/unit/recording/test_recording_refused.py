# SPDX-License-Identifier: Apache-2.0
"""A disk that refuses for a moment while limits are applied: what is there stays told and counted,
and the next time goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iolab.base import files
from iolab.base.clock import FakeClock
from iolab.base.errors import ResultsError
from iolab.recordings.store.base import layout, metadata
from iolab.recordings.store.base.metadata import Begun
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments import hot, sealing, segments
from iolab.recordings.store.write import retention
from iolab.recordings.store.write.writer import PutOffError, RecordingWriter
from support.recordings import SECOND, START, events, samples


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def sealed(path: Path) -> list[int]:
    return [each.number for each in Recording(path).segments()]


def made(path: Path, clock: FakeClock, many: int = 6) -> RecordingWriter:
    """A writer with segments ten seconds apart, none of which is too old yet: in 75 seconds three
    are, in 86 four."""
    writer = RecordingWriter.create(
        path,
        host="",
        clock="realtime",
        origin={"kind": "record"},
        retention={"age_s": 100},
        system=clock,
    )
    writer.tick(clock.realtime_ns())
    for number in range(many):
        writer.append_events(events(10, number, start_ns=clock.realtime_ns()))
        writer.append_samples(samples(2, start_ns=clock.realtime_ns()))
        clock.sleep(10)
        writer.tick(clock.realtime_ns())
        writer.seal()
    return writer


@pytest.mark.parametrize(
    ("module", "name", "refused"),
    [
        (os, "listdir", "can't be listed"),
        (metadata, "write_json", "can't write what the recording is"),
        (retention, "_map", "can't apply its limits"),
        (retention, "remove", "can't remove an old segment"),
    ],
)
def test_limits_are_applied_the_next_time(
    module: Any, name: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    with made(path, clock) as writer:
        clock.sleep(75)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(PutOffError, match=f"{refused}.*Too many open files"):
                writer.tick(clock.realtime_ns())
            clock.sleep(9)
            # not before ten seconds have passed
            writer.tick(clock.realtime_ns())
        clock.sleep(2)
        writer.tick(clock.realtime_ns())
        assert sealed(path) == [5, 6]
        assert (
            layout.sealed_numbers(path / "samples")
            == layout.sealed_numbers(path / "events")
            == [5, 6]
        )
        dropped = Recording(path).facts.dropped
        assert dropped is not None
        counts = [sum(events(10, number).column("count").to_pylist()) for number in range(4)]
        assert (dropped["segments"], dropped["events"]) == (4, {"block": sum(counts)})
        assert [each.number for each in Recording(path).maps("io.latency")] == [1, 2, 3, 4, 5, 6]


def test_maps_that_could_not_be_removed_are_removed_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    with made(path, clock) as writer:
        writer.facts.retention["maps_age_s"] = 0
        clock.sleep(75)
        with monkeypatch.context() as patch:
            patch.setattr(retention, "_remove_maps", full)
            with pytest.raises(PutOffError, match="Too many open files"):
                writer.tick(clock.realtime_ns())
        writer.facts.retention["age_s"] = None
        clock.sleep(11)
        writer.tick(clock.realtime_ns())
        assert layout.sealed_numbers(path / layout.MAPS / "io.size") == [4, 5, 6]
        assert layout.sealed_numbers(path / "events") == [4, 5, 6]


def test_a_segment_that_can_not_be_read_for_a_moment_grows_old_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    made(path, clock).close()
    (path / layout.SEGMENTS).unlink()
    with RecordingWriter.reopen(path, system=clock) as writer:
        with monkeypatch.context() as patch:
            nothing: dict[str, Any] = {
                "damaged": "Too many open files",
                "sources": {},
                "first_ns": None,
                "last_ns": None,
            }
            patch.setattr(segments, "own_facts", lambda _: nothing)
            writer.tick(clock.realtime_ns())
        clock.sleep(75)
        writer.tick(clock.realtime_ns())
        assert sealed(path) == [5, 6]


def test_limits_that_can_not_be_applied_at_the_end_are_left_to_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    writer = made(path, clock)
    clock.sleep(75)
    with monkeypatch.context() as patch:
        patch.setattr(retention, "finish_dropping", full)
        with pytest.raises(PutOffError):
            writer.tick(clock.realtime_ns())
        writer.close()
    assert Recording(path).facts.sessions[-1]["until_ns"] == clock.realtime_ns()
    assert layout.sealed_numbers(path / "events") == [1, 2, 3, 4, 5, 6]
    with RecordingWriter.reopen(path, system=clock):
        assert layout.sealed_numbers(path / "events") == [4, 5, 6]


def test_what_can_not_be_sealed_for_a_moment_is_sealed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    with made(path, clock, 1) as writer:
        writer.append_events(events(10, 7, start_ns=clock.realtime_ns()))
        clock.sleep(60)
        refuse: list[Callable[..., Any]] = [full]
        really = sealing._write_events
        monkeypatch.setattr(
            sealing,
            "_write_events",
            lambda *asked: refuse.pop()(*asked) if refuse else really(*asked),
        )
        with pytest.raises(PutOffError, match="Too many open files"):
            writer.tick(clock.realtime_ns())
        writer.append_events(events(10, 8, start_ns=clock.realtime_ns()))
        for _ in range(10):
            clock.sleep(1)
            writer.tick(clock.realtime_ns() + SECOND)
        assert [each.kind for each in Recording(path).segments()] == ["sealed", "sealed", "sealed"]
        assert isinstance(PutOffError("x"), ResultsError)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("what", ["connect", "describe", "renew", "earlier"])
def test_what_the_recording_is_is_told_later(
    what: str, ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    writer = RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, system=clock
    )
    writer.tick(clock.realtime_ns())
    before = Recording(path).facts
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "write_json", full)
        if what == "connect":
            writer.note_origin("connection", {"host": "far"}, {"clock_offset_ns": 7})
        elif what == "describe":
            writer.describe("zpool", {"what": "disks"})
        elif what == "renew":
            writer.renew(Begun(START + 500 * SECOND, 0, START + 500 * SECOND))
        else:
            writer.append_events(events(1, start_ns=START - SECOND))
        with pytest.raises(
            PutOffError, match="can't write what the recording is: Too many open files"
        ):
            writer.tick(clock.realtime_ns())
    assert Recording(path).facts == before
    if ended:
        writer.close()
    else:
        writer.tick(clock.realtime_ns())
    told = Recording(path).facts
    assert told == writer.facts
    assert {
        "connect": told.origin.get("connection") == {"host": "far"}
        and told.sessions[-1].get("clock_offset_ns") == 7,
        "describe": told.sources.get("zpool") == {"what": "disks"},
        "renew": len(told.sessions) == 2,
        "earlier": told.sessions[0]["from_ns"] == START - SECOND,
    }[what]
    writer.close()


def test_what_is_described_of_an_import_is_told_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    with (
        RecordingWriter.create(path, host="", clock="trace", origin={"kind": "import"}) as writer,
        monkeypatch.context() as patch,
    ):
        patch.setattr(metadata, "write_json", full)
        writer.describe("fio", {"what": "a log"})
        with pytest.raises(ResultsError, match="Too many open files"):
            writer.close()
    assert Recording(path).facts.sources == {}
    writer = RecordingWriter.reopen(path)
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "write_json", full)
        writer.describe("fio", {"what": "a log"})
    writer.close()
    assert Recording(path).facts.sources == {"fio": {"what": "a log"}}


def test_a_session_that_can_not_be_sealed_ends_where_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    with made(path, clock, 0) as writer:
        writer.append_events(events(10, start_ns=START))
        with monkeypatch.context() as patch:
            patch.setattr(sealing, "_write_events", full)
            writer.renew(Begun(START + 500 * SECOND, 0, START + 500 * SECOND))
        assert [each.kind for each in Recording(path).segments()] == ["hot"]
        clock.sleep(10)
        writer.append_events(events(10, start_ns=START + 505 * SECOND))
        writer.tick(START + 510 * SECOND)
        assert [each.kind for each in Recording(path).segments()] == ["sealed", "sealed"]
    assert [each["from_ns"] for each in Recording(path).facts.sessions] == [
        START,
        START + 500 * SECOND,
    ]


def test_what_is_sealed_and_can_not_be_removed_at_once_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = FakeClock(START), tmp_path / "r"
    with made(path, clock, 0) as writer:
        writer.append_events(events(1000))
        writer.append_samples(samples(20))
        writer.loss("overrun", "block", START, START + 5, 7)
        refuse, really = [1], files.remove

        def remove(file: Path) -> None:
            if refuse and file == layout.hot_file(path, 1, "samples"):
                refuse.pop()
                full()
            really(file)

        monkeypatch.setattr(hot, "remove", remove)
        with pytest.raises(ResultsError, match="can't remove what was sealed"):
            writer.seal()
        writer.seal()
        assert [loss["kind"] for loss in Recording(path).losses()] == ["overrun"]
        assert layout.hot_numbers(path, "samples") == layout.hot_numbers(path, "events") == []
        [segment] = Recording(path).segments()
        assert segment.sources == {"block": sum(events(1000).column("count").to_pylist())}
        assert segment.facts["sources"]["block"]["losses"] == 7
