# SPDX-License-Identifier: Apache-2.0
"""The published ZFS on Linux #6566 study: 352 real runs of fio 3.0 with headerless iostat of every
disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.results import Results

LAYOUT = "{submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs"


@pytest.fixture(scope="module")
def results(zol_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    directory = tmp_path_factory.mktemp("zol") / "results"
    import_tree(zol_archive, LAYOUT, directory)
    return Results(directory)


@pytest.mark.slow
def test_no_run_is_lost(results: Results) -> None:
    assert len(results.runs) == 352
    assert not [run.id for run in results.runs if run.verdict.level is Level.INVALID]


def test_littles_law_holds_on_all_max_rate_runs(results: Results) -> None:
    ratios = [run.value("littles_law") for run in results.runs if run.factors["submit"] == "max"]
    assert len(ratios) == 176
    assert all(ratio is not None and 0.97 <= ratio <= 1.03 for ratio in ratios)


def test_exactly_five_stalls_all_at_fixed_rate(results: Results) -> None:
    stalled = {
        (
            run.factors["submit"],
            run.variant,
            f"{run.factors['disks']}-{run.factors['media']}",
            run.factors["numjobs"],
        )
        for run in results.runs
        if run.verdict.has("stall")
    }
    assert stalled == {
        ("fixed", "project", "1-hdd", 128),
        ("fixed", "project", "1-hdd", 256),
        ("fixed", "project", "8-hdd", 16),
        ("fixed", "project", "8-hdd", 32),
        ("fixed", "project", "8-hdd", 64),
    }
    assert {run.verdict.level for run in results.runs if run.verdict.has("stall")} == {
        Level.SUSPECT
    }


def test_saturated_runs_are_marked(results: Results) -> None:
    saturated = [run for run in results.runs if run.verdict.has("saturated")]
    assert len(saturated) == 43
    assert {run.factors["submit"] for run in saturated} == {"fixed"}


def test_device_busy_is_averaged_over_all_disks(results: Results) -> None:
    run = next(
        run
        for run in results.runs
        if run.variant == "master"
        and run.factors == {"submit": "max", "disks": 8, "media": "hdd", "numjobs": 64}
    )
    means = []
    for path in sorted(run.evidence.glob("iostat-*.txt")):
        busy = [float(line.split()[-1]) for line in path.read_text().splitlines()]
        means.append(sum(busy) / len(busy))
    assert len(means) == 8
    assert run.value("device.util") == pytest.approx(sum(means) / 8 / 100)
    assert run.value("device.util") != pytest.approx(means[-1] / 100)


def test_media_and_rate_are_never_pooled_unasked(results: Results) -> None:
    comparison = compare(
        results.runs, "write.iops", layout=Layout(rows=["numjobs"], cols=["disks"])
    )
    assert comparison.tables == ("submit", "media")
    assert comparison.warnings[0].code == "hidden-variation"
    assert max(change.pairs for cell in comparison.cells if (change := cell.change)) == 1
    pooled = compare(
        results.runs,
        "write.iops",
        layout=Layout(rows=["numjobs"], cols=["disks"], ignore=["media", "submit"]),
    )
    assert "media varies within cells (hdd, ssd)" in " ".join(
        warning.text for warning in pooled.warnings
    )
    assert {len(cell.estimate.values) for cell in pooled.cells} == {4}


def test_arms_that_did_not_take_turns_are_never_significant_when_pooled(results: Results) -> None:
    """At each rate and medium, all runs of `master` were before all runs of `project`."""
    pooled = compare(
        results.runs,
        "write.iops",
        layout=Layout(rows=["numjobs"], cols=["media"], ignore=["disks", "submit"]),
    )
    changes = [cell.change for cell in pooled.cells if cell.change is not None]
    assert len(changes) == 22
    assert {(change.sessions, change.decided) for change in changes} == {((1, 1), False)}
