# SPDX-License-Identifier: Apache-2.0
"""The overview of one cell: a row for each metric, values with units, notes that hold for some
metrics under their names."""

from __future__ import annotations

from iolab.base.verdict import Level, Reason, Verdict
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Comparison
from iolab.studies.compare.render.overview import is_one_cell, render_overview
from iolab.studies.results.evidence.model import Observation, Run, RunPlan

MIB = 2**20
UNITS = {"read.iops": "1/s", "read.bw": "B/s", "read.clat.p99": "s", "write.iops": "1/s"}


def run(
    variant: str,
    number: int,
    values: dict[str, float],
    *,
    reasons: tuple[Reason, ...] = (),
    jobs: int = 1,
) -> Run:
    observations = {
        name: Observation(name, value, UNITS[name], "fio.json", "", value, UNITS[name])
        for name, value in values.items()
    }
    plan = RunPlan(
        run=f"{number:04d}",
        variant=variant,
        factors={"numjobs": jobs},
        repetition=number,
        block=number,
    )
    return Run(plan, None, observations, Verdict.of(list(reasons), judged=True), {}, ())  # type: ignore[arg-type]


def comparisons(runs: list[Run]) -> list[Comparison]:
    names = dict.fromkeys(name for each in runs for name in each.observations)
    return [compare(runs, name) for name in names]


def rows(text: str) -> dict[str, list[str]]:
    """Fields of each row of a table of text, which are two spaces apart."""
    lines = [line for line in text.splitlines() if "  " in line]
    fields = [[part.strip() for part in line.split("  ") if part.strip()] for line in lines]
    return {row[0]: row[1:] for row in fields}


def test_each_metric_has_a_row_with_its_units_changes_and_tests() -> None:
    runs = []
    for block in (1, 2, 3, 4):
        noise = 1 + block / 1000
        runs += [
            run(
                "old",
                block,
                {
                    "read.iops": 20_000 * noise,
                    "read.bw": 80 * MIB * noise,
                    "read.clat.p99": 1.2e-6 * noise,
                },
            ),
            run(
                "new",
                block,
                {
                    "read.iops": 10_000 * noise,
                    "read.bw": 3000 * MIB * noise**2,
                    "read.clat.p99": 5e-3,
                },
            ),
        ]
    table = rows(render_overview(comparisons(runs), "text"))
    assert table["metric"] == ["old", "new", "change", "interval", "test"]
    assert table["read.iops"][:3] == ["20 050 1/s", "10 025 1/s", "-50.0 %"]
    assert table["read.bw"][1].endswith("GiB/s")
    # a value far below its row's unit has a unit of its own
    assert table["read.bw"][0] == "80.20 MiB/s"
    assert table["read.clat.p99"][:2] == ["1.203 µs", "5.000 ms"]
    assert table["read.clat.p99"][4].startswith("q")
    text = render_overview(comparisons(runs), "text")
    assert "each metric has its own tests" in text
    assert "minimum detectable change (80 % power): read.iops about " in text


def test_a_change_that_is_not_significant_says_what_it_rules_out() -> None:
    runs = [
        run(variant, block, {"read.iops": 1000.0 + 37 * (block * index % 3)})
        for block in (1, 2, 3, 4)
        for index, variant in ((1, "old"), (2, "new"))
    ]
    lines = render_overview(comparisons(runs), "text").splitlines()
    place = lines.index("~ not significant:")
    assert lines[place + 1].startswith("  read.iops: a change beyond ±")


def test_a_metric_that_an_arm_lacks_is_an_empty_field_without_a_note() -> None:
    text = render_overview(
        comparisons(
            [
                run("a", 1, {"read.iops": 100.0, "write.iops": 50.0}),
                run("b", 1, {"read.iops": 110.0}),
            ]
        ),
        "text",
    )
    assert rows(text)["write.iops"] == ["50.00 1/s", "—", "—"]
    assert "left out" not in text
    # the note holds for all metrics that have a change
    assert "\nnote: one run per cell" in text


def test_footnotes_are_numbered_over_all_rows_and_a_note_of_some_names_them() -> None:
    stall = Reason("stall", Level.SUSPECT, "moved nothing for 4 s")
    text = render_overview(
        comparisons(
            [
                run("a", 1, {"read.iops": 100.0, "read.bw": MIB}),
                run("b", 1, {"read.iops": 110.0, "read.bw": MIB}, reasons=(stall,)),
            ]
        ),
        "text",
    )
    assert rows(text)["read.iops"][1] == "110.0 1/s¹"
    assert rows(text)["read.bw"][1] == "1.000 MiB/s¹"
    assert text.count("¹ SUSPECT, stall") == 1


def test_markdown_escapes_names_of_arms() -> None:
    text = render_overview(
        comparisons([run("a|b", 1, {"read.iops": 1.0}), run("<c>", 1, {"read.iops": 2.0})]),
        "markdown",
    )
    head = next(line for line in text.splitlines() if line.startswith("| metric"))
    assert head.startswith("| metric | a\\|b | ")
    assert "<c>" not in head


def test_only_a_comparison_of_one_place_is_one_cell() -> None:
    runs = [run("a", 1, {"read.iops": 1.0}), run("b", 1, {"read.iops": 2.0})]
    assert is_one_cell(compare(runs, "read.iops"))
    more = [run("a", 2, {"read.iops": 1.0}, jobs=2), run("b", 2, {"read.iops": 2.0}, jobs=2)]
    assert not is_one_cell(compare([*runs, *more], "read.iops"))
