# SPDX-License-Identifier: Apache-2.0
"""The cost of a push does not grow with the commits before it: files that it opens, snapshots and
manifests of a table. What pushes remember of a table is what the table has."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO

from iolab.base.errors import ResultsError
from iolab.recordings.archive import Archive, compact, expire, push, store, tables, transaction
from iolab.recordings.archive.upload.batch import Batch
from iolab.recordings.archive.upload.present import PresentSegments
from iolab.recordings.store.base.layout import KINDS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import append, record
from support.recordings import rows_of

pytestmark = pytest.mark.slow
DAY_S = 86_400


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Files of the store that are opened to read, to write, and deleted, by kind."""
    calls: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("new_input", "new_output", "delete"):
            method = getattr(PyArrowFileIO, name)

            def count(self: Any, location: Any, method: Any = method, name: str = name) -> Any:
                calls[name] += 1
                return method(self, location)

            patch.setattr(PyArrowFileIO, name, count)
        yield calls


def grow(path: Path, number: int) -> None:
    """Seal one more segment."""
    with RecordingWriter.reopen(path, live=False) as writer:
        append(writer, number, seed=3)


def test_a_push_opens_as_many_files_after_many_commits_as_after_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One push a segment. Manifests are merged again and again meanwhile, snapshots are left out."""
    monkeypatch.setattr(transaction, "SNAPSHOTS", 12)
    merge = {"commit.manifest.min-count-to-merge": "5"}
    monkeypatch.setattr(store, "PROPERTIES", {**store.PROPERTIES, **merge})
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=1)
    present = PresentSegments(archive)
    opened: list[Counter[str]] = []
    for number in range(4, 40):
        grow(tmp_path / "rec", number)
        with counted() as calls:
            push(tmp_path / "rec", archive, present=present)
        opened.append(calls)
    early, late = opened[6:18], opened[-12:]
    for name in ("new_input", "new_output"):
        assert max(calls[name] for calls in late) <= max(calls[name] for calls in early), name
    for table in (tables.EVENTS, tables.SEGMENTS, tables.RECORDINGS):
        iceberg = archive.table(table)
        assert len(iceberg.snapshots()) <= 12
        assert len(iceberg.current_snapshot().manifests(iceberg.io)) <= 6
    recording = Recording(tmp_path / "rec")
    for kind, table in zip(KINDS, (tables.EVENTS, tables.SAMPLES), strict=True):
        expected = sum(segment.facts["rows"] for segment in recording.snapshot(kind)[0])
        assert archive.read(table).num_rows == expected


def test_an_older_archive_gets_properties_that_its_tables_lack(tmp_path: Path) -> None:
    """Once, and not those that a user set otherwise."""
    url = str(tmp_path / "archive")
    iceberg = Archive.open(url, create=True).table(tables.EVENTS)
    codec = "write.parquet.compression-codec"
    with iceberg.transaction() as change:
        change.remove_properties("commit.manifest-merge.enabled")
        change.set_properties({codec: "snappy"})
    properties = Archive.open(url, create=True).table(tables.EVENTS).properties
    assert properties == {**store.PROPERTIES, codec: "snappy"}
    place = Archive.open(url, create=True).table(tables.EVENTS).metadata_location
    assert Archive.open(url, create=True).table(tables.EVENTS).metadata_location == place


def test_a_push_of_many_groups_commits_once_to_each_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(push.__globals__, "GROUP_SEGMENTS", 1)
    record(tmp_path / "rec", segments=6)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    pushed = push(tmp_path / "rec", archive)
    assert pushed.files == 12
    assert len(archive.table(tables.EVENTS).snapshots()) == 1
    # of six segments and two sources
    assert archive.size()["events"][1] == 12
    # I/Os and samples
    assert len(archive.table(tables.SEGMENTS).snapshots()) == 2


@pytest.mark.parametrize("is_commit", [False, True])
def test_data_files_of_a_failed_push_are_deleted_unless_their_commit_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_commit: bool
) -> None:
    monkeypatch.setitem(push.__globals__, "GROUP_SEGMENTS", 1)
    record(tmp_path / "rec", segments=4)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    method = "commit" if is_commit else "write_file"
    real, calls = getattr(Archive, method), 0

    def fail(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == (1 if is_commit else 6):
            raise ResultsError("the store is full")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Archive, method, fail)
        with pytest.raises(ResultsError, match="full"):
            push(tmp_path / "rec", archive)
    left = {file.name.split("-")[0] for file in Path(archive.url).rglob("data/*.parquet")}
    assert left == ({"events"} if is_commit else set())
    push(tmp_path / "rec", archive)
    recorded = Recording(tmp_path / "rec").snapshot("events")[0]
    assert archive.read(tables.EVENTS).num_rows == sum(item.facts["rows"] for item in recorded)


STEPS = st.lists(
    st.sampled_from(("own", "other", "copy", "uncommitted", "unlisted", "compact", "read")),
    min_size=1,
    max_size=8,
)


@settings(max_examples=12, deadline=None)
@given(steps=STEPS, snapshots=st.sampled_from((3, 100)))
def test_what_is_followed_is_what_the_tables_have(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], snapshots: int
) -> None:
    """Pushes of this process, of another host, and of a copy of the recording; pushes that were killed;
    and compactions, in any order."""
    folder = tmp_path_factory.mktemp("follow")
    archive = Archive.open(str(folder / "archive"), create=True)
    second = Archive.open(archive.url)
    record(folder / "rec", segments=1)
    record(folder / "other", segments=1, host="db2")
    key = push(folder / "rec", archive).recording
    present = PresentSegments(archive)
    number = 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "SNAPSHOTS", snapshots)
        for step in steps:
            number += 1
            if step == "compact":
                compact(second)
            elif step == "read":
                present.read(tables.EVENTS, "db1", key)
            elif step == "other":
                grow(folder / "other", number)
                push(folder / "other", second)
            else:
                grow(folder / "rec", number)
                if step == "own":
                    push(folder / "rec", archive, present=present)
                elif step == "copy":
                    push(folder / "rec", second)
                else:
                    name = "_add" if step == "uncommitted" else "_list"
                    with pytest.MonkeyPatch.context() as kill:
                        kill.setattr(Batch, name, _interrupt)
                        with pytest.raises(KeyboardInterrupt):
                            push(folder / "rec", second)
            for table in (tables.EVENTS, tables.SEGMENTS, tables.COARSE_MAPS):
                followed = present.read(table, "db1", key)
                assert followed == PresentSegments(Archive.open(archive.url)).read(
                    table, "db1", key
                )
    push(folder / "rec", archive, present=present)
    recorded = Recording(folder / "rec").snapshot("events")[0]
    where = store.expressions().EqualTo("recording", key)
    assert archive.read(tables.EVENTS, where).num_rows == sum(
        segment.facts["rows"] for segment in recorded
    )


def _interrupt(*arguments: Any) -> None:
    raise KeyboardInterrupt


def test_a_table_that_was_rolled_back_is_read_again(tmp_path: Path) -> None:
    """By another engine: what was remembered is of no snapshot any more."""
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=2)
    present = PresentSegments(archive)
    key = push(tmp_path / "rec", archive, present=present).recording
    before = archive.table(tables.EVENTS).current_snapshot()
    grow(tmp_path / "rec", 4)
    push(tmp_path / "rec", archive, present=present)
    whole = present.read(tables.EVENTS, "db1", key)
    Archive.open(archive.url).table(tables.EVENTS).manage_snapshots().set_current_snapshot(
        before.snapshot_id
    ).commit()
    assert len(present.read(tables.EVENTS, "db1", key)) == len(whole) - 1


def test_files_of_no_snapshot_are_deleted_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of snapshots that commits left out, and of pushes that were killed; not of the current one."""
    monkeypatch.setattr(transaction, "SNAPSHOTS", 4)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=1)
    for number in range(4, 10):
        grow(tmp_path / "rec", number)
        push(tmp_path / "rec", archive)
    compact(archive)
    rows = rows_of(archive.read(tables.EVENTS))
    killed = Path(archive.url) / "tables/iolab/events/data/events-killed.parquet"
    torn = Path(archive.url) / "tables/iolab/events/metadata/snap-1-0-torn.avro"
    foreign = killed.with_name("notes.txt")
    for file in (killed, torn, foreign):
        file.write_bytes(b"torn")
    events = Path(archive.url) / "tables/iolab/events"
    lists = len(list(events.rglob("snap-*.avro")))
    assert lists > 5
    # a day has not passed
    expire(archive, age_ns=-(10**12))
    assert killed.exists()
    old = time.time() - 2 * DAY_S
    for file in Path(archive.url).rglob("*.*"):
        os.utime(file, (old, old))
    os.utime(torn)
    done = expire(archive)
    assert done["events"].failed == 0
    assert not killed.exists()
    assert torn.exists()
    assert foreign.exists()
    # of the current snapshot, and the torn one
    assert len(list(events.rglob("snap-*.avro"))) == 2
    assert len(list(events.rglob("data/*.parquet"))) == archive.size()["events"][1]
    assert rows_of(Archive.open(archive.url).read(tables.EVENTS)) == rows


def test_files_of_a_snapshot_that_was_left_out_today_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that began before a compaction still reads the old data files."""
    monkeypatch.setattr(transaction, "SNAPSHOTS", 1)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=3)
    push(tmp_path / "rec", archive)
    before = set(Path(archive.url).rglob("data/events-*.parquet"))
    grow(tmp_path / "rec", 4)
    push(tmp_path / "rec", archive)
    compact(archive)
    old = time.time() - 2 * DAY_S
    for file in before:
        os.utime(file, (old, old))
    expire(archive)
    assert all(file.exists() for file in before)


def test_data_files_with_an_address_of_another_form_stay(tmp_path: Path) -> None:
    """Engines write `s3a://` or a path where others write `s3://` or `file://`."""
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", archive)
    iceberg = archive.table(tables.EVENTS)
    [first, *_] = [task.file.file_path for task in iceberg.scan().plan_files()]
    copy = Path(first.removeprefix("file://")).with_name("copy.parquet")
    copy.write_bytes(Path(first.removeprefix("file://")).read_bytes())
    iceberg.add_files([str(copy)])
    old = time.time() - 2 * DAY_S
    os.utime(copy, (old, old))
    expire(archive)
    assert copy.exists()
