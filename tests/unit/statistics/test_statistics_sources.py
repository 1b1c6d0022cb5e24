"""Which sources can answer a statistic, the one that does by itself first."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_data import aged

from iolab.recording.counts import HeatCounts
from iolab.recording.recording import Recording
from iolab.recording.writer import RecordingWriter
from iolab.statistics.available import availability
from iolab.statistics.catalogue import CATALOGUE
from iolab.statistics.query import query
from support.recordings import SECOND, START, events


@pytest.mark.parametrize(("name", "events", "samples", "expected"), [
    ("io.ops", ["block"], ["diskstats"], ["block", "diskstats"]),
    ("io.ops", ["block"], [], ["block"]),
    ("io.ops", [], ["diskstats", "cpu"], ["diskstats"]),
    # what is far from the device answers only where nothing nearer does, but can be asked
    ("io.ops", ["fio", "syscall"], ["diskstats"], ["diskstats", "fio", "syscall"]),
    ("io.ops", ["syscall", "blktrace"], [], ["blktrace", "syscall"]),
    ("file.ops", ["block", "syscall"], ["diskstats"], ["syscall"]),
    ("cpu.utilization", ["block"], ["cpu"], ["cpu"]),
    ("cpu.utilization", ["block"], ["diskstats"], []),
    ("app.ops", ["block"], [], [])])
def test_sources_that_can_answer(name: str, events: list[str], samples: list[str], expected: list[str]) -> None:
    found = availability(CATALOGUE[name], events, samples)
    assert [each.source for each in found.sources] == expected
    assert bool(expected) is not bool(found.why_not)
    if expected:
        assert found.source == expected[0]
        assert found.counted is found.sources[0].counted


def test_counters_tell_their_own_fields_alone() -> None:
    found = availability(CATALOGUE["io.ops"], ["block"], ["diskstats"])
    block, counters = found.sources
    assert not block.counted
    assert {"latency", "process", "op"} <= set(block.fields)
    assert counters.counted
    assert set(counters.fields) == {"op", "device"}


def test_maps_of_removed_events_of_another_source_count_for_nothing(tmp_path: Path) -> None:
    with RecordingWriter.create(tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}, live=False) as writer:
        for number, sources in enumerate((("block", "syscall"), ("block",))):
            for source in sources:
                writer.append_events(events(300, source=source, start_ns=START + number * SECOND, per_s=300))
            writer.seal()
    maps = ["io.ops[latency]", "io.ops[size]", "io.ops[offset]", "io.ops[op]"]
    before = [_counted(Recording(tmp_path / "r"), name) for name in maps]
    left = aged(tmp_path / "r", tmp_path / "aged", 1)
    assert [_counted(left, name) for name in maps] == before


def _counted(recording: Recording, name: str) -> int:
    found = query(recording, name, interval_ns=SECOND, source="block")
    return found.events + found.without_y if isinstance(found, HeatCounts) else found.total
