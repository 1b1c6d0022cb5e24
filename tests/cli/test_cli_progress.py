# SPDX-License-Identifier: Apache-2.0
"""What a study says on stderr while it runs."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from iolab.cli.study.progress import (
    Bar,
    clock_text,
    count_text,
    live_text,
    shared_progress,
    values_text,
)
from iolab.studies.plan.cells.plan import Plan, plan_runs
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.run.progress import Outcome
from support.acting import study_text
from support.golden import Golden


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(study_text(order="as-written"), "utf-8")
    return load_study(path)


@pytest.fixture
def plan(study: Study) -> Plan:
    return plan_runs(study, lambda cell: 3.0)


def console(*, terminal: bool) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=200,
        highlight=False,
        color_system=None,
        legacy_windows=False,
    )


def text_of(screen: Console) -> str:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_a_line_per_run_has_the_rate_and_that_of_the_block_before(
    study: Study, plan: Plan, golden: Golden
) -> None:
    screen = console(terminal=False)
    with Bar(screen) as bar:
        bar.begin_study(study, plan, Path("out"))
        for run, rate in zip(
            (plan.runs[0], plan.runs[1], plan.runs[4], plan.runs[5]),
            (1190.0, 5000.0, 1240.4, 5100.0),
            strict=True,
        ):
            bar.begin_run(run, f"{run.number:04d}-x")
            bar.update_run(run, 1.0, 2.0, {})
            bar.end_run(run, "finished", "", 60.0, {"write.iops": rate})
        bar.outcome(Outcome(Path("out"), 4, 0, 4, True, 12.0))
    golden("cli/progress", text_of(screen))


def test_a_terminal_shows_the_devices_rate_against_the_same_cells_mean_in_the_block_before(
    study: Study, plan: Plan
) -> None:
    screen = console(terminal=True)
    with Bar(screen) as bar:
        bar.begin_study(study, plan, Path("out"))
        bar.begin_run(plan.runs[0], "0001-x")
        for rate in (100.0, 100.0, 300.0):
            bar.update_run(plan.runs[0], 1.0, 2.0, {"device.iops": rate})
        bar.end_run(plan.runs[0], "finished", "", 60.0, {"write.iops": 150.0})
        bar.begin_run(plan.runs[4], "0005-x")
        bar._progress.refresh()
        bar.update_run(plan.runs[4], 1.0, 2.0, {"device.iops": 250.0})
        bar._progress.refresh()
        bar.end_run(plan.runs[4], "failed", "exit code 1", 60.0, {})
    shown = text_of(screen)
    assert "block before: write 150.0 IOPS" in shown  # until the device has told something
    assert "250.0 IOPS at the device (block before: 200.0)" in shown
    assert "run 5 of 8, block 2: plain numjobs=1: failed: exit code 1" in shown


def test_a_failed_run_is_no_ghost(study: Study, plan: Plan) -> None:
    screen = console(terminal=False)
    with Bar(screen) as bar:
        bar.begin_study(study, plan, Path("out"))
        for number, status in ((0, "finished"), (4, "failed"), (4, "finished")):
            bar.begin_run(plan.runs[number], "x")
            bar.end_run(plan.runs[number], status, "why", 0.0, {"read.iops": 100.0 + number})  # type: ignore[arg-type]
    assert (
        text_of(screen)
        .splitlines()[-1]
        .endswith("read 104.0 IOPS (block before: 100.0), 0:00 left")
    )


def test_both_directions_are_told_and_nothing_else() -> None:
    assert values_text(
        {"read.iops": 10.0, "write.iops": 5.0, "write.lat.mean": 0.1}, {"write.iops": 4.0}
    ) == ("read 10.00 IOPS, write 5.000 IOPS (block before: 4.000)")
    assert values_text({}, None) == ""
    assert live_text({"device.bw": 5.0}, 3.0) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (65, "1:05"), (7390, "2:03:10"), (-3, "0:00")]
)
def test_times_read_as_clocks(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_one_is_no_plural() -> None:
    assert (count_text(1, "run"), count_text(2, "run"), count_text(0, "block")) == (
        "1 run",
        "2 runs",
        "0 blocks",
    )


@pytest.mark.parametrize("terminal", [False, True])
def test_hosts_side_by_side_are_named_and_one_that_ends_leaves_the_others_alone(
    terminal: bool, study: Study, plan: Plan
) -> None:
    screen = console(terminal=terminal)
    with shared_progress(screen) as progress:
        first, other = (Bar(screen, host=name, progress=progress) for name in ("a", "b"))
        for bar in (first, other):
            bar.begin_study(study, plan, Path("out"))
            bar.begin_run(plan.runs[0], "0001-x")
        first.outcome(Outcome(Path("out/a"), 1, 0, 7, True, 12.0))
        other.update_run(plan.runs[0], 1.0, 2.0, {})
        progress.refresh()
        other.end_run(plan.runs[0], "failed", "exit code 1", 60.0, {})
        other.outcome(Outcome(Path("out/b"), 0, 1, 7, True, 12.0))
        assert (first.result is not None, other.result is not None) == (True, True)
    shown = text_of(screen)
    assert "a: small: 8 runs in 2 blocks" in shown
    assert "a: stopped in 0:12: 1 run finished, 7 not done; results in out/a" in shown
    assert "b: run 1 of 8, block 1: plain numjobs=1: failed: exit code 1" in shown


def test_names_of_variants_are_neither_colours_nor_what_a_terminal_obeys(
    study: Study, plan: Plan
) -> None:
    screen = console(terminal=True)
    run = replace(plan.runs[0], cell=replace(plan.runs[0].cell, variant="[/x]\x1b[32m"))
    with Bar(screen) as bar:
        bar.begin_study(study, plan, Path("out"))
        bar.begin_run(run, "0001-x")
        bar._progress.refresh()
        bar.end_run(run, "failed", "no \x9b2J", 0.0)
    assert "block 1 of 2: [/x]\\x1b[32m numjobs=1" in text_of(screen)
    assert "[/x]\\x1b[32m numjobs=1: failed: no \\x9b2J" in text_of(screen)
    assert "\x1b[32m" not in text_of(screen)
