# SPDX-License-Identifier: Apache-2.0
"""Windows between marks: which seconds count, and their comparison within runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import FormatError
from iolab.base.verdict import Verdict
from iolab.studies.compare.compare import compare
from iolab.studies.results.derive.windows import window_runs
from iolab.studies.results.evidence.marks import FILE, Mark, read_marks, seconds_of
from iolab.studies.results.evidence.model import Run, RunPlan, Series
from support.narrow import present

T0 = 1_700_000_000_000_000_000


def marked(tmp_path: Path, block: int, marks: list[Mark], variant: str = "master") -> Run:
    run_dir = tmp_path / f"{block}-{variant}"
    run_dir.mkdir()
    (run_dir / FILE).write_text("".join(mark.as_line() for mark in marks))
    plan = RunPlan(
        run=run_dir.name,
        variant=variant,
        factors={"numjobs": 4},
        block=block,
        window=(T0, T0 + 10 * 10**9),
    )
    return Run(plan, run_dir, {}, Verdict.of([]))


def at(second: float, label: str, kind: str = "action") -> Mark:
    return Mark(T0 + round(second * 1e9), kind, label)


def falling(_: str) -> list[Series]:
    """1000 writes a second for five seconds, then 500."""
    time = np.arange(1.0, 11.0)
    return [Series("write.iops", "1/s", time, np.where(time <= 5, 1000.0, 500.0))]


def test_windows_become_variants_that_pair_within_their_run(tmp_path: Path) -> None:
    runs = [marked(tmp_path, block, [at(5.0, "degraded")]) for block in (1, 2, 3)]
    found = window_runs(runs, falling)
    assert [(run.variant, run.value("write.iops")) for run in found[:2]] == [
        ("start", 1000.0),
        ("degraded", 500.0),
    ]
    comparison = compare(found, "write.iops")
    cell = next(cell for cell in comparison.cells if cell.variant == "degraded")
    assert cell.change is not None
    assert (cell.change.value, cell.change.pairs) == pytest.approx((-0.5, 3))


def test_the_second_of_the_mark_belongs_to_no_window(tmp_path: Path) -> None:
    found = window_runs([marked(tmp_path, 1, [at(4.5, "late")])], falling)
    # 0-4 before and 5-10 after; the fifth second, still at full rate, is in neither
    assert [run.value("write.iops") for run in found] == [1000.0, 500.0]
    assert found[0].observations["write.iops"].source_field == "write.iops, seconds 0 to 4"


@pytest.mark.parametrize(("step", "counted"), [(0.5, (4.5, 10)), (5.0, (5, 10))])
def test_only_whole_samples_count_however_long_they_are(
    tmp_path: Path, step: float, counted: tuple[float, float]
) -> None:
    """A rate that falls by one each half second, a mark in second 4.5 (or 3): samples that hold it
    belong to no window."""
    time = np.arange(step, 10 + step / 2, step)
    [begin] = [
        run
        for run in window_runs(
            [marked(tmp_path, 1, [at(4.5 if step < 1 else 3.0, "late")])],
            lambda _: [Series("write.iops", "1/s", time, 100 - time)],
        )
        if run.variant == "late"
    ]
    inside = time[(time - step >= counted[0]) & (time <= counted[1])]
    assert begin.value("write.iops") == pytest.approx(float(np.mean(100 - inside)))


def took(second: float, label: str, seconds: object) -> Mark:
    return Mark(T0 + round(second * 1e9), "action", label, data={"seconds": seconds})


@pytest.mark.parametrize(
    ("seconds", "counted"),
    [
        (1.5, "seconds 6 to 10"),  # 4.0 to 5.5: the window begins in the middle of the sixth second
        (3.0, "seconds 7 to 10"),
        (4.0, "seconds 4 to 10"),  # more than half of the window: it is what the window is about
        (-1.0, "seconds 4 to 10"),
        (float("inf"), "seconds 4 to 10"),
        ("long", "seconds 4 to 10"),
        (None, "seconds 4 to 10"),
    ],
)
def test_the_seconds_in_which_a_command_ran_belong_to_no_window(
    tmp_path: Path, seconds: object, counted: str
) -> None:
    found = window_runs([marked(tmp_path, 1, [took(4.0, "x", seconds)])], falling)
    assert [run.variant for run in found] == ["start", "x"]
    assert found[0].observations["write.iops"].source_field == "write.iops, seconds 0 to 4"
    values = {"seconds 6 to 10": 500.0, "seconds 7 to 10": 500.0, "seconds 4 to 10": 3500 / 6}
    assert found[1].value("write.iops") == pytest.approx(values[counted])
    assert found[1].observations["write.iops"].source_field == f"write.iops, {counted}"


def long(path: Path, *marks: Mark) -> dict[str, str]:
    """The seconds of each window of a run of 80 seconds."""
    path.mkdir()
    run = marked(path, 1, list(marks))
    run = dataclasses.replace(run, plan=dataclasses.replace(run.plan, window=(T0, T0 + 80 * 10**9)))
    time = np.arange(1.0, 81.0)
    found = window_runs([run], lambda _: [Series("write.iops", "1/s", time, time)])
    return {
        each.variant: each.observations["write.iops"].source_field.partition("seconds ")[2]
        for each in found
    }


def test_a_command_that_outlasts_its_window_takes_from_those_after_it(tmp_path: Path) -> None:
    about = {"start": "0 to 30", "a": "30 to 35"}
    assert long(tmp_path / "1", took(30, "a", 20), at(35, "b")) == {**about, "b": "50 to 80"}
    assert long(tmp_path / "2", took(30, "a", 20), at(35, "b"), at(45, "c"), at(60, "d")) == {
        **about,
        "c": "50 to 60",
        "d": "60 to 80",
    }
    assert long(tmp_path / "3", took(30, "a", 20), took(35, "b", 5), at(55, "c")) == {
        **about,
        "b": "50 to 55",
        "c": "55 to 80",
    }
    assert long(tmp_path / "4", took(30, "a", 20), took(35, "b", 18), at(75, "c")) == {
        **about,
        "b": "53 to 75",
        "c": "75 to 80",
    }
    assert long(tmp_path / "5", took(30, "a", 20), took(35, "b", 30), at(70, "c")) == {
        **about,
        "b": "35 to 70",
        "c": "70 to 80",
    }
    assert long(tmp_path / "6", took(30, "a", 99), at(35, "b")) == about


def test_latency_is_the_mean_over_the_ios_of_a_window(tmp_path: Path) -> None:
    """Five seconds at 1000/s of 2 ms, then one second of 100/s at 20 ms, none, and three of 100/s
    at 10 ms."""
    time = np.arange(1.0, 11.0)
    rate = np.array([1000.0] * 5 + [100.0, 0.0] + [100.0] * 3)
    wait = np.array([0.002] * 5 + [0.02, np.nan] + [0.01] * 3)
    series = [
        Series("write.iops", "1/s", time, rate),
        Series("write.lat", "s", time, wait),
        Series("write.clat", "s", time, wait / 2),
    ]
    first, second = window_runs([marked(tmp_path, 1, [at(4.0, "x")])], lambda _: series)
    assert first.value("write.lat.mean") == pytest.approx(0.002)
    assert second.value("write.lat.mean") == pytest.approx(
        (1000 * 0.002 + 100 * 0.02 + 300 * 0.01) / 1400
    )
    assert second.value("write.clat.mean") == pytest.approx(
        present(second.value("write.lat.mean")) / 2
    )
    (alone, _) = window_runs([marked(tmp_path, 2, [at(4.0, "x")])], lambda _: series[1:2])
    assert alone.value("write.lat.mean") == pytest.approx(0.002)


def test_each_group_of_a_window_counts_alike(tmp_path: Path) -> None:
    """Three groups at each reading, none in two of them; of the second window's one reading lies
    half before the mark."""
    time = np.repeat([1.0, 2.0, 5.0, 6.0, 7.0, 8.0], 3)
    sync = Series("zfs.txg.sync", "s", time, np.tile([0.1, 0.4, 0.7], 6) + (time > 5), reading=1.0)
    first, second = window_runs([marked(tmp_path, 1, [at(5.5, "x")])], lambda _: [sync])
    assert first.value("zfs.txg.sync") == pytest.approx(0.4)
    assert second.value("zfs.txg.sync") == pytest.approx(1.4)
    one = Series(
        "zfs.txg.sync", "s", np.array([5.0, 6.0, 7.0]), np.array([1.0, 9.0, 3.0]), reading=1.0
    )
    first, second = window_runs([marked(tmp_path, 2, [at(5.5, "x")])], lambda _: [one])
    assert (first.value("zfs.txg.sync"), second.value("zfs.txg.sync")) == (1.0, 3.0)
    assert [
        run.variant for run in window_runs([marked(tmp_path, 3, [at(8.5, "x")])], lambda _: [one])
    ] == ["start"]


def test_several_arms_become_a_factor(tmp_path: Path) -> None:
    runs = [marked(tmp_path, 1, [at(5, "x")], variant) for variant in ("a", "b")]
    assert {run.factors["arm"] for run in window_runs(runs, falling)} == {"a", "b"}
    comparison = compare(window_runs(runs, falling, "b"), "write.iops")
    assert comparison.row_levels == (("b",), ("a",))


def test_steps_and_unmarked_runs_make_no_windows(tmp_path: Path) -> None:
    assert (
        window_runs(
            [marked(tmp_path, 1, [at(5, "2 jobs", "step")]), marked(tmp_path, 2, [])], falling
        )
        == []
    )


def test_a_window_of_less_than_two_seconds_is_left_out(tmp_path: Path) -> None:
    found = window_runs([marked(tmp_path, 1, [at(8.5, "x")])], falling)
    assert [run.variant for run in found] == ["start"]


@pytest.mark.parametrize(
    "damage",
    ['{"time_ns": 1}\n', "[1, 2]\n", "garbage\n", '{"time_ns": "x", "kind": "a", "label": "b"}\n'],
)
def test_damaged_marks_are_an_error_of_the_file_and_cost_the_run_its_windows(
    tmp_path: Path, damage: str
) -> None:
    run = marked(tmp_path, 1, [at(5, "x")])
    (run.evidence / FILE).write_text(damage)
    with pytest.raises(FormatError, match=r"marks\.jsonl:1: is not a mark"):
        read_marks(run.evidence)
    assert window_runs([run], falling) == []


def test_seconds_of_marks_inside_the_window(tmp_path: Path) -> None:
    run = marked(tmp_path, 1, [at(5.5, "on"), at(99, "late"), at(-1, "early")])
    assert seconds_of(run.evidence, run.plan.window) == [(5.5, "on")]
    assert seconds_of(run.evidence, None) == []
    (run.evidence / FILE).write_text("garbage\n")
    assert seconds_of(run.evidence, run.plan.window) == []


def test_a_torn_last_mark_is_left_out(tmp_path: Path) -> None:
    run = marked(tmp_path, 1, [at(5, "x")])
    with (run.evidence / FILE).open("a") as file:
        file.write('{"time_ns": 17000')
    assert [mark.label for mark in read_marks(run.evidence)] == ["x"]
