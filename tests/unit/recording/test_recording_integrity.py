# SPDX-License-Identifier: Apache-2.0
"""Files of a recording that are damaged, cut, missing or unexpected: their time is lost and that is
told; nothing counts as zero."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.errors import ResultsError
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question, parse
from iolab.recordings.store import ledger
from iolab.recordings.store.base.layout import FACTS, LOSSES, MARKS, SEGMENTS, map_file, sealed_file
from iolab.recordings.store.base.lock import LOCK, read, take_lock, tell
from iolab.recordings.store.base.metadata import Facts, read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.verify import verify_recording
from iolab.recordings.store.segments.segments import MAP_NAMES
from iolab.recordings.store.write.retention import Retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples

SEGMENTS_MADE, LENGTH = 4, 10


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sealed segments of ten seconds, of a hundred rows each second; marks, losses."""
    path = tmp_path_factory.mktemp("original") / "r"
    with RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(SEGMENTS_MADE):
            start = START + number * LENGTH * SECOND
            writer.append_events(events(100 * LENGTH, number, start_ns=start, per_s=100))
            writer.append_samples(samples(LENGTH, start_ns=start))
            writer.seal()
        writer.mark("one", START, START + SECOND)
        writer.loss("unpaired", "block", START, START + SECOND, 3)
    return path


@pytest.fixture
def recording(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(original, tmp_path / "r"))


def flip(path: Path, place: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def totals(path: Path) -> list[int]:
    found = query(Recording(path), "io.ops", interval_ns=LENGTH * SECOND)
    assert isinstance(found, Series)
    return [0 if np.isnan(value) else round(value * LENGTH) for value in found.values]


HARMS: tuple[Callable[[Path], object], ...] = (
    cut,
    Path.unlink,
    flip,
    lambda path: flip(path, 0.98),
    lambda path: flip(path, 0.02),
)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("number", [1, 3, SEGMENTS_MADE])
def test_a_damaged_segment_is_a_loss_of_its_time(
    recording: Path, harm: Callable[[Path], object], number: int
) -> None:
    before = query(Recording(recording), "io.ops[device]")
    held = Recording(recording).segments()[number - 1].sources["block"]
    harm(sealed_file(recording, number, "events"))
    found = query(
        Recording(recording),
        "io.ops[process]",
        from_ns=START,
        until_ns=START + 40 * SECOND,
        interval_ns=SECOND,
    )
    assert isinstance(before, Stack)
    assert isinstance(found, Stack)
    lost = np.asarray(np.isnan(found.values).all(axis=0))
    assert set(np.flatnonzero(lost)) >= set(range((number - 1) * LENGTH, number * LENGTH - 1)), (
        "its columns are missing, not zero"
    )
    assert not lost[: (number - 1) * LENGTH].any()
    assert found.total == before.total - held
    assert found.losses is not None
    assert found.losses.damaged == held
    assert any(f"events/{number:06}.parquet" in note for note in found.notes)
    assert any(
        each["kind"] == "damaged" and each["count"] == held
        for each in as_data(parse("io.ops[process]"), found, 10)["losses"]
    )
    drawn = heat(
        Recording(recording),
        "queue",
        Question(span=(START, START + 40 * SECOND), interval_ns=SECOND),
    )
    assert drawn.gaps
    assert any("iolab verify" in note for note in drawn.assumptions)


@pytest.mark.parametrize("harm", HARMS)
def test_damaged_samples_are_a_loss_as_well(
    recording: Path, harm: Callable[[Path], object]
) -> None:
    harm(sealed_file(recording, 2, "samples"))
    found = query(
        Recording(recording),
        "io.ops",
        source="diskstats",
        from_ns=START,
        until_ns=START + 40 * SECOND,
        interval_ns=SECOND,
    )
    assert isinstance(found, Series)
    assert any("samples/000002.parquet" in note for note in found.notes)
    assert np.isnan(found.values[11:19]).all()


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", MAP_NAMES)
def test_what_a_damaged_default_map_says_is_asked_of_the_events(
    recording: Path, harm: Callable[[Path], object], name: str
) -> None:
    before, summary = (
        heat(Recording(recording), name[3:], Question(interval_ns=SECOND)),
        Recording(recording).summary(),
    )
    harm(map_file(recording, 2, name))
    after = heat(Recording(recording), name[3:], Question(interval_ns=SECOND))
    assert np.array_equal(before.count, after.count)
    assert any(f"{name}/000002.parquet" in note for note in after.assumptions)
    again = Recording(recording).summary()
    assert again.percentiles == summary.percentiles
    assert again.mean == summary.mean
    assert again.broken


@pytest.mark.parametrize("harm", HARMS)
def test_the_default_map_of_a_segment_that_is_gone_is_a_loss_of_its_time(
    recording: Path, harm: Callable[[Path], object]
) -> None:
    facts = read_facts(recording)
    facts.retention["bytes"] = sum(
        path.stat().st_size
        for kind in ("events", "samples")
        for path in (recording / kind).glob("00000[34].parquet")
    )
    facts.write(recording)
    assert Retention(recording).apply(facts, START) == 2
    before = totals(recording)
    assert len(before) == SEGMENTS_MADE
    harm(map_file(recording, 2, "io.latency"))
    found = query(Recording(recording), "io.ops", interval_ns=SECOND)
    assert isinstance(found, Series)
    assert np.isnan(found.values[11:19]).all()
    assert not np.isnan(found.values[[*range(10), *range(20, 40)]]).any(), "what others say stands"
    assert found.total == sum(before) - before[1]
    assert any("io.latency/000002.parquet" in note for note in found.notes)
    assert found.losses is not None
    assert found.losses.damaged == sum(before) - found.total
    assert found.covered_ns < 31 * SECOND or found.lost


def test_a_file_that_no_line_lists_is_told(recording: Path) -> None:
    shutil.copy(sealed_file(recording, 2, "events"), sealed_file(recording, 77, "events"))
    assert any(
        "events/000077.parquet: no line lists it" in note for note in Recording(recording).trouble()
    )


@pytest.mark.parametrize("name", [FACTS, LOCK, LOSSES, MARKS, SEGMENTS])
@pytest.mark.parametrize(
    "harm", [cut, Path.unlink, flip, lambda path: flip(path, 0.2), lambda path: flip(path, 0.9)]
)
def test_lists_are_believed_as_they_were_written_alone(
    recording: Path, name: str, harm: Callable[[Path], object]
) -> None:
    before = query(Recording(recording), "io.ops")
    harm(recording / name)
    try:
        damaged = Recording(recording)
        after = query(damaged, "io.ops")
    except ResultsError:
        return
    assert isinstance(before, Series)
    assert isinstance(after, Series)
    assert any(name in note for note in after.notes) or (after.total, after.losses) == (
        before.total,
        before.losses,
    )
    assert damaged.summary().broken


def lock_troubles(path: Path) -> list[str]:
    """What every answer, `show` and `verify` tell of the lock."""
    found = [note for note in Recording(path).trouble() if f"{LOCK}: " in note]
    answer = query(Recording(path), "io.ops")
    assert isinstance(answer, Series)
    assert [note for note in answer.notes if f"{LOCK}: " in note] == found
    assert [each.path for each in verify_recording(path).findings if each.path == LOCK] == [
        LOCK
    ] * len(found)
    assert [each.name for each, _ in Recording(path).summary().broken if each.name == LOCK] == [
        LOCK
    ] * len(found)
    return found


def unsign(path: Path) -> None:
    """`recording.json` as an older iolab wrote it."""
    data = json.loads((path / FACTS).read_text())
    del data["crc32"]
    (path / FACTS).write_text(json.dumps(data))


@pytest.mark.slow
def test_a_lock_that_is_cut_anywhere_is_told(recording: Path) -> None:
    until = START + 100 * SECOND
    with take_lock(recording) as lock:
        tell(lock, until, {SEGMENTS: 1})
    whole = (recording / LOCK).read_bytes()
    assert (lock_troubles(recording), Recording(recording).told_ns()) == ([], until)
    first, second = (len(b"\n".join(whole.split(b"\n")[:count])) for count in (1, 2))
    # the last byte ends a line whose checksum is there
    for size in (
        0,
        1,
        first,
        first + 1,
        first + 2,
        second - 1,
        second,
        second + 1,
        second + 2,
        second + 9,
        second + 10,
        len(whole) - 2,
    ):
        (recording / LOCK).write_bytes(whole[:size])
        assert len(lock_troubles(recording)) == 1, f"cut to {size} bytes"
        assert Recording(recording).told_ns() is None, (
            "neither its line nor its time of change is believed"
        )
    (recording / LOCK).write_bytes(whole[:-1])
    assert (lock_troubles(recording), Recording(recording).told_ns()) == ([], until)


def test_every_flipped_bit_of_a_lock_is_told(recording: Path) -> None:
    whole = (recording / LOCK).read_bytes()
    descriptor = os.open(recording / LOCK, os.O_RDWR)
    try:
        for place in range(len(whole) - 1):
            for bit in range(8):
                os.pwrite(descriptor, bytes([whole[place] ^ 1 << bit]), place)
                assert read(descriptor, True).is_damaged, f"bit {bit} of byte {place}"
            os.pwrite(descriptor, whole[place : place + 1], place)
        assert not read(descriptor, True).is_damaged
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    "text", [None, b"", b"4711\n", b"4711\n01700000000000000000\n", b"4711\n01700000000000000000"]
)
def test_a_lock_of_an_older_iolab_is_whole_without_a_checksum(
    recording: Path, text: bytes | None
) -> None:
    unsign(recording)
    (recording / LOCK).unlink()
    if text is not None:
        (recording / LOCK).write_bytes(text)
    assert lock_troubles(recording) == []
    # adding to it writes what this iolab writes, and finds nothing amiss
    RecordingWriter.reopen(recording, live=False).close()
    assert read_facts(recording).is_signed
    assert lock_troubles(recording) == []
    assert not any(LOCK in each["words"] for each in Recording(recording).losses())


@pytest.mark.parametrize("text", [b"47", b"4711\n0170000", b"47x1\n", b"4711\n0170000\n"])
def test_a_lock_of_an_older_iolab_that_is_cut_is_told(recording: Path, text: bytes) -> None:
    unsign(recording)
    (recording / LOCK).write_bytes(text)
    assert len(lock_troubles(recording)) == 1


def test_a_damaged_lock_is_told_after_a_repair_and_a_loss_once_written_anew(
    recording: Path,
) -> None:
    (recording / LOCK).unlink()
    map_file(recording, 2, MAP_NAMES[0]).unlink()
    assert verify_recording(recording, repair=True).findings
    assert len(lock_troubles(recording)) == 1, (
        "a repair doesn't know until when everything was there"
    )
    RecordingWriter.reopen(recording, live=False).close()
    assert lock_troubles(recording) == []
    assert any(
        LOCK in each["words"] for each in Recording(recording).losses() if each["kind"] == "damaged"
    )


def test_a_writer_that_dies_beginning_leaves_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []
    really = Facts.write

    def write(facts: Facts, directory: Path) -> None:
        really(facts, directory)
        seen.append(Recording(directory).trouble())

    monkeypatch.setattr(Facts, "write", write)
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ):
        pass
    unsign(tmp_path / "r")
    (tmp_path / "r" / LOCK).write_bytes(b"4711\n")
    RecordingWriter.reopen(tmp_path / "r").close()
    assert len(seen) >= 2
    assert set(seen) == {()}


def test_what_was_dropped_is_not_missing(recording: Path) -> None:
    with RecordingWriter.reopen(recording, live=False) as writer:
        writer.append_segment([events(50, 9)], label="run 1")
        assert writer.drop("run 1") == 1
    assert Recording(recording).trouble() == ()
    # an older iolab said nothing of what it dropped
    lines = [json.loads(line) for line in (recording / SEGMENTS).read_text().splitlines()]
    assert lines[-1]["dropped"]


def test_what_is_damaged_is_found_once_and_whole_files_are_read_once(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    really = ledger.digest

    def digest(path: Path) -> Any:
        read.append(path)
        return really(path)

    monkeypatch.setattr(ledger, "digest", digest)
    monkeypatch.setattr(ledger, "FRESH_NS", -(2**62))
    for _ in range(3):
        query(Recording(recording), "io.ops[process]")
    assert len(read) == SEGMENTS_MADE


def test_files_of_an_older_iolab_are_checked_by_their_pages(recording: Path) -> None:
    whole = query(Recording(recording), "io.ops[process]")
    (recording / SEGMENTS).unlink()
    (recording / LOCK).unlink()
    unsign(recording)
    again = query(Recording(recording), "io.ops[process]")
    assert isinstance(whole, Stack)
    assert isinstance(again, Stack)
    assert (again.total, again.notes) == (whole.total, whole.notes)
    flip(sealed_file(recording, 2, "events"), 0.3)
    after = query(Recording(recording), "io.ops[process]")
    assert isinstance(after, Stack)
    assert any("events/000002.parquet" in note for note in after.notes)


HOSTILE = [
    b"r*",
    b"r?",
    b"r[1]",
    b"{a,b}",
    b"~",
    b'it\'s "quoted"',
    b"new\nline",
    b"\xff\xfe",
    b"s3:",
    b"a\\b",
    b"$HOME",
    "ünï".encode(),
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes are Linux's")
def test_a_path_is_data(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    for neighbour in ("r1", "rr", "a", "b"):
        shutil.copytree(recording, tmp_path / neighbour)
    there = tmp_path / os.fsdecode(name)
    recording.rename(there)
    monkeypatch.chdir(tmp_path)
    for path in (there, Path(os.fsdecode(name))):
        for asked in ("io.ops", "io.ops[process]"):
            found, wanted = query(Recording(path), asked), query(Recording(tmp_path / "rr"), asked)
            assert isinstance(found, Series | Stack)
            assert isinstance(wanted, Series | Stack)
            assert (found.total, found.notes) == (wanted.total, wanted.notes)
