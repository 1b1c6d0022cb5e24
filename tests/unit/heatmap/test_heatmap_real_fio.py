# SPDX-License-Identifier: Apache-2.0
"""Workloads of real fio are told apart by what their maps show. The pictures are kept, to be looked
at: below `tests/artefacts/`, or where IOLAB_ARTEFACTS says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from iolab.cli.main import run
from iolab.recordings.heatmap.figure import Layout, Named, Panel, panels
from iolab.recordings.heatmap.model import View
from iolab.recordings.store.base.counts import Y, merge
from iolab.recordings.store.read.trace import Trace, counts_alike

pytestmark = pytest.mark.fio
LAYOUT = Layout(columns=40, height=64, least=1)
SIZE = 64 * 2**20
ARTEFACTS = (
    Path(os.environ.get("IOLAB_ARTEFACTS") or Path(__file__).parents[2] / "artefacts") / "maps"
)


def fio_log(fio: str, folder: Path, name: str, *jobs: str, direct: bool = True) -> Path:
    """The latency log of a short run of fio, with offsets; where the file system refuses direct I/O
    the test is left out."""
    data = folder / "data"
    if not data.exists():
        data.write_bytes(np.random.default_rng(1).bytes(SIZE))
    done = subprocess.run(
        [
            fio,
            "--thread",
            f"--filename={data}",
            f"--size={SIZE}",
            f"--direct={int(direct)}",
            "--invalidate=0",
            "--ioengine=psync",
            "--log_offset=1",
            "--norandommap",
            "--output-format=json",
            f"--write_lat_log={folder / name}",
            "--per_job_logs=0",
            *jobs,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "direct" in done.stderr + done.stdout:
        pytest.skip(f"no direct I/O here: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    log = folder / f"{name}_lat.log"
    picture(f"{name}.png", log, "--y", "all")
    return log


def picture(name: str, *arguments: str | Path) -> None:
    """Draw maps among the artefacts."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    assert run(["heatmap", *(str(each) for each in arguments), "-o", str(ARTEFACTS / name)]) == 0
    assert (ARTEFACTS / name).stat().st_size > 5_000


def panel(log: Path, y: Y) -> Panel:
    return panels(
        [Named(log.name, Trace(log).counts(y, columns=400))],
        View("linear" if y == "offset" else "log"),
        LAYOUT,
    )[0]


def runs(rows: np.ndarray) -> int:
    """How many separate bands the filled rows of a column make; holes of two rows don't part them."""
    return 0 if not len(rows) else 1 + int((np.diff(rows) > 3).sum())


def test_sequential_random_and_two_streams_in_the_offset_map(fio: str, tmp_path: Path) -> None:
    sequential = panel(
        fio_log(
            fio, tmp_path, "sequential", "--name=s", "--rw=read", "--bs=16k", "--rate_iops=2000"
        ),
        "offset",
    )
    random = panel(
        fio_log(
            fio, tmp_path, "random", "--name=r", "--rw=randread", "--bs=16k", "--rate_iops=2000"
        ),
        "offset",
    )
    half = SIZE // 2
    two = panel(
        fio_log(
            fio,
            tmp_path,
            "two",
            "--rw=read",
            "--bs=16k",
            "--rate_iops=1000",
            "--name=a",
            f"--io_size={half}",
            "--name=b",
            f"--offset={half}",
            f"--io_size={half}",
        ),
        "offset",
    )
    filled = {
        name: each.cells.counts > 0
        for name, each in (("sequential", sequential), ("random", random), ("two", two))
    }
    bands = {
        name: [runs(np.flatnonzero(column)) for column in cells.T if column.any()]
        for name, cells in filled.items()
    }
    assert np.median(bands["sequential"]) == 1
    assert np.median(bands["two"]) == 2
    # random reads are everywhere, sequential ones on a line; columns of a stall are empty
    shares = {name: cells[:, cells.any(axis=0)].mean() for name, cells in filled.items()}
    assert shares["random"] > 0.4
    assert shares["sequential"] < 0.15
    middle = [np.flatnonzero(column).mean() for column in filled["sequential"].T if column.any()]
    # a stall of the machine makes the line flat for a time, never lower
    assert (np.diff(middle) >= 0).all()
    assert middle[-1] - middle[0] > 0.8 * len(filled["sequential"])


def test_two_sizes_in_the_size_map(fio: str, tmp_path: Path) -> None:
    mixed = panel(
        fio_log(
            fio,
            tmp_path,
            "mixed",
            "--name=m",
            "--rw=randread",
            "--bssplit=8k/70:128k/30",
            "--number_ios=2000",
        ),
        "size",
    )
    rows = np.flatnonzero(mixed.cells.counts.sum(axis=1))
    bounds = [(mixed.cells.edges[row], mixed.cells.edges[row + 1]) for row in rows]
    assert len(bounds) == 2
    assert bounds[0][0] <= 8192 < bounds[0][1]
    assert bounds[1][0] <= 131072 < bounds[1][1]


@pytest.mark.exclusive
def test_cached_and_direct_reads_are_two_bands_in_the_latency_map(fio: str, tmp_path: Path) -> None:
    direct = Trace(
        fio_log(
            fio,
            tmp_path,
            "direct",
            "--name=d",
            "--rw=randread",
            "--bs=16k",
            "--number_ios=3000",
            "--rate_iops=3000",
        )
    )
    assert (tmp_path / "data").read_bytes()  # now it is in the cache
    cached = Trace(
        fio_log(
            fio,
            tmp_path,
            "cached",
            "--name=c",
            "--rw=randread",
            "--bs=16k",
            "--number_ios=3000",
            "--rate_iops=3000",
            direct=False,
        )
    )
    picture("direct-and-cached.png", direct.path, cached.path)
    maps = counts_alike(
        [direct, cached],
        lambda trace, interval: trace.counts("latency", interval_ns=interval, columns=100),
    )
    # on one map, as if both had been recorded together
    (both,) = panels([Named("both", merge(maps))], View("log", 0.02), LAYOUT)
    over_time = both.cells.counts.sum(axis=1)
    halves = [np.repeat(each.by_index()[0], each.by_index()[1]) for each in maps]
    slow, fast = (float(np.median(each)) for each in halves)
    assert slow - fast > 64, "an octave or more between the bands"
    grid = maps[0].grid
    edges = both.cells.edges
    row = {
        name: int(np.searchsorted(edges, grid.bounds(round(each), round(each))[0], side="right"))
        - 1
        for name, each in (("slow", slow), ("fast", fast))
    }
    between = over_time[row["fast"] + 1 : row["slow"]]
    assert between.min() < 0.5 * min(over_time[row["fast"]], over_time[row["slow"]]), (
        "a valley between two ridges"
    )
