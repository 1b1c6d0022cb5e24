# SPDX-License-Identifier: Apache-2.0
"""A cold start: files laid out by a job of its own, then put out of memory, then the load. No time
passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import RunError
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.results.evidence.files import read_plan, run_directories
from iolab.run.interrupts import Interrupts
from iolab.targets.directory import DirectoryTarget
from support.acting import Listener, study_text, write_result

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
