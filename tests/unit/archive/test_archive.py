# SPDX-License-Identifier: Apache-2.0
"""Recordings pushed into Iceberg tables, and fetched again: each row exactly once, whatever was
killed, damaged or pushed at the same time."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import ResultsError, UsageError
from iolab.recordings.archive import Archive, choose, fetch, push, tables
from iolab.recordings.archive.upload.batch import Batch
from iolab.recordings.archive.upload.rows import is_sorted
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.base.layout import KINDS, Kind, sealed_file
from iolab.recordings.store.base.metadata import Begun, Facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import readings
from support.depth import depth
from support.recordings import SECOND, START, events, rows_of

pytestmark = pytest.mark.slow
SEGMENT_S = 5


def record(path: Path, segments: int = 3, host: str = "db1", *, unsealed: bool = False) -> None:
    """A recording of so many segments of 5 s, and perhaps rows that are not sealed."""
    writer = RecordingWriter.create(
        path,
        host=host,
        clock="realtime",
        origin={"kind": "import", "files": [path.name]},
        sources={"block": {}, "diskstats": {}},
        live=False,
    )
    with writer:
        for number in range(segments):
            append(writer, number)
            writer.seal()
        writer.loss("overrun", "block", START, START + SECOND, 7, "the ring was full")
        writer.mark("upgrade", START + SECOND, START + 3 * SECOND, facts={"by": "root"})


def append(writer: RecordingWriter, number: int) -> None:
    """Events and samples of the 5 s of a segment."""
    start_ns = START + number * SEGMENT_S * SECOND
    writer.append_events(events(500, number, start_ns=start_ns, per_s=100))
    writer.append_samples(readings(SEGMENT_S, number, start_ns))


def rows(path: Path, kind: Kind) -> list[tuple[object, ...]]:
    """All rows of a recording."""
    sealed, hot = Recording(path).snapshot(kind)
    parts = [pq.read_table(segment.path) for segment in sealed]
    return rows_of(pa.concat_tables([*parts, *([hot.table()] if hot is not None else [])]))


def archived(archive: Archive, table: tables.Table) -> int:
    """Rows of a table."""
    return int(archive.read(table).num_rows)


def ask(path: Path, statistic: str) -> Any:
    """An answer as JSON has it."""
    asked = parse(statistic)
    return as_data(asked, query(Recording(path), asked), None)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive.open(str(tmp_path / "archive"), create=True)


def test_what_is_fetched_equals_what_was_pushed(tmp_path: Path, archive: Archive) -> None:
    record(tmp_path / "rec")
    pushed = push(tmp_path / "rec", archive)
    assert (pushed.files, pushed.present, pushed.behind, pushed.refused) == (6, 0, 0, {})
    fetch(archive, tmp_path / "back", choose(archive))
    for kind in KINDS:
        assert rows(tmp_path / "back", kind) == rows(tmp_path / "rec", kind)
    before, after = Recording(tmp_path / "rec"), Recording(tmp_path / "back")
    assert after.losses() == before.losses()
    assert after.marks() == before.marks()
    assert after.facts.host == "db1"
    assert after.facts.sources.keys() == before.facts.sources.keys()


@pytest.mark.parametrize(
    "statistic",
    [
        "io.ops",
        "io.ops[latency]",
        "io.bytes[op=write][process]",
        "io.ops[latency>=1ms][device]",
        "io.ops[offset]",
        "io.utilization",
    ],
)
def test_questions_have_the_same_answer_after_a_fetch(
    tmp_path: Path, archive: Archive, statistic: str
) -> None:
    record(tmp_path / "rec")
    push(tmp_path / "rec", archive)
    fetch(archive, tmp_path / "back", choose(archive))
    answer = ask(tmp_path / "rec", statistic)
    assert answer.get("mean") or sum(answer["count"]) > 0
    assert ask(tmp_path / "back", statistic) == answer


def test_sessions_and_the_gap_between_them_arrive(tmp_path: Path, archive: Archive) -> None:
    def begun(second: int) -> Begun:
        return Begun(START + second * SECOND, second * SECOND, START + second * SECOND)

    path = tmp_path / "rec"
    facts = Facts("db1", "realtime", {"kind": "record"})
    with RecordingWriter.begin(path, facts, begun=begun(0)) as writer:
        append(writer, 0)
        writer.tick(START + 5 * SECOND)
    with RecordingWriter.reopen(path, begun=begun(10)) as writer:
        append(writer, 2)
        writer.tick(START + 15 * SECOND)
    push(path, archive)
    fetch(archive, tmp_path / "back", choose(archive))
    gaps = [gap.span for gap in Recording(path).unrecorded_spans()]
    assert len(gaps) == 1
    assert [gap.span for gap in Recording(tmp_path / "back").unrecorded_spans()] == gaps


def test_a_second_push_adds_what_is_new_only(tmp_path: Path, archive: Archive) -> None:
    record(tmp_path / "rec", segments=2)
    push(tmp_path / "rec", archive)
    assert push(tmp_path / "rec", archive).files == 0
    with RecordingWriter.reopen(tmp_path / "rec", live=False) as writer:
        append(writer, 2)
        writer.seal()
        append(writer, 3)
        pushed = push(tmp_path / "rec", archive)
        assert (pushed.files, pushed.present, pushed.events > 0) == (2, 4, True)
        # 500 events and 20 samples are hot
        assert pushed.behind == 520
        kinds = archive.read(tables.COVERAGE).column("kind").to_pylist()
        assert kinds.count("behind") == 2
        assert choose(archive).until_ns == START + 3 * SEGMENT_S * SECOND
    push(tmp_path / "rec", archive)
    assert archived(archive, tables.EVENTS) == 2000
    assert "behind" not in archive.read(tables.COVERAGE).column("kind").to_pylist()


def test_what_is_not_archived_yet_is_a_gap_of_the_fetched_recording(
    tmp_path: Path, archive: Archive
) -> None:
    record(tmp_path / "rec", segments=1)
    with RecordingWriter.reopen(tmp_path / "rec", live=False) as writer:
        append(writer, 1)
        push(tmp_path / "rec", archive)
    until_ns = START + 10 * SECOND
    fetch(archive, tmp_path / "back", choose(archive), until_ns=until_ns)
    spans = {gap.span for gap in Recording(tmp_path / "back").unrecorded_spans()}
    assert spans == {(START + SEGMENT_S * SECOND, until_ns)}


class _Kill(BaseException):
    pass


@pytest.mark.parametrize("step", range(5))
def test_a_push_killed_between_two_commits_is_completed_without_doubles(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    record(tmp_path / "rec")
    commits = 0
    commit = Archive.commit

    def killed(self: Archive, table: tables.Table, change: Any) -> None:
        nonlocal commits
        if commits == step:
            raise _Kill
        commits += 1
        commit(self, table, change)

    monkeypatch.setattr(Archive, "commit", killed)
    with pytest.raises(_Kill):
        push(tmp_path / "rec", archive)
    monkeypatch.setattr(Archive, "commit", commit)
    push(tmp_path / "rec", archive)
    assert archived(archive, tables.EVENTS) == 1500
    assert archived(archive, tables.SAMPLES) == 60
    fetch(archive, tmp_path / "back", choose(archive))
    assert rows(tmp_path / "back", "events") == rows(tmp_path / "rec", "events")
    for table in (tables.SEGMENT_MAPS, tables.COARSE_MAPS):
        counts = archive.read(table).to_pylist()
        by_map = {
            name: sum(row["count"] for row in counts if row["map"] == name)
            for name in ("io.latency", "io.offset", "io.size")
        }
        assert set(by_map.values()) == {choose(archive).events}


def test_files_ascend_by_the_order_of_their_table(tmp_path: Path) -> None:
    """However rows of a segment lie, and for several segments in one file."""
    record(tmp_path / "rec", segments=3)
    with RecordingWriter.reopen(tmp_path / "rec", live=False) as writer:
        batch = events(400, 9, start_ns=START - 60 * SECOND, per_s=40)
        writer.append_segment([batch.take(pa.array(range(399, -1, -1)))])
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    push(tmp_path / "rec", archive)
    for table in (tables.EVENTS, tables.SAMPLES, tables.SEGMENT_MAPS, tables.COARSE_MAPS):
        files = list(Path(archive.url).rglob(f"{table.name}-*.parquet"))
        assert files
        for file in files:
            rows = pq.read_table(file, columns=list(table.order)).to_pylist()
            places = [tuple(row[name] for name in table.order) for row in rows]
            assert places == sorted(places)
    assert is_sorted(pa.table({"a": ["x", "x", "y"], "b": [1, 2, 1]}), ("a", "b"))
    assert not is_sorted(pa.table({"a": ["x", "x", "y"], "b": [2, 1, 3]}), ("a", "b"))
    assert not is_sorted(pa.table({"a": ["y", "x"], "b": [1, 2]}), ("a", "b"))
    assert is_sorted(pa.table({"a": pa.array([], pa.string())}), ("a",))


PUSH = (
    "import sys; from pathlib import Path; from iolab.recordings.archive import Archive, push;"
    " push(Path(sys.argv[1]), Archive.open(sys.argv[2], create=True))"
)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.9, 1.3, 1.7])
def test_a_pusher_killed_anywhere_leaves_each_row_once(tmp_path: Path, delay: float) -> None:
    record(tmp_path / "rec", segments=6)
    url = str(tmp_path / "archive")
    process = subprocess.Popen([sys.executable, "-c", PUSH, tmp_path / "rec", url])
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    archive = Archive.open(url, create=True)
    push(tmp_path / "rec", archive)
    assert archived(archive, tables.EVENTS) == 3000
    assert archived(archive, tables.SAMPLES) == 120


def test_one_process_pushes_a_recording_at_a_time(tmp_path: Path, archive: Archive) -> None:
    record(tmp_path / "rec", segments=1)
    import fcntl

    other = os.open(tmp_path / "rec", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(ResultsError, match="pushed by another process"):
        push(tmp_path / "rec", archive)
    threading.Timer(0.3, os.close, [other]).start()
    assert push(tmp_path / "rec", archive, wait_s=60).files == 2


def test_another_writer_of_the_table_costs_a_retry(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that meets a newer version of the table is applied again to that one."""
    record(tmp_path / "a", host="a")
    record(tmp_path / "b", host="b")
    second = Archive.open(archive.url)
    add, is_first = Batch._add, True

    def interleaved(*arguments: Any) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            push(tmp_path / "b", second)
        add(*arguments)

    monkeypatch.setattr(Batch, "_add", interleaved)
    push(tmp_path / "a", archive)
    assert {each.host: each.segments for each in archive.recordings()} == {"a": 3, "b": 3}
    assert archived(archive, tables.EVENTS) == 3000


def test_a_damaged_segment_is_refused_with_its_reason_and_its_time(
    tmp_path: Path, archive: Archive
) -> None:
    record(tmp_path / "rec")
    file = sealed_file(tmp_path / "rec", 2, "events")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    pushed = push(tmp_path / "rec", archive)
    assert list(pushed.refused) == ["events/000002"]
    damaged = [row for row in archive.read(tables.COVERAGE).to_pylist() if row["kind"] == "damaged"]
    assert len(damaged) == 1
    assert damaged[0]["from_ns"] == START + SEGMENT_S * SECOND
    assert archived(archive, tables.EVENTS) == 1000


def test_a_span_of_one_source_is_fetched(tmp_path: Path, archive: Archive) -> None:
    record(tmp_path / "rec")
    push(tmp_path / "rec", archive)
    fetched = fetch(
        archive,
        tmp_path / "back",
        choose(archive),
        from_ns=START + 2 * SECOND,
        until_ns=START + 7 * SECOND,
        sources=["block"],
    )
    expected = [
        row
        for row in rows(tmp_path / "rec", "events")
        if START + 2 * SECOND <= row[1] < START + 7 * SECOND  # type: ignore[operator]
    ]
    assert rows(tmp_path / "back", "events") == expected
    assert fetched.samples == 0
    # the loss is before the span, the mark is partly within
    assert Recording(tmp_path / "back").losses() == []
    assert [mark["label"] for mark in Recording(tmp_path / "back").marks()] == ["upgrade"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({}, "several recordings match"),
        ({"host": "db3"}, "no recording matches"),
        ({"key": "zz"}, "no recording matches"),
    ],
)
def test_a_fetch_needs_one_recording(
    tmp_path: Path, archive: Archive, choice: Mapping[str, str], message: str
) -> None:
    for host in ("db1", "db2"):
        record(tmp_path / host, segments=1, host=host)
        push(tmp_path / host, archive)
    with pytest.raises(UsageError, match=message) as error:
        choose(archive, **choice)
    assert "db1" in str(error.value)
    assert choose(archive, host="db2").host == "db2"


@pytest.mark.parametrize(
    "options",
    [{"from_ns": START + 9, "until_ns": START + 9}, {"sources": ["nfs"]}],
)
def test_a_fetch_that_can_hold_nothing_creates_nothing(
    tmp_path: Path, archive: Archive, options: dict[str, Any]
) -> None:
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", archive)
    with pytest.raises(UsageError):
        fetch(archive, tmp_path / "back", choose(archive), **options)
    assert not (tmp_path / "back").exists()


def test_a_full_directory_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    for create in (False, True):
        with pytest.raises(ResultsError, match=r"no archive|not an archive"):
            Archive.open(str(tmp_path / "full"), create=create)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]
    with pytest.raises(ResultsError, match="not an archive"):
        Archive.open(str(tmp_path / "absent"))
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    "url", ["s3://bucket/x", "catalog:unknown", "catalog:", "x?y", "a#b", "a%20b", "/dev/null"]
)
def test_what_is_no_archive_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UsageError, ResultsError)) as error:
        Archive.open(url, create=True)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_catalog_is_said_in_one_line(tmp_path: Path, archive: Archive) -> None:
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", archive)
    (Path(archive.url) / "catalog.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ResultsError) as error:
        Archive.open(archive.url)
    assert "\n" not in str(error.value)


def test_a_missing_data_file_is_said_in_one_line(tmp_path: Path, archive: Archive) -> None:
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", archive)
    for file in Path(archive.url).rglob("events-*.parquet"):
        file.unlink()
    with pytest.raises(ResultsError) as error:
        fetch(archive, tmp_path / "back", choose(archive))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "{",
        lambda text: json.dumps({**json.loads(text), "properties": None}),
        lambda text: json.dumps({**json.loads(text), "properties": 5}),
        lambda text: json.dumps({**json.loads(text), "schemas": None}),
        lambda text: json.dumps([text]),
        lambda text: "5",
    ],
    ids=["cut", "no-properties", "number", "no-schemas", "list", "scalar"],
)
def test_damaged_metadata_of_a_table_is_said_in_one_line(
    tmp_path: Path, archive: Archive, damage: Callable[[str], str]
) -> None:
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", archive)
    for file in Path(archive.url).rglob("*.metadata.json"):
        file.write_text(damage(file.read_text()))
    with pytest.raises(ResultsError) as error:
        Archive.open(archive.url).recordings()
    assert "\n" not in str(error.value)


def test_a_full_store_costs_one_line_and_no_row(tmp_path: Path, archive: Archive) -> None:
    """Files can't become larger than 8 KiB, as where the disk is full."""
    record(tmp_path / "rec")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, before[1]))
    try:
        with pytest.raises(ResultsError) as error:
            push(tmp_path / "rec", archive)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(error.value)
    push(tmp_path / "rec", archive)
    assert archived(archive, tables.EVENTS) == 1500


def test_names_of_any_text_arrive(tmp_path: Path, archive: Archive) -> None:
    hostile = "a'b\"\\;DROP TABLE\n\x1b[31m\u202e"
    record(tmp_path / "rec", segments=1, host=hostile)
    push(tmp_path / "rec", archive)
    assert choose(archive, host=hostile).host == hostile
    assert fetch(archive, tmp_path / "back", choose(archive)).events > 0


def test_only_the_owner_reads_a_new_archive(archive: Archive) -> None:
    assert Path(archive.url).stat().st_mode & 0o777 == 0o700


def test_any_reader_of_iceberg_reads_the_tables(tmp_path: Path, archive: Archive) -> None:
    """With PyIceberg alone, as the guide shows."""
    from pyiceberg.catalog.sql import SqlCatalog

    record(tmp_path / "rec")
    pushed = push(tmp_path / "rec", archive)
    catalog = SqlCatalog("iolab", uri=f"sqlite:///{archive.url}/catalog.db")
    table = catalog.load_table("iolab.events")
    assert table.scan(row_filter="source = 'block'").to_arrow()["count"].to_numpy().sum() == (
        pushed.events
    )
    assert [field.name for field in table.spec().fields] == ["day", "source", "host"]
    with sqlite3.connect(f"{archive.url}/catalog.db") as database:
        names = [name for (name,) in database.execute("SELECT table_name FROM iceberg_tables")]
    assert sorted(names) == [
        "coverage",
        "deleted",
        "events",
        "hosts",
        "marks",
        "observations",
        "recordings",
        "rollup_parts",
        "rollups_1h",
        "rollups_1m",
        "rollups_1s",
        "samples",
        "segment_maps",
        "segment_maps_100s",
        "segments",
    ]


@settings(max_examples=depth(2, 16))
@given(
    cuts=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    first_s=st.integers(0, 12),
    length_s=st.integers(1, 15),
)
def test_however_pushes_are_cut_a_span_has_the_rows_of_the_recording(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], first_s: int, length_s: int
) -> None:
    base = tmp_path_factory.mktemp("archive")
    archive = Archive.open(str(base / "archive"), create=True)
    record(base / "rec", segments=0)
    number = 0
    for count in cuts:
        with RecordingWriter.reopen(base / "rec", live=False) as writer:
            for _ in range(count):
                append(writer, number)
                writer.seal()
                number += 1
        push(base / "rec", archive)
    from_ns = START + first_s * SECOND
    until_ns = from_ns + length_s * SECOND
    if not number:
        assert archived(archive, tables.EVENTS) == 0
        return
    fetch(archive, base / "back", choose(archive), from_ns=from_ns, until_ns=until_ns)
    expected = [row for row in rows(base / "rec", "events") if from_ns <= row[1] < until_ns]  # type: ignore[operator]
    found = rows(base / "back", "events") if expected else []
    assert found == expected
