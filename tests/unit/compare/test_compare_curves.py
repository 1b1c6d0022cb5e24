# SPDX-License-Identifier: Apache-2.0
"""Throughput against latency on runs made by hand: curves, knees, and comparisons at equal load."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.base.stats.curves.knee import KneeEstimate, NoKnee
from iolab.base.stats.curves.scalability import NoFit, UslFit
from iolab.base.verdict import Level, Reason, Verdict
from iolab.studies.compare.load.curve_model import Curve, Curves
from iolab.studies.compare.load.curves import curves
from iolab.studies.compare.render.knees import render_knees
from iolab.studies.results.evidence.model import Observation, Run, RunPlan
from support.narrow import present

LOADS = (1, 2, 4, 8, 16, 32, 64)


def run(
    variant: str,
    repetition: int,
    factors: dict[str, Any],
    values: dict[str, float],
    *,
    level: Level = Level.OK,
    saturated: bool = False,
    offered: float | None = None,
) -> Run:
    reasons = [Reason("saturated", Level.OK, "saturated")] if saturated else []
    if level is not Level.OK:
        reasons.append(Reason("stall", level, "stalled"))
    name = f"{repetition}-{variant}-{'-'.join(str(level) for level in factors.values())}"
    plan = RunPlan(
        run=name,
        variant=variant,
        factors=factors,
        repetition=repetition,
        block=repetition,
        offered_iops=offered,
    )
    observations = {
        metric: Observation(metric, value, "", "fio.json", "") for metric, value in values.items()
    }
    return Run(plan, Path("runs") / name, observations, Verdict.of(reasons))


def closed_loop(load: float, peak: float, service: float = 1e-3) -> tuple[float, float]:
    """Throughput and latency of `load` jobs that obey Little's law."""
    throughput = 1 / ((service / load) ** 4 + (1 / peak) ** 4) ** 0.25
    return throughput, load / throughput


TWO_ARMS = (("master", 10_000.0), ("project", 20_000.0))


def sweep(
    repetitions: int = 5,
    noise: float = 0.02,
    arms: tuple[tuple[str, float], ...] = TWO_ARMS,
    **fixed: Any,
) -> list[Run]:
    random = np.random.default_rng(1)
    runs = []
    for repetition in range(1, repetitions + 1):
        for load in LOADS:
            for variant, peak in arms:
                throughput, latency = closed_loop(load, peak)
                factor = math.exp(random.normal(0, noise))
                values = {
                    "write.iops": throughput * factor,
                    "write.bw": throughput * factor * 8192,
                    "write.lat.mean": latency / factor,
                }
                runs.append(run(variant, repetition, {"numjobs": load, **fixed}, values))
    return runs


def only(found: Curves, variant: str) -> Curve:
    curve = found.curve((), variant)
    assert curve is not None
    return curve


def test_points_are_geometric_means_in_order_of_load() -> None:
    runs = sweep()
    found = curves(list(reversed(runs)), baseline="master")
    assert (found.operation, found.load) == ("write", "numjobs")
    assert (found.throughput.name, found.latency.name) == ("write.iops", "write.lat.mean")
    assert (found.baseline, found.variants, found.tables, found.table_levels) == (
        "master",
        ("master", "project"),
        (),
        ((),),
    )
    curve = only(found, "master")
    assert [point.load for point in curve.points] == list(LOADS)
    values = [
        present(each.value("write.iops"))
        for each in runs
        if each.variant == "master" and each.factors["numjobs"] == 8
    ]
    point = curve.points[3]
    assert point.throughput.value == pytest.approx(math.exp(np.mean(np.log(values))))
    low, value, high = point.throughput.low, point.throughput.value, point.throughput.high
    assert present(low) < present(value) < present(high)
    assert (point.n, point.level, point.saturated) == (5, Level.OK, False)
    assert len(point.throughput.runs) == len(point.latency.values) == 5


def test_each_variant_has_its_knee_and_its_law() -> None:
    found = curves(sweep())
    slow, fast = only(found, "master"), only(found, "project")
    assert isinstance(slow.knee, KneeEstimate)
    assert isinstance(fast.knee, KneeEstimate)
    assert (slow.knee.with_knee, slow.knee.repetitions) == (5, 5)
    assert slow.knee.load in (8, 16)
    assert fast.knee.load in (16, 32)
    assert fast.knee.throughput > 1.5 * slow.knee.throughput
    assert isinstance(slow.usl, UslFit)
    assert slow.usl.levels == 7
    assert slow.usl.relative_error < 0.2


def test_at_equal_load_the_change_is_measured_block_by_block() -> None:
    (pair,) = curves(sweep()).equal
    assert pair.variant == "project"
    assert len(pair.latency_at) == len(pair.throughput_at) == 5
    for matched in pair.latency_at:
        assert matched.change.value == pytest.approx(matched.variant / matched.baseline - 1)
        assert matched.change.pairs == 5
        assert present(matched.change.low) < matched.change.value < present(matched.change.high)
    # near the slow arm's peak the fast one waits far less, and has more at the same latency
    assert pair.latency_at[-1].change.value < -0.1
    assert pair.latency_at[-1].change.improves is True
    assert pair.throughput_at[-1].change.value > 0.3
    assert pair.throughput_at[-1].change.improves is True


def test_arms_that_do_not_differ_do_not_differ_at_equal_load() -> None:
    (pair,) = curves(sweep(arms=(("a", 10_000), ("b", 10_000)))).equal
    for matched in (*pair.latency_at, *pair.throughput_at):
        assert present(matched.change.low) < 0 < present(matched.change.high)


def test_a_block_far_off_leaves_and_does_not_take_the_comparison_with_it() -> None:
    runs = sweep()
    for place, each in enumerate(runs):
        if each.variant == "project" and each.plan.repetition == 1:
            values = {
                name: present(each.value(name)) / 1000 for name in ("write.iops", "write.lat.mean")
            }
            runs[place] = run("project", 1, dict(each.factors), values)
    (pair,) = curves(runs).equal
    assert len(pair.latency_at) == len(pair.throughput_at) == 5
    assert all(
        (matched.change.pairs, matched.change.dropped) == (4, 1) for matched in pair.latency_at
    )


def test_blocks_that_have_nothing_in_common_are_compared_where_the_middle_one_lies() -> None:
    runs = []
    for each in sweep(repetitions=3):
        scale = 100.0 ** (each.plan.repetition - 2)
        values = {
            "write.iops": present(each.value("write.iops")) * scale,
            "write.lat.mean": present(each.value("write.lat.mean")) / scale,
        }
        runs.append(run(each.variant, each.plan.repetition, dict(each.factors), values))
    (pair,) = curves(runs).equal
    assert pair.latency_at
    assert all(
        (matched.change.pairs, matched.change.dropped) == (1, 2) for matched in pair.latency_at
    )


def test_curves_without_a_common_range_are_not_compared() -> None:
    runs = []
    for load, throughput, latency in ((1, 10, 1.0), (2, 12, 1.5), (4, 14, 2.0)):
        runs.append(
            run("slow", 1, {"numjobs": load}, {"write.iops": throughput, "write.lat.mean": latency})
        )
        runs.append(
            run(
                "fast",
                1,
                {"numjobs": load},
                {"write.iops": throughput * 100, "write.lat.mean": latency / 100},
            )
        )
    (pair,) = curves(runs).equal
    assert (pair.latency_at, pair.throughput_at) == ((), ())


def test_a_single_repetition_has_values_but_no_interval() -> None:
    found = curves(sweep(repetitions=1))
    assert only(found, "master").points[0].throughput.low is None
    knee = only(found, "master").knee
    assert isinstance(knee, KneeEstimate)
    assert knee.load_range is None
    for matched in found.equal[0].latency_at:
        assert (matched.change.pairs, matched.change.low, matched.change.p) == (1, None, None)


def test_invalid_runs_leave_and_their_repetition_gives_no_knee() -> None:
    runs = sweep()
    bad = next(
        place
        for place, each in enumerate(runs)
        if each.variant == "master" and each.factors["numjobs"] == 8
    )
    broken = runs[bad]
    runs[bad] = run(
        "master",
        1,
        {"numjobs": 8},
        {"write.iops": 1e9, "write.lat.mean": 1e-9},
        level=Level.INVALID,
    )
    found = curves(runs)
    curve = only(found, "master")
    assert curve.left_out == (broken.id,)
    assert isinstance(curve.knee, KneeEstimate)
    assert (curve.points[3].n, curve.incomplete, curve.knee.repetitions) == (4, 1, 4)
    assert present(curve.points[3].throughput.value) < 1e5
    assert all(matched.change.pairs == 4 for matched in found.equal[0].latency_at)
    assert all(matched.change.dropped == 1 for matched in found.equal[0].latency_at)


def test_no_repetition_with_all_loads_leaves_the_mean_curves_without_interval() -> None:
    runs = [
        each
        for each in sweep(repetitions=2)
        if (each.plan.repetition + LOADS.index(each.factors["numjobs"])) % 2
    ]
    found = curves(runs)
    curve = only(found, "master")
    assert isinstance(curve.knee, NoKnee)
    assert "covers all loads" in curve.knee.reason
    assert [point.load for point in curve.points] == list(LOADS)
    assert found.equal[0].latency_at
    for matched in found.equal[0].latency_at:
        assert (matched.change.pairs, matched.change.low, matched.change.dropped) == (0, None, 2)


def test_missing_and_zero_values_are_left_out_and_counted() -> None:
    runs = sweep(repetitions=1, arms=(("a", 10_000),))
    runs.append(run("a", 2, {"numjobs": 8}, {"write.iops": 5.0}))
    runs.append(run("a", 2, {"numjobs": 16}, {"write.iops": 5.0, "write.lat.mean": 0.0}))
    runs.append(run("a", 2, {"numjobs": 32}, {"write.iops": math.nan, "write.lat.mean": 1.0}))
    runs.append(run("a", 2, {"other": 1}, {"write.iops": 1.0, "write.lat.mean": 1.0}))
    found = curves(runs, load="numjobs")
    left = [run_id for curve in found.curves for run_id in curve.left_out]
    assert sorted(left) == ["2-a-1", "2-a-16", "2-a-32", "2-a-8"]
    assert sum(point.n for curve in found.curves for point in curve.points) == 7


def test_an_arm_whose_runs_are_all_invalid_has_a_curve_without_points() -> None:
    runs = sweep(repetitions=1, arms=(("good", 10_000),))
    runs += [
        run(
            "bad",
            1,
            {"numjobs": load},
            {"write.iops": 1.0, "write.lat.mean": 1.0},
            level=Level.INVALID,
        )
        for load in LOADS
    ]
    found = curves(runs)
    curve = only(found, "bad")
    assert (curve.points, len(curve.left_out)) == ((), 7)
    assert isinstance(curve.knee, NoKnee)
    assert isinstance(curve.usl, NoFit)
    assert found.equal[0].latency_at == ()


def test_other_factors_split_and_single_levels_are_fixed() -> None:
    found = curves(
        [*sweep(repetitions=1, disks=1, bs="8k"), *sweep(repetitions=1, disks=4, bs="8k")]
    )
    assert (found.tables, found.table_levels, found.fixed) == (
        ("disks",),
        ((1,), (4,)),
        {"bs": "8k"},
    )
    assert [(curve.table, curve.variant) for curve in found.curves] == [
        ((1,), "master"),
        ((1,), "project"),
        ((4,), "master"),
        ((4,), "project"),
    ]
    assert [(pair.table, pair.variant) for pair in found.equal] == [
        ((1,), "project"),
        ((4,), "project"),
    ]


def test_saturated_and_suspect_are_carried_by_the_point() -> None:
    runs = sweep(repetitions=1, arms=(("a", 10_000),))
    last = runs[-1]
    values = {name: each.value for name, each in last.observations.items()}
    runs[-1] = run("a", 1, {"numjobs": 64}, values, level=Level.SUSPECT, saturated=True)
    points = only(curves(runs), "a").points
    assert (points[-1].level, points[-1].saturated) == (Level.SUSPECT, True)
    assert (points[0].level, points[0].saturated) == (Level.OK, False)


def test_an_open_loop_has_no_scalability_law() -> None:
    runs = [
        run("a", 1, {"rate_iops": rate}, {"write.iops": rate, "write.lat.mean": 1 / (1000 - rate)})
        for rate in (100, 300, 500, 700, 900)
    ]
    assert only(curves(runs), "a").usl == NoFit("'rate_iops' is not a concurrency")
    runs = [
        run(
            "a",
            1,
            {"numjobs": jobs},
            {"write.iops": 100.0 * jobs, "write.lat.mean": 1.0 * jobs},
            offered=100.0 * jobs,
        )
        for jobs in LOADS
    ]
    fit = only(curves(runs), "a").usl
    assert isinstance(fit, NoFit)
    assert "offered" in fit.reason


def test_the_load_is_the_factor_known_as_one_or_else_the_one_with_most_levels() -> None:
    values = {"write.iops": 1.0, "write.lat.mean": 1.0}
    assert (
        curves([run("a", 1, {"disks": n, "numjobs": 1 + n % 2}, values) for n in range(6)]).load
        == "numjobs"
    )
    assert (
        curves([run("a", 1, {"disks": n, "shelves": n % 2}, values) for n in range(6)]).load
        == "disks"
    )
    assert (
        curves([run("a", 1, {"disks": n, "numjobs": 1}, values) for n in range(6)]).load == "disks"
    )


def test_operation_and_throughput_are_what_was_observed() -> None:
    runs = [
        run(
            "a",
            1,
            {"numjobs": load},
            {"read.bw": 1e6 * load, "read.lat.mean": 1e-3, "write.lat.mean": 1.0},
        )
        for load in LOADS
    ]
    found = curves(runs)
    assert (found.throughput.name, found.latency.name) == ("read.bw", "read.lat.mean")
    assert curves(sweep(), throughput="bw").throughput.unit == "B/s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"load": "threads"}, "unknown factor 'threads'"),
        ({"load": "media"}, "'media' is not a load"),
        ({"operation": "reed"}, "unknown operation 'reed'"),
        ({"operation": "read"}, "no run has both read.iops or .bw and read.lat.mean"),
        ({"latency": "clat.p99"}, "no run has both"),
        ({"throughput": "ops"}, "no run has both"),
        ({"baseline": "mastr"}, "did you mean 'master'"),
    ],
)
def test_what_is_not_there_is_one_clear_line(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        curves(sweep(repetitions=1, media="hdd"), **arguments)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_without_runs_or_without_a_load_there_is_no_curve() -> None:
    values = {"write.iops": 1.0, "write.lat.mean": 1.0}
    for runs in ([], [run("?", 1, {}, values)]):
        with pytest.raises(UsageError, match="no run"):
            curves(runs)
    with pytest.raises(UsageError, match="no factor is a load"):
        curves(
            [
                run("a", 1, {"media": media, "sync": media == "hdd"}, values)
                for media in ("hdd", "ssd")
            ]
        )
    stepped = [
        dataclasses.replace(
            each, plan=dataclasses.replace(each.plan, extra={"steps": {"factor": "numjobs"}})
        )
        for each in [run("a", 1, {"media": "hdd"}, values)]
    ]
    with pytest.raises(UsageError) as error:
        curves(stepped)
    assert "--steps" in present(error.value.hint)


def test_a_peak_beyond_what_was_measured_is_explained() -> None:
    found = curves(sweep())
    text = render_knees(found, "text")
    assert ("*" in text) == ("* beyond the highest" in text)
    curve = found.curves[0]
    assert isinstance(curve.usl, UslFit)
    far = dataclasses.replace(
        curve, usl=dataclasses.replace(curve.usl, peak_concurrency=10 * curve.usl.highest)
    )
    far_text = render_knees(dataclasses.replace(found, curves=(far,)), "text")
    assert f"* beyond the highest {found.load} that was measured: extrapolated" in far_text


@pytest.mark.parametrize("syncs", [0.0, 50.0])
def test_the_title_of_a_latency_says_whether_it_leaves_out_syncs(syncs: float) -> None:
    runs = [
        run(
            variant,
            1,
            {"numjobs": jobs},
            {
                "write.iops": 100.0 * jobs,
                "write.lat.mean": 1e-3,
                "write.ios": 100.0,
                **({"sync.ios": syncs, "sync.lat.mean": 1e-2} if syncs else {}),
            },
        )
        for variant in ("a", "b")
        for jobs in (1, 2)
    ]
    found = curves(runs, load="numjobs")
    assert found.is_without_syncs == (syncs > 0)
    assert found.latency_title == "mean latency, writes" + (" (without syncs)" if syncs else "")
