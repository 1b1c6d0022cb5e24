# SPDX-License-Identifier: Apache-2.0
"""A writer that is killed loses at most the batch in flight, wherever it was; the next one goes on
and says for how long there was none."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iolab.cli.main import run
from iolab.recordings.store.base import layout
from iolab.recordings.store.base.schema import EVENTS, schema_of
from iolab.recordings.store.ledger import append_line
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments import segments
from iolab.recordings.store.segments.hot import HotLog
from iolab.recordings.store.write.writer import RecordingWriter
from support import recordings
from support.recordings import SECOND, START, events, rows_of, samples, unsealed


def everything(recording: Recording, kind: layout.Kind = "events") -> list[tuple[object, ...]]:
    sealed, hot = recording.snapshot(kind)
    parts = [
        *(pq.read_table(each.path).cast(schema_of(kind)) for each in sealed),
        *([] if hot is None else [hot.table()]),
    ]
    return rows_of(pa.concat_tables(parts)) if parts else []


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    path, chance, kept = tmp_path / "r", random.Random(7), []
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, recordings.__file__, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        numbers = [int(child.stdout.readline())]
        time.sleep(chance.uniform(0, 0.25))
        child.send_signal(signal.SIGKILL)
        numbers += [int(line) for line in child.stdout.read().split()]
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        kept.append(numbers)
        # readable as it was left, before anyone has tidied up
        assert len(everything(Recording(path))) >= 50 * sum(map(len, kept))
    RecordingWriter.reopen(path).close()
    recording = Recording(path)
    seen = everything(recording)
    batches = {
        number: rows_of(events(50, number, start_ns=START + number * SECOND))
        for number in range(max(map(len, kept)) + 1)
    }
    # of each child, every batch that it said it kept, and perhaps the one in flight
    expected = sorted(
        (row for numbers in kept for number in numbers for row in batches[number]), key=repr
    )
    more = list(seen)
    for row in expected:
        more.remove(row)
    assert len(more) <= 50 * len(kept)
    assert len(more) % 50 == 0, "a batch is there as a whole or not at all"
    known = {row for rows in batches.values() for row in rows}
    assert set(more) <= known
    held = everything(recording, "samples")
    assert len(held) >= 3 * sum(map(len, kept))
    gaps = [loss for loss in recording.losses() if loss["kind"] == "gap"]
    assert len(gaps) == len(kept)
    assert all(loss["from_ns"] <= loss["until_ns"] for loss in gaps)
    assert len(recording.gaps()) == len(kept)
    assert not list((path / "hot").iterdir())
    assert not list(path.rglob(".*"))
    assert [each["until_ns"] is None for each in recording.facts.sessions] == [False] * (
        len(kept) + 1
    )


@pytest.mark.parametrize("step", ["replace", "note", "unlink"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_interrupted_at_every_step_of_sealing(tmp_path: Path, step: str, nth: int) -> None:
    """As if killed before the nth renaming, before the line that notes a segment, or before the hot
    file is removed."""

    class Killed(BaseException):
        pass

    writer = RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    )
    writer.append_events(events(20))
    writer.append_samples(samples(4))
    calls = 0
    really: Callable[..., object]

    def stopping(*args: Any, **more: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise Killed
        really(*args, **more)

    with pytest.MonkeyPatch.context() as patch:
        if step == "replace":
            really = Path.replace
            patch.setattr(Path, "replace", stopping)
        elif step == "note":
            really = append_line
            patch.setattr(segments, "append_line", stopping)
        else:
            really = Path.unlink
            patch.setattr(Path, "unlink", stopping)
        stopped = False
        try:
            writer.seal()
        except Killed:
            stopped = True
    assert stopped or calls < nth
    recording = Recording(tmp_path / "r")
    assert everything(recording) == rows_of(events(20))
    assert everything(recording, "samples") == rows_of(samples(4))
    writer._lock.close()  # as the kernel does for a dead process
    RecordingWriter.reopen(tmp_path / "r").close()
    assert everything(recording) == rows_of(events(20))
    assert everything(recording, "samples") == rows_of(samples(4))
    assert recording.summary().rows == 20
    assert [each.number for each in recording.maps("io.size")] == [1]
    assert not list((tmp_path / "r/hot").iterdir())


def test_what_was_torn_is_told(tmp_path: Path) -> None:
    writer = RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    )
    for seed in range(3):
        writer.append_events(events(10, seed))
    path = layout.hot_file(tmp_path / "r", 1, "events")
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    writer._lock.close()
    assert Recording(tmp_path / "r").summary().rows == 20
    RecordingWriter.reopen(tmp_path / "r").close()
    recording = Recording(tmp_path / "r")
    assert recording.summary().rows == 20
    [damaged] = [loss for loss in recording.losses() if loss["kind"] == "damaged"]
    assert "were torn or damaged" in damaged["words"]
    assert damaged["from_ns"] == max(events(10, 1).column("time_ns").to_pylist())
    assert recording.summary().unknown == 1


def test_the_last_tick_tells_when_a_killed_writer_lived(tmp_path: Path) -> None:
    from iolab.base.clock import FakeClock

    clock = FakeClock()
    writer = RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}, system=clock
    )
    begun = clock.realtime_ns()
    for _ in range(10):
        clock.sleep(1)
        writer.tick(clock.realtime_ns())
    writer._lock.close()
    clock.sleep(20)
    RecordingWriter.reopen(tmp_path / "r", system=clock).close()
    [gap] = Recording(tmp_path / "r").gaps()
    assert gap == (begun + 10 * SECOND, begun + 30 * SECOND)


def test_a_hot_file_that_was_sealed_already_is_ignored(tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        writer.append_events(events(10))
    log = HotLog(layout.hot_file(tmp_path / "r", 1, "events"), EVENTS)
    log.append(events(10))
    log.close()
    recording = Recording(tmp_path / "r")
    assert len(everything(recording)) == 10
    assert unsealed(recording).num_rows == 0
    RecordingWriter.reopen(tmp_path / "r").close()
    assert len(everything(recording)) == 10
    assert not log.path.exists()


def test_the_summary_of_a_killed_recorder_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r"
    child = subprocess.Popen(
        [sys.executable, recordings.__file__, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert not Recording(path).summary().is_killed
    child.kill()
    child.stdout.close()
    child.wait()
    summary = Recording(path).summary()
    assert (summary.is_killed, summary.complete_ns) == (True, Recording(path).told_ns())
    RecordingWriter.reopen(path).close()
    summary = Recording(path).summary()
    assert (summary.is_killed, summary.complete_ns) == (False, None)


def test_show_says_that_the_recorder_was_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys, pathlib\n"
            "from support.recordings import START, SECOND, events\n"
            "from iolab.base.clock import FakeClock\n"
            "from iolab.recordings.store.write.writer import RecordingWriter\n"
            "writer = RecordingWriter.create(pathlib.Path(sys.argv[1]), host='here',\n"
            "    clock='realtime', origin={'kind': 'record'}, system=FakeClock(START))\n"
            "writer.append_events(events(50, 0, start_ns=START))\n"
            "writer.tick(START + 7 * SECOND)\n"
            "os._exit(9)",
            str(tmp_path / "r"),
        ],
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert child.returncode == 9
    assert run(["show", str(tmp_path / "r"), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["killed"], shown["complete_ns"]) == (True, START + 7 * SECOND)
    assert run(["show", str(tmp_path / "r")]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("killed ")]
