# SPDX-License-Identifier: Apache-2.0
"""The studies that come with iolab: each loads, each is what its comments say, and fio accepts
every job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolab.base import registry
from iolab.base.verdict import Level
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.cells.cells import Cell
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.results.derive.steps import read_steps
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import How, run_study
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload
from support.disks import attached, need_loops
from support.narrow import present
from support.waiting import until

ROOT = Path(__file__).parents[3]
STUDIES = sorted((ROOT / "studies").glob("*.toml"))


@pytest.fixture(params=STUDIES, ids=[path.stem for path in STUDIES])
def study(request: pytest.FixtureRequest) -> Study:
    return load_study(request.param)


def test_those_that_were_promised_are_there() -> None:
    assert {path.stem for path in STUDIES} >= {
        "quickstart",
        "openzfs-447-max-rate",
        "openzfs-447-fixed-rate",
        "write-throttle-4045",
        "compressibility",
        "step-load",
        "picture",
        "parallel-allocators-9112",
        "file-sets",
        "many-clients",
        "limits",
        "disks-one-by-one",
        "openzfs-suite",
    }


def test_it_loads_and_says_what_it_is_and_how_to_run_it(study: Study) -> None:
    assert study.cells
    assert study.description
    assert re.search(
        rf"^#     iolab run studies/{re.escape(study.file.name)}", study.text, re.MULTILINE
    )


def test_each_cell_is_a_load(study: Study) -> None:
    for cell in study.cells:
        load = registry.load("workload", cell.workload_kind)(cell.workload).load()
        assert load.jobs >= 1
        assert load.runtime > 0
        assert load.space_bytes > 0


@pytest.mark.fio
def test_the_installed_fio_accepts_every_job(fio: str, study: Study) -> None:
    kind = study.cells[0].workload_kind
    plugin = registry.load("workload", kind)
    plugin.check(
        LocalHost(),
        {cell.label(): plugin(cell.workload) for cell in study.cells if cell.workload_kind == kind},
    )


def _loads(name: str) -> list[tuple[dict[str, object], FioWorkload]]:
    found = load_study(ROOT / "studies" / f"{name}.toml")
    return [(dict(cell.factors), _fio(cell)) for cell in found.cells]


def _fio(cell: Cell) -> FioWorkload:
    assert isinstance(cell.workload, FioOptions)
    return FioWorkload(cell.workload)


def test_the_447_studies_divide_a_tebibyte_among_1_to_1024_threads() -> None:
    closed, opened = _loads("openzfs-447-max-rate"), _loads("openzfs-447-fixed-rate")
    assert [factors["numjobs"] for factors, _ in closed] == [2**power for power in range(11)]
    assert {load.load().space_bytes for _, load in closed + opened} == {1 << 40}
    assert {load.load().offered_iops for _, load in closed} == {None}
    assert [load.load().offered_iops for _, load in opened] == [
        64.0 * 2**power for power in range(11)
    ]


def test_the_4045_study_leaves_out_what_fio_no_longer_knows() -> None:
    loads = _loads("write-throttle-4045")
    assert len(loads) == 2 * 2 * 2 * 8
    assert all("use_os_rand" in load.notes()[0] for _, load in loads)


def test_the_compressibility_study_writes_a_sixth_of_memory_per_process() -> None:
    loads = _loads("compressibility")
    assert len(loads) == 27
    memory = max(load.load().space_bytes for _, load in loads) / 9 * 6
    total = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    assert memory == pytest.approx(total, rel=0.01)
    assert {load.load().facts["time_based"] for _, load in loads} == {False}


REDUCED = {"options.size": "8m"}


def test_any_of_them_that_fio_drives_can_be_made_small(study: Study) -> None:
    if study.cells[0].workload_kind != "fio":
        pytest.skip("its load is not a fio option of the study")
    # a study that does something at a time can't be shorter than that
    seconds = max([16.0, *(action.at + 10 for action in study.actions)])
    small = load_study(
        study.file, Changes(runtime=f"{seconds:g}s", repetitions=1, workload=REDUCED)
    )
    for cell in small.cells:
        load = _fio(cell).load()
        assert load.runtime == seconds
        files = 1 if "filename" in cell.workload.model_dump()["options"] else load.jobs
        assert load.space_bytes == files * (8 << 20)
    assert small.changes.arguments()[-2:] == ["--workload", "options.size=8m"]


@pytest.mark.fio
@pytest.mark.loops
def test_the_447_study_runs_reduced(fio: str, tmp_path: Path) -> None:
    changes = Changes(only={"numjobs": ("2",)}, runtime="2s", repetitions=1, workload=REDUCED)
    opened = Results(
        run_study(
            ROOT / "studies" / "openzfs-447-max-rate.toml",
            tmp_path / "out",
            how=How(changes=changes),
        )
    )
    (run,) = opened.runs
    assert run.verdict.level is not Level.INVALID, [reason.text for reason in run.verdict.reasons]
    assert present(run.value("write.iops")) > 0
    assert run.options["sync"] == "1"


@pytest.mark.fio
@pytest.mark.loops
def test_disks_join_one_by_one_with_reads_of_their_own(fio: str, tmp_path: Path) -> None:
    need_loops("losetup")
    changes = Changes(runtime="8s", workload=REDUCED, target={"loop.size": "8m"})
    (run,) = Results(
        run_study(
            ROOT / "studies" / "disks-one-by-one.toml", tmp_path / "out", how=How(changes=changes)
        )
    ).runs
    steps = read_steps(run)
    assert [step.levels["devices"] for step in steps] == [1, 2, 3, 4]
    for step in steps:
        assert step.value("read.iops") == pytest.approx(200 * int(step.levels["devices"]), rel=0.4)
    until(lambda: attached(tmp_path) == [], "loop devices to be detached")
