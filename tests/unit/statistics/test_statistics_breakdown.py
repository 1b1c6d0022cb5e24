# SPDX-License-Identifier: Apache-2.0
"""Whose the I/Os of a recording's map are: parts that add up to the map, also while the recording
grows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolab.recordings.ask.drill import dimensions_of
from iolab.recordings.ask.query import heat
from iolab.recordings.ask.question import Question
from iolab.recordings.store.base.conditions import Where
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

QUESTION = Question(span=(START - 5 * SECOND, START + 10 * SECOND), interval_ns=SECOND // 10)


def parts_of(
    recording: Recording, whole: HeatCounts, y: Any, weight: Any, conditions: Where | None = None
) -> dict[str, dict[str, HeatCounts]]:
    def read(each: Recording, where: Where) -> HeatCounts:
        both = {**(conditions or {}), **where}
        return heat(each, y, replace(QUESTION, weight=weight), where=both, kept=False)

    found, left = dimensions_of([recording], whole, read, conditions)
    assert not left
    return {dimension.name: dict(dimension.parts) for dimension in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "weight"), [("latency", "count"), ("offset", "time"), ("queue", "count")]
)
def test_parts_add_up_to_the_map(tmp_path: Path, y: Any, weight: Any) -> None:
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        for number in range(5):
            writer.append_events(
                events(200, number, start_ns=START + number * SECOND, backwards=True)
            )
            writer.seal()
    recording = Recording(tmp_path / "r")
    whole = heat(recording, y, replace(QUESTION, weight=weight))
    found = parts_of(recording, whole, y, weight)
    assert {"op", "device", "process", "file"} <= set(found)
    for parts in found.values():
        assert all((part.count > 0).all() and part.events >= 0 for part in parts.values())
        assert sum(part.total for part in parts.values()) == whole.total
        assert sum(part.events for part in parts.values()) == whole.events

    conditions = {"op": ["read", "trim"], "device": ["sda"]}
    whole = heat(recording, y, replace(QUESTION, weight=weight), where=conditions, kept=False)
    found = parts_of(recording, whole, y, weight, conditions)
    assert "device" not in found
    assert set(found["op"]) <= {"read", "trim"}
    for parts in found.values():
        assert sum(part.total for part in parts.values()) == whole.total > 0


@pytest.mark.slow
def test_what_comes_after_the_map_was_counted_is_in_no_part(tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        writer.append_events(events(300, 1, start_ns=START + SECOND))
        recording = Recording(tmp_path / "r")
        whole = heat(recording, "latency", QUESTION)
        # more of the same times, and from before all that the map has
        writer.append_events(events(300, 1, start_ns=START + SECOND))
        writer.append_events(events(300, 2))
        for parts in parts_of(recording, whole, "latency", "count").values():
            assert all((part.count > 0).all() for part in parts.values())
            assert sum(part.total for part in parts.values()) == whole.total
