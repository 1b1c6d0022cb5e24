# SPDX-License-Identifier: Apache-2.0
"""Trees that OpenZFS's performance suite leaves, of one and of several runs of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from iolab.results.imports.layouts.inference import infer_layouts
from iolab.results.imports.layouts.path_columns import Sample
from iolab.results.imports.layouts.zfs_tests import result_name, suite_layout
from iolab.results.imports.tree import import_tree
from iolab.results.open.results import Results
from support.fio_files import iostat, job, output

RUN = "{sync_type}.{bs}-ios.{numjobs:int}-threads.{filesystems:int}-filesystems"
COLLECTORS = ("zpool.iostat", "vmstat", "mpstat", "arcstat", "dstat", "perf")


def suffixes(threads: Iterable[int], filesystems: str = "1") -> list[str]:
    return [
        f"{sync}.8k-ios.{count}-threads.{filesystems}-filesystems"
        for count in threads
        for sync in ("async", "sync")
    ]


def write_suite(folder: Path, scale: float, minute: int, ending: str = ".ksh") -> None:
    """`perf_data` of two tests, with the files of all collectors."""
    place = folder / "perf_data"
    place.mkdir(parents=True)
    for test in ("random_writes", "sequential_writes"):
        for number, suffix in enumerate(suffixes((16, 32))):
            jobs = 16 if "16-threads" in suffix else 32
            options = {
                "rw": "randwrite" if test == "random_writes" else "write",
                "bs": "8k",
                "numjobs": str(jobs),
                "sync": str(int(suffix.startswith("sync"))),
            }
            text = output(
                job(jobs=jobs, iops=scale * 100 * jobs), minute=minute + number, **options
            )
            (place / f"{test}{ending}.fio.{suffix}").write_text(text)
            for tag in COLLECTORS:
                (place / f"{test}{ending}.{tag}.{suffix}").write_text("what it printed\n")
            (place / f"{test}{ending}.iostat.{suffix}").write_text(iostat([(800.0, 50.0)] * 10))
    (folder / "log").write_text("Test: random_writes\n")


@pytest.mark.parametrize("ending", [".ksh", ""])
def test_one_run_of_the_suite(tmp_path: Path, ending: str) -> None:
    write_suite(tmp_path / "suite", 1.0, 0, ending)
    imported = import_tree(tmp_path / "suite", None, tmp_path / "out")
    assert imported.layouts == (f"perf_data/{{test}}{ending}.fio.{RUN}",)
    runs = Results(tmp_path / "out").runs
    assert len(runs) == 8
    assert {
        (run.factors["test"], run.factors["sync_type"], run.factors["numjobs"]) for run in runs
    } == {
        (test, sync, jobs)
        for test in ("random_writes", "sequential_writes")
        for sync in ("sync", "async")
        for jobs in (16, 32)
    }
    for run in runs:
        assert run.value("write.iops") == 100 * run.factors["numjobs"]
        # each collector's file is with its own result
        names = {path.name for path in run.evidence.iterdir()}
        own = [name for name in names if f".{run.factors['numjobs']}-threads" in name]
        assert len(own) == len(COLLECTORS) + 2, names
        assert all(name.startswith(f"{run.factors['test']}{ending}.") for name in own)


def test_several_runs_are_variants_and_repetitions(tmp_path: Path) -> None:
    for number, (variant, repetition) in enumerate(
        [("old", 1), ("new", 1), ("new", 2), ("old", 2)]
    ):
        scale = 1.0 if variant == "old" else 1.2
        write_suite(tmp_path / "runs" / variant / str(repetition), scale, 100 * number)
    imported = import_tree(tmp_path / "runs", None, tmp_path / "out")
    assert imported.layouts == (f"{{variant}}/{{repetition:int}}/perf_data/{{test}}.ksh.fio.{RUN}",)
    results = Results(tmp_path / "out")
    assert len(results.runs) == 32
    assert {run.variant for run in results.runs} == {"old", "new"}
    assert {run.plan.repetition for run in results.runs} == {1, 2}


def test_names_of_the_suite() -> None:
    suffix = "sync.8k-ios.16-threads.1-filesystems"
    assert suite_layout([f"random_writes.ksh.fio.{suffix}"]) == f"{{test}}.ksh.fio.{RUN}"
    assert suite_layout([f"random_writes.fio.{suffix}"]) == f"{{test}}.fio.{RUN}"
    # a split of sizes has no size
    split = "async.bssplit-ios.32-threads.1-filesystems"
    assert suite_layout([f"random_readwrite.fio.{split}"]) is not None
    assert result_name(f"a.ksh.zpool.iostat.{suffix}") == f"a.ksh.fio.{suffix}"
    for name in ("", "fio.json", f"a.fio.{suffix}.json", "a.fio.sync.8k-ios", "a" * 10_000):
        assert suite_layout([name]) is None
        assert result_name(name) is None
    assert suite_layout([f"a.fio.{suffix}", "fio.json"]) is None
    assert suite_layout([f"a.vmstat.{suffix}"]) is None
    assert suite_layout([]) is None


def test_a_tree_with_other_results_is_inferred_as_any() -> None:
    suffix = "sync.8k-ios.16-threads.1-filesystems"
    samples = [Sample(f"perf_data/a.fio.{suffix}"), Sample("mine/fio.json")]
    assert not any("sync_type" in layout for layout in infer_layouts(samples).layouts)
