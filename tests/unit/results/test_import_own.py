# SPDX-License-Identifier: Apache-2.0
"""iolab's own results, imported again: what run.json says holds."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import tarfile
from pathlib import Path

import pytest

from iolab.base.errors import UsageError
from iolab.studies.compare.compare import compare
from iolab.studies.results.evidence.files import RUNS
from iolab.studies.results.evidence.manifest import Manifest, write_manifest
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.results import Results
from support.fio_files import job, output, write_run


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Results of a study: two variants, two levels of numjobs, two blocks whose second has the
    repetition 1 again; one run failed."""
    place = tmp_path / "own"
    cells = itertools.product((1, 2), (4, 16), ("b-tuned", "a-stock"))
    for number, (block, jobs, variant) in enumerate(cells, 1):
        rate = 1000.0 * jobs + 10 * block + (5 * jobs if variant == "b-tuned" else 0)
        plan = RunPlan(
            f"{number:04d}-{number:08x}",
            variant,
            {"numjobs": jobs, "media": "ssd"},
            repetition=1,
            block=block,
            jobs=jobs,
            runtime=10.0,
            host="lab",
            window=(1_700_000_000_000_000_000, 1_700_000_010_000_000_000),
            command=("fio", "job.fio"),
        )
        write_run(place / RUNS / plan.run, output(job(jobs=jobs, iops=rate)), plan=plan)
    failed = RunPlan(
        "0009-00000009",
        "b-tuned",
        {"numjobs": 4, "media": "ssd"},
        repetition=2,
        block=3,
        status="failed",
        host="lab",
    )
    write_run(place / RUNS / failed.run, None, plan=failed)
    write_manifest(
        place,
        Manifest(
            name="study",
            origin="run",
            created_ns=1,
            iolab="0",
            baseline="a-stock",
            variants=["a-stock", "b-tuned"],
            factors=["numjobs", "media"],
        ),
    )
    return place


def _cells(results: Results) -> list[tuple[object, ...]]:
    return [
        (
            cell.row,
            cell.variant,
            cell.estimate.values,
            None if cell.change is None else (cell.change.value, cell.change.pairs),
        )
        for cell in compare(results.runs, "write.iops", baseline="a-stock").cells
    ]


@pytest.mark.parametrize("kind", ["tree", "archive", "link"])
def test_own_results_are_taken_whole(own: Path, tmp_path: Path, kind: str) -> None:
    before = Results(own)
    source = own
    if kind == "archive":
        source = tmp_path / "own.tar.gz"
        with tarfile.open(source, "w:gz") as archive:
            archive.add(own, "some-name")
    found = import_tree(source, None, tmp_path / "out", link=kind == "link")
    after = Results(tmp_path / "out")
    assert (found.is_results, found.runs) == (True, 9)
    assert [(run.plan, run.verdict) for run in after.runs] == [
        (run.plan, run.verdict) for run in before.runs
    ]
    assert _cells(after) == _cells(before)
    assert (after.baseline, after.manifest.variants, after.manifest.factors) == (
        "a-stock",
        ["a-stock", "b-tuned"],
        ["numjobs", "media"],
    )
    with pytest.raises(UsageError, match="there is no variant 'x'"):
        import_tree(source, None, tmp_path / "more", baseline="x")
    assert not (tmp_path / "more").exists()


def test_runs_of_ours_in_another_tree_keep_what_they_are(own: Path, tmp_path: Path) -> None:
    before = Results(own)
    shutil.copytree(own / RUNS, tmp_path / "tree" / "here")
    (tmp_path / "tree" / "theirs").mkdir()
    (tmp_path / "tree" / "theirs" / "fio.json").write_text(output(job(jobs=4, iops=4300.0)))
    found = import_tree(tmp_path / "tree", None, tmp_path / "out")
    after = Results(tmp_path / "out")
    assert found.runs == 10
    ours = [run for run in after.runs if run.plan.host == "lab"]
    for old, new in zip(before.runs, ours, strict=True):
        assert dataclasses.replace(new.plan, run=old.plan.run, extra=old.plan.extra) == old.plan
        assert new.value("write.iops") == old.value("write.iops")
    assert _cells(after)[:2] == _cells(before)[:2]
    again = import_tree(tmp_path / "tree", ["here/*", "{variant}"], tmp_path / "named")
    assert again.runs == 10


def test_an_import_imported_again_is_the_same(tmp_path: Path) -> None:
    for number, (variant, depth) in enumerate(itertools.product(("old", "new"), (1, 2))):
        place = tmp_path / "tree" / variant
        place.mkdir(parents=True, exist_ok=True)
        (place / f"write-{depth}.json").write_text(
            output(job(jobs=1, iops=1000.0 + number), iodepth=str(depth), rw="write")
        )
    import_tree(tmp_path / "tree", None, tmp_path / "first")
    import_tree(tmp_path / "first", None, tmp_path / "second")
    first, second = Results(tmp_path / "first"), Results(tmp_path / "second")
    assert [run.plan for run in first.runs] == [run.plan for run in second.runs]
    assert first.baseline == second.baseline == "old"
