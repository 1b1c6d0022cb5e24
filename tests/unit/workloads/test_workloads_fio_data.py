# SPDX-License-Identifier: Apache-2.0
"""What a compressibility really puts on the disk, by the real fio and zlib at the records of file
systems."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from iolab.studies.workloads.compressibility import data_options
from iolab.studies.workloads.fio.options import job_text

pytestmark = pytest.mark.fio


BLOCKS = ("4k", "8k", "128k")
SHARES = {0: (1.0, 1.01), 25: (1.28, 1.34), 50: (1.9, 2.0), 75: (3.6, 4.0), 100: (100, 300)}
"""Per cent to the least and the largest ratio."""


@pytest.fixture(scope="module")
def directory(fio: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that one fio wrote, a section for each: BLOCK-PER_CENT, and what fio writes without our
    mapping, own-PER_CENT."""
    path = tmp_path_factory.mktemp("data")
    files: dict[str, dict[str, str | int]] = {
        f"{block}-{per_cent}": {"bs": block, **data_options(per_cent)}
        for block in BLOCKS
        for per_cent in SHARES
    }
    for per_cent in (0, 100):
        files[f"own-{per_cent}"] = {"bs": "8k", "buffer_compress_percentage": per_cent}
    base: dict[str, str | int] = {"rw": "write", "size": "2m", "directory": str(path)}
    (path / "x.fio").write_text(
        "".join(
            job_text({**base, **options, "filename": name}, section=name) + "\n"
            for name, options in files.items()
        )
    )
    subprocess.run(
        [fio, "--output=x.txt", "x.fio"], cwd=path, check=True, capture_output=True, timeout=60
    )
    return path


def ratio(data: bytes, record: int) -> float:
    parts = [data[at : at + record] for at in range(0, len(data), record)]
    return len(data) / sum(min(len(zlib.compress(part, 1)), len(part)) for part in parts)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("per_cent", SHARES)
def test_data_compresses_as_asked(directory: Path, block: str, per_cent: int) -> None:
    data = (directory / f"{block}-{per_cent}").read_bytes()
    low, high = SHARES[per_cent]
    for record in (8192, 131072):
        assert low <= ratio(data, record) <= high
    pages = {data[at : at + 4096] for at in range(0, len(data), 4096)}
    assert bytes(4096) not in pages  # a page of zeros would be stored as a hole
    assert len(pages) == (
        1 if per_cent == 100 else len(data) // 4096
    )  # nothing for a file system to share


def test_without_the_mapping_zero_per_cent_compresses_and_all_is_zeros(directory: Path) -> None:
    """The mapping is needed. If this fails, fio has changed and the mapping can be simpler."""
    assert ratio((directory / "own-0").read_bytes(), 131072) > 5
    assert bytes(4096) in (directory / "own-100").read_bytes()
