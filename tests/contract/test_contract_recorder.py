# SPDX-License-Identifier: Apache-2.0
"""The recorder with the real probe: whole recordings, and nothing left behind whoever is killed,
and how often.

Each kill is repeated IOLAB_KILLS times (1 in the gate, 5 at full depth), at random moments of the
load.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from iolab.base.errors import RunError
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.open.results import Results
from support.depth import depth
from support.disks import need_loops
from support.probe import need_tracing
from support.recorded import device_in_memory
from support.waiting import PATIENCE, gone, recorded_events, until, up_to_date

SIGNATURE_READERS = ("blkid", "btrfs", "fsck", "mount", "wipefs")
KILLS = int(os.environ.get("IOLAB_KILLS") or depth(1, 5))
INSTANCES = Path("/sys/kernel/tracing/instances")

pytestmark = [pytest.mark.fio, pytest.mark.loops, pytest.mark.tracing]


@pytest.fixture(scope="module")
def able() -> None:
    need_tracing()
    need_loops()


@pytest.fixture
def device(able: None, tmp_path: Path) -> Iterator[str]:
    with device_in_memory(tmp_path) as node:
        yield node


def load(node: str, seconds: float, report: Path | None = None, **options: object) -> list[str]:
    """fio's random reads of a device."""
    words = {
        "name": "j",
        "filename": node,
        "rw": "randread",
        "bs": "4k",
        "ioengine": "io_uring",
        "iodepth": 16,
        "direct": 1,
        "runtime": seconds,
        "time_based": 1,
        **options,
    }
    output = [f"--output={report}", "--output-format=json"] if report else ["--output=/dev/null"]
    return ["fio", *(f"--{key}={value}" for key, value in words.items()), *output]


def load_until(go: Path, node: str, **options: object) -> list[str]:
    """The same until a file is there."""
    fio = shlex.join(load(node, 600, None, **options))
    return [
        "sh",
        "-c",
        f"{fio} & fio=$!; trap 'kill $fio; exit 143' TERM; "
        f"until [ -e {go} ]; do sleep 0.1; done; kill $fio; wait $fio; exit 0",
    ]


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def named(pid: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip().startswith(name)
    return False


def has_argument(pid: int, part: str) -> bool:
    """Whether a command line without the probe's has this part."""
    with contextlib.suppress(OSError):
        return part in Path(f"/proc/{pid}/cmdline").read_text() and not named(pid, "iolab-probe")
    return False


def instances_of(pids: set[int]) -> list[str]:
    return [
        entry.name
        for entry in INSTANCES.iterdir()
        if any(entry.name.startswith(f"iolab-{pid}-") for pid in pids)
    ]


def settled(pids: set[int]) -> None:
    """Every one of these processes ends by itself, and no trace instance of theirs stays."""
    assert [pid for pid in pids if not gone(pid)] == []
    until(lambda: instances_of(pids) == [], "trace instances to be removed")


@contextlib.contextmanager
def recording(*arguments: object, stderr: Any = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        # without a budget: on a loaded machine a suspended source would be a gap
        [sys.executable, "-m", "iolab.cli", "record", "--budget", "none", *map(str, arguments)],
        stderr=stderr,
        text=True,
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def family(process: subprocess.Popen[str]) -> tuple[int, set[int]]:
    """The probe's pid, and those of all that the recorder started."""
    direct = children(process.pid)
    return next(pid for pid in direct if named(pid, "iolab-probe")), {
        *direct,
        *(pid for child in direct for pid in children(child)),
    }


def says_full(words: Path) -> bool:
    return "No space left" in words.read_text()


def events_in(directory: Path, source: str = "block") -> int:
    return sum(segment.sources.get(source, 0) for segment in Recording(directory).segments())


def gaps_of(directory: Path) -> list[Mapping[str, Any]]:
    return [
        loss
        for loss in Recording(directory).losses()
        if loss["kind"] == "gap" and loss["source"] == "block"
    ]


def total_ios(report: Path) -> int:
    return sum(
        int(job[way]["total_ios"])
        for job in json.loads(report.read_text())["jobs"]
        for way in ("read", "write")
    )


def test_every_io_of_a_command_is_recorded_and_only_once(
    device: str, fio: str, tmp_path: Path
) -> None:
    report = tmp_path / "fio.json"
    with recording(
        "block",
        "-q",
        "--device",
        device,
        "-o",
        tmp_path / "r",
        "--",
        *load(device, 2, report),
    ) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    events = Recording(tmp_path / "r")
    lost = [loss for loss in events.losses() if loss["kind"] in ("overrun", "gap")]
    assert lost == []
    by_process = Counter(
        str(process)
        for segment in events.segments()
        for process in pq.read_table(segment.path, columns=["process"])["process"].to_pylist()
    )
    assert sum(by_process.values()) == events_in(tmp_path / "r")
    # other tests on the machine start programs that look at each block device (48 reads of blkid)
    ios = {name: n for name, n in by_process.items() if name not in SIGNATURE_READERS}
    assert sum(ios.values()) == total_ios(report) > 1000, by_process


def test_a_partition_by_any_name_is_its_disk(able: None, tmp_path: Path) -> None:
    parts = [path for path in Path("/sys/class/block").iterdir() if (path / "partition").exists()]
    if not parts:
        pytest.skip("no disk here has partitions")
    with recording(
        "block", "--device", parts[0].name, "-o", tmp_path / "r", "--duration", "1s"
    ) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert (
        f"{parts[0].name} is a partition; its disk {parts[0].resolve().parent.name} is recorded"
        in err
    )


def test_no_tracefs_is_one_line(able: None, tmp_path: Path) -> None:
    with recording("block", "--tracefs", tmp_path, "-o", tmp_path / "r") as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 5
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("victim", ["probe", "recorder", "command"])
def test_a_kill_leaves_no_process_no_instance_and_a_readable_recording(
    victim: str, device: str, fio: str, tmp_path: Path
) -> None:
    chance = random.Random(victim)
    for attempt in range(KILLS):
        directory, go = tmp_path / f"r{attempt}", tmp_path / f"go{attempt}"
        # a job that is a process of its own would outlive fio; a recorder on a busy machine keeps up
        options = {"thread": 1, "rate_iops": 5000}
        command = (
            load(device, 600, None, **options)
            if victim == "command"
            else load_until(go, device, **options)
        )
        with recording(
            "block", "-q", "--device", device, "-o", directory, "--", *command
        ) as process:
            recorded_events(directory, 1000)
            time.sleep(chance.uniform(0, 0.8))
            probe, all_of_them = family(process)
            # another child reads where the disks are
            [load_pid] = [pid for pid in children(process.pid) if has_argument(pid, device)]
            seen = events_in(directory)
            up_to_date(directory)
            killed_ns = time.time_ns()
            os.kill(
                {"probe": probe, "recorder": process.pid, "command": load_pid}[victim],
                signal.SIGKILL,
            )
            if victim == "probe":
                until(lambda directory=directory: gaps_of(directory), "the gap")  # type: ignore[misc]
                recorded_events(directory, events_in(directory) + 1000)
                go.touch()
            _, err = process.communicate(timeout=PATIENCE)
            if victim == "probe":
                assert "Traceback" not in err
        settled(all_of_them)
        found, gaps = Recording(directory), gaps_of(directory)
        assert events_in(directory) >= seen > 0
        if victim == "probe":
            assert process.returncode == 0
            [gap] = gaps
            # from the last that came of the one to the first of the other
            assert killed_ns - 2e9 < gap["from_ns"] <= killed_ns < gap["until_ns"]
            span = found.span()
            assert span is not None
            assert span[1] > gap["until_ns"]  # it went on
        elif victim == "recorder":
            span = found.span()
            assert span is not None
            assert killed_ns - span[1] < 2e9
        else:
            assert process.returncode == 137
            assert found.marks()[-1]["facts"] == {"exit_code": 137}
            assert gaps == []


def test_recording_goes_on_after_a_kill_with_the_gap_shown(
    device: str, fio: str, tmp_path: Path
) -> None:
    directory, go = tmp_path / "r", tmp_path / "go"
    for attempt in range(2):
        with recording(
            "block", "-q", "--device", device, "-o", directory, "--", *load_until(go, device)
        ) as process:
            recorded_events(directory, 1000, pid=process.pid)
            _, all_of_them = family(process)
            if attempt == 0:
                process.kill()
            else:
                go.touch()
            process.communicate(timeout=PATIENCE)
        settled(all_of_them)
    found = Recording(directory)
    assert len([loss for loss in found.losses() if loss["kind"] == "gap"]) == 1
    assert len(found.facts.sessions) == 2


def test_a_full_disk_leaves_what_was_kept(device: str, fio: str, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", small], check=False, capture_output=True
    ).returncode:
        pytest.skip("no tmpfs can be mounted")
    try:
        for attempt in range(KILLS):
            directory, go, words = (
                small / f"r{attempt}",
                tmp_path / f"go{attempt}",
                tmp_path / f"words{attempt}",
            )
            with (
                words.open("w") as stderr,
                recording(
                    "block",
                    "-q",
                    "--device",
                    device,
                    "-o",
                    directory,
                    "--",
                    *load_until(go, device),
                    stderr=stderr,
                ) as process,
            ):
                recorded_events(directory, 1000)
                _, all_of_them = family(process)
                with contextlib.suppress(OSError), (small / "ballast").open("wb") as ballast:
                    while True:
                        ballast.write(b"x" * 65536)
                until(partial(says_full, words), "the disk to be full")
                go.touch()
                process.wait(PATIENCE)
            settled(all_of_them)
            err = words.read_text()
            assert "Traceback" not in err
            assert events_in(directory) > 0
            shutil.rmtree(directory)
            (small / "ballast").unlink()
    finally:
        subprocess.run(["umount", small], check=True)


STUDY = """
sources = ["block"]

[study]
name = "watched"
repetitions = 1

[target]
kind = "device"
loop = {{size = "64m", directory = "{place}"}}

[workload]
kind = "fio"
runtime = "2s"

[workload.options]
rw = "randread"
bs = "4k"
size = "100%"
ioengine = "io_uring"
iodepth = 4
direct = 1

[variants.shallow]
[variants.deep]
workload.options.iodepth = 16
"""


@pytest.fixture
def study(able: None, fio: str, tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(place=tmp_path), "utf-8")
    return path


def iolab(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "iolab.cli", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_study_marks_its_runs_on_one_recording(study: Path, tmp_path: Path) -> None:
    done = iolab("run", study, "-o", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = Recording(tmp_path / "results/recordings/local")
    marks = {mark["label"]: mark for mark in found.marks()}
    runs = list(run_directories(tmp_path / "results"))
    assert [run.name for run in runs] == list(marks)
    segments = found.segments()
    for run in runs:
        plan, mark = read_plan(run), marks[run.name]
        link: dict[str, Any] = plan.extra["recording"]
        assert (link["path"], link["mark"]) == ("recordings/local", run.name)
        assert mark["link"] == f"runs/{run.name}"
        assert (mark["from_ns"], mark["until_ns"]) == (link["from_ns"], link["until_ns"])
        assert plan.window is not None
        assert mark["from_ns"] <= plan.window[0] < plan.window[1] <= mark["until_ns"] + 5e7
        assert mark["facts"]["variant"] == plan.variant
        # cut at its boundaries: no segment has I/O of this run and of what was before or after it
        inside = [
            segment
            for segment in segments
            if segment.last_ns >= plan.window[0] and segment.first_ns <= plan.window[1]
        ]
        held = sum(segment.sources["block"] for segment in inside)
        ios = total_ios(run / "fio.json")
        assert ios <= held <= 1.01 * ios + 200  # fio's own look at the device before the load
        assert link["lost"] == {"block": 0}
        assert plan.extra["readings"]["block"]["lost"] == 0
    results = Results(tmp_path / "results")
    assert not any(
        run.verdict.has("monitor-dead") or run.verdict.has("monitor-missing")
        for run in results.runs
    )
    assert {"diskstats", "cpu", "memory", "block"} == set(read_plan(runs[0]).extra["sources"])


def test_a_study_whose_recorder_is_killed_says_so_and_ends_well(
    study: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "run", study, "-o", "results", "--runtime", "8s"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    place = tmp_path / "results/recordings/local"
    recorded_events(place)
    recorder = int((place / "lock").read_text().split()[0])
    probe = next(pid for pid in children(recorder) if named(pid, "iolab-probe"))
    os.kill(recorder, signal.SIGKILL)
    _, err = process.communicate(timeout=4 * PATIENCE)
    assert process.returncode == 0, err
    settled({recorder, probe})
    assert "the recorder died with exit code 137; it is begun again" in err
    first, second = Results(tmp_path / "results").runs
    assert first.verdict.has("monitor-dead")
    assert first.verdict.has("recording-trouble")
    assert not second.verdict.has("monitor-dead")
    assert {mark["label"] for mark in Recording(place).marks()} == {second.id}
    assert Recording(place).gaps()


def test_a_killed_study_leaves_no_recorder(study: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "run", study, "-o", "results"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    place = tmp_path / "results/recordings/local"
    recorded_events(place)
    recorder = int((place / "lock").read_text().split()[0])
    probe = next(pid for pid in children(recorder) if named(pid, "iolab-probe"))
    process.kill()
    process.wait()
    settled({recorder, probe})
    done = iolab("run", study, "-o", "results", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = Recording(place)
    runs = [
        run.name for run in run_directories(tmp_path / "results") if (run / "run.json").exists()
    ]
    assert {mark["label"] for mark in found.marks()} >= set(runs[-2:])


def test_without_root_a_study_is_refused_before_its_first_run(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.studies.plan.file.load import load_study
    from iolab.studies.run.dry_run import preview
    from iolab.studies.run.study import run_study

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert any(
        "recording block needs root" in problem
        for problem in preview(load_study(study), tmp_path / "results").problems
    )
    with pytest.raises(RunError, match="recording block needs root"):
        run_study(study, tmp_path / "results")
    assert not (tmp_path / "results").exists()
