# SPDX-License-Identifier: Apache-2.0
"""Recordings pushed while they grow: what the archive lacks is counted, kept while the store is away,
and deleted here only once it is archived."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import ResultsError
from iolab.cli.main import run
from iolab.recordings.archive import Archive, push
from iolab.recordings.archive.upload.continuous import QUIET_NS, ContinuousPush
from iolab.recordings.archive.upload.progress import FILE, Progress, read_progress, write_progress
from iolab.recordings.record.archiving import ArchivingSink, PushProcess
from iolab.recordings.record.status import Status
from iolab.recordings.store.base.layout import sealed_file, sealed_numbers
from iolab.recordings.store.write.writer import RecordingWriter
from support.recorder import FakeSink
from support.recordings import SECOND, START, events, samples

ROWS = 20


def new_recording(path: Path, **limits: int | None) -> RecordingWriter:
    return RecordingWriter.create(
        path,
        host="db1",
        clock="realtime",
        origin={"kind": "record"},
        sources={"block": {}, "diskstats": {}},
        retention=limits,
        live=False,
    )


def append(writer: RecordingWriter, number: int, *, seals: bool = True) -> None:
    """A segment of 20 events and one sample in a second."""
    first_ns = START + number * SECOND
    writer.append_events(events(ROWS, number, start_ns=first_ns, per_s=ROWS))
    writer.append_samples(samples(1, start_ns=first_ns))
    if seals:
        writer.seal()


def unavailable(*_: Any, **__: Any) -> Archive:
    raise ResultsError("the store is away", where="archive")


@pytest.mark.slow
def test_what_the_archive_lacks_is_counted_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, url = tmp_path / "rec", str(tmp_path / "archive")
    now = [START]
    pushes = ContinuousPush(path, url, now_ns=lambda: now[0])
    opened = Archive.open
    with new_recording(path) as writer:
        append(writer, 0)
        append(writer, 1, seals=False)
        assert pushes.step() is not None
        state = read_progress(path)
        assert state == pushes.progress
        assert (state.through, state.rows, state.from_ns) == (1, ROWS + 1, START + SECOND)

        # nothing was sealed: the archive is not asked
        now[0] += SECOND
        assert pushes.step() is None
        now[0] += QUIET_NS
        assert pushes.step() is not None

        append(writer, 2)
        monkeypatch.setattr(Archive, "open", unavailable)
        monkeypatch.setattr(pushes, "_archive", None)
        with pytest.raises(ResultsError):
            pushes.step()
        state = read_progress(path)
        assert state is not None
        assert (state.through, state.rows) == (1, 2 * (ROWS + 1))
        assert state.bytes == sum(
            sealed_file(path, 2, kind).stat().st_size for kind in ("events", "samples")
        )
        assert "away" in state.error

        monkeypatch.setattr(Archive, "open", opened)
        pushed = pushes.step()
        assert pushed is not None
        assert pushed.samples == 2
        assert (pushes.progress.through, pushes.progress.rows, pushes.progress.error) == (2, 0, "")

    # another process continues, and one that pushes elsewhere begins again
    assert ContinuousPush(path, url).progress == pushes.progress
    assert ContinuousPush(path, "elsewhere").progress == Progress("elsewhere")


def test_a_first_push_that_takes_long_has_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states: list[Progress | None] = []

    def look(*_: Any, **__: Any) -> Archive:
        states.append(read_progress(tmp_path / "rec"))
        assert run(["archive", "status", str(tmp_path / "rec")]) == 0
        return unavailable()

    monkeypatch.setattr(Archive, "open", look)
    pushes = ContinuousPush(tmp_path / "rec", "s3://fleet/x")
    with new_recording(tmp_path / "rec") as writer:
        append(writer, 0)
    for _ in range(2):
        with pytest.raises(ResultsError):
            pushes.step()
    first, second = states
    assert first is not None
    assert second is not None
    assert (first.archive, first.rows, first.pushed_ns) == ("s3://fleet/x", ROWS + 1, 0)
    assert (first.error, "away" in second.error) == ("", True)
    assert "last push never" in capsys.readouterr().out


@pytest.mark.slow
def test_a_damaged_segment_is_not_counted_as_archived(tmp_path: Path) -> None:
    with new_recording(tmp_path / "rec") as writer:
        for number in range(3):
            append(writer, number)
    damaged = sealed_file(tmp_path / "rec", 2, "events")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    pushed = push(tmp_path / "rec", archive)
    assert (pushed.through, list(pushed.refused)) == (1, ["events/000002"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"schema": 2}',
        b'{"schema": 1, "archive": "a"}',
        b"[" * 100_000,
        json.dumps({**Progress("a").as_data(), "through": True}).encode(),
        json.dumps({**Progress("a").as_data(), "rows": "1"}).encode(),
        json.dumps({**Progress("a").as_data(), "error": "x" * 100_000}).encode(),
    ],
)
def test_a_damaged_state_is_no_state(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert read_progress(tmp_path) is None


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = Progress("a", "key", 3, 4, 5, 6, 7, 8, 9, "words")
    write_progress(tmp_path, state)
    assert read_progress(tmp_path) == state
    assert state.behind_s(6 + 2 * SECOND) == 2
    write_progress(tmp_path / "absent", state)


def numbers(path: Path) -> list[int]:
    return sealed_numbers(path / "events")


def test_age_deletes_only_what_is_archived(tmp_path: Path) -> None:
    with new_recording(tmp_path, age_s=0) as writer:
        writer.note_archived(0, drops=False)
        for number in range(4):
            append(writer, number)
        assert numbers(tmp_path) == [1, 2, 3, 4]
        writer.note_archived(2, drops=False)
        append(writer, 100)
        assert numbers(tmp_path) == [3, 4, 5]


def test_archived_segments_are_deleted_where_it_is_asked(tmp_path: Path) -> None:
    with new_recording(tmp_path) as writer:
        for number in range(4):
            append(writer, number)
        writer.note_archived(3, drops=True)
        writer.seal()
        assert numbers(tmp_path) == [4]


def test_size_limits_what_waits_for_the_archive(tmp_path: Path) -> None:
    with new_recording(tmp_path, bytes=1) as writer:
        writer.note_archived(0, drops=False)
        append(writer, 0)
        assert numbers(tmp_path) == []


class _Running(PushProcess):
    """A process that only says why it ended."""

    def __init__(self) -> None:
        super().__init__([])
        self.ended: str | None = None

    def keep_running(self) -> str | None:
        ended, self.ended = self.ended, None
        return ended


def test_the_recorder_deletes_what_is_archived_and_says_what_is_not(tmp_path: Path) -> None:
    notices: list[str] = []
    status, process, now = Status(), _Running(), [0.0]
    with new_recording(tmp_path) as writer:
        for number in range(3):
            append(writer, number)
        # of an earlier push: the archive may be another one since
        write_progress(tmp_path, Progress("a", "key", 3))
        sink = ArchivingSink(
            FakeSink(), writer, process, status, notices.append,
            drops_archived=True, now=lambda: now[0],
        )  # fmt: skip

        def attempt(progress: Progress, after_s: float = 1.0) -> list[str]:
            now[0] += after_s
            write_progress(tmp_path, progress)
            before = len(notices)
            sink.tick(START + 10 * SECOND)
            writer.seal()
            return notices[before:]

        sink.tick(START)
        writer.seal()
        assert numbers(tmp_path) == [1, 2, 3]
        assert status.archive == {}
        away = Progress("a", "key", 2, rows=42, from_ns=START, error="a: away")
        assert len(attempt(away)) == 1
        assert numbers(tmp_path) == [1, 2, 3]
        assert (status.archive["rows"], status.archive["behind_s"]) == (42, 10.0)
        assert attempt(away) == []
        assert len(attempt(away, 3600)) == 1
        assert len(attempt(Progress("a", "key", 2))) == 1
        assert numbers(tmp_path) == [3]
        assert len(attempt(Progress("a", "key", 3, deleted=2))) == 1
        assert numbers(tmp_path) == []
        process.ended = "memory"
        [ended] = attempt(Progress("a", "key", 3, deleted=2))
        assert "memory" in ended


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(("code", "starts_again"), [(2, False), (3, True)])
def test_a_push_that_ends_is_started_again(tmp_path: Path, code: int, starts_again: bool) -> None:
    count = tmp_path / "count"
    shell = f"echo x >> {count}; echo a >&2; echo reason >&2; exit {code}"
    now = [0.0]
    process = PushProcess(["sh", "-c", shell], now=lambda: now[0])
    reasons: list[str] = []

    def look() -> bool:
        if reason := process.keep_running():
            reasons.append(reason)
        return bool(reasons)

    until(look)
    assert reasons == ["reason"]
    process.keep_running()
    assert count.read_text() == "x\n"
    reasons.clear()
    now[0] = 11
    if starts_again:
        until(look)
    assert count.read_text() == "x\n" * (1 + starts_again)


def test_the_last_push_is_waited_for() -> None:
    process = PushProcess(["sh", "-c", "cat; echo away >&2; exit 3"])
    process.keep_running()
    assert process.finish() == "away"
    assert PushProcess(["sh", "-c", "cat"]).finish() is None


@pytest.mark.slow
def test_a_recording_of_counters_is_archived_when_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, url = tmp_path / "rec", str(tmp_path / "archive")
    words = ["record", "counters", "--duration", "1s", "-q", "-o", str(path), "--archive", url]
    done = subprocess.run(
        [sys.executable, "-m", "iolab", *words], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    [archived] = Archive.open(url).recordings()
    assert run(["archive", "status", str(path), "--format", "json"]) == 0
    state = json.loads(capsys.readouterr().out)
    assert (state["rows"], state["recording"]) == (0, archived.recording)
    assert run(["archive", "status", url, "--format", "json"]) == 0
    [lag] = json.loads(capsys.readouterr().out)["recordings"]
    assert (lag["recording"], lag["behind"]) == (archived.recording, 0)
    assert archived.samples > 0


@pytest.mark.parametrize(
    "words",
    [
        ["--archive", "presto://x"],
        ["--archive", "a?b"],
        ["--archive", "s3://"],
        ["--archive", "s3:/bucket/x"],
        ["--archive", "db1:/srv/archive"],
        ["--archive", "archive:/srv/archive"],
        ["--drop-archived"],
    ],
)
def test_an_archive_that_can_not_be_is_refused_before_recording(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["record", "counters", "-o", str(tmp_path / "rec"), *words]) == 2
    assert not (tmp_path / "rec").exists()
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
