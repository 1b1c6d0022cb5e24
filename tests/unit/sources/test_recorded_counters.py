# SPDX-License-Identifier: Apache-2.0
"""counters in a study: what a run keeps of them, and that the recording has the readings."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from iolab.formats.core.tables import HostTable
from iolab.formats.detect import read
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from iolab.studies.sources.counters import CounterOptions
from iolab.studies.sources.recorded_counters import RecordedCounters
from support.acting import Listener, fake_host


def test_its_log_has_the_recorders_count(tmp_path: Path) -> None:
    host = fake_host()
    source = RecordedCounters(CounterOptions(), host, host.clock, ())
    source.attach("/r")
    for second, samples in enumerate((100, 350, 600)):
        host.files["/r/status.json"] = json.dumps(
            {"state": "recording", "written_ns": host.clock.realtime_ns(), "samples": samples}
        )
        if second == 0:
            source.start(tmp_path)
        else:
            source.poll()
        host.clock.sleep(1.0)
    source.stop()
    assert (source.readings, source.lost, source.trouble) == (4, 0, "")
    kind, table = read((tmp_path / "counters.log").read_bytes(), "counters.log")
    assert kind == "counters"
    assert isinstance(table, HostTable)
    assert table.columns["counters.samples"].tolist() == [250.0, 250.0, 0.0]


@pytest.mark.parametrize("samples", [None, -5, "x", [1]])
def test_a_count_that_is_none_is_nothing(samples: object, tmp_path: Path) -> None:
    host = fake_host()
    source = RecordedCounters(CounterOptions(), host, host.clock, ())
    assert source.count_lines({"samples": samples}) == ["samples 0\n"]


def test_the_statistics_that_it_names_are_there() -> None:
    named = re.findall(r"\b[a-z]+\.[a-z_]+\b", inspect.getdoc(RecordedCounters) or "")
    assert len(named) == 2
    for name in named:
        assert str(parse(name)) == name


@pytest.mark.fio
def test_a_study_records_them_without_root_being_asked(fio: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("""
sources = ["counters"]
[study]
name = "counted"
repetitions = 1
[workload]
kind = "fio"
runtime = "3s"
[workload.options]
rw = "randwrite"
bs = "4k"
size = "1m"
[variants.plain]
""")
    listener = Listener()
    run_study(tmp_path / "study.toml", tmp_path / "results", listener=listener)
    assert [run[1:] for run in listener.runs] == [("finished", "")], listener.notes
    [run] = Results(tmp_path / "results").runs
    assert {path.name for path in run.evidence.iterdir()} >= {
        "counters.log",
        "diskstats.log",
        "cpu.log",
    }
    assert run.plan.extra["recording"]["events"] == {}
    recording = Recording(tmp_path / "results/recordings/local")
    assert [mark["label"] for mark in recording.marks()] == [run.id]
    answer = query(recording, "cpu.utilization")
    assert not isinstance(answer, HeatCounts)
    assert answer.covered_ns > 2 * 10**9
