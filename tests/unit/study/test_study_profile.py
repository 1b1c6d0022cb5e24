# SPDX-License-Identifier: Apache-2.0
"""`[profile]`: which cells, when, and what is refused; the runs that it adds behind the measured
ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.cells.plan import plan_runs
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.problems import StudyProblems
from support.acting import study_text


def loaded(
    tmp_path: Path, table: str, *, runtime: str = "20s", changes: Changes | None = None
) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(
        study_text(extra=table).replace('runtime = "2s"', f'runtime = "{runtime}"'), "utf-8"
    )
    return load_study(path, changes)


def refused(tmp_path: Path, table: str, *, runtime: str = "20s") -> list[str]:
    with pytest.raises(StudyProblems) as caught:
        loaded(tmp_path, table, runtime=runtime)
    return [f"{each.key}: {each.wrong}; {each.allowed}" for each in caught.value.problems]


def test_profiling_runs_stand_behind_all_blocks_and_change_nothing_of_them(tmp_path: Path) -> None:
    plan = plan_runs(loaded(tmp_path, "[profile]\ncells = [{numjobs = 4}]\n"), lambda cell: 1.0)
    without = plan_runs(loaded(tmp_path, ""), lambda cell: 1.0)
    assert [(run.number, run.block, run.cell.identity()) for run in plan.measured_runs] == [
        (run.number, run.block, run.cell.identity()) for run in without.runs
    ]
    assert [(run.number, run.block) for run in plan.profiles] == [(9, 3), (10, 3)]
    assert plan.runs[-2:] == plan.profiles
    assert {run.cell.variant for run in plan.profiles} == {"plain", "synced"}
    assert all(run.cell.factors == {"numjobs": 4} for run in plan.profiles)
    assert len(plan.run_seconds) == len(plan.runs)


def test_all_cells_unless_some_are_named_and_none_where_none_is_wanted(tmp_path: Path) -> None:
    study = loaded(tmp_path, "[profile]\n")
    assert len(plan_runs(study, lambda cell: 1.0).profiles) == 4
    assert plan_runs(study, lambda cell: 1.0, profiles=False).profiles == ()
    assert plan_runs(loaded(tmp_path, ""), lambda cell: 1.0).profiles == ()


def test_cells_that_only_leaves_out_are_not_profiled(tmp_path: Path) -> None:
    study = loaded(
        tmp_path,
        "[profile]\ncells = [{numjobs = [1, 4]}]\n",
        changes=Changes(only={"numjobs": ("1",)}),
    )
    assert [run.cell.factors for run in plan_runs(study, lambda cell: 1.0).profiles] == [
        {"numjobs": 1}
    ] * 2


@pytest.mark.parametrize(
    ("keys", "runtime", "span"),
    [
        ("", 20.0, (2.0, 16.0)),
        ("", 100.0, (10.0, 30.0)),
        ("", 5.0, (0.5, 3.5)),
        ("after = 3\n", 20.0, (3.0, 15.0)),
        ('seconds = "5s"\n', 20.0, (2.0, 5.0)),
        ("after = 0\nseconds = 20\n", 20.0, (0.0, 20.0)),
    ],
)
def test_the_middle_of_a_window_is_sampled_unless_said_otherwise(
    tmp_path: Path, keys: str, runtime: float, span: tuple[float, float]
) -> None:
    study = loaded(tmp_path, f"[profile]\n{keys}")
    assert study.profiling is not None
    assert study.profiling.span(runtime) == pytest.approx(span)
    assert study.profiling.frequency == 99


def test_what_is_wrong_is_said_with_its_key(tmp_path: Path) -> None:
    assert refused(tmp_path, "[profile]\ncells = [{numjobs = 5}, {jobs = 1}]\n") == [
        "profile.cells.0.numjobs: is 5, which is not a level of it; one of 1, 4",
        "profile.cells.1.jobs: is not a factor of the study; did you mean 'numjobs'? there are: numjobs",
    ]
    assert refused(tmp_path, "[profile]\nfrequency = 0\n") == [
        "profile.frequency: is 0; at least 1"
    ]
    for cells in ('"some"', "[]", "[{}]", "3"):
        [problem] = refused(tmp_path, f"[profile]\ncells = {cells}\n")
        assert problem.startswith("profile.cells: is ")
        assert '"all", or tables of levels' in problem


def test_what_is_sampled_must_lie_within_the_window(tmp_path: Path) -> None:
    allowed = "what is sampled must lie within 20 s"
    assert refused(tmp_path, "[profile]\nafter = 15\nseconds = 6\n") == [
        f"profile.seconds: leads past the end of the measured window; {allowed}"
    ]
    assert refused(tmp_path, "[profile]\nafter = 19\n") == [
        f"profile.after: leads past the end of the measured window; {allowed}"
    ]
    assert refused(tmp_path, "[profile]\n", runtime="1s")


def test_the_manifest_has_it_and_one_without_stays_as_it_was(tmp_path: Path) -> None:
    resolved = loaded(tmp_path, "[profile]\ncells = [{numjobs = 4}]\nseconds = 5\n").as_data()
    assert resolved["profile"] == {
        "cells": [{"numjobs": 4}],
        "after": None,
        "seconds": 5.0,
        "frequency": 99,
    }
    assert "profile" not in loaded(tmp_path, "").as_data()
