# SPDX-License-Identifier: Apache-2.0
"""Steps of a rising load, told from logs and results written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.verdict import Level, Verdict
from iolab.formats.core.tables import FioLogTable, FioOutput
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.pool import pool_jobs
from iolab.formats.fio.seconds import overlaps, rates_between
from iolab.studies.results.derive.steps import pool_run, read_steps, step_runs, steps_of
from iolab.studies.results.evidence.marks import Mark
from iolab.studies.results.evidence.model import Run, RunPlan
from support.fio_files import job, output, write_run

T0 = 1_700_000_000
LEVELS = (1, 2, 4, 8)


def planned(
    *, apart: bool, every: float = 4.0, factor: str = "numjobs", levels: tuple[int, ...] = LEVELS
) -> list[dict[str, Any]]:
    names = [f"step{number}" for number in range(1, len(levels) + 1)]
    return [
        {
            "number": number,
            "levels": {factor: level},
            "start": (number - 1) * every,
            "end": number * every,
            "sections": [names[number - 1]] if apart else names[:number],
        }
        for number, level in enumerate(levels, 1)
    ]


def plan(steps: list[dict[str, Any]], **more: Any) -> RunPlan:
    seconds = steps[-1]["end"]
    return RunPlan(
        run="0001-aaaa",
        variant="v",
        factors={"bs": "4k"},
        block=3,
        runtime=seconds,
        jobs=8,
        depth=1,
        window=(T0 * 10**9, round((T0 + seconds) * 1e9)),
        extra={"steps": steps, "sections": len(steps), "concurrency": 3.75},
        **more,
    )


def log(
    start: float, end: float, value: float, threads: int = 1, every: float = 0.25
) -> FioLogTable:
    """Averages of one section: each thread's rows in turn, as one file has them."""
    ends = np.arange(start + every, end + 1e-9, every)
    time = T0 + np.tile(ends, threads)
    return FioLogTable(
        time,
        np.full(len(time), value),
        np.ones(len(time), np.int8),
        np.zeros(len(time), np.int64),
        averaged=True,
    )


def added() -> tuple[RunPlan, FioOutput, dict[tuple[str, str], FioLogTable]]:
    """Each thread does 100 writes a second of 4 KiB at 10 ms; 1, then 2, 4, 8 of them."""
    logs, entries = {}, []
    for number, threads in enumerate((1, 1, 2, 4), 1):
        begin = (number - 1) * 4.0
        entries.append(
            {
                **job(
                    jobs=threads,
                    iops=100.0 * threads,
                    runtime=16 - begin,
                    name=f"step{number}",
                    block=4096,
                    group=number,
                ),
                "job options": {"numjobs": str(threads)},
            }
        )
        for kind, value in (("iops", 100.0), ("bw", 400.0), ("lat", 1e7)):
            logs[f"step{number}", kind] = log(begin, 16.0, value, threads)
    return plan(planned(apart=False)), FioJson().read(output(*entries).encode(), "fio.json"), logs


def test_steps_that_add_are_told_by_the_logs_of_all_who_take_part() -> None:
    run, fio, logs = added()
    steps = steps_of(run, fio, "fio.json", logs)
    assert [dict(step.levels) for step in steps] == [{"numjobs": level} for level in LEVELS]
    for step, threads in zip(steps, LEVELS, strict=True):
        assert step.value("write.iops") == pytest.approx(100 * threads, rel=1e-6)
        assert step.value("write.bw") == pytest.approx(409_600 * threads, rel=1e-6)
        assert step.value("write.lat.mean") == pytest.approx(0.01)
        assert step.value("littles_law") == pytest.approx(1.0, rel=1e-6)
        assert step.value("write.clat.p99") is None
        assert (step.exact, step.facts.jobs) == (False, threads)


def test_latency_is_the_mean_over_ios_not_over_jobs() -> None:
    run, fio, logs = added()
    logs["step1", "iops"], logs["step1", "lat"] = log(0, 16, 900.0), log(0, 16, 1e6)
    second = steps_of(run, fio, "fio.json", logs)[1]
    assert second.value("write.iops") == pytest.approx(1000, rel=1e-6)
    assert second.value("write.lat.mean") == pytest.approx((900 * 0.001 + 100 * 0.01) / 1000)


def test_marks_say_when_a_step_began() -> None:
    run, fio, logs = added()
    old = logs["step1", "iops"]
    logs["step1", "iops"] = replace(old, value=np.where(old.time <= T0 + 6, 100.0, 1000.0))
    marks = [Mark((T0 + at) * 10**9, "step", "x") for at in (0, 6, 8, 12)]
    assert steps_of(run, fio, "fio.json", logs, marks)[1].value("write.iops") == pytest.approx(
        1100, rel=1e-6
    )
    assert steps_of(run, fio, "fio.json", logs)[1].start == 4.0


@pytest.mark.parametrize("missing", [("step2", "iops"), ("step1", "iops")])
def test_a_step_without_its_log_has_no_number(missing: tuple[str, str]) -> None:
    run, fio, logs = added()
    del logs[missing]
    steps = steps_of(run, fio, "fio.json", logs)
    assert steps[1].value("write.iops") is None
    assert steps[3].value("write.iops") is None
    assert (steps[0].value("write.iops") is None) is (missing[0] == "step1")


def test_a_log_without_the_wall_clock_tells_no_step() -> None:
    run, fio, logs = added()
    old = logs["step1", "iops"]
    logs["step1", "iops"] = FioLogTable(
        old.time - T0, old.value, old.operation, old.block_size_bytes, averaged=True
    )
    assert steps_of(run, fio, "fio.json", logs)[0].value("write.iops") is None


def apart(rates: tuple[float, ...] = (100.0, 200.0, 390.0, 400.0)) -> tuple[RunPlan, FioOutput]:
    entries = [
        {
            **job(
                jobs=1,
                iops=rate,
                runtime=4.0,
                latency_ns=1e6 * number**2,
                name=f"step{number}",
                group=number,
            ),
            "job options": {"rate_iops": str(100 * 2 ** (number - 1))},
        }
        for number, rate in enumerate(rates, 1)
    ]
    steps = planned(apart=True, factor="rate_iops", levels=(100, 200, 400, 800))
    return plan(steps), FioJson().read(output(*entries).encode(), "fio.json")


def test_steps_apart_are_fio_s_own_results() -> None:
    run, fio = apart()
    steps = steps_of(run, fio, "fio.json", {})
    assert [step.value("write.iops") for step in steps] == [100, 200, 390, 400]
    assert [step.value("offered.iops") for step in steps] == [100, 200, 400, 800]
    assert steps[3].value("write.clat.p99") == pytest.approx(3 * 16e-3 * 0.99, rel=1e-3)
    assert all(step.exact for step in steps)


def test_steps_are_runs_for_curves_with_their_own_saturation() -> None:
    run, fio = apart()
    whole = Run(run, evidence=Path("/nowhere"), observations={}, verdict=Verdict.of([]))
    found = step_runs(whole, steps_of(run, fio, "fio.json", {}))
    assert [(each.id, dict(each.factors), each.plan.block) for each in found] == [
        (f"0001-aaaa/step{number}", {"bs": "4k", "rate_iops": rate}, 3)
        for number, rate in ((1, 100), (2, 200), (3, 400), (4, 800))
    ]
    assert [[reason.code for reason in each.verdict.reasons] for each in found] == [
        [],
        [],
        [],
        ["saturated"],
    ]
    assert found[1].plan.window == ((T0 + 4) * 10**9, (T0 + 8) * 10**9)
    assert found[0].verdict.level is Level.OK


def test_a_run_s_own_rate_is_what_it_did_over_the_whole_window() -> None:
    run, fio = apart()
    pooled = pool_run(fio.jobs, run)
    assert pooled.directions["write"].iops == pytest.approx((100 + 200 + 390 + 400) / 4)
    assert pooled.directions["write"].runtime == pytest.approx(16)
    both, result, _ = added()
    assert pool_run(result.jobs, both).directions["write"].iops == pytest.approx(
        100 * (1 + 2 + 4 + 8) / 4
    )
    plain = RunPlan(run="x", variant="v", factors={})
    assert pool_run(fio.jobs, plain) == pool_jobs(fio.jobs)


def test_runs_without_steps_or_without_a_result_have_none(tmp_path: Any) -> None:
    run, fio = apart()
    assert steps_of(RunPlan(run="x", variant="v", factors={}), fio, "fio.json", {}) == ()
    assert steps_of(run, None, "", {}) == ()
    assert [
        step.number for step in steps_of(run, FioOutput(None, None, fio.jobs[:2]), "fio.json", {})
    ] == [1, 2]
    write_run(tmp_path / "r", "not json {", plan=run, fio__step1_bw_log="\x00\x01")
    assert read_steps(Run(run, tmp_path / "r", {}, Verdict.of([]))) == ()


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=40), st.floats(0, 8), st.floats(0.1, 8))
def test_a_mean_rate_lies_between_the_rates_it_is_of(
    values: list[float], begin: float, length: float
) -> None:
    ends = np.arange(1, len(values) + 1) * 0.25
    table = FioLogTable(
        np.asarray(T0 + ends, dtype=np.float64),
        np.array(values),
        np.ones(len(values), np.int8),
        np.zeros(len(values), np.int64),
        averaged=True,
    )
    found = rates_between([table], "iops", T0 + begin, T0 + begin + length).get("write", 0.0)
    assert -1e-6 <= found <= max(values) * (1 + 1e-5) + 1e-6
    assert overlaps(table, T0 + begin, T0 + begin + length).sum() <= length + 1e-5
