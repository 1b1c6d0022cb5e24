# SPDX-License-Identifier: Apache-2.0
"""Tables hold the comparison's numbers as text, each at its place, with what stands behind it."""

from __future__ import annotations

from iolab.output.report.sections.hosts import environment
from iolab.output.report.sections.metric_sections import change_tone, outcome_cell, tables
from iolab.output.report.words.phrases import probability_text
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Change
from iolab.studies.results.evidence.model import Run
from support.report_data import HandMade, invalid, run, suspect, sweep


def places(runs: list[Run]) -> dict[str, int]:
    return {one.id: place for place, one in enumerate(runs)}


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_a_tested_sweep_has_value_change_and_test() -> None:
    runs = sweep(1.5, noise=0.01)
    made, footnotes, unit = tables(compare(runs, "write.iops"), places(runs))
    assert (len(made), footnotes, unit) == (1, [], "1/s")
    assert [column.title for column in made[0].groups[0].columns] == [
        "master",
        "project",
        "change",
        "test",
    ]
    baseline, variant, change, test = made[0].rows[0].cells
    assert baseline
    assert variant
    assert change
    assert test
    assert 99 < float(baseline.text) < 101
    assert baseline.runs == [
        place
        for place, one in enumerate(runs)
        if one.variant == "master" and one.factors["numjobs"] == 1
    ]
    assert change.tone == "better"
    assert change.decided is True
    assert change.sub.startswith("[+")
    assert test.text.startswith("q < 0.001")
    assert test.sub == "n = 6"


def test_single_pairs_need_no_test_column() -> None:
    runs = sweep(1.5, blocks=1)
    made, _, _ = tables(compare(runs, "write.iops"), places(runs))
    assert [column.title for column in made[0].groups[0].columns] == ["master", "project", "change"]
    change = made[0].rows[0].cells[2]
    assert change is not None
    assert (change.sub, change.decided, change.tone) == ("", None, "plain")


def test_columns_make_groups_and_rows_keep_their_width() -> None:
    runs = sweep(1.5, more={"disks": [1, 2]})
    made, _, _ = tables(
        compare(runs, "write.iops", layout=Layout(rows=["numjobs"], cols=["disks"])), places(runs)
    )
    assert [plain(group.title) for group in made[0].groups] == ["disks 1", "disks 2"]
    width = sum(len(group.columns) for group in made[0].groups)
    assert {len(row.cells) for row in made[0].rows} == {width}
    assert made[0].rows[-1].summary
    assert [cell.text for cell in made[0].rows[-1].cells if cell and "cells" in cell.text] == [
        "3 of 3 cells"
    ] * 2


def test_a_place_that_was_not_measured_is_empty() -> None:
    runs = [
        run(1, "a", {"n": 1}, {"write.iops": 10.0}),
        run(2, "b", {"n": 1}, {"write.iops": 20.0}),
        run(3, "b", {"n": 2}, {"write.iops": 30.0}),
    ]
    made, _, _ = tables(compare(runs, "write.iops"), places(runs))
    second = made[0].rows[1]
    assert second.cells[0] is None
    assert second.cells[1] is not None
    assert second.cells[1].text == "30.00"
    assert second.cells[2] is None


def test_suspect_and_left_out_runs_are_marked_and_reachable() -> None:
    runs = [
        *sweep(1.2, blocks=2, loads=(1,)),
        run(90, "project", {"numjobs": 1}, {"write.iops": 1.0}, block=3, reasons=[invalid()]),
        run(91, "master", {"numjobs": 1}, {"write.iops": 99.0}, block=3, reasons=[suspect()]),
    ]
    made, footnotes, _ = tables(compare(runs, "write.iops"), places(runs))
    baseline, variant = made[0].rows[0].cells[:2]
    assert baseline
    assert variant
    assert places(runs)["0090-00000000"] in variant.runs
    assert variant.marks
    assert any("INVALID" in footnotes[mark - 1] for mark in variant.marks)


def test_zeros_have_no_ratio_and_break_nothing() -> None:
    runs = [run(1, "a", {"n": 1}, {"write.iops": 0.0}), run(2, "b", {"n": 1}, {"write.iops": 20.0})]
    made, footnotes, _ = tables(compare(runs, "write.iops"), places(runs))
    value, change = made[0].rows[0].cells[1:3]
    assert value is not None
    assert change is None
    assert footnotes


def test_the_test_column_says_what_an_undecided_change_needs() -> None:
    cell = outcome_cell(Change(0.02, -0.01, 0.05, pairs=5, dropped=1, q=0.3, blocks_needed=14))
    assert cell is not None
    assert (cell.text, cell.sub, cell.decided) == ("~", "n = 5, 1 left out, needs 14", False)
    single = outcome_cell(Change(0.02, None, None, pairs=1, dropped=0))
    assert single is not None
    assert single.text == "no interval"


def test_only_decided_changes_of_metrics_with_a_direction_have_a_colour() -> None:
    assert change_tone(Change(0.1, 0.05, 0.15, 6, 0, decided=True, improves=False)) == "worse"
    assert change_tone(Change(0.1, 0.05, 0.15, 6, 0, decided=True, improves=None)) == "plain"
    assert change_tone(Change(0.1, -0.05, 0.15, 6, 0, decided=False, improves=True)) == "plain"


def test_probabilities_are_never_written_as_zero() -> None:
    assert probability_text(0.0) == "< 0.001"
    assert probability_text(0.0042) == "= 0.0042"
    assert probability_text(0.04) == "= 0.04"
    assert probability_text(None) == "—"


def test_the_host_is_told_once() -> None:
    recorded = {"fingerprint": {"kernel": "6.1"}, "facts": {"host": "local", "cpus": 4}}
    found = environment.environment(HandMade(sweep(), environment=recorded))
    assert [(fact.name, fact.values) for fact in found] == [
        ("host", ["local"]),
        ("kernel", ["6.1"]),
        ("cpus", ["4"]),
    ]
