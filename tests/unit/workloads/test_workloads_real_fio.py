# SPDX-License-Identifier: Apache-2.0
"""Job files and rising loads through the whole of iolab, with the real fio."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.studies.compare.load.curves import curves
from iolab.studies.results.derive.steps import read_steps, step_runs
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.marks import read_marks
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from support.narrow import present

pytestmark = pytest.mark.fio

STEPS = """
[study]
repetitions = 1
[workload]
kind = "fio"
ramp = "200ms"
[workload.options]
rw = "randwrite"
bs = "4k"
size = "1m"
overwrite = 1
{options}
[workload.steps]
factor = "{factor}"
levels = {levels}
every = "4s"
"""


def study(tmp_path: Path, text: str) -> Results:
    path = tmp_path / "study.toml"
    path.write_text(text, "utf-8")
    return Results(run_study(path, tmp_path / "out"))


def test_threads_are_added_and_each_step_is_measured(fio: str, tmp_path: Path) -> None:
    """Each thread is held to a rate, so that what each step must show is known."""
    run = study(
        tmp_path, STEPS.format(factor="numjobs", levels="[1, 2, 4]", options="rate_iops = 100")
    ).runs[0]
    assert run.verdict.level is not Level.INVALID, [reason.text for reason in run.verdict.reasons]
    steps = read_steps(run)
    assert [dict(step.levels) for step in steps] == [{"numjobs": 1}, {"numjobs": 2}, {"numjobs": 4}]
    for step, threads in zip(steps, (1, 2, 4), strict=True):
        # a thread can start late on a busy machine; steps differ by a factor of two
        assert step.value("write.iops") == pytest.approx(100 * threads, rel=0.3)
        assert step.value("write.bw") == pytest.approx(4096 * 100 * threads, rel=0.3)
        assert 0 < present(step.value("write.lat.mean")) < 0.5
        assert not step.exact
    assert run.value("write.iops") == pytest.approx(100 * 7 / 3, rel=0.2)
    assert run.value("offered.iops") == pytest.approx(100 * 7 / 3)
    begins = [mark.time_ns for mark in read_marks(run.evidence) if mark.kind == "step"]
    assert [after - before for before, after in pairwise(begins)] == [4_000_000_000] * 2
    assert run.plan.window is not None
    assert begins[0] == run.plan.window[0]


def test_a_rising_rate_is_told_by_fio_itself_and_draws_a_curve(fio: str, tmp_path: Path) -> None:
    opened = study(tmp_path, STEPS.format(factor="rate_iops", levels="[50, 100, 200]", options=""))
    run = opened.runs[0]
    assert run.verdict.level is not Level.INVALID, [reason.text for reason in run.verdict.reasons]
    steps = read_steps(run)
    assert all(step.exact and step.value("write.clat.p99") for step in steps)
    assert [step.value("write.iops") for step in steps] == pytest.approx([50, 100, 200], rel=0.1)
    assert run.value("write.iops") == pytest.approx(350 / 3, rel=0.1)
    runs = step_runs(run, steps)
    assert [each.factors["rate_iops"] for each in runs] == [50, 100, 200]
    assert runs[0].id == f"{run.id}/step1"
    drawn = curves(runs)
    assert drawn.load == "rate_iops"
    assert [point.load for point in drawn.curves[0].points] == [50.0, 100.0, 200.0]


def test_a_job_file_of_two_sections_runs_and_both_are_in_the_result(
    fio: str, tmp_path: Path
) -> None:
    (tmp_path / "mixed.fio").write_text("""; two at once
[global]
directory=/nowhere
size=1m
bs=4k
runtime=1
time_based
direct=false
use_os_rand=1
[readers]
rw=randread
numjobs=2
rate_iops=50
[writer]
rw=randwrite
rate_iops=30
""")
    run = study(
        tmp_path, '[study]\nrepetitions = 1\n[workload]\nkind = "fio"\njob_file = "mixed.fio"\n'
    ).runs[0]
    assert run.verdict.level is not Level.INVALID, [reason.text for reason in run.verdict.reasons]
    # a section that is missing or counted twice changes a rate by at least 50 %
    assert run.value("read.iops") == pytest.approx(100, rel=0.3)
    assert run.value("write.iops") == pytest.approx(30, rel=0.3)
    assert run.value("offered.iops") == 130
    assert (run.plan.jobs, run.plan.runtime) == (3, 1.0)
    assert {"given.fio", "job.fio"} <= {path.name for path in run.evidence.iterdir()}


def test_a_load_that_ends_by_its_size_is_no_short_run(fio: str, tmp_path: Path) -> None:
    run = study(
        tmp_path,
        """
[study]
repetitions = 1
[workload]
kind = "fio"
runtime = "20s"
time_based = false
options = {rw = "write", bs = "64k", size = "2m", end_fsync = 1}
compressibility = 50
""",
    ).runs[0]
    assert run.value("write.bytes") == 2 << 20
    assert "ended-by-size" in [reason.code for reason in run.verdict.reasons]
    assert run.verdict.level is not Level.INVALID


def test_files_of_small_blocks_are_laid_out_in_large_ones(fio: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        '[study]\nrepetitions = 1\n[workload]\nkind = "fio"\nruntime = "1s"\n'
        'options = {size = "256m", rw = "randread", bs = "1"}\n'
    )
    begin = time.monotonic()
    out = run_study(file, tmp_path / "out")
    assert time.monotonic() - begin < 60  # 268 million writes of a byte take some minutes
    run = next(iter(run_directories(out)))
    plan = read_plan(run)
    assert plan.status == "finished"
    assert "bs=1048576" in (run / "layout.fio").read_text()
    assert "bs=1\n" in (run / "job.fio").read_text()
