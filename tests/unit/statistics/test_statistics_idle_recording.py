# SPDX-License-Identifier: Apache-2.0
"""Recordings in which nothing happened: that is an answer, with the time in which it did not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import FormatError, IolabError
from iolab.cli.main import run
from iolab.output.server.base.store import Store
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.available import available
from iolab.recordings.ask.engine.snapshot import quiet as quiet_sources
from iolab.recordings.ask.follow import Follower
from iolab.recordings.ask.kept.files.definitions import Definition, read_state
from iolab.recordings.ask.kept.recorded import span_of
from iolab.recordings.ask.kept.recovery import change_definitions
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import parse
from iolab.recordings.heatmap.figure import Layout, Named, panels
from iolab.recordings.heatmap.model import View
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples

HOUR = 3600 * SECOND


def quiet(
    place: Path, *, sources: dict[str, Any] | None = None, syscalls: int = 0, first: float = 0
) -> Recording:
    """Three seconds of which the block layer tells nothing, but perhaps system calls."""
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        place,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}, "syscall": {}} if sources is None else sources,
    )
    clock.sleep(3)
    if syscalls:
        writer.append_events(
            events(syscalls, 1, start_ns=START + round(first * SECOND), per_s=100, source="syscall")
        )
    writer.tick(START + 3 * SECOND)
    writer.close()
    return Recording(place)


@pytest.mark.parametrize("name", ["io.ops", "io.bytes", "file.ops"])
def test_no_io_is_zero_over_the_time_that_was_recorded(tmp_path: Path, name: str) -> None:
    found = query(quiet(tmp_path / "r"), name, interval_ns=SECOND)
    assert isinstance(found, Series)
    assert (found.t0_ns, found.values.tolist(), found.total, found.mean) == (START, [0, 0, 0], 0, 0)
    stack = query(Recording(tmp_path / "r"), f"{name}[process]", interval_ns=SECOND)
    assert isinstance(stack, Stack)
    assert (stack.keys, stack.total, stack.covered_ns) == ([], 0, 3 * SECOND)


@pytest.mark.parametrize("y", ["latency", "queue", "offset", "size"])
@pytest.mark.parametrize("scale", ["log", "linear"])
def test_its_maps_are_empty_and_drawn(tmp_path: Path, y: str, scale: Any) -> None:
    counts = heat(quiet(tmp_path / "r"), y)
    assert (counts.events, counts.window) == (0, (0, 300))
    [panel] = panels([Named("r", counts.with_all_columns())], View(scale), Layout(100, 60, 1))
    assert panel.heading.startswith("r: 0 I/Os over 3 s")
    assert (panel.columns, int(panel.cells.counts.sum()), panel.gaps, panel.unrecorded) == (
        100,
        0,
        (),
        (),
    )
    assert panel.frame.low < panel.frame.high


def test_commands_draw_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(quiet(tmp_path / "r").path)
    for words in (["query", place, "io.ops[latency]"], ["heatmap", place]):
        assert run(words) == 0
        assert "r: 0 I/Os over 3 s" in " ".join(capsys.readouterr().out.split()).replace(
            "r io.ops[latency]", "r"
        )
    for name in ("map.svg", "map.html"):
        assert run(["heatmap", place, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 1000
    capsys.readouterr()
    # conditions that nothing meets leave a map of nothing, which is no picture
    assert run(["query", place, "io.ops[op=read][latency]"]) == 3
    assert "no I/O meets the conditions" in capsys.readouterr().err
    assert run(["query", place, "io.ops", "--from", "1s", "--to", "2s", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["first_ns"], told["until_ns"], told["total"]) == (
        START + SECOND,
        START + 2 * SECOND,
        0,
    )


def test_who_follow_and_catalogue(tmp_path: Path) -> None:
    recording = quiet(tmp_path / "r")
    assert (who(recording, "latency", Rectangle()).inside, span_of(recording)) == (
        0,
        (START, START + 3 * SECOND - 1),
    )
    told = Follower(
        recording, parse("io.ops"), interval_ns=SECOND, clock=FakeClock(START), said=print
    )
    pieces = [piece.answer for piece in told.pieces()]
    assert [
        value for each in pieces if isinstance(each, Series) for value in each.values.tolist()
    ] == [0, 0, 0]
    can = {each.entry.name: each.source for each in available(recording)}
    assert (can["io.ops"], can["file.bytes"], can["app.ops"], can["cpu.utilization"]) == (
        "block",
        "syscall",
        "",
        "",
    )


def test_a_device_at_rest_is_not_told_by_system_calls(tmp_path: Path) -> None:
    recording = quiet(tmp_path / "r", syscalls=100, first=1)
    calls, ios = query(recording, "file.ops"), query(recording, "io.ops")
    assert isinstance(calls, Series)
    assert isinstance(ios, Series)
    assert calls.total > 0
    assert (ios.total, ios.source) == (0, "block")
    assert ios.notes == ("block events; source syscall has the others",)


def calls(writer: RecordingWriter, clock: FakeClock) -> None:
    """A minute more of system calls beside a disk at rest, sealed."""
    writer.append_events(events(100, 1, start_ns=clock.realtime_ns(), per_s=2, source="syscall"))
    clock.sleep(60)
    writer.tick(clock.realtime_ns())
    writer.seal()


def test_it_is_not_told_by_them_once_earlier_ones_are_removed(tmp_path: Path) -> None:
    clock = FakeClock(START)
    with RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}, "syscall": {}},
        retention={"age_s": 120},
    ) as writer:
        for _ in range(6):
            calls(writer, clock)
        recording = Recording(tmp_path / "r")
        assert recording.facts.dropped_through > 0
        ios = query(recording, "io.ops")
        assert isinstance(ios, Series)
        assert (ios.source, ios.total) == ("block", 0)
        assert quiet_sources(recording) == {"block"}, (
            "of those whose events were removed nobody knows"
        )


def test_what_is_kept_is_of_the_source_that_answers(tmp_path: Path) -> None:
    clock = FakeClock(START)
    with RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}, "syscall": {}},
    ) as writer:
        definition = Definition("io.ops", START, None, None)
        change_definitions(tmp_path / "r", lambda before: before.with_(definition))
        calls(writer, clock)
        keeper = Keeper(tmp_path / "r")
        keeper.look()
        kept = read_state(tmp_path / "r")
        assert kept is not None
        answered = query(Recording(tmp_path / "r"), "io.ops", kept=False)
        assert isinstance(answered, Series)
        assert kept.statistics["io.ops"].source == answered.source == "block"
        writer.append_events(events(10, 1, start_ns=clock.realtime_ns(), per_s=1))
        calls(writer, clock)
        keeper.look()
        kept = read_state(tmp_path / "r")
        assert kept is not None
        assert (kept.statistics["io.ops"].segments, kept.statistics["io.ops"].missed) == (1, [])


def test_what_was_not_recorded_is_no_zero(tmp_path: Path) -> None:
    for place, sources in (("r", {"counters": {}}), ("s", {"block": {"format": "blktrace"}})):
        recording = quiet(tmp_path / place, sources=sources)
        with pytest.raises(IolabError) as error:
            query(recording, "io.ops")
        assert isinstance(error.value, FormatError)


def test_a_time_begins_where_the_events_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show` counts marks from the first event; what is kept, of whole seconds, began earlier."""
    from iolab.recordings.ask.kept.manage import add

    recording = quiet(tmp_path / "r", syscalls=100, first=1.25)
    add(recording.path, ["file.ops"], backfill=True, now_ns=START + 3 * SECOND)
    first = Recording(recording.path).summary().first_ns
    assert span_of(Recording(recording.path)) == (first, START + 3 * SECOND - 1)
    assert run(["query", str(recording.path), "file.ops", "--from", "0s", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_ns"] == first == START + round(1.25 * SECOND)


@pytest.mark.parametrize("rests", [0.5, 3])
@pytest.mark.parametrize("end", ["goes on", "closed", "killed"])
@pytest.mark.parametrize("ios", [0, 400])
def test_hours_without_io_were_recorded(tmp_path: Path, rests: float, end: str, ios: int) -> None:
    """A second of I/O perhaps, and then a disk at rest, of which the writer says each minute that
    it is recorded."""
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}},
    )
    if ios:
        writer.append_events(events(ios, 1, start_ns=START, per_s=400))
    until = START
    while until < START + rests * HOUR:
        clock.sleep(60)
        until += 60 * SECOND
        writer.tick(until)
    if end == "closed":
        writer.close()
    elif end == "killed":
        writer._lock.close()
        # a copy of what is left, later
        shutil.copytree(tmp_path / "r", tmp_path / "copy")
    recording = Recording(tmp_path / ("copy" if end == "killed" else "r"))
    found = query(recording, "io.ops", interval_ns=100 * SECOND)
    assert isinstance(found, Series)
    assert (found.t0_ns, found.until_ns, found.covered_ns) == (START, until, until - START)
    assert found.mean == pytest.approx(found.total / (rests * 3600))
    assert not np.isnan(found.values).any()
    assert span_of(recording) == (START, until - 1)
    assert Store([recording.path]).ends(recording.path.name) == (
        START,
        until if end != "closed" else until - 1,
    )
    writer.close()


def test_what_outlasts_the_events_can_be_asked_by_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk that did something in the first of thirty seconds, with its counters beside it."""
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}, "diskstats": {}},
    )
    writer.append_events(events(400, 1, start_ns=START, per_s=400))
    writer.append_samples(samples(30, start_ns=START))
    clock.sleep(30)
    writer.tick(START + 30 * SECOND)
    writer.close()
    for words, span in (
        ("--from -10s", (20, 30)),
        ("--from 10s --to 20s", (10, 20)),
        ("--from -9s --to -4s", (21, 26)),
    ):
        assert (
            run(["query", str(tmp_path / "r"), "io.ops", *words.split(), "--format", "json"]) == 0
        )
        found = json.loads(capsys.readouterr().out)
        assert (found["first_ns"], found["until_ns"]) == tuple(
            START + each * SECOND for each in span
        )
        assert found["total"] == 0
    assert Store([tmp_path / "r"]).ends("r") == (START, START + 30 * SECOND - 1)


def test_a_utilization_of_nothing_is_drawn_as_well() -> None:
    from iolab.recordings.store.base.grids import Linear

    none = np.zeros(0, dtype=np.int64)
    counts = HeatCounts("utilization", START, SECOND, Linear(0, 1), none, none, none, window=(0, 5))
    [panel] = panels([Named("r", counts.with_all_columns())], View("linear"), Layout(100, 60, 1))
    assert (panel.columns, panel.frame.low, panel.frame.high) == (5, 0, 100)


@pytest.mark.parametrize("ended", [True, False])
def test_a_recording_of_no_length_is_answered_at_its_begin(
    tmp_path: Path, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=FakeClock(START),
        sources={"block": {}},
    )
    if ended:
        writer.close()
    recording = Recording(tmp_path / "r")
    found, heat_map = (
        query(recording, "io.ops", interval_ns=SECOND),
        query(recording, "io.ops[latency]", interval_ns=SECOND),
    )
    assert isinstance(found, Series)
    assert isinstance(heat_map, HeatCounts)
    assert (found.t0_ns, found.first_ns, found.total, len(found.values)) == (START, START, 0, 1)
    assert np.isnan(found.values[0]) == ended, "nothing of it was recorded, unless it goes on"
    assert (heat_map.t0_ns, heat_map.events, heat_map.window) == (START, 0, (0, 1))
    # a writer's first word may tell of less than its lock did before
    monkeypatch.setattr(Recording, "told_ns", lambda _: START - SECOND)
    assert span_of(recording) == (START, START)
    follower = Follower(
        recording, parse("io.ops"), interval_ns=SECOND, clock=FakeClock(START), said=print
    )
    if ended:
        assert list(follower.pieces()) == []
    writer.close()


def test_show_says_when_it_began_though_there_was_no_io(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet(tmp_path / "r")
    assert run(["show", str(tmp_path / "r")]) == 0
    out = capsys.readouterr().out
    assert "begins    2023-11-14 22:13:20 UTC" in out.splitlines()
    assert "0 I/Os over 3 s" in out.splitlines()[0]
