# SPDX-License-Identifier: Apache-2.0
"""Whole studies with the real fio on devices that iolab makes: what they measure, and what happens
when the ground goes away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.studies.plan.cells.plan import PlannedRun
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.run.study import How, run_study
from support.acting import Listener
from support.disks import attached, call, mounted, need_loops
from support.waiting import until

pytestmark = [pytest.mark.fio, pytest.mark.loops]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, fio: str) -> Iterator[None]:
    need_loops("mkfs.btrfs")
    yield
    # the kernel detaches a device that somebody else looks at once they are through
    until(lambda: attached(tmp_path) == [], "loop devices to be detached")
    assert mounted(tmp_path) == []
    assert not list(tmp_path.glob("out/scratch*"))


def study(tmp_path: Path, target: str, options: str, more: str = "", runtime: str = "1s") -> Path:
    path = tmp_path / "study.toml"
    path.write_text(
        f'[study]\nrepetitions = 1\n[target]\n{target}\n[workload]\nkind = "fio"\nruntime = "{runtime}"\n'
        f"[workload.options]\n{options}\n{more}\n"
    )
    return path


def observed(out: Path) -> list[dict[str, float]]:
    return [
        {each.metric: each.value for each in derive(run, read_plan(run)).observations}
        for run in run_directories(out)
    ]


def test_achieved_compression_is_measured_of_what_fio_wrote(tmp_path: Path) -> None:
    # 16 MiB/s: nothing is overwritten, which leaves extents behind of which a part still lives, and
    # would lower the ratio.
    out = run_study(
        study(
            tmp_path,
            'kind = "filesystem"\nfs = "btrfs"\nmount_options = "compress=zstd"\nloop = {size = "160m"}',
            'rw = "write"\nbs = "128k"\nsize = "32m"\nrate_iops = 128\nfallocate = "none"\nend_fsync = 1',
            "[factors]\ncompressibility = [0, 50, 100]",
        ),
        tmp_path / "out",
    )
    found = {
        read_plan(run).factors["compressibility"]: values["target.compression"]
        for run, values in zip(run_directories(out), observed(out), strict=True)
    }
    assert found[0] == pytest.approx(1.0, abs=0.03)
    assert 1.8 <= found[50] <= 2.0
    assert found[100] > 20
    for run in run_directories(out):
        assert not [
            reason
            for reason in derive(run, read_plan(run)).verdict.reasons
            if reason.code == "compression"
        ]


def test_direct_writes_of_a_device_are_amplified_by_nothing(tmp_path: Path) -> None:
    out = run_study(
        study(
            tmp_path,
            'kind = "device"\nloop = {size = "16m", count = 2}',
            'rw = "write"\nbs = "64k"\nsize = "16m"\ndirect = 1\nrate_iops = 200',
            runtime="3s",
        ),
        tmp_path / "out",
    )
    [values] = observed(out)
    assert values["write.amplification"] == pytest.approx(
        1.0, rel=0.25
    )  # seconds at the window's edges count whole or not at all
    [run] = run_directories(out)
    assert len(read_plan(run).extra["devices"]) == 2


def test_a_cold_read_comes_from_the_device(tmp_path: Path) -> None:
    out = run_study(
        study(
            tmp_path,
            'kind = "filesystem"\nfs = "ext4"\nloop = {size = "64m"}\ncache = "cold"',
            'rw = "read"\nbs = "64k"\nsize = "24m"\ninvalidate = 0\nrate_iops = 150',
            runtime="2s",
        ),
        tmp_path / "out",
    )
    [run] = run_directories(out)
    assert read_plan(run).status == "finished"
    lines = [
        line.split() for line in (run / "diskstats.log").read_text().splitlines() if " loop" in line
    ]
    assert (
        512 * (int(lines[-1][5]) - int(lines[0][5])) >= 150 * 2 * 65536 * 0.9
    )  # sectors read, proc(5)


class Unplugging(Listener):
    """Takes the ground away once, in the first run, after its load has done something."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self._image = scratch / "disk-0.img"
        self._done = False

    def update_run(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        if latest.get("device.iops", 0) > 0 and not self._done:
            self._done = True
            node = call(
                "losetup", "--noheadings", "--output", "NAME", "--associated", str(self._image)
            )
            with self._image.open("r+b") as file:
                file.truncate(0)
            call("losetup", "--set-capacity", node)


@pytest.mark.parametrize(
    "target",
    [
        'kind = "device"\nloop = {size = "16m"}',
        'kind = "filesystem"\nfs = "ext4"\nloop = {size = "64m"}',
    ],
)
def test_a_target_unplugged_in_a_run_costs_that_run_and_says_so(
    tmp_path: Path, target: str
) -> None:
    heard = Unplugging(tmp_path / "out" / "scratch")
    out = run_study(
        study(
            tmp_path,
            target,
            'rw = "write"\nbs = "64k"\nsize = "8m"\ndirect = 1\nrate_iops = 100',
            "[factors]\nnumjobs = [1, 2]",
            runtime="20s",
        ),
        tmp_path / "out",
        listener=heard,
    )
    assert [status for _, status, _ in heard.runs] == ["failed", "failed"]
    assert "error" in heard.runs[0][2]
    assert "lost its size" in heard.runs[1][2]
    for run in run_directories(out):
        assert derive(run, read_plan(run)).verdict.level is Level.INVALID


def test_a_full_file_system_in_a_run_is_the_runs_error(tmp_path: Path) -> None:
    heard = Listener()
    filler = f"{tmp_path}/out/scratch/mnt/filler"
    fill = f"dd if=/dev/zero of={filler} bs=1M status=none 2>/dev/null; truncate -s -3M {filler}"
    out = run_study(
        study(
            tmp_path,
            'kind = "filesystem"\nfs = "ext4"\nloop = {size = "24m"}',
            'rw = "write"\nbs = "64k"\nsize = "8m"\nfallocate = "none"\ndirect = 1',
            f'[hooks.run]\nbefore = ["{fill}"]',
        ),
        tmp_path / "out",
        listener=heard,
        how=How(trusted=True),
    )
    assert [status for _, status, _ in heard.runs] == ["failed"]
    assert "No space left" in heard.runs[0][2]
    [run] = run_directories(out)
    assert derive(run, read_plan(run)).verdict.level is Level.INVALID
    assert json.loads((run / "target.json").read_text())["fill"] > 0.9
