# SPDX-License-Identifier: Apache-2.0
"""Pictures on a device, read back from what `iolab record` took from the kernel's block layer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iolab.formats.fio.json_output import FioJson
from iolab.hosts.base.host import Place
from iolab.recordings.ask.query import heat
from iolab.recordings.ask.question import Question
from iolab.recordings.store.base.counts import Y
from iolab.studies.workloads.picture.model import PictureOptions
from iolab.studies.workloads.picture.reading import drawn_in, read_back
from iolab.studies.workloads.picture.workload import PictureWorkload
from support.recorded import device_in_memory, recorded

pytestmark = [
    pytest.mark.fio,
    pytest.mark.loops,
    pytest.mark.tracing,
    pytest.mark.exclusive,
    pytest.mark.figures,
]

RUN = "import subprocess, sys; subprocess.run(sys.argv[2:], cwd=sys.argv[1], check=True, stdout=subprocess.DEVNULL)"


@pytest.mark.parametrize("kind", ["offset", "size"])
def test_the_picture_stands_in_the_recording(fio: str, tmp_path: Path, kind: Y) -> None:
    with device_in_memory(tmp_path) as node:
        workload = PictureWorkload(
            PictureOptions.model_validate(
                {"runtime": "6s", "text": "iolab", "map": kind, "per_pixel": 30}
            )
        )
        job = workload.job(Place(node, "device"))
        for name in job.folders:
            (tmp_path / name).mkdir()
        for name, text in job.files.items():
            (tmp_path / name).write_text(text)
        recording = recorded(
            tmp_path / "r",
            ["block", "--device", node],
            [sys.executable, "-c", RUN, tmp_path, *job.command],
        )
    counts = heat(
        recording,
        kind,
        Question(
            interval_ns=10_000_000, source="block", buckets=4096 if kind == "offset" else None
        ),
        where={"process": ["fio"]},
    )
    found = read_back(counts, drawn_in(tmp_path))
    done = (
        FioJson()
        .read((tmp_path / "fio.json").read_bytes(), "fio.json")
        .jobs[0]
        .directions["read"]
        .ios
    )
    print(
        f"picture in the {kind} map of a loop device, recorded from the kernel: {found.words()}; fio counted {done}"
    )
    assert found.total == done
    # a machine that does much else at a time starves fio for longer than a column
    assert found.correlation > 0.7
    assert found.share > 0.75
