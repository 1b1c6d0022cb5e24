# SPDX-License-Identifier: Apache-2.0
"""The order of runs, their identities, and the estimate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.studies.plan.cells.cells import fill, mentions, overridden
from iolab.studies.plan.cells.order import cell_order, variant_order
from iolab.studies.plan.cells.plan import plan_runs
from iolab.studies.plan.file.load import Study, load_study
from support.acting import study_text


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(study_text(repetitions=4), "utf-8")
    return load_study(path)


def test_two_variants_go_ab_ba_ba_ab() -> None:
    assert ["".join(variant_order("AB", block)) for block in range(1, 9)] == [
        "AB",
        "BA",
        "BA",
        "AB",
    ] * 2


def test_three_variants_pass_through_all_orders() -> None:
    assert {"".join(variant_order("ABC", block)) for block in range(1, 7)} == {
        "ABC",
        "ACB",
        "BAC",
        "BCA",
        "CAB",
        "CBA",
    }


@given(st.integers(1, 6))
def test_over_a_cycle_every_variant_stands_equally_often_in_every_place(count: int) -> None:
    places = Counter(
        (variant, place)
        for block in range(1, 2 * count + 1)
        for place, variant in enumerate(variant_order(range(count), block))
    )
    assert set(places.values()) == {2}


@given(st.integers(2, 20), st.integers(0, 1000), st.integers(1, 50))
def test_cells_are_each_there_once_and_two_blocks_mirror_each_other(
    count: int, seed: int, pair: int
) -> None:
    first, second = (cell_order(range(count), 2 * pair - 1 + offset, seed) for offset in (0, 1))
    assert sorted(first) == list(range(count))
    assert first == second[::-1]
    assert first == cell_order(range(count), 2 * pair - 1, seed)


def test_seeds_give_different_orders() -> None:
    assert len({tuple(cell_order(range(10), 1, seed)) for seed in range(20)}) > 15


def test_a_block_holds_each_cell_of_each_variant_once_and_compares_close_together(
    study: Study,
) -> None:
    plan = plan_runs(study, lambda cell: 1.0)
    assert [run.number for run in plan.runs] == list(range(1, 17))
    for block in range(1, 5):
        runs = [run for run in plan.runs if run.block == block]
        assert Counter(id(run.cell) for run in runs) == Counter(
            {id(cell): 1 for cell in study.cells}
        )
        assert runs[0].cell.factors == runs[1].cell.factors
        assert [run.cell.variant for run in runs[:2]] == variant_order(study.variants, block)
    assert any(
        int(plan.runs[at].cell.factors["numjobs"]) > int(plan.runs[at + 2].cell.factors["numjobs"])
        for at in (0, 4)
    )


def test_as_written_is_as_written(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(study_text(repetitions=2, order="as-written"), "utf-8")
    study = load_study(path)
    plan = plan_runs(study, lambda cell: 1.0)
    assert [run.cell for run in plan.runs] == [*study.cells, *study.cells]
    assert [run.repetition for run in plan.runs] == [1, 1, 1, 1, 2, 2, 2, 2]


def test_equal_cells_in_equal_surroundings_have_equal_hashes(study: Study) -> None:
    runs = plan_runs(study, lambda cell: 1.0).runs
    names = [run.identity({"kernel": "6.1"}) for run in runs]
    assert len(set(names)) == 16
    assert all(name[:5] == f"{number:04d}-" for number, name in enumerate(names, start=1))
    by_cell = {(id(run.cell), name[5:]) for run, name in zip(runs, names, strict=True)}
    assert len(by_cell) == 4
    assert len({hash_ for _, hash_ in by_cell}) == 4
    assert runs[0].identity({"kernel": "6.2"})[5:] != names[0][5:]


def test_the_estimate_learns_from_what_was_done(study: Study) -> None:
    plan = plan_runs(study, lambda cell: 2.0)
    assert plan.seconds == 32.0
    assert plan.estimate_rest(0, 0.0) == 32.0
    assert plan.estimate_rest(4, 16.0) == pytest.approx(48.0)  # took twice as long as thought
    assert plan.estimate_rest(16, 40.0) == 0.0


def test_overriding_leaves_both_tables_alone() -> None:
    base, changes = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}, "e": {"f": 1}}
    assert overridden(base, changes) == {"a": {"b": 9, "c": 2}, "d": 3, "e": {"f": 1}}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}


def test_filling_keeps_types_and_unknown_names() -> None:
    table = {
        "a": "{n}",
        "b": "x{n}y{m}",
        "c": ["{n}", "{{n}}"],
        "d": 3,
        "e": " {n} ",
        "f": "{flag}1",
    }
    assert fill(table, {"n": 4, "flag": True}) == {
        "a": 4,
        "b": "x4y{m}",
        "c": [4, "{n}"],
        "d": 3,
        "e": 4,
        "f": "11",
    }
    assert sorted(mentions(table)) == [
        (("a",), "n"),
        (("b",), "m"),
        (("b",), "n"),
        (("c", "0"), "n"),
        (("e",), "n"),
        (("f",), "flag"),
    ]
