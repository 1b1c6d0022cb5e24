# SPDX-License-Identifier: Apache-2.0
"""A study that draws says how much of its picture can be seen, and keeps that with the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.studies.results.evidence.files import PICTURE_READ_FILE
from iolab.studies.run.logs.picture import read_picture
from iolab.studies.run.study import run_study
from support.acting import Listener

pytestmark = [pytest.mark.fio, pytest.mark.figures]

STUDY = """
[study]
repetitions = 1
[workload]
kind = "picture"
runtime = "4s"
text = "io"
map = "offset"
"""


def test_a_run_reads_its_picture_back(fio: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, "utf-8")
    out = run_study(path, tmp_path / "out", listener=Listener())
    (run_dir,) = (out / "runs").iterdir()
    found = json.loads((run_dir / PICTURE_READ_FILE).read_text())
    print(
        f"a run's picture, read back: {found['share']:.3f} of {found['ios']} I/Os in {found['area']:.2f} of the picture"
    )
    assert found["map"] == "offset"
    assert found["share"] > 0.7 > found["area"]
    heard: list[str] = []
    (run_dir / "picture.json").write_text("{")
    read_picture(run_dir, heard.append)
    assert "can't be read back" in heard[0]
    (run_dir / "picture.json").unlink()
    read_picture(run_dir, heard.append)
    assert len(heard) == 1
