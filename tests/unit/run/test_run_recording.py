"""The recorder of a study: what is asked of it, where it can't be had, and what is lost is noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab import registry
from iolab.clock import FakeClock
from iolab.errors import RunError
from iolab.results.facts import RunFacts
from iolab.results.gates.monitor_alive import MonitorAliveGate
from iolab.results.model import RunPlan
from iolab.run.dry_run import preview
from iolab.run.recording import StudyRecorder, Wanted
from iolab.run.study import run_study
from iolab.study.load import load_study
from iolab.verdict import Level
from support.acting import Listener, fake_host, study_text

PLUGINS = {name: registry.load("source", name) for name in ("diskstats", "block", "syscall")}


def test_what_is_wanted_comes_from_the_sources_that_record() -> None:
    block, syscall, diskstats = (PLUGINS[name].options for name in ("block", "syscall", "diskstats"))
    assert Wanted.of({"diskstats": diskstats(devices=["sdz"])}, PLUGINS) is None
    given = {"diskstats": diskstats(devices=["sdz"]), "block": block(devices=["sda"]), "syscall": syscall(fs=["/mnt"])}
    assert Wanted.of(given, PLUGINS) == Wanted(("block", "syscall"), ("sda",), ("/mnt",))


def test_a_host_that_takes_no_probe_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('sources = ["block"]\n' + study_text(), "utf-8")
    host = fake_host(FakeClock())
    words = "block can't be recorded on host 'fake'"
    assert words in (preview(load_study(path), tmp_path / "results", host).problem or "")
    with pytest.raises(RunError, match=words):
        run_study(path, tmp_path / "results", listener=Listener(), clock=host.clock, host=host)
    assert not (tmp_path / "results").exists()
    assert host.started == []


def test_a_recorder_that_can_not_be_spoken_to_is_said_and_harms_nothing(tmp_path: Path) -> None:
    notes: list[str] = []
    recorder = StudyRecorder(Wanted(("block",), (), ()), fake_host(), FakeClock(), tmp_path, {}, notes.append)
    recorder.begin()
    found = recorder.end("0001-ab", (1, 2), {})
    assert (found["path"], found["mark"]) == ("recordings/fake", "0001-ab")
    assert "no recorder listens" in found["problem"]
    assert "no recorder listens" in notes[0]
    recorder.stop()


def judged(**recording: object) -> list[tuple[str, Level, str]]:
    plan = RunPlan(run="r", variant="v", factors={}, repetition=1, block=1, host="local", extra={"recording": recording})
    return [(reason.code, reason.level, reason.text) for reason in MonitorAliveGate().judge(RunFacts(plan))]


def test_lost_events_are_noted_with_their_count_and_take_nothing_away() -> None:
    assert judged(events={"block": 90}, lost={"block": 0}) == []
    assert judged(events={"block": 90, "syscall": 5}, lost={"block": 10, "syscall": 0}) == [
        ("events-lost", Level.OK, "10 events of block were lost, 90 recorded")]
    assert judged(events={"block": 90, "syscall": 5}, interrupted=["the connection is lost"]) == [
        ("recording-gap", Level.OK, "block and syscall were not recorded all the time: the connection is lost")]
    assert judged(problem="no recorder listens") == [("recording-trouble", Level.OK, "the recording: no recorder listens")]
    assert judged(events=None, lost="x") == []
