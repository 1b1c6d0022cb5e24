# SPDX-License-Identifier: Apache-2.0
"""A public study of 2017, 440 runs of fio with iostat beside them: everything in it is read, and
fast."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iolab.formats.detect import detect
from iolab.formats.fio.json_output import FioJson
from iolab.formats.iostat.text_output import IostatText

ARCHIVE = Path(__file__).parents[3].parent / "shared" / "data" / "zfsonlinux-6566-perf-v2.tar.xz"


@pytest.fixture(scope="module")
def files() -> Iterator[dict[str, bytes]]:
    if not ARCHIVE.exists():
        pytest.skip("the public study is not beside the repository (../shared/data)")
    with tarfile.open(ARCHIVE) as archive:
        yield {
            member.name: stream.read()
            for member in archive
            if member.isfile() and (stream := archive.extractfile(member)) is not None
        }


@pytest.mark.slow
def test_every_file_is_told_and_read_in_under_a_second(files: dict[str, bytes]) -> None:
    fio = {name: data for name, data in files.items() if name.endswith("fio.json")}
    iostat = {name: data for name, data in files.items() if "iostat-" in name}
    assert len(fio) >= 352
    assert len(iostat) >= 1320
    start = time.process_time()
    outputs = {name: FioJson().read(data, name) for name, data in fio.items()}
    tables = {name: IostatText().read(data, name) for name, data in iostat.items()}
    assert time.process_time() - start < 2.0, "0.4 s on the machine it was written on"
    assert {detect(data, "x") for data in fio.values()} == {"fio-json"}
    assert {detect(data, "x") for data in iostat.values()} == {"iostat-text"}

    for name, output in outputs.items():
        assert len(output.jobs) == 1, name
        write = output.jobs[0].directions["write"]
        assert output.jobs[0].error == 0
        assert write.latencies["lat"].source_field == "lat_ns"
        assert write.iops == pytest.approx(write.ios / write.runtime)
        assert write.size_bytes == write.ios * 8192
        assert sum(write.latencies["clat"].bins.values()) == write.ios
        assert not output.assumptions
    for name, table in tables.items():
        (samples,) = table.devices.values()
        assert not table.damaged
        assert samples.device == name.rsplit("-", 1)[1].removesuffix(".txt")
        assert len(samples.columns["util"]) in (60, 61)
        assert samples.source_fields["write.bw"] == ("wkB/s", "KiB/s")
        assert (
            0
            <= float(np.min(samples.columns["util"]))
            <= float(np.max(samples.columns["util"]))
            < 1.1
        )


def test_littles_law_holds_in_every_closed_loop_run(files: dict[str, bytes]) -> None:
    runs = [name for name in files if "max-rate-submit" in name and name.endswith("fio.json")]
    assert runs
    for name in runs:
        write = FioJson().read(files[name], name).jobs[0].directions["write"]
        jobs = int(name.split("/fio-")[1].split("-")[0])
        assert write.iops * write.latencies["lat"].mean == pytest.approx(jobs, rel=0.03), name
