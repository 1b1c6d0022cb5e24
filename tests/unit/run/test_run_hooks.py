# SPDX-License-Identifier: Apache-2.0
"""Hooks of a study: when they run, what they are told, what their failing costs. No time passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError, StudyError
from iolab.base.verdict import Level
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.resuming.interrupts import Interrupts
from support.acting import Listener, study_text

Do = Callable[..., Path]

HOOKS = "".join(
    f'[hooks.{level}]\nbefore = "{level}-before"\nafter = "{level}-after"\n'
    for level in ("study", "variant", "block", "run")
)
SETUP = '[variants.plain]\nsetup = "plain-setup"\nteardown = "plain-teardown"\n[variants.synced]\nworkload.options.sync = "dsync"\n'


@pytest.fixture
def shell(host: FakeHost) -> FakeProgram:
    """`sh`, which takes a second and fails for the texts that a test names."""
    host.programs["sh"] = FakeProgram(seconds=1.0)
    return host.programs["sh"]


def fail(program: FakeProgram, *texts: str, times: int = 1000) -> None:
    """Let these texts fail, so many times in all."""
    left = [times]

    def code(command: Sequence[str]) -> int:
        if command[-1] in texts and left[0] > 0:
            left[0] -= 1
            return 3
        return 0

    program.fails = code


def with_hooks(study: Path, extra: str = HOOKS, setup: str = SETUP) -> None:
    study.write_text(
        study_text()
        .replace("[variants.plain]\n", "")
        .replace('[variants.synced]\nworkload.options.sync = "dsync"\n', setup)
        + extra,
        "utf-8",
    )


def words(host: FakeHost) -> list[str]:
    """What was started, in order: hooks by their text, loads as `fio`."""
    return [command[-1] if command[0] == "sh" else "fio" for command, _ in host.started]


def records(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "hooks.jsonl").read_text().splitlines()]


def test_hooks_stand_around_study_block_variant_and_run(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    with_hooks(study)
    do()
    run = ["run-before", "fio", "run-after"]
    leave = {"plain": ["plain-teardown", "variant-after"], "synced": ["variant-after"]}
    enter = {"plain": ["variant-before", "plain-setup"], "synced": ["variant-before"]}

    def stay(variant: str, runs: int = 1) -> list[str]:
        return [*enter[variant], *(run * runs), *leave[variant]]

    # Two cells, plain before synced in block 1 and after it in block 2. The last variant of a block
    # is the first of the next.
    first = [*stay("plain"), *stay("synced"), *stay("plain"), *enter["synced"], *run]
    second = [*run, *leave["synced"], *stay("plain"), *stay("synced"), *stay("plain")]
    assert words(host) == [
        "study-before",
        "block-before",
        *first,
        "block-after",
        "block-before",
        *second,
        "block-after",
        "study-after",
    ]


def test_hooks_know_where_they_stand(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, tmp_path: Path
) -> None:
    with_hooks(study)
    out = do()
    told = {
        text: {
            name: value
            for name, value in added.items()
            if name not in ("IOLAB_RESULTS", "IOLAB_START")
        }
        for text, added in reversed(list(zip(words(host), host.environments, strict=True)))
    }  # the first of each
    runs = [read_plan(run) for run in run_directories(out)]
    level = str(runs[0].factors["numjobs"])
    assert told["study-before"] == {}
    assert told["block-before"] == {"IOLAB_BLOCK": "1"}
    assert told["plain-setup"] == {"IOLAB_BLOCK": "1", "IOLAB_VARIANT": "plain"}
    assert (
        told["run-before"]
        == told["run-after"]
        == {
            "IOLAB_BLOCK": "1",
            "IOLAB_VARIANT": "plain",
            "IOLAB_RUN": runs[0].run,
            "IOLAB_RUN_DIR": str(out / "runs" / runs[0].run),
            "IOLAB_TARGET": f"{out}/scratch/{runs[0].run}",
            "IOLAB_FACTOR_NUMJOBS": level,
        }
    )
    assert all(added["IOLAB_RESULTS"] == str(out) for added in host.environments)
    assert {cwd for (command, cwd) in host.started if command[0] == "sh"} == {
        tmp_path
    }  # where the study file is


def test_what_hooks_did_is_recorded(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    with_hooks(study)
    out = do()
    first = next(run_directories(out))
    before, after = records(first)
    assert (before["title"], before["command"]) == (f"before run {first.name}", "run-before")
    assert before["arguments"] == ["sh", "-c", "run-before"]
    assert (before["exit_code"], before["seconds"], "failure" in before) == (0, 1.0, False)
    assert after["time_ns"] - before["time_ns"] == pytest.approx(
        3.6e9
    )  # the hook's second, then fio
    assert all(
        (first / record[stream]).exists()
        for record in (before, after)
        for stream in ("output", "errors")
    )
    assert len({record["output"] for record in records(out)}) == len(records(out))
    events = [event for event in read_journal(out)[0] if event["event"].startswith("hook")]
    assert len(events) == 2 * sum(text != "fio" for text in words(host))
    assert events[0]["command"] == "study-before"
    assert {event["exit_code"] for event in events if event["event"] == "hook-ended"} == {0}


def test_a_runs_hooks_are_no_evidence_of_its_load(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    with_hooks(study)

    def output(command: Sequence[str], directory: Path) -> None:
        for path in (study.parent / "out" / "runs").glob("*/hooks/*.out"):
            path.write_text(json.dumps({"fio version": "fio-3.33", "jobs": []}))

    shell.work = output
    for run in run_directories(do()):
        verdict = derive(run, read_plan(run)).verdict
        assert not [reason for reason in verdict.reasons if "hook" in reason.text], verdict.reasons


def test_a_failing_run_hook_fails_its_run(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    with_hooks(study)
    fail(shell, "run-before", times=1)
    out = do()
    assert [status for _, status, _ in heard.runs] == ["failed", *["finished"] * 7]
    plan = read_plan(next(run_directories(out)))
    assert plan.extra["failure"] == f"before run {plan.run}: 'run-before': exit code 3"
    assert (plan.exit_code, plan.command) == (None, ())
    assert words(host).count("fio") == 7
    assert words(host).count("run-after") == 8  # what was begun is ended
    assert derive(out / "runs" / plan.run, plan).verdict.level is Level.INVALID


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("plain-setup", {"plain"}),
        ("variant-before", {"plain", "synced"}),
        ("block-before", {"plain", "synced"}),
    ],
)
def test_a_failing_hook_fails_the_runs_it_stands_before(
    do: Do,
    host: FakeHost,
    study: Path,
    shell: FakeProgram,
    heard: Listener,
    text: str,
    failed: set[str],
) -> None:
    with_hooks(study)
    fail(shell, text)
    plans = [read_plan(run) for run in run_directories(do())]
    assert len(plans) == 8
    assert {plan.variant for plan in plans if plan.status == "failed"} == failed
    assert {plan.variant for plan in plans if plan.status == "finished"} == {
        "plain",
        "synced",
    } - failed
    assert all(text in plan.extra["failure"] for plan in plans if plan.status == "failed")
    assert "study-after" in words(host)


def test_a_block_that_fails_is_tried_anew_by_the_next(
    do: Do, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    with_hooks(study)
    fail(shell, "block-before", times=1)
    do()
    assert [status for _, status, _ in heard.runs] == ["failed"] * 4 + ["finished"] * 4


def test_a_study_that_cannot_begin_ends(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, tmp_path: Path
) -> None:
    with_hooks(study)
    fail(shell, "study-before", times=1)
    with pytest.raises(RunError, match="before the study: 'study-before': exit code 3"):
        do()
    assert words(host) == ["study-before", "study-after"]
    assert not (tmp_path / "out" / "scratch").exists()
    do(resume=True)
    assert len(list(run_directories(tmp_path / "out"))) == 8


def test_failing_afterwards_is_noted_and_all_of_it_runs(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    with_hooks(study, extra='[hooks.run]\nafter = ["first", "second"]\n')
    fail(shell, "first", "plain-teardown")
    do()
    assert [status for _, status, _ in heard.runs] == ["finished"] * 8
    assert words(host).count("second") == 8
    assert sum("'first': exit code 3" in note for note in heard.notes) == 8
    assert any(
        note == "teardown of variant plain: 'plain-teardown': exit code 3" for note in heard.notes
    )


def test_a_hook_that_cannot_start_is_told(
    do: Do, host: FakeHost, study: Path, heard: Listener
) -> None:
    with_hooks(
        study,
        extra='[hooks.run]\nbefore = [["no-such-program", "x"]]\n',
        setup="[variants.synced]\n",
    )
    out = do()
    assert all(
        status == "failed" and "'no-such-program' can't be started" in reason
        for _, status, reason in heard.runs
    )
    assert records(next(run_directories(out)))[0]["exit_code"] is None


def test_the_hooks_own_words_are_in_the_reason(
    do: Do, study: Path, shell: FakeProgram, heard: Listener, tmp_path: Path
) -> None:
    with_hooks(study, extra='[hooks.run]\nbefore = "x"\n', setup="[variants.synced]\n")
    fail(shell, "x")

    def complain(command: Sequence[str], directory: Path) -> None:
        for path in (tmp_path / "out" / "runs").glob("*/hooks/01.err"):
            path.write_text("warming up\nno such pool\n")

    shell.work = complain
    do()
    assert heard.runs[0][2].endswith("'x': exit code 3: no such pool")


def test_ctrl_c_during_a_hook_lets_it_end_and_does_no_run(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    with_hooks(study)
    stops = Interrupts()
    shell.work = lambda command, directory: stops.press() if command[-1] == "plain-setup" else None
    do(interrupts=stops)
    assert words(host) == [
        "study-before",
        "block-before",
        "variant-before",
        "plain-setup",
        "plain-teardown",
        "variant-after",
        "block-after",
        "study-after",
    ]
    assert heard.runs == []
    assert not host.ended


def test_ctrl_c_twice_ends_a_hook_and_still_puts_things_back(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    with_hooks(study)
    stops = Interrupts()
    shell.seconds = 1000.0
    host.clock.sleep = _pressing(host, stops, at=5.0)  # type: ignore[method-assign, assignment]
    do(interrupts=stops)
    assert words(host) == ["study-before", "study-after"]
    assert len(host.ended) == 1
    assert host.clock.monotonic() == pytest.approx(
        1005, abs=1
    )  # the study's own way back was given its time


def _pressing(host: FakeHost, stops: Interrupts, at: float) -> Callable[[float], None]:
    sleep = host.clock.sleep

    def spend(seconds: float) -> None:
        sleep(seconds)
        if host.clock.monotonic() >= at and not stops.presses:
            stops.press(2)

    return spend


def test_ctrl_c_twice_in_a_runs_hook_interrupts_the_run(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, heard: Listener
) -> None:
    with_hooks(study, extra='[hooks.run]\nbefore = "x"\n', setup="[variants.synced]\n")
    stops = Interrupts()
    shell.seconds = 1000.0
    host.clock.sleep = _pressing(host, stops, at=5.0)  # type: ignore[method-assign, assignment]
    do(interrupts=stops)
    assert [status for _, status, _ in heard.runs] == ["interrupted"]


def test_commands_that_nobody_agreed_to_do_not_run(
    do: Do,
    host: FakeHost,
    study: Path,
    shell: FakeProgram,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with_hooks(study)
    with pytest.raises(StudyError, match="runs commands"):
        do(trusted=False)
    assert host.started == []
