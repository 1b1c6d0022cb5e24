# SPDX-License-Identifier: Apache-2.0
"""Actions inside a run: at their time, beside the load, as marks with what became of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.marks import Mark, read_marks
from support.acting import Listener, study_text

Do = Callable[..., Path]

ACTIONS = """
[[actions]]
at = "500ms"
mark = "half"
[[actions]]
at = 1
mark = "trim"
command = "fstrim /x"
"""


@pytest.fixture
def shell(host: FakeHost) -> FakeProgram:
    host.programs["sh"] = FakeProgram(seconds=0.3)
    return host.programs["sh"]


def only_run(study: Path, extra: str) -> None:
    study.write_text(
        study_text(repetitions=1)
        .replace("numjobs = [1, 4]", "numjobs = [1]")
        .replace("[variants.synced]\n", "")
        .replace('workload.options.sync = "dsync"\n', "")
        + extra,
        "utf-8",
    )


def test_actions_come_at_their_time_in_the_window(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    only_run(study, ACTIONS)
    begin = host.clock.realtime_ns()
    [run] = run_directories(do())
    half, trim = read_marks(run)
    ramp = 0.5
    assert (half.time_ns - begin) / 1e9 == pytest.approx(ramp + 0.5)
    assert (half.kind, half.label, half.data) == ("mark", "half", {"at": 0.5})
    assert (trim.time_ns - begin) / 1e9 == pytest.approx(ramp + 1)
    assert (trim.kind, trim.label) == ("action", "trim")
    assert trim.data["seconds"] == pytest.approx(0.3, abs=0.26)
    assert {key: trim.data[key] for key in ("at", "command", "exit_code")} == {
        "at": 1.0,
        "command": "fstrim /x",
        "exit_code": 0,
    }
    assert read_plan(run).status == "finished"
    assert host.clock.monotonic() == pytest.approx(2.6)  # the load wasn't held up
    [environment] = [
        added
        for (command, _), added in zip(host.started, host.environments, strict=True)
        if command[0] == "sh"
    ]
    assert (environment["IOLAB_RUN"], environment["IOLAB_FACTOR_NUMJOBS"]) == (run.name, "1")
    assert not heard.notes


def test_a_failing_action_is_noted_and_marked(
    do: Do, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    only_run(study, ACTIONS)
    shell.exit_code = 4
    [run] = run_directories(do())
    assert read_marks(run)[1].data["failure"] == "exit code 4"
    assert heard.notes == ["action 'trim': 'fstrim /x': exit code 4"]
    assert heard.runs[0][1] == "finished"


def test_an_action_never_outlives_the_run(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    only_run(study, ACTIONS)
    shell.seconds = 1e6
    [run] = run_directories(do())
    trim = read_marks(run)[1]
    assert trim.data["failure"] == "ended with the run"
    assert len(host.ended) == 1
    assert host.clock.monotonic() == pytest.approx(2.6)


def test_an_action_that_cannot_start_is_marked(do: Do, study: Path, heard: Listener) -> None:
    only_run(study, ACTIONS)
    [run] = run_directories(do())
    assert read_marks(run)[1].data["exit_code"] == 127
    assert "'sh' can't be started" in heard.notes[0]


def test_an_action_that_never_came_is_told(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    only_run(study, ACTIONS)
    host.programs["fio"].seconds = 1.2
    [run] = run_directories(do())
    assert [mark.label for mark in read_marks(run)] == ["half"]
    assert heard.notes == ["action 'trim' at 1 s never came: the load had ended"]


def test_times_count_from_the_jobs_not_from_the_layout(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    """fio lays out for a while and starts its first job 0.8 s after its own start."""
    only_run(study, ACTIONS)
    host.programs["fio"].seconds = 4.0
    sleep = host.clock.sleep

    def spend(seconds: float) -> None:
        sleep(seconds)
        now = host.clock.monotonic()
        host.files["/proc/uptime"] = f"{100 + now:.2f} 50.00\n"
        host.files["/proc/1001/task/1001/children"] = "1500 1501 " if now >= 0.8 else ""
        ticks = " ".join(["0"] * 18)
        host.files["/proc/1500/stat"] = f"1500 (fio) S {ticks} {10_080} 0 0\n"
        host.files["/proc/1501/stat"] = f"1501 (fi) o) S {ticks} {10_085} 0 0\n"

    host.clock.sleep = spend  # type: ignore[method-assign]
    spend(0.0)
    begin = host.clock.realtime_ns()
    [run] = run_directories(do())
    labels: list[Mark] = list(read_marks(run))
    assert [(mark.label, round((mark.time_ns - begin) / 1e9, 2)) for mark in labels] == [
        ("half", 1.8),
        ("trim", 2.3),
    ]
