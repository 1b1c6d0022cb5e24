# SPDX-License-Identifier: Apache-2.0
"""Which stacks add up: parts of a whole do, what overlaps or is averaged does not, and then nothing
is summed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.cli.query.text import lines
from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.answers.json_form import (
    as_data,
    as_json,
    csv_lines,
    largest,
    moment_as_data,
    moments,
)
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START
from support.statistics_data import Event, recording_of, trace_of

Growth = dict[tuple[str, str], int]
"""By how much a field of an object grows each second."""


def grown(folder: Path, sources: dict[str, Growth], seconds: int = 10) -> Recording:
    """A recording of counters that grow evenly."""
    clock = FakeClock(START)
    with RecordingWriter.create(
        folder / "r", host="here", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        rows = [
            (source, START + at * SECOND, thing, field, 1000 + at * step)
            for at in range(seconds + 1)
            for source, growth in sources.items()
            for (thing, field), step in growth.items()
        ]
        writer.append_samples(
            pa.RecordBatch.from_arrays(
                [
                    pa.array(column, field.type)
                    for column, field in zip(zip(*rows, strict=True), SAMPLES, strict=True)
                ],
                schema=SAMPLES,
            )
        )
        clock.sleep(seconds)
    return Recording(folder / "r")


def stack(recording: Recording, name: str) -> Stack:
    found = query(
        recording, name, from_ns=START + SECOND, until_ns=START + 9 * SECOND, interval_ns=SECOND
    )
    assert isinstance(found, Stack)
    return found


DISKS: Growth = {("sda", "reads"): 30, ("sdb", "reads"): 10, ("loop0", "reads"): 0}
PARTITIONS: Growth = {**DISKS, ("sda1", "reads"): 20, ("sda2", "reads"): 10}
MADE: Growth = {**DISKS, ("md0", "reads"): 40}


@pytest.mark.parametrize(
    ("growth", "adds_up"),
    [(DISKS, True), (PARTITIONS, False), (MADE, False), ({("sda1", "reads"): 5}, True)],
)
def test_devices_add_up_unless_one_is_part_of_another(
    growth: Growth, adds_up: bool, tmp_path: Path
) -> None:
    recording = grown(tmp_path, {"diskstats": growth})
    found = stack(recording, "io.ops[device]")
    assert found.adds_up is adds_up
    # the sum is that of whole disks in any case
    assert found.mean == pytest.approx(5 if len(growth) == 1 else 40)
    assert stack(recording, "io.ops[op]").adds_up


def test_shares_of_several_things_do_not_add_up_and_modes_of_one_do(tmp_path: Path) -> None:
    cpu = {
        (thing, field): step
        for thing, scale in (("", 2), ("cpu0", 1), ("cpu1", 1))
        for field, step in (
            ("user", 30 * scale),
            ("system", 10 * scale),
            ("idle", 60 * scale),
            ("iowait", 0),
            ("guest", 0),
            ("guest_nice", 0),
            ("nice", 0),
            ("irq", 0),
            ("softirq", 0),
            ("steal", 0),
        )
    }
    recording = grown(
        tmp_path,
        {
            "cpu": cpu,
            "diskstats": {("sda", "io_ms"): 500, ("sdb", "io_ms"): 100, ("sdc", "io_ms"): 300},
        },
    )
    assert not stack(recording, "io.utilization[device]").adds_up
    assert not stack(recording, "cpu.utilization[cpu]").adds_up
    modes = stack(recording, "cpu.utilization[mode]")
    assert modes.adds_up
    assert np.nansum([each[0] for each in modes.values]) == pytest.approx(0.4)
    _, rest = largest(stack(recording, "io.utilization[device]"), 1)
    assert rest is not None
    assert rest.mean == pytest.approx(0.2)


def test_parts_that_others_hold_already_do_not_add_up(tmp_path: Path) -> None:
    fields = (
        "MemTotal",
        "MemFree",
        "AnonPages",
        "Cached",
        "Buffers",
        "Slab",
        "Dirty",
        "MemAvailable",
    )
    memory: Growth = {("", field): 1 for field in fields}
    recording = grown(tmp_path, {"memory": memory})
    assert stack(recording, "memory.bytes[kind]").adds_up
    assert stack(recording, "memory.bytes[kind=free][kind]").adds_up
    assert not stack(recording, "memory.bytes[kind=total,free][kind]").adds_up


def test_what_overlaps_is_never_summed(tmp_path: Path) -> None:
    found = stack(grown(tmp_path, {"diskstats": PARTITIONS}), "io.ops[device]")
    kept, rest = largest(found, 2)
    assert [row.key for row in kept] == ["sda", "sda1"]
    assert rest is not None
    assert (rest.keys, rest.total) == (2, 0)
    assert math.isnan(rest.mean)
    assert np.isnan(rest.values).all()
    data = as_data(found.statistic, found, 2)
    assert (data["adds_up"], data["others"]["keys"], data["others"]["mean"]) == (False, 2, None)
    assert set(data["others"]["values"]) == {None}
    assert data["mean"] == pytest.approx(40)
    assert json.loads(as_json(found.statistic, found, 2))["adds_up"] is False
    assert csv_lines(found.statistic, found, 2)[3].endswith(",(others),")
    [first, *_] = moments(found, START + SECOND, START + 3 * SECOND, 2)
    assert [key for key, _ in first.keys] == ["sda", "sda1", None]
    assert moment_as_data(found.statistic, found, first)["others"] is None
    assert as_data(found.statistic, found, None)["others"] is None
    # a single one is no sum
    assert as_data(found.statistic, found, 3)["others"]["mean"] == pytest.approx(10)
    assert [
        line
        for line in lines(found.statistic, found, "r", 2)
        if "2 others" in line and "they overlap: no sum" in line
    ]


def test_events_add_up(tmp_path: Path) -> None:
    rows = [
        Event(START + at * SECOND // 10, device=("sda", "sdb", "sdc")[at % 3]) for at in range(100)
    ]
    found = stack(
        recording_of(trace_of(rows, tmp_path / "t.csv"), tmp_path / "r"), "io.ops[device]"
    )
    assert found.adds_up
    kept, rest = largest(found, 1)
    assert rest is not None
    assert kept[0].total + rest.total == found.total
