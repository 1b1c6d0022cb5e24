# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with an archive: each failure is one line with what to do, and no row is lost or
doubled."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import ResultsError
from iolab.cli.main import run
from iolab.recordings.archive import Archive, compact, expire, maintenance, push, tables
from iolab.recordings.archive.faults import LONGEST, explain, fault_of
from iolab.recordings.archive.recordings import open_recordings
from iolab.recordings.ask.query import query
from support.archives import record

FULL, DENIED, NO_ADDRESS, NO_BUCKET, AWAY, MISSING = (
    "the store is full",
    "the store refuses the credentials",
    "the address of the store is not a URL",
    "the store has no such bucket",
    "the store does not answer",
    "a file of the archive is missing",
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), FULL),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), FULL),
        (OSError("(sqlite3.OperationalError) database or disk is full"), FULL),
        (OSError("An error occurred (InvalidAccessKeyId) when calling GetObject"), DENIED),
        (OSError("AWS Error ACCESS_DENIED during HeadObject operation: No response body."), DENIED),
        (OSError("Unable to locate credentials"), DENIED),
        (OSError("(XAdminUserNotFound): No user exists with the provided access key ID"), DENIED),
        (ValueError("Invalid endpoint: 127.0.0.1:7171"), NO_ADDRESS),
        (OSError("An error occurred (NoSuchBucket) when calling GetObject"), NO_BUCKET),
        (OSError("AWS Error NETWORK_CONNECTION during UploadPart: curlCode: 52"), AWAY),
        (ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)), AWAY),
        (TimeoutError("Read timeout on endpoint URL"), AWAY),
        (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "a.parquet"), MISSING),
        (OSError("x failed: IOError: Path does not exist 'b/a.parquet'. Detail: 2"), MISSING),
        (pa.ArrowInvalid("Not a Parquet file"), None),
    ],
)
def test_a_failure_is_named_with_what_to_do(error: Exception, message: str | None) -> None:
    fault = fault_of(error)
    assert (fault.message if fault else None) == message
    explained = explain(error, "s3://fleet", "write table events")
    assert explained.where == "s3://fleet"
    assert bool(explained.hint) == (message is not None)
    assert message is None or message in explained.message


@settings(max_examples=50)
@given(st.text(max_size=2000))
def test_words_of_a_library_stay_one_line_of_limited_length(words: str) -> None:
    explained = explain(OSError(words), "archive", "read it")
    assert len(explained.message.splitlines()) == 1
    assert len(explained.message) < LONGEST + 100


@pytest.mark.slow
@pytest.mark.parametrize("table", ["events", "recordings"])
def test_two_pushers_of_copies_of_a_recording_archive_each_row_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    table: str,
) -> None:
    """The other one pushes everything while a commit of the first is under way."""
    record(tmp_path / "rec", segments=1)
    shutil.copytree(tmp_path / "rec", tmp_path / "copy")
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    commit = archive.commit
    commits: list[str] = []

    def interrupted(of: tables.Table, change: Callable[[Any], None]) -> None:
        def change_then_meet(transaction: Any) -> None:
            change(transaction)
            commits.append(of.name)
            if commits.count(table) == 1 and of.name == table:
                push(tmp_path / "copy", Archive.open(archive.url))

        commit(of, change_then_meet)

    monkeypatch.setattr(archive, "commit", interrupted)
    pushed = push(tmp_path / "rec", archive)
    assert commits.count(table) > 1
    assert pushed.files + pushed.present == 2
    sizes = archive.size()
    expected = {"events": 400, "samples": 20, "segments": 3, "recordings": 1, "marks": 0}
    assert {name: sizes[name][0] for name in expected} == expected
    for of in (tables.SEGMENT_MAPS, tables.COARSE_MAPS, tables.COVERAGE):
        rows = [repr(row) for row in archive.read(of).to_pylist()]
        assert len(set(rows)) == len(rows) > 0
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_question_that_outlives_its_files_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "rec", segments=1)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    push(tmp_path / "rec", archive)
    [recording] = open_recordings(archive, archive.recordings())
    query(recording, "io.ops[process]")
    monkeypatch.setattr(maintenance, "_is_worth", bool)
    compact(archive)
    expire(archive, age_ns=-(10**12))
    with pytest.raises(ResultsError, match=MISSING) as error:
        query(recording, "io.ops[file]")
    assert error.value.where == archive.url
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.slow
def test_a_hostile_name_keeps_its_row_and_its_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "rec", segments=1, host="a'b\"\n\x1b[31m\u202e")
    url = str(tmp_path / "archive")
    assert run(["archive", "push", str(tmp_path / "rec"), url]) == 0
    capsys.readouterr()
    assert run(["archive", "list", url]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert "\x1b" not in row
    assert head.index("recording") == row.index("\\u202e") + len("\\u202e") + 2
