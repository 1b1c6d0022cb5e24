# SPDX-License-Identifier: Apache-2.0
"""`iolab query --follow` as a user runs it: beside a writer, ended by Ctrl-C, by the recording's
end, by its reader."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, events
from support.waiting import PATIENCE

pytestmark = pytest.mark.slow


class Writing:
    """A recording that grows by a thousand events a second until it is ended; what is late comes
    with the next of them."""

    def __init__(self, place: Path) -> None:
        self.place, self._over = place, threading.Event()
        self._writer = RecordingWriter.create(
            place, host="here", clock="realtime", origin={"kind": "record"}, sources={"block": {}}
        )
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        at = time.time_ns()
        while not self._over.wait(0.1):
            rows = (time.time_ns() - at) * 1000 // SECOND
            self._writer.append_events(events(rows, start_ns=at, per_s=1000))
            at += rows * SECOND // 1000
            self._writer.tick(at)

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        self._writer.close()


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    found = Writing(tmp_path / "r")
    yield found
    found.end()


def follow(place: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "query", str(place), *words, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_each_second_as_it_comes_and_by_itself_at_the_end(writing: Writing) -> None:
    process = follow(writing.place, "io.ops", "--format", "json")
    assert process.stdout is not None
    found = []
    for _ in range(3):
        # they come while it is written, each after its second
        found.append(json.loads(process.stdout.readline()))
        assert 0 <= (time.time_ns() - found[-1]["t0_ns"]) / 1e9 - 1 < PATIENCE
    writing.end()
    rest, words = process.communicate(timeout=PATIENCE)
    assert (process.returncode, words) == (0, "")
    found += map(json.loads, rest.splitlines())
    after = query(Recording(writing.place), "io.ops", interval_ns=SECOND)
    assert isinstance(after, Series)
    expected = {
        after.t0_ns + place * SECOND: value for place, value in enumerate(after.values.tolist())
    }
    assert [each["t0_ns"] for each in found] == [
        moment for moment in expected if moment >= found[0]["t0_ns"]
    ]
    assert [each["value"] for each in found] == [expected[each["t0_ns"]] for each in found]


def test_ctrl_c_is_how_it_ends(writing: Writing) -> None:
    process = follow(writing.place, "io.ops[latency]", "--from", "0s", "--interval", "200ms")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(4)]
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=PATIENCE)
    assert (process.returncode, words) == (0, "")


def test_a_reader_that_goes_ends_it(writing: Writing) -> None:
    process = follow(writing.place, "io.ops", "--from", "0s", "--interval", "100ms")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) in (0, 1)
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_what_cannot_be_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time:ms,op\n1,read\n")
    assert run(["query", str(trace), "io.ops", "--follow"]) == 2
    assert "a trace does not grow" in capsys.readouterr().err
    Writing(tmp_path / "r").end()
    assert run(["query", str(tmp_path / "r"), "io.opps", "--follow"]) == 2
