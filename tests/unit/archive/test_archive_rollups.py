# SPDX-License-Identifier: Apache-2.0
"""Kept statistics in an archive: pushed once, whatever is killed; answers are those of the recording
once events are deleted, in both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.output.server.base.archives import ServedArchive
from iolab.recordings.archive import Archive, compact, delete_by_age, delete_replaced, push, tables
from iolab.recordings.archive.recordings import ArchivedEvents, open_recordings
from iolab.recordings.archive.retention import TIERS, check_ages
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.available import available
from iolab.recordings.ask.engine.engine import Joint
from iolab.recordings.ask.kept.archiving import kept_statistics
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import SECOND
from iolab.recordings.ask.tiers.archive_engines import read_together
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import answer_of
from support.kept_data import START, add_segment, aged, make
from support.plans import explain

pytestmark = pytest.mark.slow
STEP_S = 900
SEGMENTS = 9
KEPT = (
    "io.ops[process=fio][latency]",
    "io.bytes[size]",
    "io.ops[file=/data/3,/data/4][offset]",
    "io.ops[process]",
    "io.utilization[device]",
)
QUESTIONS = (
    ("io.ops[process=fio][latency]", 1),
    ("io.ops[process=fio][latency]", 3600),
    ("io.ops[process=fio]", 60),
    ("io.bytes[size]", 60),
    ("io.ops[file=/data/3,/data/4][offset]", 60),
    ("io.ops[process]", 1),
    ("io.ops[process]", 60),
    ("io.ops[process]", 3600),
    ("io.utilization[device]", 60),
)
LAST_NS = START + SEGMENTS * STEP_S * SECOND


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Two hours that are over and a part of the third, in segments of 10 s."""
    directory = tmp_path_factory.mktemp("whole") / "rec"
    return make(directory, KEPT, segments=SEGMENTS, seconds=10, step_s=STEP_S, counters=True)


@pytest.fixture(scope="module")
def old(whole: Recording, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The same, with the events of the last two segments."""
    return aged(whole.path, tmp_path_factory.mktemp("old") / "rec", 2)


def archive_of(directory: Path, path: Path) -> Archive:
    """An archive of a recording."""
    archive = Archive.open(str(directory / "archive"), create=True)
    push(path, archive, kept=kept_statistics)
    return archive


def delete(archive: Archive, **segments: int) -> None:
    """Delete so many segments of each tier."""
    ages = {
        tier.strip("_"): 10**6 * SECOND - count * STEP_S * SECOND
        for tier, count in segments.items()
    }
    delete_by_age(archive, ages, now_ns=START + 10**6 * SECOND)


def set_session(path: Path, until_ns: int | None) -> None:
    """Let a recording say when it was recorded."""
    facts = read_facts(path)
    facts.sessions = [{"from_ns": START, "until_ns": until_ns}]
    facts.write(path)


def open_one(archive: Archive) -> ArchivedEvents:
    [recording] = open_recordings(archive, archive.recordings())
    return recording


def same(answer: Any, expected: Any) -> bool:
    """Whether answers are equal. Sums of counters are of floating-point numbers, in any order."""
    if isinstance(answer, float) and isinstance(expected, float):
        return bool(np.isclose(answer, expected, rtol=1e-12, equal_nan=True))
    if isinstance(answer, dict) and isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(
            same(answer[name], expected[name]) for name in answer
        )
    if isinstance(answer, list) and isinstance(expected, list):
        return len(answer) == len(expected) and all(map(same, answer, expected))
    return bool(answer == expected)


SOME = (QUESTIONS[1], QUESTIONS[4], QUESTIONS[6], QUESTIONS[-1])


def check(
    archive: Archive, recording: Recording, questions: Sequence[tuple[str, int]] = SOME
) -> None:
    """Answers of an archive are those of a recording, which is asked as well."""
    archived = open_one(archive)
    for text, interval_s in questions:
        expected = answer_of(recording, text, interval_ns=interval_s * SECOND)
        assert any("from what was kept" in note for note in expected["notes"]), text
        answer = answer_of(archived, text, interval_ns=interval_s * SECOND)
        assert same(answer, expected), (text, interval_s, answer, expected)


def test_events_that_the_archive_deleted_are_answered_by_roll_ups(
    tmp_path: Path, whole: Recording, old: Recording
) -> None:
    archive = archive_of(tmp_path, whole.path)
    recording = open_one(archive)
    assert explain(recording, "io.ops[process]").tiers == ("events",)
    delete(archive, events=SEGMENTS - 2)
    check(archive, old, QUESTIONS)
    compact(archive)
    check(archive, old)

    recording = open_one(archive)
    plan = explain(recording, "io.ops[process]", interval_ns=3600 * SECOND)
    assert plan.tiers == ("roll-ups",)
    names = {part["name"] for part in plan.as_data()["parts"]}
    assert names == {"roll-ups of 1h of the archive", "roll-ups of 1s of the archive"}
    # segment maps have finer buckets
    assert explain(recording, "io.ops[latency]", interval_ns=SECOND).tiers[0] == "segment maps"
    within: dict[str, Any] = {
        "from_ns": START + 900 * SECOND, "until_ns": START + 3000 * SECOND, "interval_ns": SECOND,
    }  # fmt: skip
    for text in ("io.ops[process]", "io.ops[process=fio][latency]"):
        assert same(answer_of(recording, text, **within), answer_of(old, text, **within))


def test_events_that_the_recording_deleted_first_are_answered_by_roll_ups(
    tmp_path: Path, old: Recording
) -> None:
    archive = archive_of(tmp_path, old.path)
    check(archive, old)
    delete(archive, events=100)
    # as the service opens it
    served = ServedArchive(archive.url).open(open_one(archive).key)
    stack = query(served, "io.ops[process]", interval_ns=60 * SECOND)
    local = query(old, "io.ops[process]", interval_ns=60 * SECOND)
    assert isinstance(stack, Stack)
    assert isinstance(local, Stack)
    assert (stack.keys, stack.totals) == (local.keys, local.totals)
    by_name = {item.entry.name: item for item in available(open_one(archive))}
    assert not by_name["io.utilization"].why_not


def test_hosts_that_are_asked_together_answer_as_alone(tmp_path: Path, old: Recording) -> None:
    archive = archive_of(tmp_path, old.path)
    other = make(tmp_path / "other", KEPT[:4], segments=5, seconds=10, step_s=STEP_S, per_s=7)
    facts = read_facts(other.path)
    facts.host = "there"
    facts.write(other.path)
    local = {"here": old, "there": aged(other.path, tmp_path / "aged", 1)}
    push(local["there"].path, archive, kept=kept_statistics)
    recordings = open_recordings(archive, archive.recordings())
    assert len(recordings) == 2
    asked = {"interval_ns": 60 * SECOND}
    for text in ("io.ops[process=fio][latency]", "io.ops[process]"):
        asks = [partial(answer_of, recording, text, **asked) for recording in recordings]
        answers = Joint(asks).answers(read_together)
        for recording, answer in zip(recordings, answers, strict=True):
            assert same(answer, answer_of(local[recording.archived.host], text, **asked))


def test_a_push_killed_between_two_commits_is_completed_without_doubles(
    tmp_path: Path, old: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    complete = archive_of(tmp_path, old.path)
    rows = {name: complete.read(table).num_rows for name, table in tables.ROLLUPS.items()}
    archive = Archive.open(str(tmp_path / "killed"), create=True)
    commit = Archive.commit
    for victim in (tables.ROLLUPS["1m"], tables.ROLLUP_PARTS, tables.RECORDINGS):

        def killed(
            self: Archive, table: tables.Table, change: Any, victim: tables.Table = victim
        ) -> None:
            if table is victim:
                raise Killed
            commit(self, table, change)

        with monkeypatch.context() as patch:
            patch.setattr(Archive, "commit", killed)
            with pytest.raises(Killed):
                push(old.path, archive, kept=kept_statistics)
    assert push(old.path, archive, kept=kept_statistics).refused == {}
    assert push(old.path, archive, kept=kept_statistics).rollups == 0
    assert {name: archive.read(table).num_rows for name, table in tables.ROLLUPS.items()} == rows
    check(archive, old)


def test_files_that_are_merged_after_a_push_count_once(tmp_path: Path, whole: Recording) -> None:
    path = tmp_path / "rec"
    shutil.copytree(whole.path, path)
    archive = archive_of(tmp_path, path)
    assert push(path, archive, kept=kept_statistics).rollups == 0
    with RecordingWriter.reopen(path, live=False) as writer:
        for number in range(SEGMENTS, SEGMENTS + 4):
            add_segment(writer, START + number * STEP_S * SECOND, 10, counters=True)
    keeper = Keeper(path)
    while keeper.look():
        pass
    # the third hour is over: its first segments were pushed alone
    assert push(path, archive, kept=kept_statistics).rollups > 0
    delete(archive, events=SEGMENTS + 2)
    old = aged(path, tmp_path / "old", 2)
    check(archive, old)

    before = rows_by_tier(archive)
    killed = Killed()
    archive.commit, commit = killed.commit(archive.commit), archive.commit  # type: ignore[method-assign]
    with pytest.raises(Killed):
        delete_replaced(archive)
    archive.commit = commit  # type: ignore[method-assign]
    check(archive, old)
    removed = delete_replaced(archive)
    after = rows_by_tier(archive)
    assert removed
    # the killed call deleted rows already, and no line
    assert sum(before[name] - after[name] for name in before) > 0
    assert all(item.segments > 0 and item.recordings == 1 for item in removed.values())
    check(archive, old)
    listed = archive.read(tables.ROLLUP_PARTS).to_pylist()
    for tier, table in tables.ROLLUPS.items():
        ranges = {row["segment"] for row in archive.read(table).to_pylist()}
        assert ranges <= {row["segment"] for row in listed if row["tier"] == tier}
    # nothing remains to be deleted, and nothing is pushed again
    assert delete_replaced(archive) == {}
    assert push(path, archive, kept=kept_statistics).rollups == 0
    check(archive, old)


class Killed(BaseException):
    """Raised instead of the second commit."""

    def __init__(self) -> None:
        self.commits = 0

    def commit(self, commit: Any) -> Any:
        def once(table: tables.Table, change: Any) -> None:
            self.commits += 1
            if self.commits > 1:
                raise self
            commit(table, change)

        return once


def rows_by_tier(archive: Archive) -> dict[str, int]:
    return {table.name: archive.read(table).num_rows for table in tables.ROLLUPS.values()}


def test_hours_that_are_not_over_are_not_pushed_while_it_is_recorded(
    tmp_path: Path, whole: Recording
) -> None:
    path = tmp_path / "rec"
    shutil.copytree(whole.path, path)
    set_session(path, None)
    archive = archive_of(tmp_path, path)
    ends = {
        (row["tier"], row["segment"] & (2**31 - 1))
        for row in archive.read(tables.ROLLUP_PARTS).to_pylist()
    }
    assert {tier for tier, _ in ends} == {"1s", "1m", "1h"}
    assert max(segment for _, segment in ends) == 8
    total = query(whole, "io.ops[process]", interval_ns=60 * SECOND)
    delete(archive, events=4)
    answer = query(open_one(archive), "io.ops[process]", interval_ns=60 * SECOND)
    assert isinstance(answer, Stack)
    assert isinstance(total, Stack)
    assert (answer.keys, answer.totals) == (total.keys, total.totals)


def test_a_tier_is_deleted_by_age(tmp_path: Path, whole: Recording) -> None:
    path = tmp_path / "rec"
    shutil.copytree(whole.path, path)
    set_session(path, LAST_NS)
    archive = archive_of(tmp_path, path)
    before = query(Recording(path), "io.ops[process]", interval_ns=3600 * SECOND)
    delete(archive, events=100, _1s=5)
    parts = archive.read(tables.ROLLUPS["1s"])
    assert parts.num_rows
    assert min(parts["time_ns"].to_pylist()) >= START + 4 * STEP_S * SECOND
    by_hour = query(open_one(archive), "io.ops[process]", interval_ns=3600 * SECOND)
    assert isinstance(by_hour, Stack)
    assert isinstance(before, Stack)
    assert (by_hour.keys, by_hour.totals) == (before.keys, before.totals)
    by_second = query(open_one(archive), "io.ops[process]", interval_ns=SECOND)
    assert isinstance(by_second, Stack)
    assert 0 < by_second.total < before.total
    # after the last sum of the hour nothing was recorded
    assert by_second.first_ns == START
    assert np.isnan(by_second.values[:, : 3 * STEP_S]).all()
    assert (by_second.values[:, 3600] > 0).any()
    # what age deleted is not pushed again
    assert push(path, archive, kept=kept_statistics).rollups == 0
    # sums of the third hour, which is not over, stay as long as those of hours
    delete(archive, _1s=100)
    times = archive.read(tables.ROLLUPS["1s"])["time_ns"].to_pylist()
    assert min(times) >= START + 8 * STEP_S * SECOND
    delete(archive, events=100, maps=100, _1s=100, _1m=100, _1h=100)
    assert [archive.read(table).num_rows for table in tables.ROLLUPS.values()] == [0, 0, 0]
    nothing = query(open_one(archive), "io.ops")
    assert isinstance(nothing, Series)
    assert nothing.total == 0
    assert np.isnan(nothing.values[: 8 * STEP_S * SECOND // nothing.interval_ns]).all()


@pytest.mark.parametrize("ages", [{"1s": 2, "1m": 1}, {"1m": 1}, {"1h": 1, "1s": 1}, {"1d": 1}])
def test_ages_that_can_not_be(ages: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        check_ages(ages)
    check_ages(dict.fromkeys(TIERS, 5))


def test_a_damaged_file_leaves_the_others(tmp_path: Path, old: Recording) -> None:
    path = tmp_path / "rec"
    shutil.copytree(old.path, path)
    [file] = (path / "histograms/1h").glob("io.ops-process.*/*1-*.parquet")
    content = bytearray(file.read_bytes())
    for place in range(40, len(content) // 2, 40):
        content[place] ^= 0xFF
    file.write_bytes(content)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    refused = push(path, archive, kept=kept_statistics).refused
    assert list(refused) == ["statistic io.ops[process]"]
    names = {row["statistic"] for row in archive.read(tables.ROLLUP_PARTS).to_pylist()}
    assert names == {*KEPT} - {"io.ops[process]"}
    series = query(open_one(archive), "io.ops[process=fio]", interval_ns=60 * SECOND)
    assert isinstance(series, Series)
    assert series.total > 0


def test_the_commands(tmp_path: Path, old: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "archive")
    assert run(["archive", "push", str(old.path), url, "--format", "json"]) == 0
    pushed = json.loads(capsys.readouterr().out)
    assert run(["archive", "status", url, "--format", "json"]) == 0
    status = json.loads(capsys.readouterr().out)["tables"]
    rows = {name: status[f"rollups_{name}"]["rows"] for name in tables.ROLLUPS}
    assert min(rows.values()) > 0
    assert sum(rows.values()) == pushed["rollups"]
    words = [item for tier in ("1s", "1m", "1h") for item in ("--for", f"{tier}=1d")]
    assert run(["archive", "expire", url, *words, "--format", "json"]) == 0
    deleted = json.loads(capsys.readouterr().out)["deleted"]
    assert {name: deleted[f"rollups_{name}"]["rows"] for name in tables.ROLLUPS} == rows
