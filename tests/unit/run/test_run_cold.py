# SPDX-License-Identifier: Apache-2.0
"""A cold start: files laid out by a job of its own, then put out of memory, then the load. No time
passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError
from iolab.base.verdict import Level
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.open.results import Results
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.targets.directory import DirectoryTarget
from support.acting import Listener, study_text, write_result
from support.fio_files import idle, job, output

Do = Callable[..., Path]


@pytest.fixture
def order(study: Path, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened, in order: `layout`, `chill`, `load`."""
    study.write_text(
        study_text(repetitions=1)
        .replace("numjobs = [1, 4]", "numjobs = [1]")
        .replace('"randwrite"', '"randread"')
        .replace("[variants.synced]\n", "")
        .replace('workload.options.sync = "dsync"\n', ""),
        "utf-8",
    )
    happened: list[str] = []

    def work(command: Sequence[str], directory: Path) -> None:
        layout = "layout" in " ".join(command)
        happened.append("layout" if layout else "load")
        if not layout:
            write_result(command, directory)

    host.programs["fio"].work = work
    host.programs["sh"] = FakeProgram()  # what drops the caches once before the study
    monkeypatch.setattr(DirectoryTarget, "cold", lambda target: True)
    monkeypatch.setattr(DirectoryTarget, "chill", lambda target: happened.append("chill"))
    return happened


def test_the_load_follows_layout_and_chill(do: Do, order: list[str]) -> None:
    [run] = run_directories(do())
    assert order == ["layout", "chill", "load"]
    assert read_plan(run).status == "finished"
    assert read_plan(run).extra["cold"] is True
    assert (run / "layout-command.txt").read_text() != (run / "command.txt").read_text()
    assert read_plan(run).command[-1] == "job.fio"


def test_what_cannot_be_laid_out_is_not_measured(
    do: Do, host: FakeHost, order: list[str], heard: Listener
) -> None:
    host.programs["fio"].fails = lambda command: 2
    [run] = run_directories(do())
    assert order == ["layout"]
    assert heard.runs == [(1, "failed", "the files can't be laid out: exit code 2")]
    assert read_plan(run).exit_code is None


def test_a_cache_that_stays_warm_is_no_cold_run(
    do: Do, order: list[str], heard: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warm(target: DirectoryTarget) -> None:
        raise RunError("still in memory")

    monkeypatch.setattr(DirectoryTarget, "chill", warm)
    do()
    assert order == ["layout"]
    assert heard.runs == [(1, "failed", "still in memory")]


def test_a_layout_that_hangs_is_ended(
    do: Do, host: FakeHost, order: list[str], heard: Listener
) -> None:
    host.programs["fio"].seconds = 1e9
    do()
    assert len(host.ended) == 1
    assert heard.runs[0][1] == "failed"
    assert "hung" in heard.runs[0][2]


def test_ctrl_c_twice_in_a_layout_interrupts_the_run(
    do: Do, host: FakeHost, order: list[str], heard: Listener
) -> None:
    stops = Interrupts()
    host.programs["fio"].seconds = 1e9
    sleep = host.clock.sleep

    def spend(seconds: float) -> Any:
        sleep(seconds)
        if host.clock.monotonic() > 2 and not stops.presses:
            stops.press(2)

    host.clock.sleep = spend  # type: ignore[method-assign]
    do(interrupts=stops)
    assert heard.runs == [(1, "interrupted", "stopped by the user")]


PASSES_STUDY = """
[study]
name = "sets"
repetitions = 1
[workload]
kind = "files"
op = "read"
files = 4
size = "128k"
passes = 3
"""


def read_result(directory: Path, seconds: float) -> None:
    """A result of fio that read for so long."""
    entry = job(jobs=1, iops=100.0, runtime=seconds)
    entry["read"], entry["write"] = entry["write"], idle()
    (directory / "fio.json").write_text(output(entry, size=str(4 << 17)), "utf-8")


@pytest.fixture
def passes(order: list[str], study: Path, host: FakeHost, tmp_path: Path) -> list[str]:
    """Files that are read three times, for 1, 2 and 6 s."""
    study.write_text(PASSES_STUDY)
    seconds = iter([1.0, 2.0, 6.0])

    def work(command: Sequence[str], directory: Path) -> None:
        is_layout = "layout" in " ".join(command)
        order.append("layout" if is_layout else f"read {directory.name[:3]}")
        if not is_layout:
            read_result(directory, next(seconds))

    host.programs["fio"].work = work
    return order


def test_files_are_written_once_and_read_cold_in_each_pass(do: Do, passes: list[str]) -> None:
    [run] = run_directories(do())
    assert passes == ["layout", "chill", "read 001", "chill", "read 002", "chill", "read 000"]
    (measured,) = Results(run.parent.parent).runs
    time = measured.observations["read.time"]
    assert time.value == pytest.approx(3.0)
    assert "3 passes" in time.source_field
    assert measured.value("runtime") == pytest.approx(6.0)
    assert {"passes/001/fio.json", "passes/002/fio.json"} <= set(read_plan(run).files or {})


@pytest.mark.parametrize("damage", ["", "{}", "[" * 5000, None])
def test_a_damaged_pass_makes_its_run_invalid(
    do: Do, passes: list[str], damage: str | None
) -> None:
    [run] = run_directories(do())
    file = run / "passes/001/fio.json"
    if damage is None:
        file.unlink()
    else:
        file.write_text(damage)
    (measured,) = Results(run.parent.parent).runs
    assert measured.verdict.level is Level.INVALID


def test_a_pass_that_fails_ends_its_run(
    do: Do, host: FakeHost, passes: list[str], heard: Listener
) -> None:
    host.programs["fio"].fails = lambda command: 0 if "layout" in " ".join(command) else 2
    do()
    assert passes == ["layout", "chill", "read 001"]
    assert heard.runs == [(1, "failed", "pass 1 can't be read: exit code 2")]
