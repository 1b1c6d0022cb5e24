# SPDX-License-Identifier: Apache-2.0
"""A study that is killed between the start of a process and the journal's line of it: that process
is ended all the same.

No time passes: whatever is begun on the machine in memory runs on when the study is killed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iolab.hosts.base.host import Process
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.results.evidence.journal import FILE, checked_line, read_journal
from iolab.studies.results.evidence.lock import lock
from iolab.studies.run.resuming.journal import Journal
from iolab.studies.run.resuming.process_registry import Starts
from support.acting import Listener, study_text
from support.resuming import BOOT, Do, Killed, agreed, names, stop_after

COMMANDS = """
[hooks.study]
before = "prepare"
[hooks.run]
before = "settle"
[[actions]]
at = "500ms"
command = "disturb"
"""
UNKNOWN = "ended 1 process that the killed study had left (of a start that was not on record yet)"
Kill = Callable[..., Path]


@pytest.fixture
def kill(
    do: Do, host: FakeHost, study: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Kill:
    """Begin the study and kill it when it has begun the so-many-eth process and not written that
    down."""
    host.files[BOOT] = "boot-1\n"
    host.programs["sh"] = FakeProgram(seconds=0.1)
    study.write_text(
        study_text(repetitions=1).replace("numjobs = [1, 4]", "numjobs = [1]") + COMMANDS, "utf-8"
    )
    real = Starts.note

    def killed(at: int, **changes: Any) -> Path:
        count = [0]

        def note(self: Starts, event: str, process: Process, **data: Any) -> None:
            count[0] += 1
            if count[0] == at:
                host.unrecorded[process.pid] = dict(host.environments[-1])
                raise Killed
            real(self, event, process, **data)

        with monkeypatch.context() as patch:
            patch.setattr(Starts, "note", note)
            try:
                out = do(**changes)
            except Killed:
                out = tmp_path / "out"
            else:
                assert count[0] < at
        host.ended.clear()
        return out

    return killed


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("at", range(1, 8))
def test_what_was_begun_and_not_written_down_is_ended(
    do: Do, kill: Kill, host: FakeHost, heard: Listener, at: int
) -> None:
    """A hook of the study; then of each run a hook, the load, an action."""
    out = kill(at)
    [pid] = host.unrecorded
    [begun] = list(host.unrecorded.values())
    attempt, _, number = begun["IOLAB_START"].rpartition(".")
    assert int(number) == at
    strangers = {
        1: {**begun, "IOLAB_START": f"{attempt}.{at + 1}"},
        2: {**begun, "IOLAB_START": f"{attempt}.{at}0"},
        3: {**begun, "IOLAB_START": f"0{attempt}.{at}"},
        4: {**begun, "IOLAB_RESULTS": f"{out}-2"},
        5: {"IOLAB_RESULTS": str(out)},
    }
    host.unrecorded.update(strangers)
    do(resume=True)
    assert pid in host.ended
    assert host.unrecorded == strangers
    assert UNKNOWN in heard.notes
    [ended] = [
        event
        for event in read_journal(out)[0]
        if event["event"] == "ended-leftover" and event["pids"] == [pid]
    ]
    assert ended["of"] == "a start that was not on record yet"
    agreed(out)


def test_starts_bear_the_numbers_that_are_on_record(do: Do, kill: Kill, host: FakeHost) -> None:
    out = kill(4)
    do(resume=True)
    events = read_journal(out)[0]
    first, second = [
        place for place, event in enumerate(events) if event["event"] in ("opened", "resumed")
    ]
    numbers = [
        [event["start"] for event in part if event["event"] in ("started", "hook")]
        for part in (events[:second], events[second:])
    ]
    assert numbers == [[1, 2, 3], list(range(1, 8))]
    assert events[first]["results"] == events[second]["results"] == str(out)
    assert events[first]["attempt"] != events[second]["attempt"]
    borne = [
        environment["IOLAB_START"]
        for environment in host.environments
        if "IOLAB_START" in environment
    ]
    assert borne == [f"{events[first]['attempt']}.{n}" for n in range(1, 5)] + [
        f"{events[second]['attempt']}.{n}" for n in range(1, 8)
    ]


def test_a_start_that_came_to_nothing_leaves_its_number(
    tmp_path: Path, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(tmp_path, host, Journal(tmp_path, host.clock))
    process = host.start(["sync"], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e")
    first = starts.environment
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write_all", failing(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            starts.note("hook", process)
    assert starts.environment == first
    starts.note("hook", process)
    assert starts.environment == {
        **first,
        "IOLAB_START": first["IOLAB_START"].removesuffix("1") + "2",
    }


def test_a_second_kill_during_the_resume_loses_nothing_of_it(
    do: Do, kill: Kill, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = kill(3)
    with monkeypatch.context() as patch:
        patch.setattr(FakeHost, "end_marked", failing(Killed()))
        with pytest.raises(Killed):
            do(resume=True)
    do(resume=True)
    assert host.unrecorded == {}
    agreed(out)


def test_results_that_were_moved_tell_where_they_were(
    do: Do, kill: Kill, host: FakeHost, tmp_path: Path
) -> None:
    out = kill(3)
    [pid] = host.unrecorded
    (tmp_path / "elsewhere").mkdir()
    moved = out.rename(tmp_path / "elsewhere/new")
    do(output=moved, resume=True)
    assert pid in host.ended
    agreed(moved)


@pytest.mark.parametrize("runs", [True, False])
def test_a_copy_ends_nothing_as_long_as_the_original_runs(
    do: Do, kill: Kill, host: FakeHost, tmp_path: Path, runs: bool
) -> None:
    """Neither what bears its marks nor what its journal names."""
    out = kill(6)
    [pid] = host.unrecorded
    [load] = [
        (event["pid"], event["pid_started_ticks"])
        for event in read_journal(out)[0]
        if event["event"] == "started"
    ]
    with (out / FILE).open("a", encoding="utf-8") as file:  # as if it had not come to its end
        began = {
            "event": "started",
            "time_ns": 1,
            "run": "0009-00000000",
            "pid": 77,
            "pid_started_ticks": 700,
            "start": 5,
        }
        file.write(checked_line(began, (out / FILE).read_text("utf-8").count("\n") + 1).decode())
    host.leftovers = {(77, 700), load}
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    if runs:
        with lock(out):
            do(output=copy, resume=True)
        assert host.leftovers == {(77, 700), load}
        assert set(host.unrecorded) == {pid}
    else:
        do(output=copy, resume=True)
        assert host.leftovers == {load}
        assert not host.unrecorded
    agreed(copy)


@pytest.mark.parametrize("boot", ["boot-2\n", None])
def test_after_another_boot_there_is_nothing_to_look_for(
    do: Do, kill: Kill, host: FakeHost, boot: str | None
) -> None:
    kill(3)
    before = dict(host.unrecorded)
    del host.files[BOOT]
    if boot is not None:
        host.files[BOOT] = boot
    do(resume=True)
    assert host.unrecorded == before


def test_a_journal_from_before_starts_had_numbers_is_gone_on_with(do: Do, host: FakeHost) -> None:
    host.files[BOOT] = "boot-1\n"
    out = do(interrupts=stop_after(1, host))
    journal = Journal(out, host.clock)
    journal.write("resumed", boot="boot-1")
    journal.write("started", run="0002-00000000", pid=77, pid_started_ticks=700)
    host.leftovers = {(77, 700)}
    host.unrecorded = {78: {"IOLAB_RESULTS": str(out)}}
    do(resume=True)
    assert host.ended == [77]
    assert set(host.unrecorded) == {78}
    assert len(names(out)) == 8
