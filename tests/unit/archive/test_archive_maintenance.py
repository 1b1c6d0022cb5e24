# SPDX-License-Identifier: Apache-2.0
"""Compaction and expiry: rows and answers remain, whoever writes meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import IolabError
from iolab.cli.main import run
from iolab.recordings.archive import Archive, compact, expire, maintenance, push, tables
from iolab.recordings.archive.recordings import open_recordings
from iolab.recordings.ask.query import query
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import answer_of, append, record
from support.recordings import SECOND, rows_of


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive of a host, pushed in two parts."""
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "db1", segments=2)
    push(tmp_path / "db1", archive)
    grow(tmp_path / "db1", archive, 4)
    return archive


def grow(path: Path, archive: Archive, number: int) -> None:
    """Push one more segment."""
    with RecordingWriter.reopen(path, live=False) as writer:
        append(writer, number, seed=3)
    push(path, archive)


def answers(archive: Archive) -> list[Any]:
    return [
        answer_of(recording, text, interval_ns=SECOND)
        for recording in open_recordings(archive, archive.recordings())
        for text in ("io.ops", "io.ops[process]", "io.ops[latency]", "io.utilization")
    ]


def data_files(archive: Archive) -> int:
    return sum(archive.size()[table.name][1] for table in (tables.EVENTS, tables.SEGMENT_MAPS))


def stored(archive: Archive) -> int:
    return sum(1 for _ in Path(archive.url).rglob("*.parquet"))


def test_compaction_keeps_rows_and_answers(archive: Archive) -> None:
    before, files = answers(archive), data_files(archive)
    rows = rows_of(archive.read(tables.EVENTS))
    done = compact(archive)
    assert data_files(archive) < files
    # a file for each source
    assert archive.size()["events"][1] == done["events"].after == 2
    assert done["events"].before == 4
    assert rows_of(archive.read(tables.EVENTS)) == rows
    assert answers(archive) == before
    assert {item.before for item in compact(archive).values()} == {0}


def test_files_are_joined_up_to_the_size(archive: Archive) -> None:
    assert compact(archive, 1 << 10)["events"].before == 0


def test_expiry_deletes_what_only_old_snapshots_have(archive: Archive) -> None:
    before = answers(archive)
    compact(archive)
    old = archive.table(tables.EVENTS).snapshots()[0].snapshot_id
    assert {item.snapshots for item in expire(archive).values()} == {0}
    files = stored(archive)
    expired = expire(archive, age_ns=-(10**12))
    assert expired["events"].snapshots > 0
    assert expired["events"].failed == 0
    assert stored(archive) < files
    assert stored(archive) == sum(count for _, count, _ in archive.size().values())
    assert len(archive.table(tables.EVENTS).snapshots()) == 1
    assert archive.table(tables.EVENTS).snapshot_by_id(old) is None
    assert answers(Archive.open(archive.url)) == before


def test_a_reader_of_an_expired_snapshot_gets_one_line(archive: Archive) -> None:
    [recording] = open_recordings(archive, archive.recordings())
    # it chooses its files once
    query(recording, "io.ops[process]")
    compact(archive)
    expire(archive, age_ns=-(10**12))
    with pytest.raises(IolabError) as error:
        query(recording, "io.ops[process]")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("other", ["push", "compact"])
def test_writers_that_meet_keep_each_row_once(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Another writer commits between the plan of a compaction and its commit."""
    count = archive.read(tables.EVENTS).num_rows
    join = maintenance._join
    met: list[bool] = []

    def meet(url: Archive, table: tables.Table, group: Any) -> Any:
        if not met:
            met.append(True)
            second = Archive.open(archive.url)
            if other == "push":
                grow(tmp_path / "db1", second, 5)
            else:
                compact(second)
        return join(url, table, group)

    monkeypatch.setattr(maintenance, "_join", meet)
    done = compact(archive)
    added = 400 if other == "push" else 0
    assert archive.read(tables.EVENTS).num_rows == count + added
    assert (done["events"].skipped > 0) == (other == "compact")


def test_the_commands(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for words, name in ((["compact"], "before"), (["expire", "--older-than", "0s"], "snapshots")):
        verb, *options = words
        assert run(["archive", verb, archive.url, *options, "--format", "json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["tables"]["events"][name] > 0
    assert run(["archive", "compact", archive.url, "--size", "1"]) == 2
    assert run(["archive", "expire", archive.url, "--older-than", "soon"]) == 2
    assert run(["archive", "compact", archive.url]) == 0
