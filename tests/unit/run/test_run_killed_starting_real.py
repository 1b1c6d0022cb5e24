# SPDX-License-Identifier: Apache-2.0
"""Real processes whose study is killed -9 between their start and the journal's line of it: the
resume ends them, and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.hosts.base.host import Process
from iolab.hosts.kinds import local
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.resuming.process_registry import Starts
from iolab.studies.run.study import How, run_study
from support.acting import study_text
from support.sshd import nothing_is_left, sshd
from support.waiting import gone, until

pytestmark = pytest.mark.fio

STUDY = (
    study_text(repetitions=1)
    .replace('"2s"', '"200ms"')
    .replace('"500ms"', "0")
    .replace("[1, 4]", "[2]")
    .replace("[variants.synced]\n", "")
    .replace('workload.options.sync = "dsync"\n', "")
)
FOREVER = STUDY.replace('runtime = "200ms"', 'runtime = "1h"')


def bearing(mark: str) -> set[int]:
    """Live processes with this in their environment."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def killed(study: Path, out: Path, what: str, *, jobs: int = 0) -> int:
    """Do the study in a process of its own, which dies of kill -9 as it is to write that a process
    is `started`, or a `hook`; that process.

    `jobs`: how many processes that one must have by then.
    """
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:

        def note(self: Starts, event: str, process: Process, **data: Any) -> None:
            if event == what:
                until(
                    lambda: (
                        len(
                            Path(f"/proc/{process.pid}/task/{process.pid}/children")
                            .read_text()
                            .split()
                        )
                        >= jobs
                    ),
                    "its children",
                )
                os.write(telling, str(process.pid).encode())
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, event, process, **data)

        try:
            real = Starts.note
            Starts.note = note  # type: ignore[method-assign]
            run_study(study, out, how=How(trusted=True))
        finally:
            os._exit(1)
    os.close(telling)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    pid = int(os.read(told, 100))
    os.close(told)
    assert not [one for one in read_journal(out)[0] if one.get("pid") == pid]
    return pid


def unrecorded(out: Path) -> list[list[int]]:
    """What resumes ended that was on no record."""
    return [
        event["pids"]
        for event in read_journal(out)[0]
        if event["event"] == "ended-leftover"
        and event["of"] == "a start that was not on record yet"
    ]


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Process]:
    """A process of the same results that is on record nowhere: as a recorder, or what a hook began
    for good."""
    process = LocalHost().start(
        ["sleep", "1000"],
        cwd=tmp_path,
        stdout=tmp_path / "so",
        stderr=tmp_path / "se",
        environment={"IOLAB_RESULTS": str(tmp_path / "out"), "IOLAB_START": "another.1"},
    )
    yield process
    assert process.wait(0) is None, "it was ended too"
    process.end()


def test_a_load_that_the_death_signal_does_not_reach_is_ended_with_its_jobs(
    fio: str, tmp_path: Path, stranger: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(FOREVER)
    with monkeypatch.context() as patch:
        patch.setattr(local, "_die_with", lambda parent: None)
        pid = killed(study, out, "started", jobs=2)
    left = bearing(f"IOLAB_RESULTS={out}") - {stranger.pid}
    try:
        assert pid in left
        assert len(left) == 3  # fio and its two jobs
        study.write_text(STUDY)
        (out / "study.toml").write_text(STUDY)  # the same that took so long, and takes less now
        run_study(study, out, how=How(resume=True, trusted=True))
        assert bearing(f"IOLAB_RESULTS={out}") == {stranger.pid}
        assert unrecorded(out) == [sorted(left)]
        assert [read_plan(run).status for run in run_directories(out)] == ["finished"]
    finally:
        for one in left:
            if one in bearing(f"IOLAB_RESULTS={out}"):
                os.kill(one, signal.SIGKILL)


def test_a_load_that_it_does_reach_is_gone_by_itself(fio: str, tmp_path: Path) -> None:
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(STUDY)
    assert gone(killed(study, out, "started"))
    until(lambda: not bearing(f"IOLAB_RESULTS={out}"), "its jobs to go")
    run_study(study, out, how=How(resume=True, trusted=True))
    assert unrecorded(out) == []


@pytest.mark.parametrize("moved", [False, True])
def test_what_a_hook_leaves_that_is_on_no_record_is_ended(
    fio: str, tmp_path: Path, moved: bool
) -> None:
    """The shell gets a signal, its child none; that child leads a session of its own and, once,
    hears no SIGTERM."""
    study, out = tmp_path / "study.toml", tmp_path / "out"
    deaf = "" if moved else "trap '' TERM; "
    study.write_text(
        STUDY
        + f'[hooks.study]\nbefore = "test -e again || {{ ({deaf}exec setsid sleep 1000) & wait; }}"\n'
    )
    assert gone(killed(study, out, "hook", jobs=1))
    [orphan] = bearing(f"IOLAB_RESULTS={out}")
    (tmp_path / "again").touch()
    place = out.rename(tmp_path / "moved") if moved else out
    run_study(study, place, how=How(resume=True, trusted=True))
    assert unrecorded(place) == [[orphan]]
    assert gone(orphan)


def test_over_ssh_too(fio: str, tmp_path: Path) -> None:
    """The far end hangs, so that it does not see the connection go."""
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(
        STUDY + '[hooks.study]\nbefore = "test -e ' + f'{tmp_path}/again || exec sleep 1000"\n'
    )
    with sshd(tmp_path / "sshd") as options:
        far = stopped_far_end(study, out, options)
        try:
            (tmp_path / "again").touch()
            left = bearing(f"IOLAB_RESULTS={out}")
            assert left
            with SshHost(options) as host:
                run_study(
                    study, out, host=host, clock=host.clock, how=How(resume=True, trusted=True)
                )
            assert unrecorded(out) == [sorted(left)]
        finally:
            os.kill(far, signal.SIGCONT)
        assert gone(far)
        assert not bearing(f"IOLAB_RESULTS={out}")
        nothing_is_left()


def stopped_far_end(study: Path, out: Path, options: SshOptions) -> int:
    """Kill a study as it writes of its hook, its far end stopped just before; the far end's
    process."""
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:

        def note(self: Starts, event: str, process: Process, **data: Any) -> None:
            os.write(telling, str(host.far["pid"]).encode())
            os.kill(host.far["pid"], signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)

        try:
            Starts.note = note  # type: ignore[method-assign]
            host = SshHost(options)
            run_study(study, out, host=host, clock=host.clock, how=How(trusted=True))
        finally:
            os._exit(1)
    os.close(telling)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    far = int(os.read(told, 100))
    os.close(told)
    return far
