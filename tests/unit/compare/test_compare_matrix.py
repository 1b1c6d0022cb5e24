# SPDX-License-Identifier: Apache-2.0
"""The matrix of two metrics: enough digits to tell values apart, and a verdict beside every number
in every format."""

from __future__ import annotations

import csv
import io

from iolab.base.verdict import Level, Reason, Verdict
from iolab.output.charts import matrix
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Comparison
from iolab.studies.compare.render.matrix import render_matrix
from iolab.studies.results.evidence.model import Observation, Run, RunPlan

MIB = 2**20


def run(
    variant: str,
    number: int,
    rate: float,
    latency: float,
    *,
    suspect: bool = False,
    judged: bool = True,
    **factors: object,
) -> Run:
    observations = {
        name: Observation(name, value, unit, "fio.json", "", value, unit)
        for name, value, unit in (("write.bw", rate, "B/s"), ("write.lat.mean", latency, "s"))
    }
    reasons = [Reason("stall", Level.SUSPECT, "moved nothing for 4 s")] if suspect else []
    plan = RunPlan(run=f"{number:04d}", variant=variant, factors=factors, repetition=1, block=1)
    return Run(plan, None, observations, Verdict.of(reasons, judged=judged), {}, ())  # type: ignore[arg-type]


def both(runs: list[Run], **asked: str) -> tuple[Comparison, Comparison]:
    return compare(runs, "write.bw", shown_unit=asked.get("bw")), compare(
        runs, "write.lat.mean", shown_unit=asked.get("lat")
    )


RUNS = [
    run("a", 1, 1641 * MIB, 22.35e-6, bs="8k"),
    run("a", 2, 2032 * MIB, 17e-6, bs="64k", suspect=True),
]


def test_values_beyond_a_gib_keep_their_digits_as_in_the_chart() -> None:
    text = render_matrix(*both(RUNS), "text")
    assert "1641 MiB/s @ 22.35 µs" in text
    assert "2032 MiB/s¹ @ 17 µs¹" in text
    assert {str(row["label"]).replace("*", "") for row in matrix(*both(RUNS)).rows} == {
        "1641 MiB/s @ 22.35 µs",
        "2032 MiB/s @ 17 µs",
    }
    small = [
        run("a", 1, 1.101 * 2**30, 4.2e-6, bs="8k"),
        run("a", 2, 0.6251 * 2**30, 8.4e-6, bs="64k"),
    ]
    assert "1127 MiB/s @ 4.2 µs" in render_matrix(*both(small), "text")


def test_a_unit_or_a_precision_that_was_asked_for_is_kept() -> None:
    assert "1.603 GiB/s @ 22.35 µs" in render_matrix(*both(RUNS, bw="GiB/s", lat="us"), "text")
    assert "1641.00 MiB/s @ 22.35 µs" in render_matrix(*both(RUNS), "text", precision=2)


def test_a_column_without_a_factor_is_headed_by_what_stands_in_it() -> None:
    heads = render_matrix(*both(RUNS), "text").splitlines()[3]
    assert heads.split("  ")[-1] == "write.bw @ write.lat.mean"
    assert "\\" not in heads


def test_markdown_explains_its_marks_and_says_what_was_not_judged() -> None:
    lines = render_matrix(*both(RUNS), "markdown").splitlines()
    assert any(line.startswith("| ") and "¹" in line for line in lines)
    assert any(line.startswith("¹ SUSPECT, stall") for line in lines)
    published = [
        run("a", 1, 1.0, 1.0, judged=False, bs="8k"),
        run("a", 2, 2.0, 1.0, judged=False, bs="64k"),
    ]
    assert "UNJUDGED" in render_matrix(*both(published), "markdown")
    assert r"\~" in render_matrix(*both([run("a~b", 1, 1.0, 1.0, bs="8k")]), "markdown")


def test_csv_has_the_verdict_of_both_sides() -> None:
    rows = list(csv.DictReader(io.StringIO(render_matrix(*both(RUNS), "csv"))))
    assert [
        (
            row["bs"],
            row["write.bw verdict"],
            row["write.lat.mean verdict"],
            row["write.bw footnotes"],
        )
        for row in rows
    ] == [("8k", "OK", "OK", ""), ("64k", "SUSPECT", "SUSPECT", "stall")]
    assert float(rows[0]["write.bw (B/s)"]) == 1641 * MIB
