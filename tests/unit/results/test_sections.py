# SPDX-License-Identifier: Apache-2.0
"""Sections of one fio result: a run is one of them, and nothing of the others is counted for it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan
from support.fio_files import iostat, job, output, write_run

IMPORTED = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
START = 1_700_000_000_000


def entries(*, started: bool = False, **options: str) -> list[dict[str, Any]]:
    """Three sections: 100, 2000 and 1000 + 3000 I/Os a second."""
    made = [
        {**job(name="seq", group=0, iops=100, jobs=1), "job options": options},
        {
            **job(name="rand", group=1, iops=2000, jobs=1),
            "job options": {"stonewall": "1", **options},
        },
        {
            **job(name="mix", group=2, iops=1000, jobs=1),
            "job options": {"stonewall": "1", "numjobs": "2", **options},
        },
        {
            **job(name="mix", group=2, iops=3000, jobs=1),
            "job options": {"stonewall": "1", "numjobs": "2", **options},
        },
    ]
    for each in made:
        each["write"]["lat_ns"]["N"] = each["write"]["clat_ns"]["N"] = each["write"]["total_ios"]
    if started:
        for position, each in enumerate(made):
            each["job_start"] = START + 10_000 * min(position, 2)
    return made


def plan(index: int, name: str) -> RunPlan:
    return dataclasses.replace(IMPORTED, extra={"section": {"index": index, "name": name}})


def value(derived: Derived, metric: str) -> float | None:
    return next((each.value for each in derived.observations if each.metric == metric), None)


@pytest.mark.parametrize(
    ("index", "name", "iops", "field"),
    [
        (0, "seq", 100, "jobs[0].write.iops"),
        (1, "rand", 2000, "jobs[1].write.iops"),
        (2, "mix", 4000, "sum of 2 jobs from jobs[2]: write.iops"),
    ],
)
def test_a_section_is_a_run(tmp_path: Path, index: int, name: str, iops: float, field: str) -> None:
    write_run(tmp_path, output(*entries()), plan=plan(index, name))
    derived = derive(tmp_path, plan(index, name))
    assert value(derived, "write.iops") == iops
    assert derived.verdict.level == Level.OK
    assert (
        next(each.source_field for each in derived.observations if each.metric == "write.iops")
        == field
    )


def test_the_name_counts_where_the_position_is_another(tmp_path: Path) -> None:
    write_run(tmp_path, output(*entries()), plan=plan(0, "rand"))
    assert value(derive(tmp_path, plan(0, "rand")), "write.iops") == 2000
    lost = derive(tmp_path, plan(0, "gone"))
    assert lost.verdict.level == Level.INVALID
    assert "no section 'gone': there are seq, rand, mix" in lost.verdict.reasons[0].text
    assert value(lost, "write.iops") is None


def test_sections_are_never_added_up(tmp_path: Path) -> None:
    write_run(tmp_path, output(*entries()), plan=IMPORTED)
    derived = derive(tmp_path, IMPORTED)
    assert [reason.code for reason in derived.verdict.reasons] == ["sections"]
    assert derived.verdict.level == Level.INVALID
    assert (
        "3 sections that ran one after another (seq, rand, mix)" in derived.verdict.reasons[0].text
    )
    assert value(derived, "write.iops") is None


def test_groups_that_ran_together_are_one_run(tmp_path: Path) -> None:
    together = [
        {**job(name=name, group=group, iops=100, jobs=1), "elapsed": 11}
        for group, name in enumerate(("a", "b"))
    ]
    write_run(tmp_path, output(*together), plan=IMPORTED)
    derived = derive(tmp_path, IMPORTED)
    assert value(derived, "write.iops") == 200
    assert derived.verdict.level == Level.OK


def test_a_run_made_here_is_one_measurement_whatever_its_groups(tmp_path: Path) -> None:
    made = RunPlan(
        run="0001-aaaaaaaa",
        variant="a",
        factors={},
        jobs=4,
        depth=1,
        extra={"sections": 3, "concurrency": 4.0},
    )
    write_run(tmp_path, output(*entries()), plan=made)
    assert value(derive(tmp_path, made), "write.iops") == 6100


def diskstats() -> str:
    """Readings of 30 s from the first section's start: 100, 200 and 300 writes a second."""
    lines, writes = ["# iolab diskstats 1"], 0
    for second in range(31):
        lines += [
            f"@ {START * 10**6 + second * 10**9} {second * 10**9}",
            f"   8 0 sda 0 0 0 0 {writes} 0 {8 * writes} 0 0 {500 * second} 0",
        ]
        writes += 100 * (1 + second // 10)
    return "\n".join(lines) + "\n"


def test_samples_count_for_the_section_in_which_they_were_taken(tmp_path: Path) -> None:
    write_run(
        tmp_path, output(*entries(started=True)), plan=plan(1, "rand"), diskstats_log=diskstats()
    )
    for index, name in enumerate(("seq", "rand", "mix")):
        derived = derive(tmp_path, plan(index, name))
        assert value(derived, "device.write.iops") == pytest.approx(100 * (1 + index))
        assert derived.verdict.level == Level.OK


@pytest.mark.parametrize("started", [True, False])
def test_samples_that_may_be_another_section_s_are_left_out(tmp_path: Path, started: bool) -> None:
    """Neither samples without a clock, nor any where the result doesn't say when its sections ran."""
    evidence = (
        {"iostat_txt": iostat([(100.0, 10.0)] * 30)} if started else {"diskstats_log": diskstats()}
    )
    write_run(tmp_path, output(*entries(started=started)), plan=plan(1, "rand"), **evidence)
    derived = derive(tmp_path, plan(1, "rand"))
    assert value(derived, "write.iops") == 2000
    assert not [each for each in derived.observations if each.metric.startswith("device.")]
    assert any(
        "left out: when section 'rand' ran isn't known" in each for each in derived.assumptions
    )
    write_run(tmp_path / "one", output(entries()[0]), plan=IMPORTED, **evidence)
    assert [
        each
        for each in derive(tmp_path / "one", IMPORTED).observations
        if each.metric.startswith("device.")
    ]


def log(rate: int) -> str:
    return "".join(f"{1000 * second}, {rate}, 1, 0, 0\n" for second in range(1, 11))


def rates(derived: Derived) -> list[float]:
    return [float(each.values[3]) for each in derived.series if each.name == "write.iops"]


def test_logs_belong_to_sections_by_number(tmp_path: Path) -> None:
    logs = {
        f"x_iops.{number}.log": log(rate) for number, rate in enumerate((100, 2000, 1000, 3000), 1)
    }
    write_run(tmp_path, output(*entries()), plan=plan(2, "mix"))
    for name, text in logs.items():
        (tmp_path / name).write_text(text)
    assert rates(derive(tmp_path, plan(0, "seq"))) == [100.0]
    assert rates(derive(tmp_path, plan(2, "mix"))) == [4000.0]


def test_logs_belong_to_sections_by_name(tmp_path: Path) -> None:
    write_run(tmp_path, output(*entries()), plan=plan(1, "rand"))
    for name, rate in (("seq", 100), ("rand", 2000)):
        (tmp_path / f"{name}_iops.log").write_text(log(rate))
    assert rates(derive(tmp_path, plan(1, "rand"))) == [2000.0]


def test_logs_whose_section_is_unknown_are_left_out(tmp_path: Path) -> None:
    write_run(tmp_path, output(*entries()), plan=plan(1, "rand"))
    (tmp_path / "all_iops.log").write_text(log(500))
    derived = derive(tmp_path, plan(1, "rand"))
    assert rates(derived) == []
    assert any("all_iops.log is left out" in each for each in derived.assumptions)


@pytest.mark.parametrize(
    "text",
    [
        '{"fio version": "fio-3.33", "jobs": []}',
        '{"fio version": "fio-3.7", "client_stats": [{"jobname": "All clients", "groupid": 0}]}',
    ],
)
@pytest.mark.parametrize(
    "which",
    [IMPORTED, plan(0, "seq"), dataclasses.replace(IMPORTED, status="finished", jobs=1, depth=1)],
)
def test_an_empty_result_costs_its_run(tmp_path: Path, text: str, which: RunPlan) -> None:
    write_run(tmp_path, text, plan=which)
    derived = derive(tmp_path, which)
    assert derived.verdict.level == Level.INVALID
    assert (
        "no job" in derived.verdict.reasons[0].text
        or "no section" in derived.verdict.reasons[0].text
    )
    assert derived.observations == ()
