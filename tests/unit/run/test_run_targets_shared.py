# SPDX-License-Identifier: Apache-2.0
"""Which cells of a study share a target, and with it the loop files that iolab makes for it."""

from __future__ import annotations

from pathlib import Path

from iolab.base.clock import FakeClock
from iolab.studies.plan.file.load import load_study
from iolab.studies.run.plugins import Equipment
from support.acting import fake_host

STUDY = """
[study]
name = "shared"
repetitions = 1

[target]
kind = "filesystem"
fs = "{fs}"
loop = {{size = "{size}"}}

[workload]
kind = "fio"
runtime = "2s"

[workload.options]
rw = "randwrite"
size = "8m"

[factors]
numjobs = [1, 2]
bs = ["4k", "64k"]
{factors}

[variants.plain]

[variants.deep.workload.options]
iodepth = 8
"""


def targets(
    tmp_path: Path, *, fs: str = "ext4", size: str = "64m", factors: str = ""
) -> tuple[int, int]:
    """Cells of a study, and targets that it makes for them."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(fs=fs, size=size, factors=factors), "utf-8")
    study, host = load_study(path), fake_host(FakeClock())
    equipment = Equipment(study, host, host.clock, tmp_path / "out", lambda words: None)
    shared = {id(equipment.target(cell)) for cell in study.cells}
    assert len(shared) == len(equipment.targets)
    return len(study.cells), len(equipment.targets)


def test_levels_that_do_not_concern_the_target_share_its_loop_files(tmp_path: Path) -> None:
    assert targets(tmp_path) == (8, 1)
    assert targets(tmp_path, factors="rate_iops = [100, 200, 300]") == (24, 1)


def test_levels_of_the_target_have_their_own(tmp_path: Path) -> None:
    assert targets(tmp_path, size="{room}", factors='room = ["64m", "128m"]') == (16, 2)
    assert targets(tmp_path, size="512m", fs="{made}", factors='made = ["ext4", "xfs"]') == (16, 2)
