# SPDX-License-Identifier: Apache-2.0
"""Arms of imported trees: which results are pairs, which are repetitions, and factors without a name."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.studies.compare.compare import compare
from iolab.studies.results.imports.layouts.options import (
    MeasuredRun,
    split_by_options,
    telling_options,
)
from iolab.studies.results.imports.layouts.places import Place, number_repetitions
from support.imported_trees import check_account, import_results, put_result


@pytest.mark.parametrize("layout", [None, "{variant}/{repetition}.json", "{variant}/*.json"])
def test_arms_whose_files_are_in_another_order_keep_their_pairs(
    tmp_path: Path, layout: str | None
) -> None:
    for number, (variant, place) in enumerate(itertools.product(("old", "new"), range(14))):
        depth = 1 + (place if variant == "old" else 13 - place)
        put_result(
            tmp_path / "tree" / variant / f"{place + 1}.json",
            seed=number,
            iops=1000.0 * depth,
            iodepth=str(depth),
            rw="write",
        )
    _, results = import_results(tmp_path / "tree", tmp_path / "out", layout)
    comparison = compare(results.runs, "write.iops", baseline="old")
    changes = [cell.change for cell in comparison.cells if cell.change is not None]
    assert [change.pairs for change in changes] == [1] * 14
    assert all(change.value == pytest.approx(0) for change in changes)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("layout", ["{variant}/*.json", "{variant}", None])
def test_identical_arms_with_a_hidden_factor_decide_nothing(
    tmp_path: Path, layout: str | None, seed: int
) -> None:
    """Seven depths under a layout that leaves the depth out: arms that differ by noise alone, of 1
    % within a depth."""
    rng = random.Random(seed)
    for number, (variant, depth) in enumerate(
        itertools.product(("one", "two"), (1, 2, 4, 8, 16, 32, 64))
    ):
        bias = 1.004 if variant == "two" else 1.0
        put_result(
            tmp_path / "tree" / variant / f"run-of-{depth}.json",
            seed=number,
            iops=1000.0 * depth * bias * rng.gauss(1, 0.01),
            iodepth=str(depth),
            rw="write",
        )
    found, results = import_results(tmp_path / "tree", tmp_path / "out", layout)
    assert {run.factors["iodepth"] for run in results.runs} == {
        1,
        2,
        4,
        8,
        16,
        32,
        64,
    } or layout is None
    assert layout is None or any("'iodepth' became a factor" in note for note in found.notes)
    for metric in ("write.iops", "write.lat.mean", "write.bw"):
        comparison = compare(results.runs, metric, baseline="one")
        changes = [cell.change for cell in comparison.cells if cell.change is not None]
        assert changes
        assert not [change for change in changes if change.decided]
        assert {change.pairs for change in changes} == {1}


def _put_processes(tree: Path, threads: Sequence[int], *, apart_ms: int) -> None:
    """Results of processes that fio ran side by side, a file for each."""
    for minute, (variant, many) in enumerate(itertools.product(("old", "new"), threads)):
        for index in range(many):
            place = tree / variant / f"bs_4k_num_t_{many}_index_{index}.txt"
            put_result(place, seed=10 * minute, iops=1000.0 + index, bs="4k", rw="write")
            document = json.loads(place.read_text("utf-8"))
            document["timestamp_ms"] = 1700000000000 + 600_000 * minute + apart_ms * index
            place.write_text(json.dumps(document), "utf-8")


@pytest.mark.parametrize("layout", [None, "{variant}/*_t_{threads:int}_index_{repetition:int}.txt"])
def test_processes_that_ran_at_the_same_time_are_one_run(
    tmp_path: Path, layout: str | None
) -> None:
    _put_processes(tmp_path / "tree", (1, 4), apart_ms=7)
    found, results = import_results(tmp_path / "tree", tmp_path / "out", layout)
    assert (found.runs, len(found.files["results"])) == (4, 10)
    if layout is None:
        assert found.layouts == ("{variant}/bs_{bs}_num_t_{num_t:int}_index_{process:int}.txt",)
        assert {run.plan.repetition for run in results.runs} == {1}
        again, same = import_results(tmp_path / "tree", tmp_path / "again", found.layouts)
        assert [run.plan for run in same.runs] == [run.plan for run in results.runs]
        assert dict(again.files) == dict(found.files)
        threads = "num_t"
    else:
        threads = "threads"
    for run in results.runs:
        many = run.factors[threads]
        assert run.value("write.iops") == sum(1000.0 + index for index in range(many))
        assert run.value("littles_law") == pytest.approx(1, abs=0.01)
        assert run.verdict.level is Level.OK
    comparison = compare(results.runs, "write.iops", baseline="old")
    changes = [cell.change for cell in comparison.cells if cell.change is not None]
    assert [(change.pairs, change.decided) for change in changes] == [(1, False), (1, False)]
    check_account(found, tmp_path / "tree")


def test_a_damaged_process_costs_the_run_and_repetitions_stay_repetitions(tmp_path: Path) -> None:
    _put_processes(tmp_path / "tree", (3,), apart_ms=7)
    damaged = tmp_path / "tree" / "old" / "bs_4k_num_t_3_index_1.txt"
    damaged.write_text(damaged.read_text("utf-8")[:1000], "utf-8")
    _put_processes(tmp_path / "apart", (3,), apart_ms=11_000)
    layout = "{variant}/*_index_{process}.txt"
    _, results = import_results(tmp_path / "tree", tmp_path / "out", layout)
    levels = [(run.variant, run.verdict.level) for run in results.runs]
    assert sorted(levels) == [("new", Level.OK), ("old", Level.INVALID)]
    _, apart = import_results(tmp_path / "apart", tmp_path / "third")
    assert sorted(run.plan.repetition for run in apart.runs) == [0, 0, 1, 1, 2, 2]


@pytest.mark.slow
def test_identical_arms_with_repetitions_and_two_hidden_factors_decide_as_if_they_were_named(
    tmp_path: Path,
) -> None:
    """What is decided among 10 such trees is chance of the numbers, none of the import: it is the
    same where the layout names both factors.

    The test allows a false alarm in 5 % of trees, so none or one of 10 (more: 8.6 %);
    `test_stats_false_alarms` has the rate of many.
    """
    decided = 0
    for seed in range(10):
        rng = random.Random(seed)
        tree = tmp_path / str(seed)
        cells = itertools.product(("one", "two"), (1, 8), ("4k", "64k"), range(1, 4))
        for number, (variant, depth, size, repetition) in enumerate(cells):
            iops = 1000.0 * depth * rng.gauss(1, 0.02)
            for file in (
                tree / variant / f"x{number % 12:02d}-{repetition}.json",
                tmp_path / f"named-{seed}" / variant / f"{depth}-{size}-{repetition}.json",
            ):
                put_result(
                    file,
                    # the arms took turns
                    minute=2 * (number % 12) + (variant == "two"),
                    iops=iops,
                    iodepth=str(depth),
                    bs=size,
                    filename=f"/dev/disk{number}",
                    randseed=str(number),
                )
        _, results = import_results(tree, tmp_path / f"out-{seed}", "{variant}/*-{repetition}.json")
        assert {tuple(run.factors) for run in results.runs} == {("iodepth", "bs")}
        comparison = compare(results.runs, "write.iops", baseline="one")
        changes = [cell.change for cell in comparison.cells if cell.change is not None]
        assert [change.pairs for change in changes] == [3] * 4
        decided += any(change.decided for change in changes)
        _, named = import_results(
            tmp_path / f"named-{seed}",
            tmp_path / f"out-named-{seed}",
            "{variant}/{iodepth:int}-{bs}-{repetition}.json",
        )
        named_cells = compare(named.runs, "write.iops", baseline="one").cells
        assert [
            (cell.change.value, cell.change.decided)
            for cell in named_cells
            if cell.change is not None
        ] == [(change.value, change.decided) for change in changes]
    assert decided <= 1


def test_what_the_variant_alone_explains_is_no_factor(tmp_path: Path) -> None:
    for number, (engine, repetition) in enumerate(
        itertools.product(("libaio", "io_uring"), (1, 2, 3))
    ):
        put_result(
            tmp_path / "tree" / f"with-{engine}" / f"{repetition}.json",
            seed=number,
            ioengine=engine,
            bs="4k" if repetition == 1 else "4096",
        )
    found, results = import_results(
        tmp_path / "tree", tmp_path / "out", "with-{variant}/{repetition}.json"
    )
    assert {tuple(run.factors) for run in results.runs} == {()}
    assert found.differences == (
        "variants differ in fio's ioengine (io_uring: io_uring, libaio: libaio)",
    )


def test_options_of_which_one_explains_the_other_are_one_factor() -> None:
    runs = [
        MeasuredRun(
            "a",
            {},
            telling_options({"iodepth": str(depth), "size": f"{depth}g", "filename": f"/x{depth}"}),
        )
        for depth in (1, 2, 4)
    ]
    runs.append(MeasuredRun("a", {}, telling_options({"size": "8g"})))
    assert list(split_by_options(runs)) == ["iodepth"]
    assert [run.factors for run in runs] == [
        {"iodepth": 1},
        {"iodepth": 2},
        {"iodepth": 4},
        {"iodepth": None},
    ]


@pytest.mark.parametrize("layout", ["{variant}/{repetition}.json", "{variant}/*.json", None])
def test_a_missing_file_shifts_no_pair(tmp_path: Path, layout: str | None) -> None:
    rates = {
        ("old", 1): 1000.0,
        ("old", 2): 2000.0,
        ("old", 3): 3000.0,
        ("new", 1): 1100.0,
        ("new", 3): 3300.0,
    }
    for (variant, repetition), rate in rates.items():
        minute = 2 * repetition + (variant == "new")
        place = tmp_path / "tree" / variant / f"{repetition}.json"
        put_result(place, minute=minute, iops=rate, rw="write")
    _, results = import_results(tmp_path / "tree", tmp_path / "out", layout, baseline="old")
    comparison = compare(results.runs, "write.iops", baseline="old")
    [change] = [cell.change for cell in comparison.cells if cell.change is not None]
    assert (change.pairs, change.dropped, round(change.value, 6)) == (2, 1, 0.1)


def test_dates_are_repetitions(tmp_path: Path) -> None:
    dates = {"old": ("2026-01-01", "2026-01-02", "2026-01-10"), "new": ("2026-01-01", "2026-01-10")}
    for number, (variant, date) in enumerate(
        (variant, date) for variant, each in dates.items() for date in each
    ):
        put_result(
            tmp_path / "tree" / date / variant / "fio.json", seed=number, iops=1000.0 + number
        )
    _, results = import_results(tmp_path / "tree", tmp_path / "out", "{repetition}/{variant}")
    found = {
        (run.variant, run.plan.repetition): run.plan.extra["imported_from"] for run in results.runs
    }
    assert {place: path.split("/")[0] for place, path in found.items()} == {
        ("old", 1): "2026-01-01",
        ("old", 2): "2026-01-02",
        ("old", 3): "2026-01-10",
        ("new", 1): "2026-01-01",
        ("new", 3): "2026-01-10",
    }


def test_repetitions_without_names_in_common_are_paired_in_order_and_said() -> None:
    places = [
        Place((), variant, date, "")
        for variant, date in (("a", "d1"), ("a", "d3"), ("b", "d2"), ("b", "d4"))
    ]
    numbers, [note] = number_repetitions(places)
    assert numbers == [1, 2, 1, 2]
    assert "no names in common" in note


def test_one_result_of_each_variant_is_one_repetition_whatever_the_files_are_called(
    tmp_path: Path,
) -> None:
    for number, (variant, name) in enumerate(
        (("a", "f.json"), ("b", "fio.json"), ("c", "f.json"), ("d", "out.json"))
    ):
        put_result(tmp_path / "tree" / variant / name, seed=number)
    _, results = import_results(tmp_path / "tree", tmp_path / "out", "{variant}")
    assert [(run.variant, run.plan.repetition, run.plan.block) for run in results.runs] == [
        (name, 1, 1) for name in "abcd"
    ]
