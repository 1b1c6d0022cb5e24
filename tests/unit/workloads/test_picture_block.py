"""Pictures on a device, read back from what the kernel says of its block layer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.formats.fio_json import FioJson
from iolab.hosts.place import Place
from iolab.recording.trace import Trace
from iolab.workloads.picture import PictureWorkload
from iolab.workloads.picture_model import PictureOptions
from iolab.workloads.picture_read import drawn_in, read_back

pytestmark = [pytest.mark.real, pytest.mark.figures]

TRACING = Path("/sys/kernel/tracing")
SECTOR = 512
ISSUED = re.compile(r"\s(\d+)\.(\d{6}): block_rq_issue: \d+,\d+ (\w+) \d+ \(.*?\) (\d+) \+ (\d+) ")


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Path]:
    """A block device of 64 MiB; the test is left out where none can be made."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("needs root and losetup")
    memory = Path("/dev/shm")
    backing = (memory if memory.is_dir() else tmp_path) / f"iolab-picture-{os.getpid()}"
    with backing.open("wb") as file:
        file.truncate(64 << 20)
    made = subprocess.run(["losetup", "--find", "--show", str(backing)], capture_output=True, text=True, check=False)
    if made.returncode:
        backing.unlink()
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    device = Path(made.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", str(device)], check=False)
        backing.unlink()


@pytest.fixture
def instance(loop: Path) -> Iterator[Path]:
    """A place in tracefs that holds the requests which the kernel hands to the device."""
    folder = TRACING / "instances" / f"iolab-picture-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no tracefs: {error.strerror}")
    try:
        major, minor = (int(part) for part in Path(f"/sys/block/{loop.name}/dev").read_text().split(":"))
        (folder / "trace_clock").write_text("mono")
        (folder / "buffer_size_kb").write_text("16384")
        event = folder / "events" / "block" / "block_rq_issue"
        (event / "filter").write_text(f"dev == {major << 20 | minor}")
        (event / "enable").write_text("1")
        yield folder
    finally:
        folder.rmdir()


@pytest.mark.parametrize("kind", ["offset", "size"])
def test_the_picture_stands_in_the_block_layer(fio: str, loop: Path, instance: Path, tmp_path: Path, kind: str) -> None:
    workload = PictureWorkload(PictureOptions.model_validate({"runtime": "6s", "text": "iolab", "map": kind, "per_pixel": 30}))
    job = workload.job(Place(str(loop), "device"))
    for name in job.folders:
        (tmp_path / name).mkdir()
    for name, text in job.files.items():
        (tmp_path / name).write_text(text)
    subprocess.run(job.command, cwd=tmp_path, check=True, capture_output=True, timeout=job.limit)
    (instance / "tracing_on").write_text("0")
    events = [match.groups() for line in (instance / "trace").read_text().splitlines() if (match := ISSUED.search(line))]
    issued = tmp_path / "issued.csv"
    issued.write_text("time_us,op,offset_bytes,size_bytes\n" + "".join(
        f"{seconds}{micros},{'read' if words.startswith('R') else 'write'},{int(sector) * SECTOR},{int(sectors) * SECTOR}\n"
        for seconds, micros, words, sector, sectors in events if sectors != "0"))
    canvas = drawn_in(tmp_path)
    buckets = {"buckets": 4096} if kind == "offset" else {}
    counts = Trace(issued).counts("offset" if kind == "offset" else "size", interval_ns=10_000_000, **buckets)
    found = read_back(counts, canvas)
    done = FioJson().read((tmp_path / "fio.json").read_bytes(), "fio.json").jobs[0].directions["read"].ios
    print(f"picture in the {kind} map of a loop device: {found.words()}; fio counted {done}")
    assert found.total == done
    # a machine that does much else at a time starves fio for longer than a column
    assert found.correlation > 0.7
    assert found.share > 0.75
