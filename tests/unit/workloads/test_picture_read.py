# SPDX-License-Identifier: Apache-2.0
"""Reading pictures back from counts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import FormatError, UsageError
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import Linear, LogLinear
from iolab.studies.workloads.picture.bitmap import of_text
from iolab.studies.workloads.picture.plan import Canvas, Map, Planned
from iolab.studies.workloads.picture.reading import drawn_in, read_back

INTERVAL = 10_000_000
BITMAP = of_text("iolab").add_rules()
OFFSETS = Canvas("offset", BITMAP, 0, 64 << 20, 0.4, 0.3)


def counted(kind: Map, planned: list[Planned], t0_ns: int = 0) -> HeatCounts:
    """These I/Os as a map counts them."""
    grid = Linear(0, 16384) if kind == "offset" else LogLinear(6)
    cells: dict[tuple[int, int], int] = {}
    for each in planned:
        cell = (each.at_ms * 1_000_000 // INTERVAL, grid.index(each.value))
        cells[cell] = cells.get(cell, 0) + 1
    column, index = np.array(sorted(cells), dtype=np.int64).reshape(-1, 2).T
    count = np.array([cells[cell] for cell in sorted(cells)], dtype=np.int64)
    return HeatCounts(kind, t0_ns, INTERVAL, grid, column, index, count, events=len(planned))


def anywhere(chance: np.random.Generator, ios: int, until_ms: int) -> list[Planned]:
    """I/Os at random times and offsets."""
    return [
        Planned(int(at), float(value))
        for at, value in zip(
            chance.integers(0, until_ms, ios), chance.integers(0, 64 << 20, ios), strict=True
        )
    ]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("offset", 0, 64 << 20), ("size", 32768, 262144), ("latency", 6e4, 5e6)],
)
def test_what_was_planned_is_read_back(kind: Map, low: float, high: float) -> None:
    canvas = Canvas(kind, BITMAP, low, high, 0.4, 0.3)
    found = read_back(counted(kind, canvas.plan(40), t0_ns=7_000_000_000), canvas)
    assert found.rows() == BITMAP.rows
    assert found.share > 0.97
    assert found.correlation > 0.99
    assert found.contrast > 50
    assert found.origin_ns == pytest.approx(7_400_000_000, abs=INTERVAL)
    assert found.total == 40 * len(BITMAP.lit)
    assert "correlation 0.99" in found.words() or "correlation 1" in found.words()


def test_noise_is_no_picture() -> None:
    chance = np.random.default_rng(1)
    noise = anywhere(chance, 20_000, 8000)
    counts = counted("offset", noise)
    found = read_back(counts, OFFSETS)
    assert found.correlation < 0.2
    assert found.contrast < 1.3
    found = read_back(counts, OFFSETS, origin_ns=0)
    assert found.share == pytest.approx(found.area, abs=0.05)
    assert abs(found.correlation) < 0.1


def test_a_picture_is_found_among_other_i_os_and_late() -> None:
    chance = np.random.default_rng(2)
    drawn = [Planned(each.at_ms + 20_000, each.value) for each in OFFSETS.plan(40)]
    noise = anywhere(chance, 3000, 60_000)
    found = read_back(counted("offset", drawn + noise), OFFSETS)
    assert found.origin_ns == pytest.approx(20_400_000_000, abs=2 * INTERVAL)
    assert found.rows() == BITMAP.rows
    assert found.correlation > 0.95


def test_a_wrong_time_or_place_shows() -> None:
    counts = counted("offset", OFFSETS.plan(40))
    elsewhere = replace(OFFSETS, low=OFFSETS.low + (8 << 20), high=OFFSETS.high + (8 << 20))
    assert read_back(counts, OFFSETS, origin_ns=400_000_000).correlation > 0.99
    assert read_back(counts, OFFSETS, origin_ns=1_300_000_000).correlation < 0.9
    assert read_back(counts, elsewhere, origin_ns=400_000_000).correlation < 0.5
    assert (
        read_back(
            counted(
                "offset", [Planned(each.at_ms, each.value + (8 << 20)) for each in OFFSETS.plan(40)]
            ),
            elsewhere,
        ).correlation
        > 0.99
    )


def test_nothing_recorded_is_no_number() -> None:
    found = read_back(counted("offset", []), OFFSETS)
    assert math.isnan(found.share)
    assert math.isnan(found.contrast)
    assert math.isnan(found.correlation)
    beyond = read_back(counted("offset", [Planned(100, 1 << 40)]), OFFSETS)
    assert (beyond.share, beyond.total) == (0.0, 1)


def test_counts_of_another_value_are_refused() -> None:
    with pytest.raises(UsageError, match="counts by size"):
        read_back(counted("size", [Planned(1, 4096)]), OFFSETS)


def changed(**fields: object) -> bytes:
    return json.dumps({**OFFSETS.as_data(), **fields}).encode()


@pytest.mark.parametrize(
    "left",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"map": "offset"}',
        changed(rows=["x"]),
        changed(slot=0),
        changed(low="a"),
        changed(rows=[]),
        changed(high=-1),
        changed(map="time"),
    ],
)
def test_a_damaged_file_of_a_run_is_told(tmp_path: Path, left: bytes | None) -> None:
    if left is not None:
        (tmp_path / "picture.json").write_bytes(left)
    with pytest.raises(FormatError, match=r"picture\.json"):
        drawn_in(tmp_path)
