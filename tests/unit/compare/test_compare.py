# SPDX-License-Identifier: Apache-2.0
"""The comparison on runs made by hand: what pairs, what leaves, what is decided, what is said."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from iolab.base import registry
from iolab.base.errors import UsageError
from iolab.base.stats.power import blocks_needed, detectable
from iolab.base.verdict import Level, Reason, Verdict
from iolab.studies.compare.axes import Layout, parse_where
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import TAIL, Cell, Comparison
from iolab.studies.compare.render.matrix import render_matrix
from iolab.studies.compare.rules.check import check
from iolab.studies.compare.rules.rules import parse_rule
from iolab.studies.results.evidence.model import Observation, Run
from support.extremes import LONGEST_QUEUE
from support.golden import Golden
from support.narrow import present
from support.report_data import run as hand_made
from support.runs import run, study


def only(comparison: Comparison, variant: str = "project") -> Cell:
    cells = [cell for cell in comparison.cells if cell.variant == variant]
    assert len(cells) == 1
    return cells[0]


def test_a_real_change_is_found_with_its_interval() -> None:
    comparison = compare(study(), "write.iops")
    for cell in comparison.cells:
        if cell.variant == "project":
            assert cell.change is not None
            assert cell.change.low is not None
            assert cell.change.high is not None
            assert cell.change.low < 0.2 < cell.change.high
            assert (cell.change.decided, cell.change.improves, cell.change.pairs) == (True, True, 6)
            assert cell.change.p_exact == pytest.approx(2 / 64)
    assert any(cell.change.pooled for cell in comparison.cells if cell.change)
    summary = comparison.summaries[0]
    assert (summary.cells, summary.of) == (3, 3)
    assert summary.change is not None
    assert summary.change.value == pytest.approx(0.2, abs=0.03)


def test_a_run_that_was_never_finished_adds_no_level_and_no_host() -> None:
    whole = compare(study(), "write.iops")
    first = study()[0]
    plan = dataclasses.replace(
        first.plan, run="0099-00000000", variant="?", factors={}, host="elsewhere", status="failed"
    )
    unfinished = dataclasses.replace(
        first,
        plan=plan,
        observations={},
        verdict=Verdict(Level.INVALID, (Reason("unfinished", Level.INVALID, "never finished"),)),
    )
    comparison = compare([*study(), unfinished], "write.iops")
    assert comparison.cells == whole.cells
    assert (comparison.tables, comparison.rows, comparison.cols) == (
        whole.tables,
        whole.rows,
        whole.cols,
    )
    assert not any("several hosts" in warning.text for warning in comparison.warnings)


def test_a_change_that_is_not_significant_says_what_is_ruled_out() -> None:
    comparison = compare(study(change=1.0), "write.iops")
    for cell in comparison.cells:
        if cell.variant == "project":
            assert cell.change is not None
            assert not cell.change.decided
            assert cell.change.excluded is not None
            assert 0 < cell.change.excluded < 0.1
            assert cell.change.blocks_needed is None or cell.change.blocks_needed > 6
    text = registry.load("renderer", "text")().render(comparison)
    assert " is ruled out" in text
    assert "~" in text


def test_the_change_does_not_depend_on_the_order_of_runs() -> None:
    runs = study()
    assert (
        compare(runs, "write.iops").cells
        == compare(list(reversed(runs)), "write.iops", baseline="master").cells
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=1, max_size=8))
def test_swapping_the_arms_inverts_the_ratio(pairs: list[tuple[float, float]]) -> None:
    runs = [
        run(variant, value, block=block)
        for block, pair in enumerate(pairs, 1)
        for variant, value in zip(("a", "b"), pair, strict=True)
    ]
    there, back = (
        only(compare(runs, "write.iops", baseline="a"), "b").change,
        only(compare(runs, "write.iops", baseline="b"), "a").change,
    )
    assert there is not None
    assert back is not None
    assert (1 + there.value) * (1 + back.value) == pytest.approx(1)


def test_one_run_per_cell_has_no_interval() -> None:
    comparison = compare(study(blocks=1), "write.iops")
    changes = [cell.change for cell in comparison.cells if cell.change]
    assert all(change.low is None and change.q is None and not change.decided for change in changes)
    assert "one-block" in {warning.code for warning in comparison.warnings}
    assert "no interval" in registry.load("renderer", "markdown")().render(comparison)


def test_an_invalid_run_takes_its_whole_pair_out_counted() -> None:
    runs = [run("master", 100.0 + block, block=block) for block in range(1, 7)]
    runs += [
        run("project", 200.0 + block, block=block, level=Level.INVALID if block == 3 else Level.OK)
        for block in range(1, 7)
    ]
    cell = only(compare(runs, "write.iops"))
    assert cell.change is not None
    assert (cell.change.pairs, cell.change.dropped) == (5, 1)
    assert cell.footnotes == ("invalid",)
    assert len(cell.estimate.left_out) == 1
    master = only(compare(runs, "write.iops"), "master")
    assert master.estimate.runs == tuple(run.id for run in runs[:6])


def test_a_suspect_run_stays_in_and_is_footnoted() -> None:
    runs = [
        run(
            variant,
            100.0,
            block=block,
            level=Level.SUSPECT if variant == "project" and block == 1 else Level.OK,
        )
        for block in range(1, 4)
        for variant in ("master", "project")
    ]
    comparison = compare(runs, "write.iops")
    cell = only(comparison)
    assert (cell.estimate.level, cell.footnotes, len(cell.estimate.values)) == (
        Level.SUSPECT,
        ("stall",),
        3,
    )
    assert "moved nothing for 4 s" in comparison.footnotes["stall"]
    assert "¹" in registry.load("renderer", "text")().render(comparison)


def test_pairs_without_the_metric_are_not_said_to_be_invalid() -> None:
    runs = [
        run("master", 100.0 + block, block=block, level=Level.INVALID if block == 6 else Level.OK)
        for block in range(1, 7)
    ]
    runs += [
        run("project", None if block in (2, 3) else 200.0 + block, block=block)
        for block in range(1, 7)
    ]
    comparison = compare(runs, "write.iops")
    change = only(comparison).change
    assert change is not None
    assert (change.pairs, change.dropped, change.without) == (3, 3, 2)
    assert {
        warning.code: warning.text
        for warning in comparison.warnings
        if warning.code in ("dropped", "without")
    } == {
        "dropped": "1 pair left out: one side INVALID or missing",
        "without": "write.iops: 2 pairs left out, without the metric",
    }


def test_a_missing_run_leaves_with_its_block() -> None:
    runs = [run("master", 100.0, block=block) for block in (1, 2, 3)] + [
        run("project", 110.0, block=block) for block in (2, 3, 4)
    ]
    change = only(compare(runs, "write.iops")).change
    assert change is not None
    assert (change.pairs, change.dropped) == (2, 2)


def test_everything_invalid_leaves_an_empty_cell_not_an_error() -> None:
    runs = [run(variant, 100.0, level=Level.INVALID) for variant in ("master", "project")]
    comparison = compare(runs, "write.iops")
    assert [cell.estimate.value for cell in comparison.cells] == [None, None]
    for name in registry.names("renderer"):
        assert registry.load("renderer", name)().render(comparison)


def test_hidden_variation_is_named() -> None:
    runs = [
        run(variant, 100.0, media=media, numjobs=1)
        for variant in ("master", "project")
        for media in ("hdd", "ssd")
    ]
    comparison = compare(runs, "write.iops", layout=Layout(rows=["numjobs"], ignore=["media"]))
    assert [
        warning.text for warning in comparison.warnings if warning.code == "hidden-variation"
    ] == ["hidden variation: media varies within cells (hdd, ssd)"]
    kernels = [
        run(variant, 100.0, environment={"kernel": kernel})
        for variant, kernel in (("master", "6.1"), ("project", "6.6"))
    ]
    texts = [warning.text for warning in compare(kernels, "write.iops").warnings]
    assert "hidden variation: kernel of the host differs between runs (6.1, 6.6)" in texts
    chosen = [
        dataclasses.replace(one, plan=dataclasses.replace(one.plan, extra={"kernel": name}))
        for one, name in zip(kernels, ("default", "backport"), strict=True)
    ]
    codes = [warning.code for warning in compare(chosen, "write.iops").warnings]
    assert "hidden-variation" not in codes
    codes = [warning.code for warning in compare([kernels[0], chosen[1]], "write.iops").warnings]
    assert "hidden-variation" in codes


def test_a_slow_device_is_hidden_variation() -> None:
    slow = Verdict.of(
        [Reason("slow-device", Level.SUSPECT, "sdc took 9 ms for an I/O", {"device": "sdc"})]
    )
    runs = [run("master", 100.0), dataclasses.replace(run("project", 50.0), verdict=slow)]
    texts = [warning.text for warning in compare(runs, "write.iops").warnings]
    assert (
        "hidden variation: the target's devices differ: sdc is slower than its peers in 1 of 2 runs"
        in texts
    )


def test_runs_of_different_hosts_are_no_pair() -> None:
    runs = [run("master", 100.0, host="a"), run("project", 110.0, host="b")]
    cell = only(compare(runs, "write.iops"))
    assert cell.change is None


def test_an_unasked_factor_splits_the_tables() -> None:
    runs = [
        run(variant, 100.0, media=media, numjobs=jobs, disks=disks)
        for variant in ("master", "project")
        for media in ("hdd", "ssd")
        for jobs in (1, 2)
        for disks in (1, 2)
    ]
    assert compare(runs, "write.iops").tables == ("media",)
    asked = compare(runs, "write.iops", layout=Layout(rows=["numjobs"], cols=["disks"]))
    assert (asked.rows, asked.cols, asked.tables) == (("numjobs",), ("disks",), ("media",))
    picked = compare(runs, "write.iops", where=parse_where(["media=hdd"]))
    assert (picked.tables, picked.fixed) == ((), {"media": "hdd"})


def test_text_levels_stand_in_an_order_that_a_seed_does_not_decide() -> None:
    def columns(*levels: str) -> list[object]:
        runs = [
            run(variant, 100.0, numjobs=jobs, kind=text)
            for text in levels
            for jobs in (1, 2)
            for variant in ("a", "b")
        ]
        return [
            key[0]
            for key in compare(
                runs, "write.iops", layout=Layout(rows=["numjobs"], cols=["kind"])
            ).col_levels
        ]

    assert columns("64k", "4k", "1m", "512") == ["512", "4k", "64k", "1m"]
    assert columns("write", "randwrite") == ["randwrite", "write"]


def test_nothing_is_averaged_over_block_sizes() -> None:
    runs = [
        run(variant, 100.0, bs=size, numjobs=jobs)
        for variant in ("master", "project")
        for size in ("4k", "1m")
        for jobs in (1, 2)
    ]
    assert compare(runs, "write.iops", layout=Layout(rows=["bs"], cols=["numjobs"])).summaries == ()
    by_load = compare(runs, "write.iops")
    assert (by_load.rows, len(by_load.summaries)) == (("numjobs",), 2)


def test_the_a_a_arm_gives_the_noise_floor_and_is_no_part_of_the_family() -> None:
    rng = np.random.default_rng(5)
    runs = [
        run(variant, 1000.0 * math.exp(rng.normal(0, 0.02)), block=block, numjobs=jobs)
        for block in range(1, 7)
        for jobs in (1, 2)
        for variant in ("master", "master-again")
    ]
    comparison = compare(runs, "write.iops")
    assert comparison.noise_floor is not None
    assert -0.05 < comparison.noise_floor[0] <= comparison.noise_floor[1] < 0.05
    text = registry.load("renderer", "text")().render(comparison)
    assert "noise floor (A/A)" in text
    assert "false alarms: 0 of 2 cells" in text


def test_shares_are_compared_in_points() -> None:
    runs = [
        run(variant, value, metric="device.util", unit="1")
        for variant, value in (("master", 0.5), ("project", 0.0))
    ]
    comparison = compare(runs, "device.util")
    change = only(comparison).change
    assert change is not None
    assert change.value == pytest.approx(-0.5)
    assert "-50.0 points" in registry.load("renderer", "text")().render(comparison)


def test_metrics_without_a_distribution_are_decided_by_the_exact_test_alone() -> None:
    values = [
        run(
            variant,
            0.01 * factor * (1 + block / 100),
            block=block,
            metric=LONGEST_QUEUE.name,
            unit="s",
        )
        for block in range(1, 6)
        for variant, factor in (("master", 1), ("project", 3))
    ]
    change = only(compare(values, LONGEST_QUEUE.name)).change
    assert change is not None
    assert (change.p, change.decided) == (None, False)
    values += [
        run(variant, 0.01 * factor, block=block, metric=LONGEST_QUEUE.name, unit="s")
        for block in (6, 7)
        for variant, factor in (("master", 1), ("project", 3))
    ]
    change = only(compare(values, LONGEST_QUEUE.name)).change
    assert change is not None
    assert change.p == pytest.approx(2 / 128)
    assert change.decided is True


@pytest.mark.parametrize(
    "kwargs",
    [
        {"metric_name": "write.iop"},
        {"baseline": "mastre"},
        {"layout": Layout(rows=["jobs"])},
        {"where": {"numjobs": ["3"]}},
        {"where": {"disks": ["3"]}},
        {"shown_unit": "MiB"},
    ],
)
def test_what_is_not_there_is_said_in_one_line(kwargs: dict[str, object], golden: Golden) -> None:
    with pytest.raises(UsageError) as caught:
        compare(study(), **{"metric_name": "write.iops", **kwargs})  # type: ignore[arg-type]
    golden("compare/absent", f"{kwargs}\n{caught.value}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["media", "=hdd", "media=", ""])
def test_conditions_must_be_conditions(text: str) -> None:
    with pytest.raises(UsageError, match="is not a condition"):
        parse_where([text])


def test_json_holds_every_number_unrounded() -> None:
    comparison = compare(study(), "write.iops")
    document = json.loads(registry.load("renderer", "json")().render(comparison))
    cell = next(cell for cell in document["cells"] if cell["variant"] == "project")
    original = next(cell for cell in comparison.cells if cell.variant == "project")
    assert original.change is not None
    assert cell["change"]["value"] == 100 * original.change.value
    assert cell["values"] == list(original.estimate.values)
    assert (document["schema"], document["kind"], document["baseline"]) == (
        1,
        "comparison",
        "master",
    )


def test_benchstat_has_a_line_per_run_and_variant() -> None:
    text = registry.load("renderer", "benchstat")().render(
        compare(study(blocks=2, loads=(1, 2)), "write.iops")
    )
    assert text.count("BenchmarkWriteIops/numjobs=1 1 ") == 4
    assert text.startswith("Unit op/s better=higher\nvariant: master\n")


def with_sync(run: Run, seconds: float) -> Run:
    """The run with a sync of this mean time after each write."""
    syncs = Observation("sync.lat.mean", seconds, "s", "fio.json", "sync", seconds, "s")
    return dataclasses.replace(run, observations={**run.observations, "sync.lat.mean": syncs})


@pytest.mark.parametrize(
    ("syncing", "code", "better"),
    [(0, None, "lower"), (1, "syncs-differ", None), (2, "syncs-apart", "lower")],
)
def test_latency_without_syncs_is_judged_where_all_arms_sync_alike(
    syncing: int, code: str | None, better: str | None
) -> None:
    runs = [
        run(variant, 1e-5 * block, block=block, metric="write.lat.mean", unit="s")
        for block in (1, 2)
        for variant in ("a", "b")
    ]
    runs = [with_sync(one, 1e-3) if one.variant in ("b", "a")[:syncing] else one for one in runs]
    comparison = compare(runs, "write.lat.mean")
    codes = {warning.code for warning in comparison.warnings} & {"syncs-apart", "syncs-differ"}
    assert codes == ({code} if code else set())
    assert comparison.metric.better == better
    assert comparison.title.endswith("(without syncs)") == (code is not None)
    texts = [warning.text for warning in comparison.warnings if warning.code == "syncs-differ"]
    assert ["(a none; b 1 per write, 1.00 ms each)" in text for text in texts] == [True] * (
        code == "syncs-differ"
    )


def test_three_variants_stand_side_by_side() -> None:
    runs = [
        run(variant, value * block, block=block, numjobs=1)
        for block in (1, 2)
        for variant, value in (("a", 100.0), ("b", 110.0), ("c", 90.0))
    ]
    text = registry.load("renderer", "text")().render(compare(runs, "write.iops"))
    header = next(line for line in text.splitlines() if "interval" in line).split()
    assert (
        header == ["a", "b", "change", "interval", "test", "c", "change", "interval", "test"]
        or header[0] == "numjobs"
    )


def test_blocks_needed_counts_the_tests_of_every_variant() -> None:
    rng = np.random.default_rng(4)
    arms = {"master": 1.0, "master-again": 1.0, "a": 1.01, "b": 1.0, "c": 1.0, "d": 1.0}
    runs = [
        run(variant, 1000.0 * factor * math.exp(rng.normal(0, 0.02)), block=block, numjobs=load)
        for block in range(1, 7)
        for load in range(10)
        for variant, factor in arms.items()
    ]
    comparison = compare(runs, "write.iops", baseline="master")
    told = 0
    for cell in comparison.cells:
        if (
            cell.change is None
            or cell.change.decided
            or cell.change.low is None
            or cell.change.high is None
            or cell.change.df is None
        ):
            continue
        half = (math.log1p(cell.change.high) - math.log1p(cell.change.low)) / 2
        sd = half * math.sqrt(6) / float(student.ppf(0.975, cell.change.df))
        tests = 10 if cell.variant == "master-again" else 40
        decided = sum(
            each.change is not None
            and each.change.decided
            and (each.variant == "master-again") == (tests == 10)
            for each in comparison.cells
        )
        needed = blocks_needed(
            math.log1p(cell.change.value),
            sd,
            alpha=0.05 * (1 + decided) / tests,
            cells=cell.change.df / 5,
        )
        assert needed is None or needed > 6
        assert cell.change.blocks_needed == needed
        told += cell.change.blocks_needed is not None
    assert told > 10
    changes = [each.change for each in comparison.cells if each.change is not None]
    spreads = [
        (math.log1p(change.high or 0) - math.log1p(change.low or 0))
        / 2
        * math.sqrt(6)
        / float(student.ppf(0.975, present(change.df)))
        for change in changes
    ]
    size = detectable(
        float(np.median(spreads)),
        6,
        0.05 / 40,
        cells=float(np.median([change.df or 0 for change in changes])) / 5,
    )
    assert size is not None
    assert comparison.detectable == pytest.approx(math.expm1(size))


def test_what_holds_for_one_metric_of_a_matrix_bears_its_name() -> None:
    rng = np.random.default_rng(2)
    runs = []
    for each in study(blocks=4):
        slow = Observation(
            "write.lat.mean", 0.001 * math.exp(rng.normal(0, 0.3)), "s", "fio.json", ""
        )
        runs.append(
            dataclasses.replace(each, observations={**each.observations, slow.metric: slow})
        )
    lines = render_matrix(
        compare(runs, "write.iops"), compare(runs, "write.lat.mean"), "text"
    ).splitlines()
    assert [line.partition(": about ")[0] for line in lines if "minimum detectable" in line] == [
        "write.iops: minimum detectable change",
        "write.lat.mean: minimum detectable change",
    ]
    assert (
        lines.count(
            "note: 4 blocks: the exact test can't be significant below 6, as p of 4 pairs is at least 0.125"
        )
        == 1
    )


def test_levels_without_the_metric_are_left_out_and_named() -> None:
    runs = [
        hand_made(number, variant, {"rw": rw, "iodepth": depth}, values)
        for number, (depth, rw, variant) in enumerate(
            (depth, rw, variant)
            for depth in (1, 4)
            for rw in ("read", "write")
            for variant in ("a", "b")
        )
        for values in ({f"{rw}.iops": 100.0 + number},)
    ]
    comparison = compare(runs, "read.iops")
    assert [cell.col for cell in comparison.cells] == [("read",)] * 4
    assert comparison.col_levels == (("read",),)
    warnings = {warning.code: warning.text for warning in comparison.warnings}
    assert warnings["without-metric"] == "no run has read.iops at rw=write: left out"
    assert not comparison.footnotes
    assert all(
        cell.change is not None and cell.change.dropped == 0
        for cell in comparison.cells
        if cell.variant == "b"
    )


def test_cells_that_rise_and_fall_together_are_said_to_be_no_independent_evidence() -> None:
    random = np.random.default_rng(9)
    luck = random.normal(0, 0.1, 4)
    runs = [
        run(
            variant,
            1000 * math.exp((luck[block] if variant == "b" else 0.0) + random.normal(0, 0.01)),
            block=block + 1,
            jobs=jobs,
        )
        for block in range(4)
        for jobs in (1, 2, 4, 8, 16, 32)
        for variant in ("a", "b")
    ]
    comparison = compare(runs, "write.iops")
    (text,) = [each.text for each in comparison.warnings if each.code == "shared-luck"]
    assert text.startswith("write.iops of b: the 6 cells rise and fall together")
    assert {cell.change.pooled for cell in comparison.cells if cell.change} == {False}
    checked = check(runs, [parse_rule("write.iops >= -5 %"), parse_rule("write.iops within 9 %")])
    assert [note.code for note in checked.notes] == ["shared-luck"]
    assert "shared-luck" not in {each.code for each in compare(study(), "write.iops").warnings}


def with_ios(made: Run, ios: int) -> Run:
    counted = Observation("write.ios", float(ios), "", "fio.json", "jobs[0].write.total_ios")
    return dataclasses.replace(made, observations={**made.observations, "write.ios": counted})


@pytest.mark.parametrize(
    ("metric", "few", "is_tested"),
    [
        ("write.clat.p99.99", 400, False),
        ("write.clat.p99", 999, False),
        ("write.clat.p99", 1000, True),
        ("write.clat.p99.9", 10_000, True),
        ("write.clat.p1", 900, False),
        ("write.clat.p50", 12, True),
        ("write.clat.max", 10**9, False),
        ("write.lat.min", 10**9, False),
        ("write.lat.mean", 12, True),
        ("write.iops", 12, True),
    ],
)
def test_a_percentile_of_few_ios_is_the_tail_of_the_sample(
    metric: str, few: int, is_tested: bool
) -> None:
    random = np.random.default_rng(4)
    runs = [
        with_ios(
            run(variant, factor * math.exp(random.normal(0, 0.01)), block=block, metric=metric),
            count,
        )
        for block in range(1, 7)
        for variant, factor, count in (("a", 0.01, 10**6), ("b", 0.004, few))
    ]
    comparison = compare(runs, metric)
    cell = only(comparison, "b")
    change = present(cell.change)
    assert change.value == pytest.approx(-0.6, abs=0.02)
    assert change.decided is is_tested
    assert (change.reason is None) is is_tested
    rule = "<= 5 %" if metric != "write.iops" else ">= -5 %"
    (outcome,) = check(runs, [parse_rule(f"{metric} {rule}")]).rules[0].cells
    if is_tested:
        assert change.low is not None
        assert outcome.outcome != "inconclusive"
    else:
        assert (change.low, change.p, change.q, change.excluded) == (None, None, None, None)
        assert "tail" in cell.footnotes
        assert "tail of the sample" in registry.load("renderer", "text")().render(comparison)
        assert (outcome.outcome, outcome.reason) == ("inconclusive", TAIL)
        assert (outcome.low, outcome.p_pass) == (None, None)


def test_runs_without_a_number_of_ios_are_compared_as_before() -> None:
    runs = [
        run(variant, factor * (1 + block / 1000), block=block, metric="write.clat.p99.99")
        for block in range(1, 7)
        for variant, factor in (("a", 0.01), ("b", 0.02))
    ]
    assert present(only(compare(runs, "write.clat.p99.99"), "b").change).decided
