# SPDX-License-Identifier: Apache-2.0
"""The time of a load that ends when everything is moved: which runs have it, and what the gates
make of such runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan
from support.fio_files import job, output, write_run

SIZE = 4 * 10 * 1000 * 8192
"""What `job()` moves in ten seconds."""
PLAN = RunPlan(
    run="0001-aaaaaaaa",
    variant="master",
    factors={},
    jobs=4,
    runtime=60.0,
    exit_code=0,
    extra={"time_based": False},
)


def derived(
    tmp_path: Path,
    plan: RunPlan = PLAN,
    *,
    read: bool = False,
    extra: dict[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Derived:
    entry = job()
    if read:
        entry["read"], entry["write"] = entry["write"], entry["read"]
    plan = dataclasses.replace(plan, extra={**plan.extra, **(extra or {})})
    write_run(
        tmp_path,
        output(entry, **{"size": str(SIZE // 4), "numjobs": "4", **(options or {})}),
        plan=plan,
    )
    (tmp_path / "environment.json").write_text(
        json.dumps({"fingerprint": {}, "facts": {"memory_bytes": 2**34}})
    )
    return derive(tmp_path, plan)


def times(found: Derived) -> dict[str, float]:
    return {one.metric: one.value for one in found.observations if one.metric.endswith(".time")}


def codes(found: Derived) -> dict[str, Level]:
    return {reason.code: reason.level for reason in found.verdict.reasons}


def test_the_time_is_that_of_the_longest_job_by_fio_s_own_milliseconds(tmp_path: Path) -> None:
    found = derived(tmp_path)
    (time,) = (one for one in found.observations if one.metric == "write.time")
    assert (time.value, time.unit, time.source_value, time.source_unit) == (10.0, "s", 1e4, "ms")
    assert time.source_field == "jobs[0].write.runtime"
    late = job(runtime=12.0, iops=1000.0)
    late["write"]["io_bytes"] = SIZE // 4
    early = {**job(), "write": {**job()["write"], "io_bytes": SIZE * 3 // 4}}
    write_run(tmp_path / "two", output(early, late, size=str(SIZE // 4)), plan=PLAN)
    (time,) = (
        one for one in derive(tmp_path / "two", PLAN).observations if one.metric == "write.time"
    )
    assert (time.value, time.source_field) == (12.0, "longest of 2 jobs: write.runtime")


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        (dataclasses.replace(PLAN, extra={"time_based": True}), {}),  # it would have gone on
        (dataclasses.replace(PLAN, runtime=10.0), {}),  # its time was up
        (dataclasses.replace(PLAN, ramp=2.0), {}),  # a part was moved before the window
        (dataclasses.replace(PLAN, extra={"time_based": False, "sections": 2}), {}),
        (
            dataclasses.replace(PLAN, extra={}),
            {},
        ),  # a foreign run, which may have been ended by hand
        (PLAN, {"size": "1t"}),
        (PLAN, {"size": "100%"}),
        (PLAN, {"io_size": "1t"}),
    ],
)
def test_a_run_that_may_have_ended_otherwise_has_no_time(
    tmp_path: Path, plan: RunPlan, options: dict[str, Any]
) -> None:
    assert times(derived(tmp_path, plan, options=options)) == {}


def test_a_foreign_run_that_only_its_size_could_end_has_one(tmp_path: Path) -> None:
    assert times(derived(tmp_path, dataclasses.replace(PLAN, runtime=None, extra={}))) == {
        "write.time": 10.0
    }


def test_files_that_were_done_have_nothing_to_tell_of_their_limit_or_of_opening_them(
    tmp_path: Path,
) -> None:
    slow = output(job(latency_ns=0.5e6), size=str(SIZE // 4), numjobs="4")
    plan = dataclasses.replace(PLAN, extra={"time_based": False, "files": 40})
    write_run(tmp_path, slow, plan=plan)
    assert codes(derive(tmp_path, plan)) == {"time-outside-io": Level.OK}
    write_run(tmp_path / "fio", slow, plan=PLAN)
    assert codes(derive(tmp_path / "fio", PLAN)) == {
        "time-outside-io": Level.SUSPECT,
        "ended-by-size": Level.OK,
    }


def test_files_that_were_not_done_are_invalid(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, runtime=10.0, extra={"time_based": False, "files": 40})
    assert codes(derived(tmp_path, plan, options={"size": "1t"}))["runtime"] is Level.INVALID


@pytest.mark.parametrize(
    ("extra", "options", "words"),
    [
        ({}, {}, "a cache may have served them"),
        ({"cold": True}, {}, None),
        (
            {"cold": True},
            {"norandommap": "1"},
            "cold at the start, a cache may have served what was read again",
        ),
        (
            {"cold": True, "options": {"norandommap": True}},
            {},
            "cold at the start, a cache may have served what was read again",
        ),
        (
            {"cold": True},
            {"size": str(SIZE // 16)},
            "cold at the start, a cache may have served what was read again",
        ),
        (
            {"cold": True, "time_based": True},
            {},
            "cold at the start, a cache may have served what was read again",
        ),
    ],
)
def test_a_cold_cache_is_no_warm_one(
    tmp_path: Path, extra: dict[str, Any], options: dict[str, Any], words: str | None
) -> None:
    reasons = derived(tmp_path, read=True, extra=extra, options=options).verdict.reasons
    said = [reason.text for reason in reasons if reason.code == "fits-in-memory"]
    assert [text.partition(": ")[2] for text in said] == ([] if words is None else [words])
