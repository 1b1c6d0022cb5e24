# SPDX-License-Identifier: Apache-2.0
"""The recorder of a study: what is asked of it, where it can't be had, and what is lost is noted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from iolab.base import registry
from iolab.base.clock import FakeClock
from iolab.base.errors import RunError
from iolab.base.verdict import Level
from iolab.hosts.kinds.fake import FakeProgram
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.facts.run_facts import RunFacts
from iolab.studies.results.gates.monitor_alive import MonitorAliveGate
from iolab.studies.run.dry_run import preview
from iolab.studies.run.logs.recording import StudyRecorder, Wanted
from iolab.studies.run.study import run_study
from support.acting import Listener, fake_host, study_text
from support.clocks import SetClock

PLUGINS = {name: registry.load("source", name) for name in ("diskstats", "block", "syscall")}


def test_what_is_wanted_comes_from_the_sources_that_record() -> None:
    block, syscall, diskstats = (
        PLUGINS[name].options for name in ("block", "syscall", "diskstats")
    )
    assert Wanted.of({"diskstats": diskstats(devices=["sdz"])}, PLUGINS) is None
    given = {
        "diskstats": diskstats(devices=["sdz"]),
        "block": block(devices=["sda"]),
        "syscall": syscall(fs=["/mnt"]),
    }
    assert Wanted.of(given, PLUGINS) == Wanted(("block", "syscall"), ("sda",), ("/mnt",))


def test_a_host_that_takes_no_probe_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('sources = ["block"]\n' + study_text(), "utf-8")
    host = fake_host(FakeClock())
    words = "block can't be recorded on host 'fake'"
    assert any(
        words in problem
        for problem in preview(load_study(path), tmp_path / "results", host).problems
    )
    with pytest.raises(RunError, match=words):
        run_study(path, tmp_path / "results", listener=Listener(), clock=host.clock, host=host)
    assert not (tmp_path / "results").exists()
    assert host.started == []


def test_a_recorder_that_can_not_be_spoken_to_is_said_and_harms_nothing(tmp_path: Path) -> None:
    notes: list[str] = []
    recorder = StudyRecorder(
        Wanted(("block",), (), ()), fake_host(), FakeClock(), tmp_path, {}, notes.append
    )
    recorder.begin()
    found = recorder.end("0001-ab", (1, 2), {})
    assert (found["path"], found["mark"]) == ("recordings/fake", "0001-ab")
    assert "no recorder listens" in found["problem"]
    assert "no recorder listens" in notes[0]
    recorder.stop()


class OwnTime:
    """A recorder whose time goes on whatever the machine's clock is set to."""

    def __init__(self, clock: SetClock) -> None:
        self.clock, self._start = clock, clock.realtime_ns()
        self.marks: list[dict[str, Any]] = []
        self.takes, self.silent = 0.0, False

    @property
    def now_ns(self) -> int:
        return self._start + round(self.clock.monotonic() * 1e9)

    def say(
        self, directory: Path, words: dict[str, Any], *, timeout: float = 10.0
    ) -> dict[str, Any]:
        if self.silent:
            raise RunError("no recorder listens")
        self.clock.sleep(self.takes)
        if words["word"] == "mark":
            self.marks.append(words)
            return {"ok": True}
        return {
            "ok": True,
            "now_ns": self.now_ns,
            "ahead_ns": self.now_ns - self.clock.realtime_ns(),
            "events": {"block": 1},
        }


HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    ("before", "within", "window", "told"),
    [
        (0, 0, (11, 69), 0),  # the clock was not set
        (HOUR, 0, (11, 69), HOUR),  # set back before the run
        (0, HOUR, (11, 69), 0),  # within it, its window told by the clock of its begin
        (0, HOUR, (11 - 3600, 69 - 3600), HOUR),  # or of its end
        (HOUR, HOUR, None, HOUR),
    ],
)
def test_a_run_is_marked_by_the_recordings_time(
    before: int,
    within: int,
    window: tuple[int, int] | None,
    told: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SetClock()
    own, start = OwnTime(clock), clock.realtime_ns()
    monkeypatch.setattr("iolab.studies.run.logs.recording.say", own.say)
    recorder = StudyRecorder(
        Wanted(("block",), (), ()), fake_host(), clock, tmp_path, {}, pytest.fail
    )
    clock.sleep(10)
    clock.set_ahead(-before / 10**9)
    recorder.begin()
    clock.sleep(30)
    clock.set_ahead(-within / 10**9)
    clock.sleep(30)
    # the end of the load is not when the recorder had time to answer
    own.takes = 2.0
    shown = (
        None
        if window is None
        else (start - before + window[0] * 10**9, start - before + window[1] * 10**9)
    )
    found = recorder.end("0001-ab", shown, {"variant": "v"})
    span = (start + 10 * 10**9, start + 70 * 10**9)
    assert (found["from_ns"], found["until_ns"], found.get("ahead_ns", 0)) == (*span, told)
    [mark] = own.marks
    assert (mark["from_ns"], mark["until_ns"], mark["own"]) == (*span, True)
    assert mark["facts"].get("window") == (
        None if window is None else [start + 11 * 10**9, start + 69 * 10**9]
    )


def test_a_run_whose_begin_no_recorder_heard_is_marked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    own, start = OwnTime(clock), clock.realtime_ns()
    monkeypatch.setattr("iolab.studies.run.logs.recording.say", own.say)
    recorder = StudyRecorder(
        Wanted(("block",), (), ()), fake_host(), clock, tmp_path, {}, lambda words: None
    )
    clock.set_ahead(-3600)
    own.silent = True
    recorder.begin()
    clock.sleep(60)
    own.silent = False
    found = recorder.end("0001-ab", None, {})
    assert "no recorder listens" in found["problem"]
    assert [(mark["from_ns"], mark["until_ns"]) for mark in own.marks] == [
        (start, start + 60 * 10**9)
    ]


def judged(**recording: object) -> list[tuple[str, Level, str]]:
    plan = RunPlan(
        run="r",
        variant="v",
        factors={},
        repetition=1,
        block=1,
        host="local",
        extra={"recording": recording},
    )
    return [
        (reason.code, reason.level, reason.text)
        for reason in MonitorAliveGate().judge(RunFacts(plan))
    ]


def test_lost_events_are_noted_with_their_count_and_take_nothing_away() -> None:
    assert judged(events={"block": 90}, lost={"block": 0}) == []
    assert judged(events={"block": 90, "syscall": 5}, lost={"block": 10, "syscall": 0}) == [
        ("events-lost", Level.OK, "10 events of block were lost, 90 recorded")
    ]
    assert judged(events={"block": 90, "syscall": 5}, interrupted=["the connection is lost"]) == [
        (
            "recording-gap",
            Level.OK,
            "block and syscall were not recorded all the time: the connection is lost",
        )
    ]
    assert judged(problem="no recorder listens") == [
        ("recording-trouble", Level.OK, "the recording: no recorder listens")
    ]
    assert judged(events=None, lost="x") == []


def test_recording_that_takes_much_of_the_cpu_makes_a_run_suspect() -> None:
    assert judged(cpu_share=0.25) == []
    assert judged(cpu_share="x") == judged(cpu_share=None) == []
    [(code, level, text)] = judged(cpu_share=0.314)
    assert (code, level) == ("recording-cost", Level.SUSPECT)
    assert text.startswith("recording took 31.4 % of all CPU time")


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ({"now_ns": 0, "cost_ns": 1}, {"now_ns": 10, "cost_ns": 6, "cpus": 2}, 0.25),
        ({"now_ns": 0, "cost_ns": 6}, {"now_ns": 10, "cost_ns": 1, "cpus": 2}, None),
        ({"now_ns": 10, "cost_ns": 1}, {"now_ns": 10, "cost_ns": 6, "cpus": 2}, None),
        ({"now_ns": 0}, {"now_ns": 10, "cost_ns": 6, "cpus": 2}, None),
        ({}, {}, None),
    ],
)
def test_the_share_of_the_cpu_is_of_the_run_and_of_one_recorder(
    before: dict[str, int],
    after: dict[str, int],
    share: float | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(
        ({"ok": True, "ahead_ns": 0, "now_ns": 0, **status})
        for status in (before, {**before, "now_ns": 5}, {}, after)
    )
    monkeypatch.setattr("iolab.studies.run.logs.recording.say", lambda *_, **__: next(answers))
    recorder = StudyRecorder(
        Wanted(("block",), (), ()), fake_host(), FakeClock(), tmp_path, {}, pytest.fail
    )
    recorder.begin()
    assert recorder.end("0001-ab", None, {}).get("cpu_share") == share


def test_a_study_suspends_no_source(tmp_path: Path) -> None:
    host = fake_host(FakeClock())
    host.programs[Path(sys.executable).name] = FakeProgram(exit_code=1)
    recorder = StudyRecorder(
        Wanted(("counters",), (), ()), host, host.clock, tmp_path, {}, pytest.fail
    )
    with pytest.raises(RunError):
        recorder.start(())
    [(words, _)] = host.started
    assert words[words.index("--budget") + 1] == "none"
