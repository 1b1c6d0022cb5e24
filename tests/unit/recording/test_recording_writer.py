# SPDX-License-Identifier: Apache-2.0
"""A recording is what was written, in every column; its parts and default maps add up to the whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab import _core
from iolab.base.clock import FakeClock
from iolab.base.errors import ResultsError
from iolab.recordings.store.base.grids import WITHOUT
from iolab.recordings.store.base.metadata import Begun
from iolab.recordings.store.base.schema import EVENTS, SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments import sealing
from iolab.recordings.store.segments.sealing import LEAST_WIDTH, MOST_BUCKETS, offset_width
from iolab.recordings.store.write import writer as writing
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, rows_of, samples, unsealed


def create(path: Path, **more: Any) -> RecordingWriter:
    return RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, **more
    )


def everything(recording: Recording) -> pa.Table:
    """All events, sealed and hot, as they stand in the files."""
    sealed, hot = recording.snapshot()
    assert [each.number for each in recording.segments()] == sorted(
        each.number for each in recording.segments()
    )
    return pa.concat_tables(
        [
            *(
                pq.read_table(each.path, page_checksum_verification=True).cast(EVENTS)
                for each in sealed
            ),
            EVENTS.empty_table() if hot is None else hot.table(),
        ]
    )


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.integers(1, 60), st.sampled_from(["block", "syscall"]), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    cuts=st.sets(st.integers(0, 5)),
    closes=st.booleans(),
    stretch=st.sampled_from([7, 2**20]),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[tuple[int, str, bool]],
    cuts: set[int],
    closes: bool,
    stretch: int,
) -> None:
    path = tmp_path_factory.mktemp("made") / "r"
    batches = [
        events(rows, number, source=source, backwards=backwards)
        for number, (rows, source, backwards) in enumerate(parts)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing.stretches, "__defaults__", (stretch,))
        writer = create(path)
        for number, batch in enumerate(batches):
            writer.append_events(batch)
            if number in cuts:
                writer.seal()
        if closes:
            writer.close()
    whole = pa.Table.from_batches(batches)
    recording = Recording(path)
    assert rows_of(everything(recording)) == rows_of(whole)
    sources: Counter[str] = Counter()
    for segment in recording.segments():
        sources.update(segment.sources)
    expected: Counter[str] = Counter()
    for row in whole.to_pylist():
        expected[row["source"]] += row["count"]
    assert sources == expected
    times = whole.column("time_ns").to_pylist()
    assert recording.span() == (min(times), max(times))
    for segment in recording.segments():
        if segment.kind == "sealed":
            _check_segment(
                recording,
                segment.number,
                pq.read_table(segment.path),
                whole_stretches=stretch > 1000,
            )
    summary = recording.summary()
    assert summary.events == sum(expected.values())
    assert summary.rows == whole.num_rows
    counted: Counter[str] = Counter()
    for row in whole.to_pylist():
        counted[row["op"]] += row["count"]
    assert summary.names["op"] == counted
    for source, by_op in summary.latency_by.items():
        for op, each in by_op.items():
            own = sorted(
                (row["latency_ns"], row["count"])
                for row in whole.to_pylist()
                if (row["source"], row["op"]) == (source, op) and row["latency_ns"] is not None
            )
            assert each["count"] == sum(count for _, count in own)
            assert each["max"] == own[-1][0]
            rank, seen = -(-each["count"] // 2), 0
            middle = next(latency for latency, count in own if (seen := seen + count) >= rank)
            assert middle <= each["50"] <= middle * (1 + 2**-6) + 1
    writer.close()


def _check_segment(
    recording: Recording, number: int, table: pa.Table, *, whole_stretches: bool
) -> None:
    """Default maps count what the events are; row groups have one source each, in the order of
    time."""
    rows = table.to_pylist()
    width = offset_width(max((row["offset_bytes"] or 0 for row in rows), default=0))
    index: dict[str, Callable[[dict[str, Any]], int | None]] = {
        "io.latency": lambda row: row["latency_bucket"],
        "io.offset": lambda row: (
            None if row["offset_bytes"] is None else row["offset_bytes"] // width
        ),
        "io.size": lambda row: (
            None if row["size_bytes"] is None else _core.grid_index(row["size_bytes"], 6)
        ),
    }
    for name, of in index.items():
        [path] = [each.path for each in recording.maps(name) if each.number == number]
        expected: Counter[Any] = Counter()
        spent: Counter[Any] = Counter()
        for row in rows:
            found = of(row)
            key = (
                row["time_ns"] // SECOND * SECOND,
                row["source"],
                row["op"],
                row["device"],
                WITHOUT if found is None else found,
            )
            expected[key] += row["count"]
            spent[key] += (row["latency_ns"] or 0) * row["count"]
        held = pq.read_table(path).to_pylist()
        assert {tuple(list(row.values())[:5]): row["count"] for row in held} == expected
        assert {tuple(list(row.values())[:5]): row["time_ns_sum"] for row in held} == spent
        assert len(held) == len(expected), "no key twice"
        metadata = json.loads(pq.read_metadata(path).metadata[b"iolab"])
        assert metadata.get("width") == (width if name == "io.offset" else None)
    file = pq.ParquetFile(recording.path / f"events/{number:06}.parquet")
    assert json.loads(file.metadata.metadata[b"iolab"])["number"] == number
    for group in range(file.num_row_groups):
        part = file.read_row_group(group).to_pylist()
        assert len({row["source"] for row in part}) == 1
        assert [row["time_ns"] for row in part] == sorted(row["time_ns"] for row in part)
    if whole_stretches:
        assert [row["source"] for row in rows] == sorted(row["source"] for row in rows)


def test_equal_times_keep_their_order(tmp_path: Path) -> None:
    batch = events(500).set_column(1, EVENTS.field("time_ns"), pa.array([START] * 500))
    with create(tmp_path / "r") as writer:
        writer.append_events(batch)
    assert (
        pq.read_table(tmp_path / "r/events/000001.parquet")
        .cast(EVENTS)
        .equals(pa.Table.from_batches([batch]).cast(EVENTS))
    )


@pytest.mark.parametrize(
    "largest", [0, 1, LEAST_WIDTH * MOST_BUCKETS - 1, LEAST_WIDTH * MOST_BUCKETS, 2**40, 2**64 - 1]
)
def test_the_width_of_offset_buckets_is_the_least_that_will_do(largest: int) -> None:
    width = offset_width(largest)
    assert largest // width < MOST_BUCKETS
    assert width == LEAST_WIDTH or largest // (width // 2) >= MOST_BUCKETS


def test_extreme_values(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {name: [None, None] for name in EVENTS.names}
    columns |= {
        "source": ["a", "a"],
        "op": ["read", "read"],
        "time_ns": [-(2**63), 2**63 - 1],
        "latency_ns": [2**64 - 1, 0],
        "latency_bucket": [_core.grid_index(2**64 - 1, 6), 0],
        "offset_bytes": [2**64 - 1, 0],
        "size_bytes": [2**64 - 1, 0],
        "count": [2**40, 1],
    }
    batch = pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in EVENTS], schema=EVENTS
    )
    with create(tmp_path / "r") as writer:
        writer.append_events(batch)
    assert rows_of(everything(Recording(tmp_path / "r"))) == rows_of(batch)
    assert Recording(tmp_path / "r").summary().events == 2**40 + 1


def test_samples_are_kept_beside_events(tmp_path: Path) -> None:
    with create(tmp_path / "r") as writer:
        writer.append_samples(samples(9))
        assert unsealed(Recording(tmp_path / "r"), "samples").equals(
            pa.Table.from_batches([samples(9)])
        )
        writer.append_events(events(5))
        writer.seal()
        writer.append_samples(samples(4, source="cpu"))
    recording = Recording(tmp_path / "r")
    assert [(each.number, dict(each.sources)) for each in recording.sample_segments()] == [
        (1, {"diskstats": 9}),
        (2, {"cpu": 4}),
    ]
    assert [each.number for each in recording.segments()] == [1]
    assert rows_of(pq.read_table(recording.sample_segments()[0].path).cast(SAMPLES)) == rows_of(
        samples(9)
    )
    assert recording.summary().samples == 13


def test_sealed_by_age_and_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    writer = create(tmp_path / "r", system=clock)
    writer.append_events(events(5))
    for _ in range(59):
        clock.sleep(1)
        writer.tick(clock.realtime_ns())
    recording = Recording(tmp_path / "r")
    assert [each.kind for each in recording.segments()] == ["hot"]
    clock.sleep(1)
    writer.tick(clock.realtime_ns())
    assert [each.kind for each in recording.segments()] == ["sealed"]
    monkeypatch.setattr(writing, "SEAL_ROWS", 1000)
    for seed in range(25):
        writer.append_events(events(100, seed))
    assert [each.kind for each in recording.segments()] == ["sealed", "sealed", "sealed", "hot"]
    writer.close()
    assert recording.summary().rows == 2505
    assert not list((tmp_path / "r/hot").iterdir())


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with create(tmp_path / "r"):
        with pytest.raises(ResultsError, match="is being recorded by process"):
            RecordingWriter.reopen(tmp_path / "r")
        with pytest.raises(ResultsError, match="holds a recording already"):
            create(tmp_path / "r")
    RecordingWriter.reopen(tmp_path / "r").close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("")
    with pytest.raises(ResultsError, match="is not empty and holds no recording"):
        create(tmp_path / "other")
    with pytest.raises(ResultsError, match="is not a recording"):
        RecordingWriter.reopen(tmp_path / "other")


def test_sessions_and_the_time_between(tmp_path: Path) -> None:
    clock = FakeClock()
    create(tmp_path / "r", system=clock).close()
    ended = clock.realtime_ns()
    clock.sleep(30)
    with RecordingWriter.reopen(tmp_path / "r", system=clock, sources={"block": {"what": "disks"}}):
        recording = Recording(tmp_path / "r")
        assert recording.gaps() == [(ended, ended + 30 * SECOND)]
        assert recording.facts.sessions[-1]["until_ns"] is None
        clock.sleep(5)
    assert recording.facts.sessions[-1] == {
        "from_ns": ended + 30 * SECOND,
        "until_ns": ended + 35 * SECOND,
        "monotonic_ns": 30 * SECOND,
        "realtime_ns": ended + 30 * SECOND,
    }
    assert recording.losses() == []
    assert recording.facts.sources == {"block": {"what": "disks"}}


def test_a_source_that_is_not_recorded_has_a_gap(tmp_path: Path) -> None:
    """Another source this time: nothing is known of those that were not recorded, and it is no
    zero."""
    clock = FakeClock()
    first = clock.realtime_ns()
    sources = {"block": {"what": "disks"}, "counters": {"what": "counters"}}
    with RecordingWriter.create(
        tmp_path / "r",
        host="h",
        clock="realtime",
        origin={"kind": "record"},
        sources=sources,
        system=clock,
    ):
        clock.sleep(10)
    clock.sleep(30)
    second = clock.realtime_ns()
    writer = RecordingWriter.reopen(
        tmp_path / "r", system=clock, sources={"syscall": {}}, absent=["block", "counters", "never"]
    )
    recording = Recording(tmp_path / "r")
    assert recording.holes("events", "syscall") == [(first, first + 40 * SECOND)]
    # the first event that comes began before everything was set up, and the session with it
    writer.append_events(events(1, source="syscall", start_ns=second - SECOND))
    clock.sleep(5)
    writer.close()
    recording = Recording(tmp_path / "r")
    assert recording.holes("events", "block") == [(first + 10 * SECOND, second + 5 * SECOND)]
    assert recording.holes("samples", "cpu") == [(first + 10 * SECOND, second + 5 * SECOND)]
    assert recording.gaps() == [(first + 10 * SECOND, second - SECOND)]
    third = clock.realtime_ns()
    with RecordingWriter.reopen(
        tmp_path / "r", system=clock, sources=sources, absent=["syscall"]
    ) as writer:
        clock.sleep(5)
        writer.tick(third + 5 * SECOND)
        # the clock is set: another session begins, in which the same source is left out
        writer.renew(Begun(third + 100 * SECOND, 45 * SECOND, third + 100 * SECOND))
        writer.tick(third + 105 * SECOND)
    recording = Recording(tmp_path / "r")
    assert recording.holes("events", "block")[0] == (first + 10 * SECOND, second + 5 * SECOND)
    assert recording.holes("events", "syscall")[-1] == (third, third + 105 * SECOND)


def test_losses_marks_and_processes(tmp_path: Path) -> None:
    with create(tmp_path / "r") as writer:
        writer.loss("overrun", "block", START, START + SECOND, 12, "ring of cpu 1")
        writer.loss("missed", "diskstats", START, None, None)
        writer.mark(
            "0001-ab", START, START + SECOND, "run", "../runs/0001-ab", {"variant": "master"}
        )
        writer.mark("now", START, None)
        writer.process(12, "fio", "fio job.fio", START)
        with pytest.raises(ValueError, match="no loss is called"):
            writer.loss("theft", "block", None, None, 1)
    # torn by a kill, then gone on with
    for name in ("losses/losses.jsonl", "marks.jsonl", "names/processes.jsonl"):
        with (tmp_path / "r" / name).open("a") as file:
            file.write('{"label": "to')
    with RecordingWriter.reopen(tmp_path / "r") as writer:
        writer.loss("unpaired", "block", None, None, 3)
        writer.mark("later", START, START)
    recording = Recording(tmp_path / "r")
    assert [
        (each["kind"], each["source"], each["count"], each["words"]) for each in recording.losses()
    ] == [
        ("overrun", "block", 12, "ring of cpu 1"),
        ("missed", "diskstats", None, ""),
        ("unpaired", "block", 3, ""),
    ]
    assert [each["label"] for each in recording.marks()] == ["0001-ab", "now", "later"]
    assert recording.marks()[0]["facts"] == {"variant": "master"}
    assert recording.processes() == [
        {"pid": 12, "process": "fio", "command": "fio job.fio", "first_ns": START}
    ]
    summary = recording.summary()
    assert (summary.lost, summary.unpaired, summary.unknown) == (12, 3, 1)


def test_losses_stand_in_the_segment_as_well(tmp_path: Path) -> None:
    with create(tmp_path / "r") as writer:
        writer.append_events(events(3))
        writer.loss("overrun", "block", START, START, 12)
        writer.seal()
        writer.append_events(events(3))
    assert [
        each.facts["sources"]["block"]["losses"] for each in Recording(tmp_path / "r").segments()
    ] == [12, 0]


def test_more_names_than_are_counted(tmp_path: Path) -> None:
    rows = 3000
    base = events(rows)
    names = pa.array([f"/f{number % 1000}" for number in range(rows)]).dictionary_encode()
    with create(tmp_path / "r") as writer:
        writer.append_events(
            base.set_column(base.schema.get_field_index("file"), EVENTS.field("file"), names)
        )
    summary = Recording(tmp_path / "r").summary()
    assert summary.distinct["file"] == 1000
    assert summary.partial == ["file"]
    assert len(summary.names["file"]) == 20


def test_called_from_several_threads(tmp_path: Path) -> None:
    with create(tmp_path / "r") as writer:

        def append(source: str) -> None:
            for number in range(20):
                writer.append_events(events(10, number, source=source))
                writer.loss("overrun", source, None, None, 1)
                if number % 7 == 0:
                    writer.seal()

        threads = [threading.Thread(target=append, args=(name,)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expected = pa.Table.from_batches(
        [events(10, number, source=source) for source in "abc" for number in range(20)]
    )
    assert rows_of(everything(Recording(tmp_path / "r"))) == rows_of(expected)
    assert Recording(tmp_path / "r").summary().lost == 60


def test_a_batch_of_other_columns_is_refused(tmp_path: Path) -> None:
    with create(tmp_path / "r") as writer, pytest.raises(ValueError, match="other columns"):
        writer.append_events(samples(3))


@pytest.mark.slow
def test_bytes_an_event(tmp_path: Path) -> None:
    """Random 8k at 50 thousand I/O a second, one latency, one process: at most 10 bytes each."""
    rows, chance = 1_000_000, np.random.default_rng(1)
    latency = chance.lognormal(11.5, 1, rows).astype(np.uint64)
    bucket = np.array([_core.grid_index(int(value), 6) for value in latency[:1000]])
    assert (
        np.array([_core.grid_bounds(int(each), 6)[0] for each in bucket]) <= latency[:1000]
    ).all()
    buckets = np.array(
        [_core.grid_index(value, 6) for value in range(1, 2**20, 64)], dtype=np.uint16
    )
    columns = {
        "source": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["block"]),
        "op": pa.DictionaryArray.from_arrays(
            chance.integers(0, 2, rows).astype(np.int32), ["read", "write"]
        ),
        "time_ns": START + np.cumsum(chance.exponential(20_000, rows)).astype(np.int64),
        "latency_ns": latency,
        "latency_bucket": buckets[np.minimum(latency // 64, len(buckets) - 1).astype(np.int64)],
        "offset_bytes": chance.integers(0, 2**25, rows).astype(np.uint64) * 8192,
        "size_bytes": np.full(rows, 8192, np.uint64),
        "process": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["fio"]),
        "count": np.ones(rows, np.uint64),
    }
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in EVENTS
    ]
    with create(tmp_path / "r") as writer:
        writer.append_events(pa.RecordBatch.from_arrays(arrays, schema=EVENTS))
    each = Recording(tmp_path / "r").summary().bytes_per_io
    assert each is not None
    assert each <= 10
    shutil.rmtree(tmp_path / "r")


def test_facts_and_default_maps_need_no_pyarrow(tmp_path: Path) -> None:
    """Maps of many segments are wanted fast: listing and summing them loads nothing heavy but the
    engine."""
    with create(tmp_path / "r") as writer:
        writer.append_events(events(3))
    code = (
        "import sys; from pathlib import Path; from iolab.recordings.store.read.recording import Recording; "
        "r = Recording(Path(sys.argv[1])); "
        "from iolab.recordings.ask.query import heat; assert r.segments() and r.maps('io.latency') and r.span(); "
        "assert heat(r, 'latency').events == 18; sys.exit('pyarrow' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "r")], check=False).returncode
        == 0
    )
