# SPDX-License-Identifier: Apache-2.0
"""A set of files as the workload: what fio is given, what is refused, and what a study of it
measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base.verdict import Level
from iolab.hosts.base.host import Place
from iolab.studies.compare.compare import compare
from iolab.studies.compare.published import Published
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from iolab.studies.workloads.files import FilesOptions, FilesWorkload

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "studies/parallel-allocators-9112.toml"
PUBLISHED = ROOT / "studies/published"
PLACE = Place("/some/place")


def workload(**options: Any) -> FilesWorkload:
    return FilesWorkload(
        FilesOptions.model_validate({"files": 40, "size": "1m", "parallel": 10, **options})
    )


def lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_each_job_writes_files_of_its_own_one_after_the_other_and_makes_them_itself() -> None:
    made = lines(workload().job(PLACE).files["job.fio"])
    assert {
        "rw": "write",
        "numjobs": "10",
        "nrfiles": "4",
        "filesize": str(1 << 20),
        "size": str(4 << 20),
        "bs": str(128 << 10),
        "openfiles": "1",
        "file_service_type": "sequential",
        "create_on_open": "1",
        "directory": "/some/place",
    }.items() <= made.items()
    assert "time_based" not in made
    assert workload().layout(PLACE) is None


def test_what_is_read_is_written_before_as_the_writing_run_does_it_but_for_its_limit() -> None:
    layout = workload(op="read").layout(PLACE)
    assert layout is not None
    written, read = (
        lines(layout.files["layout.fio"]),
        lines(workload(op="read").job(PLACE).files["job.fio"]),
    )
    measured = lines(workload().job(PLACE).files["job.fio"])
    assert written == {name: value for name, value in measured.items() if name in written}
    assert "runtime" not in written
    assert {name for name in written if written[name] != read.get(name)} == {"rw", "create_on_open"}


@pytest.mark.parametrize(
    ("options", "jobs", "room", "layout"),
    [
        ({}, 10, 40 << 20, 0),
        ({"op": "read"}, 10, 40 << 20, 40 << 20),
        ({"files": 4}, 4, 4 << 20, 0),
        ({"size": "128k"}, 10, 40 << 17, 0),
    ],
)
def test_its_load(options: dict[str, Any], jobs: int, room: int, layout: int) -> None:
    load = workload(**options).load()
    assert (load.jobs, load.depth, load.space_bytes, load.layout_bytes) == (jobs, 1, room, layout)
    assert (load.runtime, load.offered_iops, load.facts["time_based"]) == (600.0, None, False)
    assert load.facts["files"] == options.get("files", 40)
    assert load.writes is ("op" not in options)


def test_a_file_smaller_than_an_io_is_one() -> None:
    assert lines(workload(size="8k").job(PLACE).files["job.fio"])["bs"] == "8192"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"files": 41}, "parallel: is 10, and 41 files are not a multiple of it"),
        ({"size": "200k"}, "size: is 204800 bytes, no multiple of bs"),
        ({"options": {"rw": "randread"}}, "rw: can't be set here; write it as workload.op"),
        (
            {"options": {"numjobs": 3, "loops": 2}},
            "loops: can't be set here; every file is read or written once, block by block",
        ),
        ({"options": {"time_based": 1}}, "time_based: can't be set here"),
        (
            {"options": {"refill_buffers": 1}, "compressibility": 50},
            "refill_buffers: is set as well as workload.compressibility",
        ),
        ({"op": "randread"}, "op"),
        ({"files": 0}, "files"),
        ({"bs": 100}, "bs"),
    ],
)
def test_what_makes_no_set_of_files_is_refused_with_a_reason(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        workload(**options)
    assert words in str(caught.value)


def test_its_keys_and_options_of_fio_are_factors() -> None:
    assert [
        FilesWorkload.place_of(name)
        for name in ("files", "size", "op", "direct", "runtime", "no_such")
    ] == [("files",), ("size",), ("op",), ("options", "direct"), ("runtime",), None]


def test_other_options_and_compressibility_reach_fio() -> None:
    made = lines(
        workload(options={"end_fsync": 1}, compressibility=100).job(PLACE).files["job.fio"]
    )
    assert (made["end_fsync"], made["buffer_pattern"]) == ("1", "0xdeadbeef")


def test_the_study_of_parallel_allocators_has_the_published_cells() -> None:
    cells = load_study(STUDY).cells
    for op in ("read", "write"):
        published = {
            (str(run.factors["recordsize"]), run.factors["files"], run.factors["size"], run.variant)
            for run in Published(PUBLISHED / f"parallel-allocators-{op}.csv")._runs
        }
        swept = {
            (cell.factors["recordsize"], cell.factors["files"], cell.factors["size"], cell.variant)
            for cell in cells
            if cell.factors["op"] == op
        }
        assert published <= swept
        assert len(swept) == 96
    assert {cell.workload.jobs for cell in cells if isinstance(cell.workload, FilesOptions)} == {10}


SMALL = """
[study]
repetitions = 2
[target]
kind = "directory"
[workload]
kind = "files"
parallel = 10
options = { ioengine = "psync" }
[factors]
op = ["write", "read"]
files = [10, 40]
size = ["128k"]
recordsize = ["8k", "128k"]
[variants.before]
workload.bs = "{recordsize}"
[variants.after]
workload.bs = "{recordsize}"
workload.options.thread = 1
"""


@pytest.mark.fio
def test_a_study_of_it_is_timed_and_held_beside_the_published_tables(
    fio: str, tmp_path: Path
) -> None:
    study = tmp_path / "small.toml"
    study.write_text(SMALL)
    results = Results(run_study(study, tmp_path / "out"))
    assert len(results.runs) == 32
    for op in ("write", "read"):
        runs = [run for run in results.runs if run.factors["op"] == op]
        for run in runs:
            assert run.verdict.level in (Level.OK, Level.SUSPECT), [
                reason.text for reason in run.verdict.reasons
            ]
            assert not {"time-outside-io", "runtime", "ended-by-size"} & {
                reason.code for reason in run.verdict.reasons if reason.level is not Level.OK
            }
            seen = run.observations[f"{op}.time"]
            assert (seen.value, seen.source_unit) == (run.value("runtime"), "ms")
            assert run.value(f"{op}.bytes") == run.factors["files"] * (128 << 10)
        published = Published(PUBLISHED / f"parallel-allocators-{op}.csv")
        beside = published.with_published(runs)
        assert {run.variant for run in beside} == {
            "before",
            "after",
            "before (published)",
            "after (published)",
        }
        assert {one.cells for one in published.agreements(runs, f"{op}.time")} == {4}
        comparison = compare(runs, f"{op}.time", baseline="before")
        assert comparison.metric.better == "lower"
        assert all(
            cell.estimate.value is not None and cell.estimate.value > 0 for cell in comparison.cells
        )


@pytest.mark.fio
def test_files_that_are_not_done_in_time_have_no_time_and_say_so(fio: str, tmp_path: Path) -> None:
    study = tmp_path / "late.toml"
    study.write_text(
        '[study]\nrepetitions = 1\n[workload]\nkind = "files"\nfiles = 4\nsize = "1m"\nruntime = "300ms"\n'
        'options = { rate = "1m" }\n'
    )
    (run,) = Results(run_study(study, tmp_path / "out")).runs
    assert run.verdict.level is Level.INVALID
    assert "the files were not all done within 0.3000 s" in [
        reason.text for reason in run.verdict.reasons
    ]
    assert run.value("write.time") is None
