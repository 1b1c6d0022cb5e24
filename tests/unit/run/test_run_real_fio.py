# SPDX-License-Identifier: Apache-2.0
"""Studies with the real fio, judged by the real gates; and processes that must not outlive iolab."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import iolab
from iolab.base.errors import IolabError, RunError, StudyError
from iolab.base.verdict import Level
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.study import How, run_study
from support.acting import Listener, study_text
from support.waiting import PATIENCE, until

pytestmark = pytest.mark.fio


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.exclusive
def test_a_small_study_runs_and_its_numbers_are_judged_sound(fio: str, tmp_path: Path) -> None:
    study = write(
        tmp_path,
        study_text(repetitions=1)
        .replace("numjobs = [1, 4]", "numjobs = [2]")
        .replace('"500ms"', '"100ms"')
        .replace('size = "1m"', 'size = "1m"\nrate_iops = 200'),
    )
    heard = Listener()
    out = run_study(study, tmp_path / "out", listener=heard)
    assert [status for _, status, _ in heard.runs] == ["finished"] * 2
    for run in run_directories(out):
        plan = read_plan(run)
        found = derive(run, plan)
        assert found.verdict.level is not Level.INVALID, [
            reason.text for reason in found.verdict.reasons
        ]
        values = {observation.metric: observation.value for observation in found.observations}
        assert values["write.iops"] == pytest.approx(plan.offered_iops, rel=0.2)
        assert plan.window is not None
        assert plan.window[1] - plan.window[0] == pytest.approx(2e9, rel=0.2)
        assert {"fio_bw.log", "fio_iops.log"} <= {path.name for path in run.iterdir()}
    assert {path.name for path in out.iterdir() if not path.name.startswith(".")} == {
        "manifest.json",
        "study.toml",
        "environment.json",
        "journal.jsonl",
        "runs",
    }


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        (How(), StudyError, r"sync_=dsync \(iolab does not know what it does; did you mean 'sync'"),
        (
            How(trusted=True),
            RunError,
            r"this fio has no option 'sync_' \(of variant 'synced', numj",
        ),
    ],
)
def test_a_mistyped_option_costs_a_second_not_a_study(
    fio: str, tmp_path: Path, how: How, error: type[IolabError], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_study(
            write(tmp_path, study_text().replace("options.sync", "options.sync_")),
            tmp_path / "out",
            how=how,
        )
    assert not (tmp_path / "out").exists()


def test_an_error_of_the_load_makes_an_invalid_run_not_a_dead_study(
    fio: str, tmp_path: Path
) -> None:
    study = write(
        tmp_path,
        study_text(repetitions=1)
        .replace('size = "1m"', 'size = "4k"')
        .replace('bs = "4k"', 'bs = "64k"')
        .replace('"2s"', '"200ms"')
        .replace('"500ms"', "0"),
    )
    heard = Listener()
    out = run_study(study, tmp_path / "out", listener=heard)
    assert len(heard.runs) == 4
    for run in run_directories(out):
        assert derive(run, read_plan(run)).verdict.level is Level.INVALID


PACKAGE = str(Path(iolab.__file__).parent.parent)


def _running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def _started(out: Path) -> int:
    """Process id of the load in flight, from the journal."""

    def pids() -> list[int]:
        found = read_journal(out)[0] if (out / "journal.jsonl").exists() else []
        return [
            event["pid"]
            for event in found
            if event["event"] == "started" and _running(event["pid"])
        ]

    return int(until(pids, "a load")[-1])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_fio_outlives_a_killed_study(fio: str, tmp_path: Path, number: signal.Signals) -> None:
    study = write(
        tmp_path,
        study_text(repetitions=1)
        .replace('"2s"', '"60s"')
        .replace("numjobs = [1, 4]", "numjobs = [3]"),
    )
    code = (
        "import sys; from pathlib import Path; from iolab.studies.run.study import How, run_study; "
        "run_study(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(study), str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )
    try:
        load = _started(tmp_path / "out")
        time.sleep(0.5)
        os.kill(child.pid, number)
        child.wait(PATIENCE)
        until(lambda: _group(load) == [], "the load to end")
    finally:
        child.kill()
    events = [event["event"] for event in read_journal(tmp_path / "out")[0]]
    assert events[-1] == ("started" if number is signal.SIGKILL else "stopped")
    assert (tmp_path / "out" / "scratch").exists() is (number is signal.SIGKILL)


def _group(leader: int) -> list[int]:
    """Live processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == leader and fields[0] not in ("Z", "X"):
                found.append(int(entry.name))
    return found


def test_ending_takes_the_whole_group_even_those_that_ignore_being_asked(tmp_path: Path) -> None:
    code = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); "
        "open('ready', 'a').write('x'); time.sleep(1000)"
    )
    process = LocalHost().start(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e"
    )
    until(
        lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").stat().st_size == 2, "both"
    )
    assert len(_group(process.pid)) == 2
    assert process.end(grace=0.2) == 137
    until(lambda: _group(process.pid) == [], "both to end")


def test_a_process_is_named_by_its_id_and_start_time(tmp_path: Path) -> None:
    process = LocalHost().start(
        ["sleep", "100"], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e"
    )
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        assert process.started == int(stat.rpartition(")")[2].split()[19])
    finally:
        process.end()


def test_a_short_command_that_hangs_is_given_up() -> None:
    begin = time.monotonic()
    with pytest.raises(RunError, match=r"did not end within 0\.2 s"):
        LocalHost().run(["sleep", "1000"], timeout=0.2)
    assert time.monotonic() - begin < PATIENCE
