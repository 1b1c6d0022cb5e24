# SPDX-License-Identifier: Apache-2.0
"""Trees that OpenZFS's performance suite leaves, of one and of several runs of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.studies.results.imports.layouts.inference import infer_layouts
from iolab.studies.results.imports.layouts.path_columns import Sample
from iolab.studies.results.imports.layouts.zfs_tests import read_config, result_name, suite_layout
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.results import Results
from support.fio_files import iostat, job, output
from support.fio_texts import NEW

RUN = "{sync_type}.{bs}-ios.{numjobs:int}-threads.{filesystems:int}-filesystems"
COLLECTORS = ("zpool.iostat", "vmstat", "mpstat", "arcstat", "dstat", "perf", "prefetch")
CONFIG: dict[str, Any] = {
    "ncpus": "16",
    "physmem": "68719476736",
    "c_max": "34359738368",
    "hostname": "perf1",
    "kernel version": "Linux 6.1.0-9-amd64",
    "disks": {"vda": "64G", "vdb": "1T"},
    "tunables": {"zfs_arc_max": "0", "zfs_txg_timeout": "5"},
}
ZPOOL = """              capacity     operations     bandwidth    total_wait     disk_wait    syncq_wait
pool        alloc   free   read  write   read  write   read  write   read  write   read  write
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
perfpool    1048576 8589934592  0  310  0  2539520  -  812345  -  612345  -  1024
"""


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
                printed = ZPOOL if tag == "zpool.iostat" else "what it printed\n"
                (place / f"{test}{ending}.{tag}.{suffix}").write_text(printed)
            (place / f"{test}{ending}.perf.{suffix}.log").write_text("perf: nothing\n")
            (place / f"{test}{ending}.iostat.{suffix}").write_text(iostat([(800.0, 50.0)] * 10))
    (place / "config.json").write_text(json.dumps(CONFIG))
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
        assert len(own) == len(COLLECTORS) + 3, names
        assert all(name.startswith(f"{run.factors['test']}{ending}.") for name in own)

    environment = json.loads((runs[0].evidence / "environment.json").read_text())
    assert environment["fingerprint"] == {
        "kernel": "6.1.0-9-amd64",
        "cpu": "16 CPUs",
        "memory": "64 GiB",
        "zfs_arc_max": "0",
        "zfs_txg_timeout": "5",
    }
    assert Results(tmp_path / "out").environment()["facts"]["host name"] == "perf1"
    assert imported.files["unknown"] == ["log"]


def test_a_damaged_description_of_the_machine_is_no_environment(tmp_path: Path) -> None:
    for number, text in enumerate(("", "{", "[]", '{"ncpus": "2"}', "[" * 100_000, "x" * 2**21)):
        suite, out = tmp_path / f"suite-{number}", tmp_path / f"out-{number}"
        write_suite(suite, 1.0, 0)
        (suite / "perf_data/config.json").write_text(text)
        imported = import_tree(suite, None, out)
        assert imported.runs == 8
        assert "perf_data/config.json" not in imported.files["evidence"]
        assert not list(out.glob("runs/*/environment.json"))


def test_a_result_that_is_cut_off_leaves_the_others(tmp_path: Path) -> None:
    write_suite(tmp_path / "suite", 1.0, 0)
    suffix = "sync.8k-ios.16-threads.1-filesystems"
    path = tmp_path / "suite/perf_data" / f"random_writes.ksh.fio.{suffix}"
    path.write_bytes(path.read_bytes()[:300])
    imported = import_tree(tmp_path / "suite", None, tmp_path / "out")
    assert (imported.runs, len(imported.files["damaged"])) == (8, 1)
    levels = [run.verdict.level.value for run in Results(tmp_path / "out").runs]
    assert levels.count("INVALID") == 1


def test_normal_output_of_fio_is_read(tmp_path: Path) -> None:
    """PERF_FIO_FORMAT=normal."""
    write_suite(tmp_path / "suite", 1.0, 0)
    for path in (tmp_path / "suite/perf_data").glob("*.fio.*"):
        path.write_text(NEW)
    import_tree(tmp_path / "suite", None, tmp_path / "out")
    assert {run.value("read.iops") for run in Results(tmp_path / "out").runs} == {8000}


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(CONFIG, _VALUES)))
def test_hostile_values_are_left_out(config: dict[str, Any]) -> None:
    environment = read_config(json.dumps(config).encode())
    assert environment is not None
    fingerprint = environment["fingerprint"]
    assert all(isinstance(value, str) and len(value) <= 200 for value in fingerprint.values())


@settings(max_examples=60, deadline=None)
@given(st.binary())
def test_any_bytes_are_no_description(data: bytes) -> None:
    assert read_config(data) is None


def test_many_long_values_are_bounded() -> None:
    names = {f"parameter{number}": "x" * 1000 for number in range(1000)}
    environment = read_config(json.dumps({**CONFIG, "tunables": names}).encode())
    assert environment is not None
    assert len(environment["fingerprint"]) == 3 + 256


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
    assert result_name(f"a.ksh.perf.{suffix}.log") == f"a.ksh.fio.{suffix}"
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
