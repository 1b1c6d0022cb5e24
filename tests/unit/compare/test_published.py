# SPDX-License-Identifier: Apache-2.0
"""The seeds' printed tables: every change of #447 to six decimals, and the printed shapes of the
others."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from iolab.base import registry
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.compare.render.matrix import render_matrix
from iolab.studies.results.evidence.model import Run
from iolab.studies.results.imports.table import import_table
from iolab.studies.results.open.results import Results

# % change of project against master as published: numjobs to 1, 2, 4, 8 disks
IOPS = """
1 0.469989 -4.546318 3.083773 1.653169
2 88.962492 32.709225 31.460781 53.512147
4 91.821472 110.790793 113.781671 123.240683
8 75.797101 66.250229 67.941894 68.887825
16 69.701923 35.424522 56.074930 67.196512
32 105.888779 45.903707 66.576537 75.659971
64 70.204324 90.247995 44.802753 58.623893
128 52.732074 125.126418 64.829731 54.986455
256 32.373507 71.492487 119.869540 78.068793
512 1.434597 32.131354 88.597684 118.745805
1024 3.452043 8.950313 63.236268 139.508976
"""
LATENCY = """
1 -0.468184 4.767822 -2.990437 -1.626317
2 -47.084398 -24.648337 -23.935604 -34.866385
4 -47.875863 -52.566922 -53.231708 -55.215597
8 -43.118565 -39.854832 -40.464468 -40.796507
16 -41.069240 -26.159934 -35.934727 -40.198896
32 -51.433171 -31.465183 -39.976121 -43.076555
64 -41.246391 -47.442275 -30.936797 -36.969395
128 -34.528820 -55.581455 -39.335537 -35.484038
256 -24.471545 -41.700167 -54.518532 -43.840750
512 -1.434146 -24.322696 -46.983874 -54.281769
1024 -3.396373 -8.142817 -39.072315 -58.299429
"""


def published(root: Path, tmp_path: Path, name: str) -> list[Run]:
    import_table(root / "studies/published" / f"{name}.csv", tmp_path / name)
    return Results(tmp_path / name).runs


def expected(text: str) -> dict[tuple[int, int], str]:
    rows = [line.split() for line in text.split("\n") if line]
    return {
        (int(row[0]), disks): value
        for row in rows
        for disks, value in zip((1, 2, 4, 8), row[1:], strict=True)
    }


@pytest.mark.parametrize(("metric", "table"), [("write.iops", IOPS), ("write.lat.mean", LATENCY)])
@pytest.mark.parametrize("precision", [None, 6])
def test_all_changes_of_447_in_csv_and_json(
    root: Path, tmp_path: Path, metric: str, table: str, precision: int | None
) -> None:
    comparison = compare(
        published(root, tmp_path, "openzfs-447-max-rate-hdd"), metric, baseline="master"
    )
    wanted = expected(table)
    assert len(wanted) == 44
    rows = list(
        csv.DictReader(
            io.StringIO(registry.load("renderer", "csv")().render(comparison, precision=precision))
        )
    )
    by_csv = {
        (int(row["numjobs"]), int(row["disks"])): f"{float(row['change']):.6f}"
        for row in rows
        if row["variant"] == "project"
    }
    assert by_csv == wanted
    document = json.loads(
        registry.load("renderer", "json")().render(comparison, precision=precision)
    )
    by_json = {
        (cell["factors"]["numjobs"], cell["factors"]["disks"]): f"{cell['change']['value']:.6f}"
        for cell in document["cells"]
        if cell["variant"] == "project"
    }
    assert by_json == wanted


def test_the_tables_of_447_as_printed(root: Path, tmp_path: Path) -> None:
    runs = published(root, tmp_path, "openzfs-447-max-rate-hdd")
    text = registry.load("renderer", "text")().render(
        compare(runs, "write.lat.mean", baseline="master"), precision=6
    )
    assert "(µs)" in text
    assert "  1024  136652.201991  80666.133399  69367.425602  77832.761925" in text
    assert "+88.962492 %" in registry.load("renderer", "text")().render(
        compare(runs, "write.iops"), precision=6
    )
    assert "no interval" in text


def test_littles_law_over_the_88_cells(root: Path, tmp_path: Path) -> None:
    ratios = [
        run.value("littles_law") for run in published(root, tmp_path, "openzfs-447-max-rate-hdd")
    ]
    assert len(ratios) == 88
    assert (round(min(filter(None, ratios)), 3), round(max(filter(None, ratios)), 3)) == (
        0.993,
        1.0,
    )


def test_the_compressibility_matrix_in_its_printed_shape(root: Path, tmp_path: Path) -> None:
    runs = published(root, tmp_path, "zfs-write-compressibility")
    text = render_matrix(compare(runs, "write.bw"), compare(runs, "write.lat.mean"), "text")
    lines = [line.split("  ") for line in text.splitlines()]
    cells = [[part.strip() for part in line if part.strip()] for line in lines]
    assert ["1", "1623 MiB/s @ 45 µs", "1756 MiB/s @ 50 µs", "2491 MiB/s @ 44 µs"] in cells
    assert ["9", "2674 MiB/s @ 379 µs", "2332 MiB/s @ 447 µs", "6348 MiB/s @ 168 µs"] in cells


def test_time_outside_io_of_the_compressibility_study_is_noted_not_held_against_it(
    root: Path, tmp_path: Path
) -> None:
    runs = published(root, tmp_path, "zfs-write-compressibility")
    ratios = [run.value("littles_law") or 0 for run in runs]
    assert (round(min(ratios), 2), round(max(ratios), 2)) == (0.58, 0.95)
    assert all(not run.verdict.blames and run.verdict.has("time-outside-io") for run in runs)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("parallel-allocators-read", "40   0.14  0.37   2.31  17.94"),
        ("parallel-allocators-write", "160  0.46  1.17  8.18  478.53"),
    ],
)
def test_the_allocator_tables_before_and_after_side_by_side(
    root: Path, tmp_path: Path, name: str, rows: str
) -> None:
    runs = published(root, tmp_path, name)
    comparison = compare(
        runs, f"{name.split('-')[-1]}.time", layout=Layout(rows=["files"], cols=["size"])
    )
    assert comparison.tables == ("recordsize",)
    text = registry.load("renderer", "text")().render(comparison, precision=2)
    flat = [" ".join(line.split()) for line in text.splitlines()]
    assert any(line.startswith(" ".join(rows.split())) for line in flat)
    assert "files \\ size 128k 1m 8m 64m files \\ size 128k 1m 8m 64m" in flat


def test_a_value_of_zero_has_no_ratio_and_is_no_reproach(root: Path, tmp_path: Path) -> None:
    runs = published(root, tmp_path, "parallel-allocators-write")
    comparison = compare(runs, "write.time", layout=Layout(rows=["files"], cols=["size"]))
    cell = comparison.cell(("128k",), (10,), ("8m",), "after")
    assert cell is not None
    assert (cell.change, cell.footnotes) == (None, ("zero",))
    assert not any(run.verdict.blames for run in runs)
