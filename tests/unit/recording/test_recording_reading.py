# SPDX-License-Identifier: Apache-2.0
"""Reading a recording that grows, that is damaged, that is of tomorrow, or on a disk that is full."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iolab.base.errors import IolabError, ResultsError
from iolab.recordings.store.base import layout
from iolab.recordings.store.base.layout import hot_numbers
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, rows_of, samples, unsealed


def create(path: Path) -> RecordingWriter:
    return RecordingWriter.create(path, host="", clock="realtime", origin={"kind": "record"})


@pytest.mark.slow
def test_followed_while_it_is_written_and_sealed(tmp_path: Path) -> None:
    """Every look sees whole batches, never fewer than the look before, none twice."""
    path, seen, done = tmp_path / "r", [], threading.Event()
    writer = create(path)
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            recording = Recording(path)
            while not done.is_set():
                sealed, hot = recording.snapshot()
                seen.append(
                    sum(each.facts["rows"] for each in sealed)
                    + (hot.table().num_rows if hot is not None else 0)
                )
                by_segment = sum(sum(each.sources.values()) for each in recording.segments())
                assert by_segment >= 0
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    for number in range(60):
        writer.append_events(events(10, number))
        if number % 3 == 0:
            writer.seal()
    done.set()
    thread.join()
    assert not failures
    assert seen == sorted(seen)
    assert all(rows % 10 == 0 and rows <= 600 for rows in seen)
    assert Recording(path).summary().rows == 600
    writer.close()


def test_a_hot_file_that_vanishes_is_found_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = create(tmp_path / "r")
    writer.append_events(events(10))
    recording = Recording(tmp_path / "r")
    from iolab.recordings.store import catalogue as module

    sealed: list[bool] = []

    def listing(*args: Any) -> list[int]:
        found = hot_numbers(*args)
        if not sealed:
            sealed.append(True)
            writer.seal()
        return found

    monkeypatch.setattr(module, "hot_numbers", listing)
    assert [(each.number, each.kind, dict(each.sources)) for each in recording.segments()] == [
        (1, "sealed", {"block": sum(events(10).column("count").to_pylist())})
    ]
    writer.close()


def test_facts_without_the_lines_of_segments(tmp_path: Path) -> None:
    """`segments.jsonl` saves time and nothing else: removed or spoiled, the files themselves tell."""
    with create(tmp_path / "r") as writer:
        for seed in range(3):
            writer.append_events(events(20, seed))
            writer.append_samples(samples(2))
            writer.seal()
    recording = Recording(tmp_path / "r")

    def found() -> list[tuple[object, ...]]:
        return [
            (each.number, each.first_ns, each.last_ns, dict(each.sources), each.facts["names"])
            for each in recording.segments()
        ]

    told = found()
    lines = tmp_path / "r" / layout.SEGMENTS
    text = lines.read_text()
    for spoiled in (
        "",
        text[:-30],
        text.replace('"rows":20', '"rows":21'),
        "[1]\n{}\n\xff\n" + text,
    ):
        lines.write_text(spoiled)
        assert found() == told
        assert all(each.facts["rows"] == 20 for each in recording.segments())
        assert len(recording.sample_segments()) == 3


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    place=st.floats(0, 1),
    noise=st.binary(min_size=1, max_size=40),
    cut=st.floats(0, 1),
    name=st.sampled_from(
        [
            "events/000001.parquet",
            "histograms/1s/io.latency/000001.parquet",
            "recording.json",
            "segments.jsonl",
            "marks.jsonl",
            "losses/losses.jsonl",
            "samples/000001.parquet",
        ]
    ),
)
def test_any_damaged_file_is_told_or_costs_itself(
    tmp_path: Path, place: float, noise: bytes, cut: float, name: str
) -> None:
    path = tmp_path / "r"
    if not path.exists():
        with create(path) as writer:
            writer.append_events(events(50))
            writer.append_samples(samples(5))
            writer.mark("a", START, START + 1)
            writer.loss("overrun", "block", START, START + 1, 1)
    file = path / name
    good = file.read_bytes()
    spoiled = bytearray(good)
    at = int(place * (len(good) - 1))
    spoiled[at : at + len(noise)] = noise
    file.write_bytes(bytes(spoiled[: max(1, int(cut * len(spoiled)))] if cut < 0.5 else spoiled))
    words = ""
    try:
        recording = Recording(path)
        recording.summary()
        recording.segments()
        recording.snapshot("samples")
    except IolabError as error:
        words = str(error)
    finally:
        file.write_bytes(good)
    assert "\n" not in words
    assert Recording(path).summary().rows == 50


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    with create(tmp_path / "r") as writer:
        writer.append_events(events(10))
        writer.seal()
        writer.append_events(events(10, 2))
    (tmp_path / "r/events/000001.parquet").write_bytes(b"PAR1 and no more")
    recording = Recording(tmp_path / "r")
    [(path, reason)] = recording.damaged_files()
    assert path.name == "000001.parquet"
    assert reason
    assert [each.number for each in recording.segments()] == [2]
    summary = recording.summary()
    assert (summary.rows, len(summary.broken)) == (10, 1)


WHOLE = {
    "kind": "recording",
    "schema": 1,
    "host": "",
    "clock": "trace",
    "origin": {},
    "sources": {},
    "retention": {},
    "sessions": [],
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("[]", "doesn't say"),
        ("[" * 100_000, "not JSON"),
        (json.dumps(WHOLE | {"kind": "results"}), "doesn't say"),
        (json.dumps(WHOLE | {"schema": "1"}), "doesn't say"),
        (json.dumps(WHOLE | {"sessions": [1]}), "sessions is missing"),
        (json.dumps(WHOLE | {"host": None}), "host is missing"),
        (json.dumps(WHOLE | {"dropped": 3}), "dropped"),
        (json.dumps(WHOLE | {"sources": {"block": 5}}), "sources is missing or of another kind"),
        (json.dumps(WHOLE | {"sources": {"block": ["format"]}}), "sources"),
        (json.dumps(WHOLE | {"clock": "sundial"}), "clock"),
        (json.dumps(WHOLE | {"sessions": [{"from_ns": "x"}]}), "sessions"),
        (json.dumps(WHOLE | {"sessions": [{"until_ns": 2**63}]}), "sessions"),
        (json.dumps(WHOLE | {"sessions": [{"clock_offset_ns": 1.5}]}), "sessions"),
        (json.dumps(WHOLE | {"retention": {"bytes": "x"}}), "retention"),
        (json.dumps(WHOLE | {"dropped": {"through": "x"}}), "dropped"),
        (json.dumps(WHOLE | {"dropped": {"through": -1}}), "dropped"),
        (json.dumps(WHOLE | {"dropped": {"events": {"a": None}}}), "dropped"),
        (json.dumps(WHOLE | {"origin": {"files": 5}}), "origin"),
        (json.dumps(WHOLE | {"origin": 1, "host": 2}), "host, origin are missing"),
        (
            json.dumps(WHOLE | {"schema": 99, "iolab": "7.0"}),
            "has schema 99, this iolab knows up to 1; it was written by iolab 7.0",
        ),
    ],
)
def test_words_for_what_is_no_recording(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "recording.json").write_text(content)
    with pytest.raises(ResultsError, match=words) as caught:
        Recording(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ResultsError, match=words):
        RecordingWriter.reopen(tmp_path)


def test_what_is_not_told_is_nothing(tmp_path: Path) -> None:
    facts = WHOLE | {"sessions": [{}], "dropped": {"through": 3}, "host": "\udc80"}
    (tmp_path / "recording.json").write_text(json.dumps(facts))
    found = Recording(tmp_path).facts
    assert (found.sessions, found.dropped_through, found.host) == (
        [{"from_ns": None, "until_ns": None}],
        3,
        "\\udc80",
    )
    assert found.dropped == {
        "through": 3,
        "until_ns": None,
        "segments": 0,
        "events": {},
        "bytes": 0,
    }


def test_nothing_is_written_by_reading(tmp_path: Path) -> None:
    writer = create(tmp_path / "r")
    writer.append_events(events(10))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "r").rglob("*")}
    recording = Recording(tmp_path / "r")
    recording.summary(), recording.snapshot(), recording.gaps(), recording.processes()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "r").rglob("*")} == before
    writer.close()


@pytest.mark.parametrize("failing", ["fsync", "replace", "write"])
def test_a_disk_that_refuses_to_seal_loses_nothing(tmp_path: Path, failing: str) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = create(tmp_path / "r")
    writer.append_events(events(10))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            *{
                "fsync": (os, "fsync"),
                "replace": (os, "replace"),
                "write": (pq.ParquetWriter, "write_table"),
            }[failing],
            full,
        )
        with pytest.raises(ResultsError, match="No space left on device; free space there"):
            writer.seal()
        recording = Recording(tmp_path / "r")
        assert rows_of(unsealed(recording)) == rows_of(events(10))
        assert not list((tmp_path / "r").rglob(".*.tmp"))
        writer.append_events(events(10, 2))
        assert unsealed(recording).num_rows == 20
    writer.seal()
    assert recording.summary().rows == 20
    assert unsealed(recording).num_rows == 0
    writer.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB in memory."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "iolab-test", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.loops
def test_a_disk_that_fills_up(small_disk: Path) -> None:
    writer, kept, refused = create(small_disk / "r"), 0, []
    for seed in range(60):
        try:
            writer.append_events(events(1000, seed))
            kept += 1
        except ResultsError as error:
            refused.append(str(error))
        try:
            writer.tick(START + seed * 61 * SECOND)
        except ResultsError as error:
            refused.append(str(error))
    assert refused
    assert all(
        "No space left on device; free space there; what was recorded so far is kept" in words
        for words in refused
    )
    assert kept > 10
    recording = Recording(small_disk / "r")
    assert recording.summary().rows == 1000 * kept
    # what takes the room goes: then all is sealed, and nothing was lost
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    writer.close()
    assert recording.summary().rows == 1000 * kept
    assert unsealed(recording).num_rows == 0
