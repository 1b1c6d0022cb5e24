"""Which sources can answer a statistic, the one that does by itself first."""

from __future__ import annotations

import pytest

from iolab.statistics.available import availability
from iolab.statistics.catalogue import CATALOGUE


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
