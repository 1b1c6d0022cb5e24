# SPDX-License-Identifier: Apache-2.0
"""What a compressibility really puts on the disk, by the real fio and zlib at the records of file
systems."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from iolab.workloads.compressibility import data_options
from iolab.workloads.fio_options import job_text

pytestmark = pytest.mark.fio


def written(directory: Path, block: str, options: dict[str, str | int]) -> bytes:
    base: dict[str, str | int] = {
        "rw": "write",
        "size": "2m",
        "bs": block,
        "directory": str(directory),
        "filename": "data",
    }
    (directory / "x.fio").write_text(job_text({**base, **options}, section="x"))
    subprocess.run(
        ["fio", "--output=x.txt", "x.fio"],
        cwd=directory,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return (directory / "data").read_bytes()


def ratio(data: bytes, record: int) -> float:
    parts = [data[at : at + record] for at in range(0, len(data), record)]
    return len(data) / sum(min(len(zlib.compress(part, 1)), len(part)) for part in parts)


@pytest.mark.parametrize("block", ["4k", "8k", "128k"])
@pytest.mark.parametrize(
    ("per_cent", "low", "high"),
    [(0, 1.0, 1.01), (25, 1.28, 1.34), (50, 1.9, 2.0), (75, 3.6, 4.0), (100, 100, 300)],
)
def test_data_compresses_as_asked(
    fio: str, tmp_path: Path, block: str, per_cent: int, low: float, high: float
) -> None:
    data = written(tmp_path, block, dict(data_options(per_cent)))
    for record in (8192, 131072):
        assert low <= ratio(data, record) <= high
    pages = {data[at : at + 4096] for at in range(0, len(data), 4096)}
    assert bytes(4096) not in pages  # a page of zeros would be stored as a hole
    assert len(pages) == (
        1 if per_cent == 100 else len(data) // 4096
    )  # nothing for a file system to share


def test_fio_s_own_nought_is_no_nought(fio: str, tmp_path: Path) -> None:
    """Why the mapping is there; where this fails, fio has changed and the mapping can be simpler."""
    assert ratio(written(tmp_path, "8k", {"buffer_compress_percentage": 0}), 131072) > 5
    assert bytes(4096) in written(tmp_path, "8k", {"buffer_compress_percentage": 100})
