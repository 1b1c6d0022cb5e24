# SPDX-License-Identifier: Apache-2.0
"""Real studies that are killed, filled up and acted upon: what is left is whole, and nothing of it
runs on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import iolab
from iolab.base.verdict import Level
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.results.evidence.marks import read_marks
from iolab.studies.run.load.actions import age_of_jobs
from iolab.studies.run.study import How, run_study
from support.acting import Listener, study_text
from support.depth import depth
from support.disks import call, need_loops
from support.waiting import PATIENCE, until

pytestmark = [pytest.mark.fio, pytest.mark.loops]

PACKAGE = str(Path(iolab.__file__).parent.parent)
CODE = (
    "import sys; from pathlib import Path; from iolab.studies.run.study import How, run_study; "
    "run_study(Path(sys.argv[1]), Path(sys.argv[2]), How(resume=True, trusted=True))"
)
KILLS = depth(5, 10)
TICK = 0.03
"""Seconds: the kernel tells when a process began by its clock of 10 ms."""


def marked(out: Path) -> list[int]:
    """Live processes that a study with these results had started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if f"IOLAB_RESULTS={out}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def attempt(study: Path, out: Path, seconds: float | None) -> bool:
    """Do the study in a process of its own, or kill that -9 after so long; whether it came to its
    end.

    Forked with everything imported, so that the kills hit the study and not its loading.
    """
    child = os.fork()
    if child == 0:
        try:
            run_study(study, out, how=How(resume=True, trusted=True))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    deadline = time.monotonic() + (4 * PATIENCE if seconds is None else seconds)
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return True
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert seconds is not None, "it hung"
    return False


@pytest.mark.figures
def test_killed_at_random_moments_a_study_still_comes_out_whole(
    fio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL at random moments; a hook before each run can be hit too."""
    data, temporary = tmp_path / "data", tmp_path / "tmp"
    data.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(repetitions=2).replace('"2s"', '"200ms"').replace('"500ms"', "0")
        + f'[hooks.run]\nbefore = "sleep 0.1"\n[target]\npath = "{data}"\n'
    )
    out = tmp_path / "out"
    moments = random.Random(21)
    kills, finished = 0, set[Any]()
    done = False
    while not done:
        # Checking and the head take a few tenths of a second; a run, about half of one.
        done = attempt(study, out, moments.uniform(0.1, 1.6) if kills < KILLS else None)
        kills += not done
        now = {
            run.name: (run / "run.json").read_bytes()
            for run in run_directories(out)
            if (run / "run.json").exists()
        }
        assert finished <= set(now.items()), "a finished run was lost or altered"
        finished = set(now.items())
    plans = [read_plan(run) for run in run_directories(out)]
    assert [int(plan.run[:4]) for plan in plans] == list(range(1, 9))
    assert {(plan.variant, plan.factors["numjobs"], plan.block) for plan in plans} == {
        (variant, jobs, block)
        for variant in ("plain", "synced")
        for jobs in (1, 4)
        for block in (1, 2)
    }
    assert {plan.status for plan in plans} == {"finished"}
    events, _ = read_journal(out)
    ends = [event["run"] for event in events if event["event"] == "finished"]
    assert sorted(ends) == sorted(plan.run for plan in plans)
    assert marked(out) == []
    assert [*data.iterdir(), *temporary.iterdir()] == []
    assert not [path for path in out.iterdir() if path.name.startswith("scratch")]
    values = [derive(run, plan) for run, plan in zip(run_directories(out), plans, strict=True)]
    assert all(any(one.metric == "write.iops" for one in found.observations) for found in values)
    aside = len(list((out / "aside").iterdir())) if (out / "aside").exists() else 0
    print(f"killed {kills} times ({aside} in the middle of a run), resumed: 8 of 8 runs whole")


def test_what_a_killed_study_left_running_is_ended_by_the_next(fio: str, tmp_path: Path) -> None:
    """A hook whose shell has a child that outlives it: no death signal reaches that one."""
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(repetitions=1)
        .replace('"2s"', '"200ms"')
        .replace('"500ms"', "0")
        .replace("[1, 4]", "[1]")
        + '[hooks.study]\nbefore = "test -e again || sleep 1000; true"\n'
    )
    out = tmp_path / "out"
    child = subprocess.Popen(
        [sys.executable, "-c", CODE, str(study), str(out)],
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )
    try:
        until(lambda: len(marked(out)) == 2, "the hook and its child")
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    [orphan] = until(
        lambda: [pid for pid in [marked(out)] if len(pid) == 1], "all but the child to go"
    )[0]
    (tmp_path / "again").touch()
    assert attempt(study, out, None)
    assert marked(out) == []
    [ended] = [event for event in read_journal(out)[0] if event["event"] == "ended-leftover"]
    assert ended["pids"] == [orphan]


def test_a_killed_study_leaves_no_loop_device_and_no_mount(fio: str, tmp_path: Path) -> None:
    need_loops()
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(repetitions=1)
        .replace('"2s"', '"300ms"')
        .replace('"500ms"', "0")
        .replace("[1, 4]", "[1]")
        + '[target]\nkind = "filesystem"\nfs = "ext4"\nloop = {size = "64m"}\n[[actions]]\nat = "100ms"\n'
        + 'command = "test -e again || kill -9 $PPID"\n'
    )
    out = tmp_path / "out"

    def left() -> list[str]:
        loops = call("losetup", "--list", "--noheadings", "--output", "BACK-FILE")
        return [
            line
            for line in [
                *loops.splitlines(),
                *Path("/proc/self/mountinfo").read_text().splitlines(),
            ]
            if str(tmp_path) in line
        ]

    child = subprocess.run(
        [sys.executable, "-c", CODE, str(study), str(out)],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert len(left()) == 2  # a loop device and its mount
    (tmp_path / "again").touch()
    assert attempt(study, out, None)
    assert left() == []
    assert [read_plan(run).status for run in run_directories(out)] == ["finished"] * 2
    assert len(list((out / "aside").iterdir())) == 1
    assert not [path.name for path in out.iterdir() if path.name.startswith("scratch")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    point = tmp_path / "small"
    point.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=24m", "iolab-test", str(point)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("a small file system can't be mounted here")
    yield point
    subprocess.run(["umount", str(point)], check=True)


def test_a_disk_that_fills_up_in_mid_run_costs_that_run(
    fio: str, tmp_path: Path, small_disk: Path
) -> None:
    study = tmp_path / "study.toml"
    # the load takes new room all the time, so that it is not over when the disk is full, though
    # that comes late
    study.write_text(
        study_text(repetitions=2)
        .replace('"500ms"', "0")
        .replace("numjobs = [1, 4]", "numjobs = [1]")
        .replace('size = "1m"', 'size = "16m"\nfallocate = "none"\nrate = "6m"')
        + f'[target]\npath = "{small_disk}"\n[hooks.block]\nafter = "touch {tmp_path}/second"\n'
        + f'[[actions]]\nat = "300ms"\ncommand = "test -e {tmp_path}/second || head -c 30m /dev/zero > {small_disk}/others"\n'
        + f'[hooks.run]\nafter = "rm -f {small_disk}/others"\n',
        "utf-8",
    )
    heard = Listener()
    out = run_study(study, tmp_path / "out", listener=heard, how=How(trusted=True))
    assert [status for _, status, _ in heard.runs] == ["failed", "failed", "finished", "finished"]
    assert "No space left on device" in heard.runs[0][2]
    runs = list(run_directories(out))
    assert derive(runs[0], read_plan(runs[0])).verdict.level is Level.INVALID
    assert derive(runs[3], read_plan(runs[3])).verdict.level is not Level.INVALID
    assert list(small_disk.iterdir()) == []


def test_results_on_a_full_disk_end_the_study_and_can_be_gone_on_with(
    fio: str, tmp_path: Path, small_disk: Path
) -> None:
    study = tmp_path / "study.toml"
    data = tmp_path / "data"
    data.mkdir()
    study.write_text(
        study_text(repetitions=1).replace('"2s"', '"300ms"').replace('"500ms"', "0")
        + f'[target]\npath = "{data}"\n[hooks.run]\nafter = "test -e {tmp_path}/roomy || '
        + f'head -c 30m /dev/zero > {small_disk}/others"\n',
        "utf-8",
    )
    out = small_disk / "out"
    with pytest.raises(
        iolab.base.errors.RunError,
        match=r"can't be written: No space left on device; .*continue with --resume",
    ):
        run_study(study, out, how=How(trusted=True))
    assert list(data.iterdir()) == []
    (small_disk / "others").unlink()
    (tmp_path / "roomy").touch()
    run_study(study, out, how=How(trusted=True, resume=True))
    assert [read_plan(run).status for run in run_directories(out)] == ["finished"] * 4


@pytest.mark.exclusive
@pytest.mark.figures
def test_actions_hit_the_measured_window_of_a_real_load(fio: str, tmp_path: Path) -> None:
    """An expensive layout comes first, and must not shift them."""
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(repetitions=1)
        .replace("numjobs = [1, 4]", "numjobs = [2]")
        .replace('"500ms"', '"300ms"')
        .replace('rw = "randwrite"', 'rw = "randread"')
        .replace('size = "1m"', 'size = "48m"')
        .replace("[variants.synced]\n", "")
        .replace('workload.options.sync = "dsync"\n', "")
        + '[[actions]]\nat = "1s"\nmark = "word"\ncommand = "echo $IOLAB_RUN in $IOLAB_TARGET"\n'
    )
    heard = Listener()
    [run] = run_directories(
        run_study(study, tmp_path / "out", listener=heard, how=How(trusted=True))
    )
    [mark] = read_marks(run)
    plan = read_plan(run)
    assert plan.window is not None
    late = (mark.time_ns - plan.window[0]) / 1e9 - 1.0
    print(f"action {late * 1000:+.0f} ms from its time in the window")
    assert abs(late) < 0.9, f"{late} s off"
    assert (
        run / "hooks" / "01.out"
    ).read_text() == f"{run.name} in {tmp_path}/out/scratch/{run.name}\n"
    assert mark.data["exit_code"] == 0
    assert "device.iops" in heard.latest or not plan.extra["devices"]
    assert heard.values[0]["read.iops"] > 0


@pytest.mark.parametrize("thread", [0, 1])
def test_the_age_of_jobs_is_known_for_processes_and_threads(
    fio: str, tmp_path: Path, thread: int
) -> None:
    host = LocalHost()
    begun = time.monotonic()
    process = host.start(
        [
            "fio",
            "--name=x",
            "--ioengine=null",
            "--size=1m",
            "--time_based",
            "--runtime=600",
            "--numjobs=2",
            "--rate_iops=10",
            f"--thread={thread}",
            "--output=o.json",
            "--output-format=json",
        ],
        cwd=tmp_path,
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
    )
    try:
        # an age is never negative: in the first tick it would be cut off
        until(lambda: (age_of_jobs(host, process.pid) or 0) > TICK, "fio's jobs")
        moments, ages = [time.monotonic()], []
        for _ in range(2):
            age = age_of_jobs(host, process.pid)
            assert age is not None
            ages.append(age)
            moments.append(time.monotonic())
            time.sleep(0.5)
            moments.append(time.monotonic())
        assert 0 <= ages[0] <= moments[1] - begun + TICK
        # between the two looks lies what the clock says, each look being a while of its own
        assert moments[2] - moments[1] - TICK <= ages[1] - ages[0] <= moments[3] - moments[0] + TICK
    finally:
        process.end()


@pytest.mark.exclusive
@pytest.mark.figures
def test_a_run_costs_little_more_than_its_load(fio: str, tmp_path: Path) -> None:
    """What lies between two loads: removing files, syncing evidence, journal, starting the next.
    How long that takes is the disk's and the machine's matter; iolab's own part of it is its CPU
    time."""
    study = tmp_path / "study.toml"
    study.write_text(study_text(repetitions=1).replace('"2s"', '"300ms"').replace('"500ms"', "0"))
    before = time.process_time()
    out = run_study(study, tmp_path / "out")
    spent = (time.process_time() - before) / 4
    events = [event for event in read_journal(out)[0] if event["event"] in ("started", "finished")]
    between = sorted(
        after["time_ns"] - before["time_ns"]
        for before, after in zip(events[1::2], events[2::2], strict=False)
    )
    median = between[len(between) // 2] / 1e9
    print(
        f"median between two loads: {median * 1000:.0f} ms; CPU time of a run {spent * 1000:.0f} ms"
    )
    assert spent < 0.25
    assert median < 5
    assert json.loads((out / "environment.json").read_text())["facts"]["block_devices"] is not None
