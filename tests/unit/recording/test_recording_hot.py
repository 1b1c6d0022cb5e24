# SPDX-License-Identifier: Apache-2.0
"""Hot files: whatever is cut off, flipped or appended, what is read is a beginning of what was
written, and quickly so."""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iolab.recordings.store.base.schema import EVENTS, SAMPLES
from iolab.recordings.store.segments.hot import HotLog, HotReader, read_hot
from support.recordings import events, samples


def written(path: Path, batches: list[pa.RecordBatch]) -> tuple[bytes, list[int]]:
    """The file's bytes, and where each batch ends."""
    log = HotLog(path, batches[0].schema)
    ends = []
    for batch in batches:
        log.append(batch)
        ends.append(log.bytes)
    log.close()
    data = path.read_bytes()
    assert len(data) == log.bytes
    return data, ends


def whole_prefix(path: Path, batches: list[pa.RecordBatch]) -> int:
    """How many batches are read; they are the first of those written."""
    found = read_hot(path, batches[0].schema)
    assert found.good + found.dropped == path.stat().st_size
    assert all(read.equals(batch) for read, batch in zip(found.batches, batches, strict=False))
    assert len(found.batches) <= len(batches)
    return len(found.batches)


def test_every_batch_comes_back(tmp_path: Path) -> None:
    batches = [events(rows, rows, source=f"source{rows % 2}") for rows in (1, 2, 0, 1000, 7)]
    written(tmp_path / "a", batches)
    assert whole_prefix(tmp_path / "a", batches) == 5
    assert read_hot(tmp_path / "a", EVENTS).dropped == 0
    assert read_hot(tmp_path / "a", SAMPLES).batches == (), "another schema is none of ours"


def test_it_is_a_plain_arrow_stream(tmp_path: Path) -> None:
    batches = [samples(3), samples(5)]
    written(tmp_path / "a", batches)
    with (tmp_path / "a").open("rb") as file:
        assert list(pa.ipc.open_stream(file)) == batches


def test_a_slice_is_written_alone(tmp_path: Path) -> None:
    whole = events(1000)
    data, _ = written(tmp_path / "a", [whole.slice(500, 3)])
    assert read_hot(tmp_path / "a", EVENTS).batches[0].equals(whole.slice(500, 3))
    assert len(data) < whole.nbytes / 5


def test_a_growing_file_is_read_in_any_pieces(tmp_path: Path) -> None:
    batches = [events(rows, rows) for rows in (20, 1, 5, 300)]
    data, _ = written(tmp_path / "a", batches)
    chance = random.Random(7)
    path = tmp_path / "growing"
    for _ in range(20):
        reader = HotReader(path, EVENTS)
        for length in [*sorted(chance.choices(range(len(data) + 1), k=5)), len(data)]:
            path.write_bytes(data[:length])
            read, whole = reader.read(), read_hot(path, EVENTS)
            assert [batch.to_pylist() for batch in read.batches] == [
                batch.to_pylist() for batch in whole.batches
            ]
            assert (read.good, read.dropped) == (whole.good, whole.dropped)
            assert (read.span, read.events, read.damaged) == (
                whole.span,
                whole.events,
                whole.damaged,
            )
        assert read.rows == 326


def test_span_and_ios_of_a_hot_file(tmp_path: Path) -> None:
    batches = [events(20, 1), events(30, 2)]
    written(tmp_path / "a", batches)
    read, table = read_hot(tmp_path / "a", EVENTS), pa.Table.from_batches(batches)
    times = table["time_ns"].to_pylist()
    assert read.span == (min(times), max(times))
    ios: Counter[str] = Counter()
    for source, count in zip(table["source"].to_pylist(), table["count"].to_pylist(), strict=True):
        ios[source] += count
    assert read.events == ios


def test_a_file_that_became_shorter_is_read_again(tmp_path: Path) -> None:
    batches = [events(20, 1), events(30, 2)]
    data, ends = written(tmp_path / "a", batches)
    reader = HotReader(tmp_path / "a", EVENTS)
    assert reader.read().rows == 50
    (tmp_path / "a").write_bytes(data[: ends[0]])
    assert (reader.read().rows, reader.read().dropped) == (20, 0)
    (tmp_path / "a").write_bytes(b"noise")
    assert (reader.read().rows, reader.read().dropped) == (0, 5)


def test_an_append_that_is_damaged_is_not_taken(tmp_path: Path) -> None:
    batches = [events(20, 1), events(30, 2)]
    data, ends = written(tmp_path / "a", batches)
    path = tmp_path / "growing"
    path.write_bytes(data[: ends[0]])
    reader = HotReader(path, EVENTS)
    assert reader.read().rows == 20
    path.write_bytes(data[:-20] + b"X" * 20)
    read = reader.read()
    assert (read.rows, read.good, read.damaged) == (20, ends[0], True)
    path.write_bytes(data)
    assert reader.read().rows == 50


@pytest.mark.slow
def test_cut_at_every_place(tmp_path: Path) -> None:
    batches = [samples(2, start_ns=number) for number in range(2)]
    data, ends = written(tmp_path / "a", batches)
    path = tmp_path / "cut"
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        assert whole_prefix(path, batches) == sum(end <= length for end in ends), (
            f"{length} of {len(data)} bytes"
        )


@pytest.mark.slow
def test_a_bit_flipped_at_every_place(tmp_path: Path) -> None:
    batches = [samples(2, start_ns=number) for number in range(2)]
    data, ends = written(tmp_path / "a", batches)
    path = tmp_path / "flipped"
    chance = random.Random(3)
    before = pa.default_memory_pool().max_memory()
    for place in range(len(data)):
        path.write_bytes(
            data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
        )
        assert whole_prefix(path, batches) == sum(end <= place for end in ends), f"byte {place}"
    assert pa.default_memory_pool().max_memory() - before < 2**24, (
        "no length in a damaged file is believed"
    )


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_damage_leaves_a_beginning(tmp_path: Path, data: st.DataObject) -> None:
    path, batches = tmp_path / "noise", [events(rows, rows) for rows in (20, 1, 5)]
    (tmp_path / "a").unlink(missing_ok=True)
    good, ends = written(tmp_path / "a", batches)
    spoiled = bytearray(good)
    places = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(good) - 1), st.binary(min_size=1, max_size=64)), max_size=4
        )
    )
    for place, noise in places:
        spoiled[place : place + len(noise)] = noise
    path.write_bytes(
        bytes(spoiled[: data.draw(st.integers(0, len(spoiled)))])
        + data.draw(st.binary(max_size=200))
    )
    first = min((place for place, _ in places), default=len(good))
    assert whole_prefix(path, batches) >= sum(
        end <= min(first, path.stat().st_size)
        and bytes(spoiled[:end]) == good[:end]
        and path.read_bytes()[:end] == good[:end]
        for end in ends
    )


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4096, b"\xff" * 4096, b"ARROW1\0\0" * 100, os.urandom(5000)]
)
def test_noise_is_no_batch(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert read_hot(tmp_path / "a", EVENTS).batches == ()


def test_a_full_disk_keeps_what_was_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, batches = HotLog(tmp_path / "a", EVENTS), [events(10, 1), events(10, 2)]
    log.append(batches[0])
    really = os.write
    monkeypatch.setattr(
        os, "write", lambda file, data: really(file, data[:100]) if len(data) > 2000 else _full()
    )
    with pytest.raises(OSError, match="No space"):
        log.append(batches[1])
    assert log.broken
    assert whole_prefix(tmp_path / "a", batches) == 1


def _full() -> int:
    raise OSError(errno.ENOSPC, "No space left on device")
