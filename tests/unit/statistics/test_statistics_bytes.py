# SPDX-License-Identifier: Apache-2.0
"""Heat maps of bytes: cells against sums by hand, on both roads, and from what was kept once the
events are gone."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from iolab import _core
from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.answers.json_form import as_json, csv_lines, moment_as_data, moments
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.files.paths import BITS, TIERS, files, folder_name
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question, parse
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import Linear, LogLinear
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import START as KEPT_START
from support.kept_data import aged, io
from support.statistics_data import Event, recording_of, trace_of

SECOND = 10**9
START = 1_700_000_000 * SECOND
UNITS = {"latency": "ns", "queue": "ns", "offset": "B", "size": "B"}

events = some.lists(
    some.builds(
        Event,
        time=some.integers(0, 20 * SECOND).map(lambda after: START + after),
        latency=some.none() | some.integers(0, 2**40),
        offset=some.none() | some.integers(0, 2**42),
        size=some.none() | some.sampled_from((0, 512, 4096, 131072)) | some.integers(0, 2**33),
        op=some.sampled_from(("read", "write", "flush")),
    ),
    min_size=1,
    max_size=60,
)


def by_hand(held: list[Event], y: str, counts: HeatCounts) -> Counter[tuple[int, int]]:
    """Bytes by (start of the column, low end of the bucket)."""
    found: Counter[tuple[int, int]] = Counter()
    for each in held:
        value = getattr(each, y)
        if value is None or not each.size:
            continue
        if isinstance(counts.grid, LogLinear):
            low = _core.grid_bounds(_core.grid_index(value, counts.grid.bits), counts.grid.bits)[0]
        else:
            low = (
                counts.grid.low + (value - counts.grid.low) // counts.grid.width * counts.grid.width
            )
        found[each.time // counts.interval_ns * counts.interval_ns, low] += each.size
    return found


def cells(counts: HeatCounts) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for column, index, amount in zip(
        counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True
    ):
        if isinstance(counts.grid, LogLinear):
            low = _core.grid_bounds(index, counts.grid.bits)[0]
        else:
            low = counts.grid.low + index * counts.grid.width
        found[counts.t0_ns + column * counts.interval_ns, low] += amount
    return found


def total(opened: Any, name: str, **more: Any) -> int:
    answer = query(opened, name, **more)
    assert isinstance(answer, Series)
    return answer.total


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    events,
    some.sampled_from(("latency", "offset", "size")),
    some.sampled_from(("", "[op=write]", "[latency>=1ms]")),
    some.sampled_from((SECOND, 300_000_000)),
    some.integers(1, 3),
    some.booleans(),
)
def test_cells_are_the_bytes_of_their_ios(
    held: list[Event], y: str, condition: str, interval_ns: int, parts: int, hot: bool
) -> None:
    name = f"io.bytes{condition}[{y}]"
    chosen = [
        each
        for each in held
        if (condition != "[op=write]" or each.op == "write")
        and (condition != "[latency>=1ms]" or (each.latency is not None and each.latency >= 10**6))
    ]
    placed = [each for each in chosen if getattr(each, y) is not None and each.size is not None]
    with tempfile.TemporaryDirectory() as folder:
        trace = trace_of(held, Path(folder) / "t.csv")
        for opened in (trace, recording_of(trace, Path(folder) / "r", parts=parts, hot=hot)):
            found = query(opened, name, interval_ns=interval_ns)
            assert isinstance(found, HeatCounts)
            assert cells(found) == by_hand(chosen, y, found)
            assert (found.weight, found.events, found.without_y) == (
                "bytes",
                len(placed),
                len(chosen) - len(placed),
            )
            assert found.filtered == len(held) - len(chosen)
            assert (
                found.total
                == sum(each.size or 0 for each in placed)
                == total(opened, f"io.bytes{condition}[{y}>=0{UNITS[y]}]", interval_ns=interval_ns)
            )


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events, some.integers(-SECOND, 10 * SECOND), some.integers(1, 15 * SECOND))
def test_a_part_of_the_time_holds_the_bytes_of_that_part(
    held: list[Event], start: int, length: int
) -> None:
    ends: dict[str, Any] = {
        "from_ns": START + start,
        "until_ns": START + start + length,
        "interval_ns": SECOND,
    }
    inside = [each for each in held if ends["from_ns"] <= each.time < ends["until_ns"]]
    with tempfile.TemporaryDirectory() as folder:
        recording = recording_of(
            trace_of(held, Path(folder) / "t.csv"), Path(folder) / "r", parts=2
        )
        found = query(recording, "io.bytes[size]", **ends)
        assert isinstance(found, HeatCounts)
        assert cells(found) == by_hand(inside, "size", found)
        assert found.total == total(recording, "io.bytes", **ends)


def test_a_plain_map_is_weighed_as_well(tmp_path: Path) -> None:
    """As `iolab heatmap --weight bytes` and the library ask, with ranges and equal buckets."""
    held = [Event(START + at, latency=1000 * at, size=512 * at) for at in range(1, 100)]
    trace = trace_of(held, tmp_path / "t.csv")
    for opened in (trace, recording_of(trace, tmp_path / "r")):
        found = heat(
            opened,
            "latency",
            Question(interval_ns=SECOND, weight="bytes", low=10_000, high=50_000, buckets=8),
        )
        assert isinstance(found.grid, Linear)
        assert (found.total, found.events, found.outside) == (
            sum(512 * at for at in range(10, 50)),
            40,
            59,
        )
        assert not found.conditional


def test_it_is_told_as_bytes_and_not_as_a_count(tmp_path: Path) -> None:
    recording = recording_of(
        trace_of([Event(START, size=4096), Event(START + 1, size=8192)], tmp_path / "t.csv"),
        tmp_path / "r",
    )
    asked = parse("io.bytes[latency]")
    answer = query(recording, asked, interval_ns=SECOND)
    head, row = csv_lines(asked, answer, None)
    assert (head, row.rpartition(",")[2]) == ("time_s,low,high,bytes", "12288")
    told = json.loads(as_json(asked, answer, None))
    assert (told["weight"], told["count"], told["events"]) == ("bytes", [12288], 2)
    [moment] = moments(answer, START, START + SECOND, None)
    assert {name: moment_as_data(asked, answer, moment)[name] for name in ("weight", "count")} == {
        "weight": "bytes",
        "count": [12288],
    }
    counted = query(recording, "io.ops[latency]", interval_ns=SECOND)
    assert json.loads(as_json(asked, counted, None))["weight"] == "count"


@pytest.mark.parametrize("name", ["io.bytes", "file.bytes", "app.bytes"])
def test_maps_of_bytes_can_follow(name: str) -> None:
    assert {"latency", "offset", "size"} <= set(parse(name).entry.breakdowns)


def lacking(start_ns: int, seconds: int) -> pa.RecordBatch:
    """I/Os of which some have no size, some move nothing, and some lack a latency."""
    batch = io(start_ns, seconds)
    chance = np.random.default_rng(start_ns // SECOND)
    sizes = np.where(chance.random(len(batch)) < 0.1, 0, batch["size_bytes"].to_numpy())
    place = EVENTS.get_field_index("size_bytes")
    return batch.set_column(
        place,
        EVENTS.field(place),
        pa.array(sizes.astype(np.uint64), mask=chance.random(len(batch)) < 0.1),
    )


KEPT = [
    "io.bytes[process=fio][latency]",
    "io.bytes[size]",
    "io.bytes[queue]",
    "io.bytes[op=write][offset]",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Segments of half a minute in three hours, so that there are sums of each tier."""
    path = tmp_path_factory.mktemp("bytes") / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(6):
            writer.append_events(lacking(KEPT_START + number * 1800 * SECOND, 30))
            writer.seal()
    manage.add(path, KEPT, backfill=True)
    assert all(files(path, tier, folder_name(name)) for tier in TIERS for name in KEPT)
    return Recording(path)


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 2])
@pytest.mark.parametrize("interval", [1, 60, 3600])
@pytest.mark.parametrize("name", KEPT)
def test_what_was_kept_says_what_the_events_said(
    whole: Recording, tmp_path: Path, name: str, interval: int, left: int
) -> None:
    old = aged(whole.path, tmp_path / "old", left)
    kept, scanned = (query(each, name, interval_ns=interval * SECOND) for each in (old, whole))
    assert isinstance(kept, HeatCounts)
    assert isinstance(scanned, HeatCounts)
    assert any("from what was kept" in note for note in kept.assumptions)
    if isinstance(scanned.grid, LogLinear):
        scanned = scanned.coarser(steps=scanned.grid.bits - BITS)
    else:
        assert isinstance(kept.grid, Linear)
        kept_width, scanned_width = kept.grid.width, scanned.grid.width
        width = max(kept_width, scanned_width)
        kept = kept.coarser(steps=(width // kept_width).bit_length() - 1)
        scanned = scanned.coarser(steps=(width // scanned_width).bit_length() - 1)
    assert cells(kept) == cells(scanned)
    assert (kept.weight, kept.events, kept.without_y) == (
        "bytes",
        scanned.events,
        scanned.without_y,
    )
    bare = name.rpartition("[")[0]
    assert total(old, bare, interval_ns=interval * SECOND) == total(
        whole, bare, interval_ns=interval * SECOND
    )


def test_a_plain_map_of_bytes_comes_from_what_was_kept(whole: Recording, tmp_path: Path) -> None:
    old = aged(whole.path, tmp_path / "old", 2)
    kept, scanned = (
        heat(each, "size", Question(interval_ns=SECOND, weight="bytes")) for each in (old, whole)
    )
    assert (kept.total, kept.events) == (scanned.total, scanned.events)
    assert any("from what was kept as io.bytes[size]" in note for note in kept.assumptions)


def test_the_queue_of_a_trace_is_refused_as_of_counts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not tell the time in the queue"):
        query(trace_of([Event(START)], tmp_path / "t.csv"), "io.bytes[queue]")
