# SPDX-License-Identifier: Apache-2.0
"""Limits of systems, on runs made by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import UsageError
from iolab.base.verdict import Level, Reason, Verdict
from iolab.studies.compare.load.limits import find_limits
from iolab.studies.compare.render.limits import FORMATS, render_limits
from iolab.studies.results.evidence.model import Observation, Run, RunPlan

LOADS = (1, 2, 4, 8)


def run(
    system: str, block: int, values: dict[str, float], level: Level = Level.OK, **factors: Any
) -> Run:
    name = f"{block}-{system}-{'-'.join(map(str, factors.values()))}"
    plan = RunPlan(run=name, variant=system, factors=factors, repetition=block, block=block)
    observations = {
        metric: Observation(metric, value, "", "fio.json", "") for metric, value in values.items()
    }
    reasons = [] if level is Level.OK else [Reason("stall", level, "stalled")]
    return Run(plan, Path("runs") / name, observations, Verdict.of(reasons))


def sweep(system: str = "a", top: float = 4000.0, **factors: Any) -> list[Run]:
    """1,000 IOPS for each job, `top` at most; two blocks, 1 % apart."""
    runs = []
    for block in (1, 2):
        for jobs in LOADS:
            rate = min(1000.0 * jobs, top) * (1 + 0.01 * (block - 1))
            values = {
                "read.iops": rate,
                "read.bw": 4096 * rate,
                "host.cpu.busy": min(1.0, jobs / 4),
                "host.cpu.busiest": 1.0,
            }
            runs.append(run(system, block, values, **factors, numjobs=jobs))
    return runs


def test_a_limit_is_at_the_least_load_that_reaches_it() -> None:
    [limit] = find_limits(sweep()).limits
    assert (limit.level, limit.count, limit.is_growing, limit.operation) == (4, 2, False, "read")
    assert (limit.low, limit.high) == (4000, 4040)
    assert limit.iops == pytest.approx(4000 * 1.01**0.5)
    assert limit.bw == pytest.approx(4096 * limit.iops)
    assert limit.busy == {"CPU": 1.0, "busiest CPU": 1.0}
    assert limit.saturation == ("CPU",)


def test_a_link_near_its_speed_is_a_limit() -> None:
    runs = [
        run("a", 1, {"read.iops": rate, "host.net.util": util, "device.util": 0.1}, clients=clients)
        for clients, rate, util in ((1, 50.0, 0.5), (2, 92.0, 0.92), (4, 93.0, 0.93))
    ]
    [limit] = find_limits(runs, "clients").limits
    assert (limit.level, limit.saturation) == (2, ("link",))


def test_a_rate_that_still_grows_is_no_limit() -> None:
    [limit] = find_limits(sweep(top=1e9)).limits
    assert (limit.level, limit.is_growing) == (8, True)
    [single] = find_limits([item for item in sweep() if item.factors["numjobs"] in (1, 2)]).limits
    assert (single.level, single.saturation, single.is_growing) == (2, ("busiest CPU",), True)


def test_zipped_factors_name_a_cell_once() -> None:
    runs = [
        *sweep(limit="stream", bs="1m", room=4),
        *sweep(limit="random", bs="4k", room=4, top=2000),
    ]
    limits = find_limits(runs)
    assert limits.factors == ("limit",)
    assert {limit.cell: limit.level for limit in limits.limits} == {("random",): 2, ("stream",): 4}


def test_invalid_runs_do_not_count() -> None:
    invalid = run("a", 3, {"read.iops": 1e9, "read.bw": 1e9}, Level.INVALID, numjobs=8)
    assert find_limits([*sweep(), invalid]).limits == find_limits(sweep()).limits
    suspect = run("a", 3, {"read.iops": 4000.0}, Level.SUSPECT, numjobs=4)
    assert find_limits([*sweep(), suspect]).limits[0].verdict is Level.SUSPECT


def test_a_larger_load_without_a_valid_run_leaves_the_limit_open() -> None:
    runs = [item for item in sweep(top=1e9) if item.factors["numjobs"] <= 2]
    invalid = run("a", 1, {"read.iops": 9.0, "read.bw": 9.0}, Level.INVALID, numjobs=4)
    limits = find_limits([*runs, invalid])
    [limit] = limits.limits
    assert (limit.level, limit.is_growing, limit.unknown_levels) == (2, False, (4.0,))
    assert "numjobs 4 INVALID" in render_limits(limits, "text")
    [row] = csv.DictReader(io.StringIO(render_limits(limits, "csv")))
    assert row["unknown_loads"] == "4"
    # A smaller load cannot be the limit.
    smaller = run("a", 1, {"read.iops": 9.0, "read.bw": 9.0}, Level.INVALID, numjobs=0.5)
    assert find_limits([*runs, smaller]).limits == find_limits(runs).limits


def test_systems_are_rows_of_one_table() -> None:
    limits = find_limits([*sweep("a"), *sweep("b", top=8000), *sweep("b", top=8000, numa=1)])
    assert [(limit.system, limit.level) for limit in limits.limits if limit.cell == (None,)] == [
        ("a", 4),
        ("b", 8),
    ]
    text = render_limits(limits, "text")
    assert "system" in text.splitlines()[0]
    assert "still growing" in text
    assert "system" not in render_limits(find_limits(sweep()), "text").splitlines()[0]


def test_programs_read_the_same_numbers() -> None:
    limits = find_limits(sweep())
    [record] = json.loads(render_limits(limits, "json"))["limits"]
    [row] = csv.DictReader(io.StringIO(render_limits(limits, "csv")))
    assert record["iops"] == limits.limits[0].iops == float(row["iops"])
    assert record["numjobs"] == 4 == float(row["numjobs"])
    assert record["still_growing"] is False
    assert record["saturated"] == ["CPU"]
    assert row["saturated"] == "CPU"


def test_names_in_a_table_are_escaped() -> None:
    text = render_limits(find_limits([*sweep("<b>|x"), *sweep("y")]), "markdown")
    assert "<b>" not in text
    assert (
        text.splitlines()[2].count("|") - text.splitlines()[2].count("\\|")
        == len(text.splitlines()[1].split("|")) - 1
    )


def test_what_has_no_limits_is_refused() -> None:
    with pytest.raises(UsageError, match="no factor is a load"):
        find_limits([run("a", 1, {"read.iops": 1.0}, numjobs=1)])
    with pytest.raises(UsageError, match="unknown factor"):
        find_limits(sweep(), "jobs")
    with pytest.raises(UsageError, match="no run has a rate"):
        find_limits([run("a", 1, {}, numjobs=jobs) for jobs in LOADS])
    with pytest.raises(UsageError, match="there is no run"):
        find_limits([])
    with pytest.raises(UsageError, match="can't be written as benchstat"):
        render_limits(find_limits(sweep()), "benchstat")
    assert "benchstat" not in FORMATS
