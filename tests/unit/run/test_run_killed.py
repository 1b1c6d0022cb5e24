# SPDX-License-Identifier: Apache-2.0
"""A study that is killed at any moment: what was measured stays, what was left behind goes. No time
passes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.results.evidence.files import run_directories, write_plan
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.results.evidence.manifest import write_manifest
from iolab.studies.run import execute
from iolab.studies.run.resuming.journal import Journal
from support.acting import Listener, study_text
from support.resuming import BOOT, Do, Killed, agreed, names, stop_after


def test_a_run_killed_in_flight_is_set_aside_and_done_again(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    out = do(interrupts=stop_after(3, host))
    third = out / "runs" / names(out)[2]
    (third / "run.json").unlink()
    do(resume=True)
    assert not (out / "aside" / f"{third.name}.1" / "run.json").exists()
    assert (out / "aside" / f"{third.name}.1" / "fio.json").exists()
    assert (
        f"run {third.name} (killed in flight) is done again; what it left is in aside/{third.name}.1"
        in heard.notes
    )
    agreed(out)
    (third / "run.json").write_text("{")  # damaged counts as missing, and the next place is free
    do(resume=True)
    assert (out / "aside" / f"{third.name}.2").is_dir()
    agreed(out)


def _points(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> Iterator[int]:
    """Kill at the so-many-eth durable write, before or after it; yields how many there were."""
    count = [0]

    def counted(write: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] == at and not after:
                raise Killed
            result = write(*given, **named)
            if count[0] == at:
                raise Killed
            return result

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write_all", counted(Journal.write_all))
        patch.setattr(execute, "write_plan", counted(write_plan))
        patch.setattr("iolab.studies.run.runner.write_manifest", counted(write_manifest))
        yield from count


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_durable_write_loses_at_most_the_run_in_flight(
    do: Do,
    study: Path,
    host: FakeHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: bool,
) -> None:
    study.write_text(
        study_text(repetitions=1).replace("numjobs = [1, 4]", "numjobs = [1]"), "utf-8"
    )
    whole = names(do(output=tmp_path / "whole"))
    at, done = 0, False
    while not done:
        at += 1
        out = tmp_path / f"killed-{at}"
        for _ in _points(monkeypatch, at, after):
            try:
                do(output=out)
                done = True
            except Killed:
                pass
        finished = (
            [run.name for run in run_directories(out) if (run / "run.json").exists()]
            if out.exists()
            else []
        )
        do(output=out, resume=True)
        assert names(out) == whole
        agreed(out)
        aside = list((out / "aside").iterdir()) if (out / "aside").exists() else []
        assert len(aside) <= 1
        assert not set(finished) & {path.stem for path in aside}
        assert not (out / "scratch").exists()
    assert at > 8


@pytest.mark.slow
def test_a_death_during_the_resume_itself_is_no_different(
    do: Do, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = do(interrupts=stop_after(3, host))
    whole_first = names(out)
    (out / "runs" / whole_first[2] / "run.json").unlink()
    shutil.copytree(out, tmp_path / "kept")
    for at in range(1, 8):
        for after in (False, True):
            shutil.rmtree(out)
            shutil.copytree(tmp_path / "kept", out)
            for _ in _points(monkeypatch, at, after):
                with pytest.raises(Killed):
                    do(resume=True)
            do(resume=True)
            assert len(names(out)) == 8
            agreed(out)


def test_a_process_left_over_is_ended_before_anything_else(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    host.files[BOOT] = "boot-1\n"
    out = do(interrupts=stop_after(1, host))
    started = Journal(out, host.clock)
    started.write("resumed", boot="boot-1")
    started.write("started", run="0002-00000000", pid=77, pid_started_ticks=700)
    started.write("hook", title="before block 1", pid=78, pid_started_ticks=701)
    started.write("hook", title="before run 2", pid=79, pid_started_ticks=702)
    started.write("hook-ended", title="before run 2", pid=79, exit_code=0)
    host.leftovers = {
        (77, 700),
        (78, 999),
        (79, 702),
        (5, 5),
    }  # the second is a stranger under a pid that was used again
    do(resume=True)
    assert host.ended == [77]
    assert host.leftovers == {(78, 999), (79, 702), (5, 5)}
    assert "ended 1 process that the killed study had left (of 0002-00000000)" in heard.notes
    [ended] = [event for event in read_journal(out)[0] if event["event"] == "ended-leftover"]
    assert (ended["of"], ended["pids"]) == ("0002-00000000", [77])


@pytest.mark.parametrize("boot", ["boot-2\n", None])
def test_after_another_boot_ids_mean_nothing(do: Do, host: FakeHost, boot: str | None) -> None:
    host.files[BOOT] = "boot-1\n"
    out = do(interrupts=stop_after(1, host))
    Journal(out, host.clock).write("started", run="0002-00000000", pid=77, pid_started_ticks=700)
    host.leftovers = {(77, 700)}
    del host.files[BOOT]
    if boot is not None:
        host.files[BOOT] = boot
    do(resume=True)
    assert host.ended == []


def test_scratch_of_a_killed_study_goes_and_nothing_else(
    do: Do, host: FakeHost, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.write_text(study_text() + '\n[target]\npath = "/data"\n')
    host.files["/data/precious"] = "kept"
    monkeypatch.setattr(
        "iolab.studies.targets.directory.DirectoryTarget.close", lambda target: None
    )  # as after a kill
    do(interrupts=stop_after(1, host))
    assert len(host.list_directory("/data")) == 2
    monkeypatch.undo()
    do(resume=True)
    assert host.list_directory("/data") == ["precious"]
