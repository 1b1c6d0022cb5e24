# SPDX-License-Identifier: Apache-2.0
"""A hot file that is damaged in its midst: what stood behind is lost, and that is told, not taken
for rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question
from iolab.recordings.store.base.layout import hot_file
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments.hot import HotLog, read_hot
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples

SECONDS = 20


def recorded(path: Path) -> tuple[RecordingWriter, FakeClock, Path]:
    """A hundred events in each of twenty seconds, all hot, its writer at work."""
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, system=clock
    )
    for second in range(SECONDS):
        writer.append_events(events(100, second, start_ns=START + second * SECOND, per_s=100))
        writer.append_samples(samples(1, start_ns=START + second * SECOND))
        clock.sleep(1)
        writer.tick(clock.realtime_ns())
    return writer, clock, hot_file(path, 1, "events")


def spoil(file: Path, place: float, noise: bytes = b"\xff" * 64) -> None:
    data = bytearray(file.read_bytes())
    at = int(place * len(data))
    data[at : at + len(noise)] = noise
    file.write_bytes(data)


def check(recording: Recording, known: int) -> None:
    """Its events are known for that many seconds, give or take the one that is damaged; then nobody
    knows."""
    found = query(
        recording, "io.ops", from_ns=START, until_ns=START + SECONDS * SECOND, interval_ns=SECOND
    )
    assert isinstance(found, Series)
    assert (found.values[: known - 1] > 0).all()
    assert np.isnan(found.values[known + 1 :]).all(), "what can't be read is not zero"
    assert {column for column, _ in found.lost} >= set(range(known + 1, SECONDS)), (
        "the strip shows it"
    )
    drawn = heat(
        recording, "latency", Question(span=(START, START + SECONDS * SECOND), interval_ns=SECOND)
    )
    [(first, last)] = drawn.gaps
    assert first <= known + 1
    assert last == SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("noise", [b"\xff" * 64, bytes(64), b"\x00\x01" * 4000])
def test_what_stands_behind_damage_is_a_loss(tmp_path: Path, noise: bytes) -> None:
    writer, _, file = recorded(tmp_path / "r")
    spoil(file, 0.5, noise)
    read = read_hot(file, EVENTS)
    assert read.damaged
    known = len(read.batches)
    assert 0 < known < SECONDS
    recording = Recording(tmp_path / "r")
    [loss] = recording.losses()
    assert (loss["kind"], loss["count"], loss["until_ns"]) == (
        "damaged",
        None,
        START + SECONDS * SECOND,
    )
    assert loss["from_ns"] == max(read.batches[-1].column("time_ns").to_pylist()) + 1
    check(recording, known)
    summary = recording.summary()
    assert summary.unknown == 1
    assert [path for path, _ in summary.broken] == [file]
    assert recording.holes("samples") == [], "counters were not harmed"
    # the one at work seals what is left, and says the same
    writer.close()
    [loss] = recording.losses()
    assert (loss["kind"], loss["count"]) == ("damaged", 100 * (SECONDS - known))
    check(Recording(tmp_path / "r"), known)
    assert Recording(tmp_path / "r").damaged_files() == []


def test_the_next_writer_says_so_as_well(tmp_path: Path) -> None:
    writer, clock, file = recorded(tmp_path / "r")
    writer._lock.close()
    spoil(file, 0.5)
    known = len(read_hot(file, EVENTS).batches)
    clock.sleep(10)
    RecordingWriter.reopen(tmp_path / "r", system=clock).close()
    recording = Recording(tmp_path / "r")
    check(recording, known)
    assert [loss["kind"] for loss in recording.losses()] == ["damaged", "gap"]
    assert recording.gaps() == [(START + SECONDS * SECOND, START + (SECONDS + 10) * SECOND)]


def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    writer, _, file = recorded(tmp_path / "r")
    told = file.stat().st_size
    writer.append_events(events(100, 99, start_ns=START + SECONDS * SECOND, per_s=100))
    whole = file.read_bytes()
    for cut in (1, 100, 2000):
        file.write_bytes(whole[:-cut])
        assert not read_hot(file, EVENTS).damaged
        assert Recording(tmp_path / "r").losses() == [], "it may be being written"
    file.write_bytes(whole[: told - 1])
    assert Recording(tmp_path / "r").losses(), "the writer has said that this was there"
    file.write_bytes(whole)
    writer.close()


def test_whole_appends_are_found_behind_large_ones_that_lack_few_values(tmp_path: Path) -> None:
    """What says which rows have a value is nearly all ones, as the beginning of a message is."""
    log, rows = HotLog(tmp_path / "a", EVENTS), 65_536
    for number in range(3):
        batch = events(100, number)
        chance = np.random.default_rng(number)
        columns = [batch.column(each.name).take(pa.array(np.arange(rows) % 100)) for each in EVENTS]
        columns = [
            pa.array(chance.integers(1, 10_000, rows), mask=np.arange(rows) == rows - 1).cast(
                each.type
            )
            if each.nullable and pa.types.is_integer(each.type)
            else column
            for each, column in zip(EVENTS, columns, strict=True)
        ]
        log.append(pa.RecordBatch.from_arrays(columns, schema=EVENTS))
        if number == 0:
            end = log.bytes
    log.close()
    data = bytearray((tmp_path / "a").read_bytes())
    data[end + 3000] ^= 0x55
    (tmp_path / "a").write_bytes(bytes(data))
    found = read_hot(tmp_path / "a", EVENTS)
    assert (sum(batch.num_rows for batch in found.batches), found.damaged) == (rows, True)
