# SPDX-License-Identifier: Apache-2.0
"""Maps of runs in the report: from the recordings that the evidence names, variants of a cell on
one scale, within a size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from iolab.base.errors import IolabError
from iolab.output.report.build import build_report
from iolab.output.report.model.map_payload import MapCell, Maps
from iolab.output.report.page.html import bundle_file, pack
from iolab.output.report.sections import maps
from iolab.output.report.sections.maps import nice_interval, run_maps
from iolab.recordings.store.write.writer import RecordingWriter
from support import report_data
from support.map_study import Study
from support.recordings import events

SECOND = 10**9


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


def made(study: Study) -> Maps:
    found = run_maps(study.source)
    assert found is not None
    return found


def titles(cell: MapCell) -> list[str]:
    return [part.group.title for part in cell.maps]


def test_results_without_recordings_have_no_maps(study: Study) -> None:
    study.add("a", recorded=False)
    assert run_maps(study.source) is None
    assert run_maps(report_data.HandMade(report_data.sweep())) is None


def test_variants_of_a_cell_share_their_axes(study: Study) -> None:
    for bs in ("8k", "64k"):
        study.add("slow", latency=10_000_000, bs=bs)
        study.add("fast", latency=50_000, bs=bs)
    found = made(study)
    assert [cell.title for cell in found.cells] == ["bs=8k", "bs=64k"]
    for cell in found.cells:
        assert titles(cell) == ["Latency", "Offset", "Size"]
        for part in cell.maps:
            assert [one.variant for one in part.of] == ["slow", "fast"]
            assert [each.events for each in part.group.maps] == [2000, 2000]
            assert [sum(each.cells.counts) for each in part.group.maps] == [2000, 2000]
            assert part.group.columns <= 220
        latency = cell.maps[0].group
        assert latency.low < 50_000 < 10_000_000 < latency.high, "one scale holds both"
    assert [one.run for part in found.cells[1].maps[:1] for one in part.of] == [2, 3]


def test_what_the_block_layer_saw_stands_beside_fios_own(study: Study) -> None:
    study.add("a", block=True)
    study.add("b", block=True)
    (cell,) = made(study).cells
    assert titles(cell) == ["Latency", "Offset, fio", "Offset, block layer", "Size"]
    assert [(one.variant, one.seen) for one in cell.maps[0].of] == [
        ("a", "fio"),
        ("a", "block"),
        ("b", "fio"),
        ("b", "block"),
    ]
    assert [each.label for each in cell.maps[0].group.maps] == [
        "a, fio (run 0001)",
        "a, block layer (run 0001)",
        "b, fio (run 0002)",
        "b, block layer (run 0002)",
    ]
    files, device = cell.maps[1].group, cell.maps[2].group
    assert files.high < 2**30 < 2**36 <= device.low


def test_offsets_of_different_reach_stand_on_one_axis(study: Study) -> None:
    study.add("near")
    study.add("far", offset=2**30)
    offset = made(study).cells[0].maps[1].group
    assert offset.low < 4096 * 1000 < 2**30 < offset.high
    top = offset.bounds[-1]
    assert offset.high == top
    assert offset.crops[0] == (0.0, top), "nothing is above a map that crops nothing"


def test_on_a_device_offsets_are_one_map(study: Study) -> None:
    study.add("a", block=True, place="device")
    assert titles(made(study).cells[0]) == ["Latency", "Offset", "Size"]


def test_the_block_layer_alone_is_enough(study: Study) -> None:
    study.add("a", block=True, recorded=False)
    (cell,) = made(study).cells
    assert [one.seen for one in cell.maps[0].of] == ["block"]
    assert cell.maps[0].group.maps[0].label == "a (run 0001)"


@pytest.mark.parametrize("recorded", [True, False])
def test_a_recording_ahead_of_the_clock_that_told_the_window_is_read_where_the_run_is(
    study: Study, recorded: bool
) -> None:
    hour = 3600 * 10**9
    study.add("a", recorded=recorded)
    run = study.runs[0]
    path, (first, until) = study.path / "recordings" / "watch", run.plan.window or (0, 0)
    with RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "run"}, live=False
    ) as writer:
        writer.append_events(events(500, start_ns=first + hour))
        writer.mark(run.id, first + hour, until + hour, "run")
    extra = cast(dict[str, Any], run.plan.extra)
    extra["recording"] = {"path": "recordings/watch", "mark": run.id, "ahead_ns": hour}
    (cell,) = made(study).cells
    block = [
        each
        for one, each in zip(cell.maps[0].of, cell.maps[0].group.maps, strict=True)
        if one.seen == "block"
    ]
    assert [each.events for each in block] == [
        sum(row["count"] for row in events(500).to_pylist() if row["latency_ns"] is not None)
    ]


@pytest.mark.parametrize("damage", ["{", "", '{"schema": 99, "kind": "recording"}'])
def test_a_damaged_recording_costs_its_maps_and_is_said(study: Study, damage: str) -> None:
    study.add("a")
    (study.path / "recordings" / "box" / "recording.json").write_text(damage)
    found = made(study)
    assert found.cells == []
    assert len(found.notes) == 1


def test_a_damaged_segment_costs_its_events(study: Study) -> None:
    study.add("a")
    study.add("b")
    first = min((study.path / "recordings" / "box" / "events").glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:200])
    (cell,) = made(study).cells
    assert [one.variant for one in cell.maps[0].of] == ["b"]


@pytest.mark.parametrize("name", ["../../etc", "/etc", "recordings/none"])
def test_evidence_leads_nowhere_else(study: Study, name: str) -> None:
    study.add("a")
    (study.runs[0].evidence / "log_ios.json").write_text(
        json.dumps({"schema": 1, "recording": name, "label": "x"})
    )
    found = made(study)
    assert found.cells == []
    assert "is not a recording" in found.notes[0]


def test_a_run_that_was_not_taken_in_has_no_map(study: Study) -> None:
    study.add("a")
    (study.runs[0].evidence / "log_ios.json").write_text(
        json.dumps({"schema": 1, "problem": "no space", "kept": "ios"})
    )
    assert run_maps(study.source) is None


def test_many_runs_are_drawn_coarser_then_fewer(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    for repetition in (1, 2):
        for variant in ("a", "b"):
            study.add(variant, repetition)
    monkeypatch.setattr(maps, "MOST_FINE", 3)
    found = made(study)
    assert max(part.group.columns for part in found.cells[0].maps) <= 110
    assert "at most 100 columns" in found.notes[0]
    monkeypatch.setattr(maps, "MOST_RUNS", 3)
    found = made(study)
    assert {one.repetition for part in found.cells[0].maps for one in part.of} == {1}
    assert any("maps of 2 runs are left out" in note for note in found.notes)


def test_a_file_that_would_grow_too_large_keeps_first_repetitions_on_the_axes_of_all(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.add("a", 1)
    study.add("a", 2, latency=50_000_000)
    axes = made(study).cells[0].maps[0].group
    monkeypatch.setattr(maps, "MOST_CELLS", 4000)
    found = made(study)
    latency = found.cells[0].maps[0]
    assert [one.repetition for one in latency.of] == [1]
    assert len(latency.group.maps) == 1
    assert (latency.group.low, latency.group.high) == (axes.low, axes.high)
    assert any("3 maps of later repetitions are left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("seconds", "interval"),
    [(0.05, 10**6), (4, 20_000_000), (4.001, 20_000_000), (60, 500_000_000), (3600, 20 * SECOND)],
)
def test_columns_are_of_round_length(seconds: float, interval: int) -> None:
    assert nice_interval(round(seconds * SECOND), 200) == interval


def test_the_report_carries_its_maps_within_bounds(study: Study) -> None:
    try:
        bundle_file("report.js")
    except IolabError as error:
        pytest.skip(error.message)
    for variant in ("a", "<b>"):
        study.add(variant, bs="8k")
    html = build_report(study.source)
    assert 'id="iolab-maps"' in html
    assert "<li>run 0001-00000000 (a, bs=8k): 2 000 I/Os</li>" in html
    assert "(&lt;b&gt;, bs=8k)" in html
    found = made(study)
    cells = sum(
        len(each.cells.counts)
        for cell in found.cells
        for part in cell.maps
        for each in part.group.maps
    )
    assert len(pack(found)) < 4 * cells + 20_000
