# SPDX-License-Identifier: Apache-2.0
"""Questions to an archive without a fetch: the answers of the recordings, whatever is asked, and
sums over hosts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import IolabError, UsageError
from iolab.recordings.archive import Archive, push, tables
from iolab.recordings.archive import push as push_function
from iolab.recordings.archive.recordings import ArchivedEvents, open_recordings
from iolab.recordings.archive.store import expressions
from iolab.recordings.ask import attribution
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.engine.engine import Joint
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet, who_of_fleet
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question, parse
from iolab.recordings.ask.tiers import archive_engines
from iolab.recordings.ask.tiers.archive_engines import read_together
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.metadata import Begun, Facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import SOURCES, answer_of, append, questions, record
from support.depth import depth
from support.plans import explain
from support.recordings import SECOND, START, events


def archived(archive: Archive) -> list[ArchivedEvents]:
    return open_recordings(archive, archive.recordings())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Recording], Archive]:
    """Recordings of three hosts and the archive of them."""
    base = tmp_path_factory.mktemp("fleet")
    archive = Archive.open(str(base / "archive"), create=True)
    recordings = {}
    for seed, host in enumerate(("db1", "db2", "web")):
        record(base / host, segments=2 + seed, host=host, seed=seed)
        push(base / host, archive)
        recordings[host] = Recording(base / host)
    return recordings, archive


@settings(max_examples=depth(12, 500), deadline=None)
@given(host=st.sampled_from(("db1", "db2", "web")), question=questions())
def test_an_archive_answers_as_the_recording_does(
    fleet: tuple[dict[str, Recording], Archive], host: str, question: tuple[str, dict[str, Any]]
) -> None:
    recordings, archive = fleet
    [recording] = [item for item in archived(archive) if item.archived.host == host]
    text, asked = question
    assert answer_of(recording, text, **asked) == answer_of(recordings[host], text, **asked)


@pytest.fixture(scope="module")
def coarse_fleet(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Recording], Archive]:
    """As `fleet`, with coarse maps of 2 s, which cut segments of 5 s."""
    base = tmp_path_factory.mktemp("coarse")
    archive = Archive.open(str(base / "archive"), create=True)
    recordings = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "COARSE_S", 2)
        for seed, host in enumerate(("db1", "db2")):
            record(base / host, segments=3 + seed, host=host, seed=seed)
            push(base / host, archive)
            recordings[host] = Recording(base / host)
    return recordings, archive


@settings(max_examples=depth(16, 500), deadline=None)
@given(
    host=st.sampled_from(("db1", "db2")),
    question=questions(),
    interval_s=st.sampled_from((2, 4, 10)),
    y=st.sampled_from(("[latency]", "[offset]", "[size]", "[op]", "")),
)
def test_coarse_maps_answer_as_the_recording_does(
    coarse_fleet: tuple[dict[str, Recording], Archive],
    host: str,
    question: tuple[str, dict[str, Any]],
    interval_s: int,
    y: str,
) -> None:
    recordings, archive = coarse_fleet
    [recording] = [item for item in archived(archive) if item.archived.host == host]
    asked = {**question[1], "interval_ns": interval_s * SECOND}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "COARSE_S", 2)
        answer = answer_of(recording, f"io.ops{y}", **asked)
    assert answer == answer_of(recordings[host], f"io.ops{y}", **asked)


def test_columns_of_100_s_are_read_from_coarse_maps(tmp_path: Path) -> None:
    facts = Facts("db1", "realtime", {"kind": "record"}, {"block": {}})
    begin = Begun(START, 0, START)
    with RecordingWriter.begin(tmp_path / "rec", facts, begun=begin) as writer:
        for number in range(5):
            start_ns = START + number * 70 * SECOND
            writer.append_events(events(700, number, start_ns=start_ns, per_s=10))
            writer.seal()
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    push(tmp_path / "rec", archive)
    rows = {table: archive.read(table) for table in (tables.SEGMENT_MAPS, tables.COARSE_MAPS)}
    counts = {sum(table["count"].to_pylist()) for table in rows.values()}
    assert counts == {3 * archive.recordings()[0].events}
    assert rows[tables.COARSE_MAPS].num_rows < rows[tables.SEGMENT_MAPS].num_rows
    begins = set(rows[tables.COARSE_MAPS]["second_ns"].to_pylist())
    assert all(second_ns % (100 * SECOND) == 0 for second_ns in begins)

    def rows_read(interval_s: int, **asked: Any) -> int:
        """Rows of the data files of a question, of which the answer is that of the recording."""
        [recording] = archived(archive)
        asked = {"interval_ns": interval_s * SECOND, **asked}
        for text in ("io.ops[latency]", "io.ops[op]", "io.ops[offset]"):
            answer = answer_of(recording, text, **asked)
            assert answer == answer_of(Recording(tmp_path / "rec"), text, **asked)
        [part] = explain(recording, "io.ops[latency]", **asked).parts()
        return int(part.rows or 0)

    fine, coarse = rows[tables.SEGMENT_MAPS].num_rows, rows[tables.COARSE_MAPS].num_rows
    block_ns = START // (100 * SECOND) * 100 * SECOND
    assert rows_read(100) == rows_read(200) == coarse
    assert rows_read(10) == rows_read(50) == fine
    assert (
        rows_read(100, from_ns=block_ns + 100 * SECOND, until_ns=block_ns + 300 * SECOND) == coarse
    )
    # ends within 100 s
    assert rows_read(100, from_ns=block_ns + 101 * SECOND) == fine
    # an archive of an older iolab lacks sums of some segments, or the table
    where = expressions().EqualTo("segment", 2)
    archive.commit(tables.COARSE_MAPS, lambda change: change.delete(where))
    assert rows_read(100) == fine
    archive._catalog.drop_table(f"{tables.NAMESPACE}.{tables.COARSE_MAPS.name}")
    archive = Archive.open(archive.url)
    assert rows_read(100) == fine


def ask_together(recordings: Sequence[ArchivedEvents], text: str, **asked: Any) -> list[Any]:
    asks = [partial(answer_of, recording, text, **asked) for recording in recordings]
    return Joint(asks).answers(read_together)


@settings(max_examples=depth(8, 300), deadline=None)
@given(question=questions())
def test_hosts_that_are_asked_together_answer_as_alone(
    fleet: tuple[dict[str, Recording], Archive], question: tuple[str, dict[str, Any]]
) -> None:
    recordings, archive = fleet
    text, asked = question
    chosen = archived(archive)
    assert ask_together(chosen, text, **asked) == [
        answer_of(recordings[recording.archived.host], text, **asked) for recording in chosen
    ]


@pytest.mark.parametrize("text", ["io.ops[latency>=1ms][process]", "io.ops[op=read][latency]"])
def test_hosts_share_statements(
    fleet: tuple[dict[str, Recording], Archive], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = []
    ask_table = archive_engines.DuckDBEngine.ask_table

    def count(self: Any, sql: str, bound: Any) -> Any:
        statements.append(sql)
        return ask_table(self, sql, bound)

    monkeypatch.setattr(archive_engines.DuckDBEngine, "ask_table", count)
    chosen = archived(fleet[1])
    answers = ask_together(chosen, text, interval_ns=SECOND)
    together = len(statements)
    assert answers == [answer_of(recording, text, interval_ns=SECOND) for recording in chosen]
    assert len(statements) == together * (1 + len(chosen))


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("io.ops", "segment maps"),
        ("io.ops[op=read][latency]", "segment maps"),
        ("io.ops[size]", "segment maps"),
        ("io.ops[process]", "events"),
        ("io.bytes", "events"),
        ("io.ops[offset]", "segment maps"),
    ],
)
def test_the_plan_names_what_is_read(
    fleet: tuple[dict[str, Recording], Archive], text: str, tier: str
) -> None:
    recording = archived(fleet[1])[0]
    plan = explain(recording, text, interval_ns=SECOND)
    [part] = plan.as_data()["parts"]
    assert plan.tiers == (tier,)
    assert part["files"] >= 1
    assert part["rows"] > 0


def test_files_of_another_time_and_source_are_not_read(tmp_path: Path) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    path = tmp_path / "rec"
    with RecordingWriter.create(
        path, host="db1", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for day in range(3):
            for source in SOURCES:
                writer.append_events(
                    events(20, day, source=source, start_ns=START + day * 86_400 * SECOND)
                )
            writer.seal()
    push(path, archive)
    [recording] = archived(archive)

    def files(**asked: Any) -> int:
        parts = explain(recording, "io.ops[process]", **asked).as_data()["parts"]
        return sum(part["files"] for part in parts)

    assert files() == 3
    assert files(from_ns=START + 86_400 * SECOND, until_ns=START + 86_500 * SECOND) == 1


@pytest.mark.parametrize("text", ["io.utilization", "io.utilization[device]"])
def test_counters_answer_as_in_the_recording(
    fleet: tuple[dict[str, Recording], Archive], text: str
) -> None:
    recordings, archive = fleet
    for recording in archived(archive):
        local = query(recordings[recording.archived.host], text, interval_ns=SECOND)
        assert isinstance(local, Series | Stack)
        assert np.isfinite(local.values).any()
        answer = query(recording, text, interval_ns=SECOND)
        assert as_data(parse(text), answer, None) == as_data(parse(text), local, None)


@pytest.mark.parametrize("weight", ["count", "time", "bytes"])
@pytest.mark.parametrize("limits", [(None, None), (1 << 14, 1 << 20), (10_000, 99_999)])
def test_maps_of_each_weight_and_range(
    fleet: tuple[dict[str, Recording], Archive], weight: Any, limits: tuple[int | None, int | None]
) -> None:
    recordings, archive = fleet
    [recording] = [item for item in archived(archive) if item.archived.host == "db2"]
    for y in ("latency", "size"):
        asked = Question(interval_ns=SECOND, weight=weight, low=limits[0], high=limits[1])
        local, here = heat(recordings["db2"], y, asked), heat(recording, y, asked)
        assert as_data(parse("io.ops"), here, None) == as_data(parse("io.ops"), local, None)


def test_who_is_answered_as_by_the_recording(
    fleet: tuple[dict[str, Recording], Archive],
) -> None:
    recordings, archive = fleet
    box = Rectangle(low=100_000, high=10_000_000)
    for recording in archived(archive):
        assert attribution.as_data(who(recording, "latency", box)) == attribution.as_data(
            who(recordings[recording.archived.host], "latency", box)
        )


def test_hosts_add_up(fleet: tuple[dict[str, Recording], Archive]) -> None:
    recordings, archive = fleet
    chosen = archived(archive)
    totals = {
        host: query(recording, "io.ops", interval_ns=SECOND).total
        for host, recording in recordings.items()
    }
    by_host = ask_fleet(chosen, FleetStatistic.parse("io.ops[host]"), interval_ns=SECOND)
    assert isinstance(by_host, Stack)
    assert dict(zip(by_host.keys, by_host.totals, strict=True)) == totals
    whole = ask_fleet(chosen, FleetStatistic.parse("io.ops"), interval_ns=SECOND)
    assert isinstance(whole, Series)
    assert whole.total == sum(totals.values())
    stack = ask_fleet(chosen, FleetStatistic.parse("io.ops[op]"), interval_ns=SECOND)
    assert isinstance(stack, Stack)
    assert stack.total == whole.total
    known = ~np.isnan(whole.values)
    assert np.allclose(stack.values.sum(axis=0)[known], whole.values[known])
    assert np.isnan(stack.values[:, ~known]).all()
    # in the gap of one host the others still have a rate
    alone = ask_fleet(chosen, FleetStatistic.parse("io.ops[host=web]"), interval_ns=SECOND)
    assert isinstance(alone, Series)
    assert np.isnan(alone.values).sum() > (~known).sum()
    assert whole.losses is not None
    assert whole.losses.lost == 3 * (7 + 8 + 9)


def test_a_map_for_each_host_and_of_all(fleet: tuple[dict[str, Recording], Archive]) -> None:
    recordings, archive = fleet
    maps = ask_fleet(
        archived(archive), FleetStatistic.parse("io.ops[latency][host]"), interval_ns=SECOND
    )
    assert isinstance(maps, dict)
    for host, counts in maps.items():
        local = query(recordings[host], "io.ops[latency]", interval_ns=SECOND)
        assert as_data(parse("io.ops"), counts, None) == as_data(parse("io.ops"), local, None)
    whole = ask_fleet(archived(archive), FleetStatistic.parse("io.ops[latency]"))
    assert isinstance(whole, HeatCounts)
    assert whole.total == sum(counts.total for counts in maps.values())


def test_host_is_a_condition_and_a_dimension(
    fleet: tuple[dict[str, Recording], Archive],
) -> None:
    _, archive = fleet
    chosen = archived(archive)
    asked = FleetStatistic.parse('io.ops[host=db1,"web"][op=write][host!=web]')
    assert [item.archived.host for item in asked.select(chosen)] == ["db1"]
    assert str(asked.statistic) == "io.ops[op=write]"
    answer = who_of_fleet(
        chosen, FleetStatistic.parse("io.ops[latency]"), "latency", Rectangle(low=10**6), top=5
    )
    [hosts] = [item for item in answer.dimensions if item.field == "host"]
    assert {item.value for item in hosts.values} == {"db1", "db2", "web"}
    assert sum(item.inside for item in hosts.values) == answer.inside
    [ops] = [item for item in answer.dimensions if item.field == "op"]
    assert sum(item.inside for item in ops.values) + ops.left_inside == answer.inside


@pytest.mark.parametrize(
    "text", ["io.ops[host>db1]", "io.ops[host=nobody]", "io.ops[host!=db1,db2,web]"]
)
def test_hosts_that_can_not_be_chosen(
    fleet: tuple[dict[str, Recording], Archive], text: str
) -> None:
    with pytest.raises(UsageError):
        FleetStatistic.parse(text).select(archived(fleet[1]))


def test_rows_of_a_killed_push_are_in_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=2)
    push(tmp_path / "rec", archive)
    before = answer_of(archived(archive)[0], "io.ops[process]", interval_ns=SECOND)
    with RecordingWriter.reopen(tmp_path / "rec", live=False) as writer:
        append(writer, 1, seed=5)
    commit = Archive.commit

    def killed(self: Archive, table: tables.Table, change: Any) -> None:
        if table is tables.SEGMENTS:
            raise Killed
        commit(self, table, change)

    monkeypatch.setattr(Archive, "commit", killed)
    with pytest.raises(Killed):
        push_function(tmp_path / "rec", archive)
    assert archive.read(tables.EVENTS).num_rows == 400 * 3
    assert answer_of(archived(archive)[0], "io.ops[process]", interval_ns=SECOND) == before


def test_files_that_another_engine_compacted_give_the_same_answers(tmp_path: Path) -> None:
    """One file of all hosts, sources and segments, as a rewrite of the table leaves it."""
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    for seed, host in enumerate(("db1", "db2")):
        record(tmp_path / host, host=host, seed=seed)
        push(tmp_path / host, archive)
    texts = ("io.ops", "io.ops[process]", "io.ops[latency]", "file.bytes[offset]")

    def answers() -> list[Any]:
        return [
            answer_of(recording, text, interval_ns=SECOND)
            for recording in archived(archive)
            for text in texts
        ]

    before = answers()
    for table in (tables.EVENTS, tables.SEGMENT_MAPS, tables.COARSE_MAPS):
        rows = archive.read(table)
        archive.commit(table, lambda change, rows=rows: change.overwrite(rows))
    assert answers() == before
    together = [ask_together(archived(archive), text, interval_ns=SECOND) for text in texts]
    assert [answer for of_host in zip(*together, strict=True) for answer in of_host] == before


def test_a_damaged_data_file_is_named(tmp_path: Path) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec")
    push(tmp_path / "rec", archive)
    files = list(Path(archive.url).rglob("events*.parquet"))
    record(tmp_path / "other", host="db2", seed=1)
    push(tmp_path / "other", archive)
    for file in files:
        content = bytearray(file.read_bytes())
        for place in range(16, len(content) // 2, 40):
            content[place] ^= 0xFF
        file.write_bytes(content)
    with pytest.raises(IolabError) as error:
        query(archived(archive)[0], "io.ops[process]")
    assert "\n" not in str(error.value)
    maps = ask_fleet(archived(archive), FleetStatistic.parse("io.ops[process][host]"))
    assert isinstance(maps, dict)
    assert set(maps) == {"db2"}
    stack = maps["db2"]
    assert isinstance(stack, Stack)
    assert any("db1 is left out" in note for note in stack.notes)


def test_what_was_deleted_before_it_was_pushed_is_a_gap(tmp_path: Path) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=3)
    path = tmp_path / "rec"
    with RecordingWriter.reopen(path, live=False) as writer:
        writer.facts.dropped = {"through": 1, "until_ns": START + 5 * SECOND, "segments": 1}
        writer.facts.write(path)
    push(path, archive)
    rows = archive.read(tables.COVERAGE).to_pylist()
    [gap] = [row for row in rows if "deleted before" in row["words"]]
    assert gap["from_ns"] == START
    assert START + 4 * SECOND < gap["until_ns"] <= START + 5 * SECOND
    answer = query(archived(archive)[0], "io.ops", interval_ns=SECOND, from_ns=START)
    assert isinstance(answer, Series)
    assert np.isnan(answer.values[0])
    assert not np.isnan(answer.values[6])


def test_an_archive_of_an_older_version_gets_its_columns(tmp_path: Path) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    table = archive.table(tables.COVERAGE)
    with table.update_schema() as update:
        update.delete_column("parts")
    for name in ("hosts", "deleted"):
        archive._catalog.drop_table(f"iolab.{name}")
    assert Archive.open(archive.url).recordings() == []
    again = Archive.open(archive.url, create=True)
    assert "parts" in again.table(tables.COVERAGE).schema().column_names
    assert again.tables() == list(tables.TABLES)
    columns = again.read(tables.COVERAGE).column_names
    assert sorted(columns) == sorted(tables.COVERAGE.columns.names)
