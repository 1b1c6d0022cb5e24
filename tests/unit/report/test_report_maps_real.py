# SPDX-License-Identifier: Apache-2.0
"""Maps of a real run on a device: what the block layer saw beside fio's own, on one scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iolab.output.report.sections.maps import run_maps
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question
from iolab.recordings.store.base.counts import Y
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.evidence.files import read_io_log
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from support.acting import Listener
from support.recorded import device_in_memory

pytestmark = [pytest.mark.fio, pytest.mark.loops, pytest.mark.tracing]

STUDY = """
sources = ["block"]

[study]
name = "beside"
repetitions = 1

[target]
kind = "device"
device = "{device}"

[workload]
kind = "fio"
runtime = "2s"
log_ios = true

[workload.options]
rw = "randread"
bs = "8k"
size = "100%"
direct = 1
rate_iops = 1000

[variants.plain]
"""


def median(counts: object) -> float:
    from iolab.recordings.store.base.counts import HeatCounts

    assert isinstance(counts, HeatCounts)
    index, count = counts.by_index()
    return float(np.repeat(index, count)[counts.total // 2])


def test_the_block_layer_stands_beside_fio_on_one_scale(fio: str, tmp_path: Path) -> None:
    with device_in_memory(tmp_path) as device:
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(device=device), "utf-8")
        heard = Listener()
        out = run_study(path, tmp_path / "out", listener=heard)
    assert [status for _, status, _ in heard.runs] == ["finished"], heard.runs
    results = Results(out)
    (run,) = results.runs
    logged, watched = read_io_log(run.evidence), run.plan.extra["recording"]
    assert logged["recording"] == watched["path"], "one recording of the host, whatever its sources"
    assert [each.name for each in (out / "recordings").iterdir() if each.is_dir()] == [
        Path(watched["path"]).name
    ]
    found = run_maps(results)
    assert found is not None
    assert found.notes == []
    (cell,) = found.cells
    assert [part.group.title for part in cell.maps] == ["Latency", "Offset", "Size"]
    for part in cell.maps:
        assert [one.seen for one in part.of] == ["fio", "block"]
        own, layer = (each.events for each in part.group.maps)
        assert own == logged["events"]["read"]
        assert layer == pytest.approx(own, abs=2), "every read reaches the device, once"
    assert cell.maps[1].group.high <= 64 << 20
    recording = Recording(out / logged["recording"])
    (mark,) = recording.marks()
    assert mark["from_ns"] < logged["from_ns"] < logged["until_ns"] < mark["until_ns"]
    asked = {
        name: query(recording, name, from_ns=logged["from_ns"], until_ns=logged["until_ns"] + 1)
        for name in ("io.ops", "app.ops")
    }
    assert [getattr(each, "source", None) for each in asked.values()] == ["block", "fio"]
    assert asked["app.ops"].total == logged["events"]["read"]
    assert asked["io.ops"].total == pytest.approx(logged["events"]["read"], abs=2), (
        "of the block layer alone"
    )
    assert query(recording, "app.ops").total == logged["events"]["read"]
    kinds: tuple[Y, ...] = ("latency", "offset")
    maps = {
        (seen, y): heat(
            Recording(out / place),
            y,
            Question(span=(mark["from_ns"], mark["until_ns"]), source=seen, buckets=None),
        )
        for seen, place in (("fio", logged["recording"]), ("block", watched["path"]))
        for y in kinds
    }
    assert median(maps["block", "latency"]) <= median(maps["fio", "latency"]), (
        "the device's share of what fio waits for"
    )
    places = [
        dict(zip(*(each.tolist() for each in maps[seen, "offset"].by_index()), strict=True))
        for seen in ("fio", "block")
    ]
    shared = sum(min(count, places[1].get(index, 0)) for index, count in places[0].items())
    assert shared > 0.99 * maps["fio", "offset"].total, (
        "the same offsets, for the target is the device"
    )
