# SPDX-License-Identifier: Apache-2.0
"""What a picture asks of storage: its options, its I/Os, and the files of a run."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from iolab.base.errors import RunError
from iolab.hosts.base.host import Place
from iolab.studies.workloads.picture.bitmap import Bitmap
from iolab.studies.workloads.picture.model import PictureOptions
from iolab.studies.workloads.picture.plan import Canvas, canvas_of
from iolab.studies.workloads.picture.workload import (
    CALIBRATING,
    CALIBRATION,
    SMALLEST,
    PictureWorkload,
    awk_text,
    calibrate_text,
    calibrated_sizes,
)
from support.golden import Golden, validation_text

DIRECTORY = Place("/some/place")


def options(**given: Any) -> PictureOptions:
    return PictureOptions.model_validate({"runtime": "10s", "text": "iolab", **given})


def entries(workload: PictureWorkload) -> list[tuple[int, str, int, int]]:
    """(milliseconds, operation, offset, size) of every I/O in the list that fio replays."""
    at, found = -1, []
    for line in workload.job(DIRECTORY).files["picture.iolog"].splitlines()[3:-1]:
        name, action, first, second = line.split()
        assert name == "picture"
        if action == "wait":
            assert int(first) >= at
            at = int(first)
        else:
            found.append((at, action, int(first), int(second)))
    return found


@pytest.mark.parametrize(("kind", "value"), [("offset", 2), ("size", 3)])
@pytest.mark.parametrize("inverse", [False, True])
def test_every_i_o_lies_in_its_pixel_and_every_lit_pixel_has_as_many(
    kind: str, value: int, inverse: bool
) -> None:
    given = options(map=kind, inverse=inverse, per_pixel=20)
    canvas = given.canvas()
    seen: dict[tuple[int, int], int] = {}
    for entry in entries(PictureWorkload(given)):
        assert entry[2] % given.step == entry[3] % given.step == 0
        assert entry[2] + entry[3] <= given.room
        column = math.floor((entry[0] / 1000 + 0.0005 - canvas.start) / canvas.slot)
        extents = {2: entry[2], 3: entry[3]}
        row = next(
            row
            for row in range(canvas.bitmap.height)
            if canvas.edges[row] <= extents[value] < canvas.edges[row + 1]
        )
        seen[column, row] = seen.get((column, row), 0) + 1
    assert set(seen) <= set(canvas.bitmap.lit) | {
        (column + by, row) for column, row in canvas.bitmap.lit for by in (-1, 1)
    }
    assert sum(seen.get(pixel, 0) for pixel in canvas.bitmap.lit) >= 0.98 * 20 * len(
        canvas.bitmap.lit
    )  # times are whole milliseconds
    assert all(abs(seen[pixel] - 20) <= 2 for pixel in canvas.bitmap.lit)


def test_rows_are_equally_high_on_the_scale_of_their_map() -> None:
    bitmap = Bitmap(("#", ".", "#", "."))
    assert Canvas("offset", bitmap, 0, 400, 0, 1).edges == (0, 100, 200, 300, 400)
    assert Canvas("size", bitmap, 1024, 16384, 0, 1).edges == pytest.approx(
        (1024, 2048, 4096, 8192, 16384)
    )


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text(alphabet="#.", min_size=3, max_size=3), min_size=1, max_size=5).filter(
        lambda rows: "#" in "".join(rows)
    ),
    st.sampled_from(["offset", "size", "latency"]),
    st.integers(1, 30),
)
def test_a_plan_is_in_order_and_even(rows: list[str], kind: Any, per_pixel: int) -> None:
    canvas = Canvas(kind, Bitmap(tuple(rows)), 1000, 9000, 0.4, 0.5)
    plan = canvas.plan(per_pixel)
    assert len(plan) == per_pixel * len(canvas.bitmap.lit)
    assert plan == sorted(plan)
    assert all(400 <= each.at_ms < 1900 and 1000 <= each.value < 9000 for each in plan)
    assert canvas_of(json.loads(json.dumps(canvas.as_data()))) == canvas


@pytest.mark.parametrize(
    "given",
    [
        {"text": None},
        {"bitmap": "#"},
        {"text": "ä"},
        {"runtime": "1s"},
        {"text": "x" * 50, "runtime": "3s"},
        {"low": "1m", "high": "1k"},
        {"map": "size", "low": 0},
        {"low": "10us"},
        {"high": "1g"},
        {"high": "16k"},
        {"bs": 1000},
        {"map": "size", "bs": "64k"},
        {"map": "latency", "op": "write"},
        {"map": "latency", "direct": True},
        {"map": "latency", "per_pixel": 5000},
        {"per_pixel": 10000, "inverse": True},
        {"bitmap_file": "absent.png", "text": None},
        {"map": "time"},
        {"size": "4k"},
        {"map": "latency", "high": "1s"},
    ],
)
def test_what_can_t_be_drawn_is_told_before_anything_runs(
    given: dict[str, Any], golden: Golden
) -> None:
    with pytest.raises(ValidationError) as caught:
        options(**given)
    golden("fio/picture-refused", validation_text(caught.value))


def test_an_image_stays_with_the_study(tmp_path: Path) -> None:
    (tmp_path / "card.pbm").write_bytes(b"P1 3 2 1 0 1 0 1 0")
    read = PictureOptions.model_validate(
        {"runtime": 3, "bitmap_file": "card.pbm"}, context={"directory": str(tmp_path)}
    )
    (tmp_path / "card.pbm").unlink()
    assert PictureOptions.model_validate(read.model_dump(mode="json")) == read
    assert read.canvas().bitmap.rows == ("#####", ".....", ".#.#.", "..#..", ".....", "#####")


def test_load_and_window_of_a_latency_picture() -> None:
    workload = PictureWorkload(options(map="latency", runtime="30s"))
    load = workload.load()
    assert (load.ramp, load.writes, load.options["direct"]) == (CALIBRATION, False, 0)
    assert load.offered_iops is not None
    assert load.offered_iops * 30 == pytest.approx(
        len(workload.job(DIRECTORY).files["picture.plan"].splitlines())
    )
    assert options(map="latency").canvas().busiest(options(map="latency").ios_per_pixel) <= 0.55


def test_a_device_is_only_written_to_where_that_is_asked_for() -> None:
    device = Place("/dev/loop7", "device")
    for op in ("read", "write"):
        workload = PictureWorkload(options(op=op))
        script = workload.job(device).files["picture.sh"]
        assert workload.load().writes is (op == "write")
        assert ("--readonly" in script) is (op == "read")
        assert "prepare" not in script
        assert f"picture {op} " in workload.job(device).files["picture.iolog"]
    with pytest.raises(RunError, match="one device"):
        workload.job(Place("/dev/loop7:/dev/loop8", "device"))


def test_the_list_says_when_the_run_ends_whatever_is_drawn() -> None:
    lines = PictureWorkload(options()).job(DIRECTORY).files["picture.iolog"].splitlines()
    assert lines[:3] == ["fio version 2 iolog", "picture add", "picture open"]
    assert lines[-2:] == ["picture wait 10300 0", "picture close"]


def test_each_size_is_measured_as_often_and_in_time() -> None:
    sizes = calibrated_sizes(32 << 20)
    assert sizes[0] == SMALLEST
    assert 0.7 * (32 << 20) < sizes[-1] <= 32 << 20
    waits = [
        int(line.split()[2]) for line in calibrate_text(32 << 20).splitlines() if " wait " in line
    ]
    assert waits == sorted(waits)
    assert waits[-1] / 1000 < CALIBRATION
    assert (waits[-1] - waits[0]) / 1000 == pytest.approx(CALIBRATING, rel=0.05)


def run_awk(directory: Path, log: str, plan: str, size: int) -> subprocess.CompletedProcess[str]:
    if shutil.which("awk") is None:
        pytest.skip("awk is absent")
    (directory / "sizes.awk").write_text(awk_text(size, 4096, 5.0))
    (directory / "log").write_text(log)
    (directory / "plan").write_text(plan)
    return subprocess.run(
        ["awk", "-f", "sizes.awk", "log", "plan"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_sizes_are_chosen_by_the_median_of_what_was_measured(tmp_path: Path) -> None:
    """Reads that take a nanosecond a byte, but for one in five that takes a hundred times as long."""
    size = 4 << 20
    warm = "".join(f"0, 999999999, 0, {1 << 20}, 0\n" for _ in range(4))
    reads = [
        (length, 100 * length if turn == 3 else length + turn)
        for turn in range(5)
        for length in reversed(calibrated_sizes(size))
    ]
    done = run_awk(
        tmp_path,
        warm
        + "".join(f"{at}, {took}, 0, {length}, 0\n" for at, (length, took) in enumerate(reads)),
        "400 40000\n400 1000000\n1500 3000000\n1700 900000000\n",
        size,
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 4 latencies" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["fio version 2 iolog", "picture add", "picture open"]
    assert [line for line in lines if " wait " in line] == [
        f"picture wait {at} 0" for at in (400, 1500, 1700, 5300)
    ]
    assert lines[-1] == "picture close"
    chosen = [tuple(map(int, line.split()[2:])) for line in lines if "read" in line]
    assert [length for _, length in chosen] == pytest.approx(
        [40960, 1000000, 3000000, size], rel=0.01
    )
    assert all(
        offset % 4096 == length % 4096 == 0 and offset + length <= size for offset, length in chosen
    )


@pytest.mark.parametrize("log", ["", "0, 5, 0, 4096, 0\n", "noise\n" * 10])
def test_a_calibration_without_reads_ends_the_run(tmp_path: Path, log: str) -> None:
    done = run_awk(tmp_path, log, "400 40000\n", 4 << 20)
    assert done.returncode != 0
    assert "too few reads" in done.stderr
