# SPDX-License-Identifier: Apache-2.0
"""Whole studies on a machine in memory: what they leave, and how they take what goes wrong."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import ResultsError, RunError, StudyError, UsageError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.evidence.files import read_environment, read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.results.evidence.lock import lock
from iolab.studies.results.evidence.manifest import read_manifest
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.run.study import run_study
from support.acting import Listener, study_text, write_result

Do = Callable[..., Path]


def events(directory: Path) -> list[str]:
    return [event["event"] for event in read_journal(directory)[0]]


def test_a_study_leaves_everything_that_is_needed_to_judge_it(
    do: Do, host: FakeHost, heard: Listener, study: Path
) -> None:
    out = do()
    manifest = read_manifest(out)
    assert (manifest.name, manifest.origin, manifest.baseline) == ("small", "run", "plain")
    assert (manifest.variants, manifest.factors) == (["plain", "synced"], ["numjobs"])
    assert manifest.study is not None
    assert len(manifest.study["cells"]) == 4
    assert manifest.reproduce[:3] == ["iolab", "run", str(study)]
    assert (out / "study.toml").read_text() == study.read_text()
    runs = list(run_directories(out))
    assert [run.name[:4] for run in runs] == [f"{number:04d}" for number in range(1, 9)]
    assert {path.name for path in runs[0].iterdir()} == {
        "run.json",
        "environment.json",
        "command.txt",
        "job.fio",
        "fio.json",
        "diskstats.log",
        "cpu.log",
        "memory.log",
        "stdout.txt",
        "stderr.txt",
    }
    assert heard.runs == [(number, "finished", "") for number in range(1, 9)]
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.remaining, heard.end.interrupted) == (
        8,
        0,
        0,
        False,
    )
    assert heard.left[-1] == 0.0
    assert events(out) == ["opened", *["planned"] * 8, *["started", "finished"] * 8, "closed"]


def test_a_runs_plan_says_what_was_asked_and_what_became_of_it(do: Do) -> None:
    plans = [read_plan(run) for run in run_directories(do())]
    wide = next(
        plan
        for plan in plans
        if plan.variant == "synced" and plan.factors == {"numjobs": 4} and plan.block == 2
    )
    assert (wide.status, wide.jobs, wide.depth, wide.runtime, wide.ramp, wide.offered_iops) == (
        "finished",
        4,
        1,
        2.0,
        0.5,
        None,
    )
    assert wide.command == ("fio", "--output-format=json+", "--output=fio.json", "job.fio")
    assert (wide.exit_code, wide.tools, wide.repetition, wide.host) == (
        0,
        {"fio": "fio-3.33"},
        2,
        "fake",
    )
    assert wide.window == (
        1_700_000_000_000_000_000 - 2_000_000_000,
        1_700_000_000_000_000_000,
    )  # by the fake's timestamp_ms
    assert wide.extra["options"] == {
        "rw": "randwrite",
        "bs": "4k",
        "size": "1m",
        "sync": "dsync",
        "numjobs": 4,
    }
    assert wide.extra["sources"] == ["diskstats", "cpu", "memory"]
    assert wide.extra["readings"]["diskstats"] == {"taken": 4, "lost": 0}
    assert "numjobs=4\n" in wide.extra["job"]
    assert wide.extra["pid"] == wide.extra["pid_started_ticks"]


def test_devices_and_environment_are_recorded(do: Do) -> None:
    out = do()
    whole = json.loads((out / "environment.json").read_text())
    assert whole["fingerprint"] == {
        "kernel": "6.1.0-fake",
        "cpu": "2 x Fake CPU",
        "memory": "16 GiB",
        "fio": "fio-3.33",
        "filesystem": "ext4 (rw,relatime)",
        "scheduler:sda": "mq-deadline",
        "model:sda": "FAKE DISK",
    }
    assert whole["facts"]["devices"]["sda"]["size_bytes"] == 512_000
    first = next(run_directories(out))
    assert read_environment(first) == {
        "schema": 1,
        "fingerprint": whole["fingerprint"],
        "facts": {"memory_bytes": 16384000 * 1024, "cpus": 2},
    }
    log = (first / "diskstats.log").read_text().splitlines()
    assert log[0] == "# iolab diskstats 1"
    assert [line for line in log if not line.startswith(("#", "@"))] == 4 * [
        "   8       0 sda 10 0 80 5 20 0 160 9 0 11 14 0 0 0 0 0 0"
    ]  # the disk alone: neither partition nor neighbour


def test_every_run_has_a_place_of_its_own_and_nothing_is_left(
    do: Do, host: FakeHost, tmp_path: Path
) -> None:
    out = do()
    places = {
        (run / "job.fio").read_text().split("directory=")[1].splitlines()[0]
        for run in run_directories(out)
    }
    assert places == {f"{tmp_path}/out/scratch/{run.name}" for run in run_directories(out)}
    assert places <= set(host.removed)
    assert host.removed[-1] == f"{tmp_path}/out/scratch"
    assert host.directories == {"/"}


def test_a_named_directory_keeps_all_but_what_was_made_in_it(
    study: Path, do: Do, host: FakeHost
) -> None:
    study.write_text(study_text() + '\n[target]\npath = "/data"\n')
    host.files["/data/precious"] = "kept"
    do()
    assert host.files["/data/precious"] == "kept"
    assert all(path.startswith("/data/iolab-") for path in host.removed)
    assert host.list_directory("/data") == ["precious"]


def test_no_time_passes_and_runs_take_what_they_take(do: Do, host: FakeHost) -> None:
    do()
    assert host.clock.monotonic() == pytest.approx(8 * 2.6)


def test_a_failing_run_is_recorded_and_the_study_goes_on(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    def second_fails(command: Sequence[str], directory: Path) -> None:
        host.programs["fio"].exit_code = int(directory.name.startswith("0002"))
        (directory / "stderr.txt").write_text("fio: io_u error: No space left on device\n\n")
        write_result(command, directory)

    host.programs["fio"].work = second_fails
    out = do()
    assert [status for _, status, _ in heard.runs] == ["finished", "failed", *["finished"] * 6]
    assert heard.runs[1][2] == "exit code 1: fio: io_u error: No space left on device"
    plan = read_plan(list(run_directories(out))[1])
    assert (plan.status, plan.exit_code, plan.extra["failure"]) == ("failed", 1, heard.runs[1][2])
    assert (out / "runs" / plan.run / "fio.json").exists()
    [failed] = [event for event in read_journal(out)[0] if event["event"] == "failed"]
    assert (failed["run"], failed["exit_code"]) == (plan.run, 1)
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed) == (7, 1)


def test_a_hanging_load_is_ended_at_its_limit(do: Do, host: FakeHost, heard: Listener) -> None:
    host.programs["fio"].seconds = 1e9
    host.programs["fio"].stubborn = True
    out = do()
    assert len(host.ended) == 8
    assert all(status == "failed" and "hung" in reason for _, status, reason in heard.runs)
    plan = read_plan(next(run_directories(out)))
    assert (plan.exit_code, plan.window) == (137, None)


def test_a_load_that_cannot_start_fails_the_run_alone(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    def gone(command: Sequence[str], directory: Path) -> None:
        write_result(command, directory)
        del host.programs["fio"]

    host.programs["fio"].work = gone
    do()
    assert heard.runs[0][1] == "finished"
    assert all(
        status == "failed" and "can't be started" in reason for _, status, reason in heard.runs[1:]
    )


def test_a_full_disk_fails_runs_and_keeps_what_was_measured(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    def fills(command: Sequence[str], directory: Path) -> None:
        write_result(command, directory)
        if directory.name.startswith("0003"):
            host.free = 1000

    host.programs["fio"].work = fills
    out = do()
    assert [status for _, status, _ in heard.runs] == [*["finished"] * 3, *["failed"] * 5]
    assert "1000 B free" in heard.runs[3][2]
    assert len(list(run_directories(out))) == 8


def test_one_interrupt_finishes_the_run_and_stops(do: Do, host: FakeHost, heard: Listener) -> None:
    stops = Interrupts(lambda: heard.notice("stopping"))

    def work(command: Sequence[str], directory: Path) -> None:
        write_result(command, directory)
        stops.press()

    host.programs["fio"].work = work
    out = do(interrupts=stops)
    assert heard.runs == [(1, "finished", "")]
    assert heard.notes == ["stopping"]
    assert heard.end is not None
    assert (heard.end.finished, heard.end.remaining, heard.end.interrupted) == (1, 7, True)
    assert events(out)[-3:] == ["started", "finished", "stopped"]
    assert not host.ended


def test_two_interrupts_end_the_run_now(do: Do, host: FakeHost, heard: Listener) -> None:
    stops = Interrupts()

    class Impatient(Listener):
        def update_run(self, run: Any, seconds: float, expected: float, latest: Any) -> None:
            if seconds > 1:
                stops.press(2)

    impatient = Impatient()
    out = do(interrupts=stops, listener=impatient)
    assert impatient.runs == [(1, "interrupted", "stopped by the user")]
    assert len(host.ended) == 1
    assert events(out)[-3:] == ["started", "interrupted", "stopped"]
    plan = read_plan(next(run_directories(out)))
    assert (plan.status, plan.exit_code) == ("interrupted", 128)
    assert host.clock.monotonic() < 2
    assert host.removed[-1].endswith("/scratch")
    assert impatient.end is not None
    assert impatient.end.remaining == 8


def test_missing_fio_is_told_with_the_way_to_get_it_and_leaves_nothing(
    do: Do, host: FakeHost, tmp_path: Path
) -> None:
    del host.programs["fio"]
    with pytest.raises(RunError, match="apt install fio"):
        do()
    assert not (tmp_path / "out").exists()


def test_options_that_fio_refuses_are_found_before_the_first_run(
    do: Do, host: FakeHost, tmp_path: Path
) -> None:
    def refuses(command: Sequence[str]) -> Completed:
        if "--parse-only" in command:
            assert (
                Path(command[-1]).read_text().count("[cell") == 2
            )  # numjobs makes no difference to parsing
            return Completed(
                tuple(command),
                1,
                "",
                "Bad option <sink=dsync>\nDid you mean sync?\nfio: job cell1 dropped\n",
            )
        return Completed(tuple(command), 0, "fio-3.33\n", "")

    host.programs["fio"].output = refuses
    with pytest.raises(
        RunError,
        match=r"variant 'synced', numjobs=1: Bad option <sink=dsync>\. Did you mean sync\?",
    ):
        do()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("said", "code"), [("", 0), ("fio: cannot open shared object", 127), ("hello", 0)]
)
def test_a_fio_that_is_none_is_told(do: Do, host: FakeHost, said: str, code: int) -> None:
    host.programs["fio"].output = lambda command: Completed(tuple(command), code, said, "")
    with pytest.raises(RunError, match="fio --version"):
        do()


def test_too_little_room_is_told_before_the_first_run(
    do: Do, host: FakeHost, tmp_path: Path
) -> None:
    host.free = 4 << 20  # four jobs of 1 MiB fit, the reserve doesn't
    with pytest.raises(RunError, match=r"asks for 4\.00 MiB .* has 4\.00 MiB free"):
        do()
    assert not (tmp_path / "out").exists()


def test_results_are_never_written_into_a_recording(do: Do, tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "out", host="here", clock="realtime", origin={"kind": "record"}
    ):
        pass
    before = sorted(tmp_path.rglob("*"))
    for resume in (False, True):
        with pytest.raises(
            UsageError,
            match=r"out: is a recording, not a results directory; choose another directory with -o$",
        ):
            do(resume=resume)
    assert sorted(tmp_path.rglob("*")) == before


def test_results_are_never_written_over(do: Do, tmp_path: Path) -> None:
    do()
    before = (tmp_path / "out" / "journal.jsonl").read_bytes()
    with pytest.raises(
        UsageError, match="holds results already; continue them with --resume, choose"
    ):
        do()
    assert (tmp_path / "out" / "journal.jsonl").read_bytes() == before


def test_two_studies_never_share_a_directory(do: Do, tmp_path: Path) -> None:
    with lock(tmp_path / "out"), pytest.raises(ResultsError, match="is being written"):
        do()


def test_an_output_that_cannot_be_made_is_told(do: Do, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        do(output=tmp_path / "file")
    with pytest.raises(RunError, match="can't be written"):
        do(output=tmp_path / "file" / "below")


def test_a_wrong_study_makes_no_directory(study: Path, do: Do, tmp_path: Path) -> None:
    study.write_text("[workload]\n")
    with pytest.raises(StudyError):
        do()
    assert not (tmp_path / "out").exists()


def test_the_default_directory_is_named_after_the_study(
    study: Path, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_study(study, clock=host.clock, host=host) == Path("results/small")
    assert read_manifest(tmp_path / "results" / "small").reproduce == ["iolab", "run", str(study)]


def test_without_a_device_the_study_measures_and_says_so(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    host.files["/proc/self/mountinfo"] = "1 0 0:30 / / rw - overlay overlay rw\n"
    out = do()
    assert heard.notes == [
        "no block device is known behind overlay 'overlay' mounted at /",
        "diskstats is left out: the target has no block devices to count for",
    ]
    plan = read_plan(next(run_directories(out)))
    assert plan.extra["sources"] == ["cpu", "memory"]
    assert not (out / "runs" / plan.run / "diskstats.log").exists()


def test_no_sources_are_watched_where_none_are_wanted(study: Path, do: Do, heard: Listener) -> None:
    study.write_text(study_text() + "\n[sources]\n")
    assert read_plan(next(run_directories(do()))).extra["sources"] == []
    assert not heard.notes


def test_files_that_cannot_be_removed_do_not_unmake_the_run(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    del host.programs["sync"]
    do()
    assert [status for _, status, _ in heard.runs] == ["finished"] * 8
    assert "sync" in heard.notes[0]


def test_variants_may_have_targets_of_their_own(study: Path, do: Do, host: FakeHost) -> None:
    study.write_text(study_text() + '[variants.elsewhere]\ntarget.path = "/data"\n')
    host.directories.add("/data")
    out = do()
    whole = json.loads((out / "environment.json").read_text())
    assert "filesystem" not in whole["fingerprint"]  # what is compared is no drift
    assert [target["target"]["path"] for target in whole["facts"]["targets"]] == [None, "/data"]
    jobs = [
        plan.extra["job"]
        for plan in map(read_plan, run_directories(out))
        if plan.variant == "elsewhere"
    ]
    assert len(jobs) == 4
    assert all("directory=/data/iolab-" in job for job in jobs)


def test_a_change_of_tools_makes_other_runs(do: Do, host: FakeHost, tmp_path: Path) -> None:
    first = [run.name for run in run_directories(do())]
    host.programs["fio"].output = lambda command: Completed(tuple(command), 0, "fio-3.41\n", "")
    second = [run.name for run in run_directories(do(output=tmp_path / "second"))]
    assert [name[:4] for name in first] == [name[:4] for name in second]
    assert not set(first) & set(second)


def test_signals_only_ask_and_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    told: list[int] = []
    with Interrupts(lambda: told.append(1)) as stops:
        os.kill(os.getpid(), signal.SIGINT)
        assert (stops.stop_after_run, stops.stop_now) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert stops.stop_now
    assert told == [1]
    assert signal.getsignal(signal.SIGINT) is before
    with Interrupts() as stops:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stops.stop_now


def test_results_that_are_being_written_are_never_said_to_be_removable(do: Do) -> None:
    out = do()
    with lock(out), pytest.raises(ResultsError, match="is being written by process"):
        do()
    with pytest.raises(UsageError, match="holds results already"):
        do()
