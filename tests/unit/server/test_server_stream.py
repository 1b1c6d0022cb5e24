# SPDX-License-Identifier: Apache-2.0
"""Live data on a real socket: what comes, who is dropped, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.http.serve import Listener
from iolab.output.server.live import stream
from iolab.output.server.queries import listing
from iolab.recordings.store.base import lock
from iolab.recordings.store.base.lock import LOCK, has_writer, tell
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, events
from support.service import TOKEN, Served, serving
from support.waiting import PATIENCE, until

HEADERS = {"authorization": f"Bearer {TOKEN}"}


def address(listener: Listener, query: str) -> str:
    return f"http://127.0.0.1:{listener.door.port}/api/v1/stream?{query}"


def heard(listener: Listener, query: str, most: int) -> Iterator[tuple[str, Any]]:
    """Events with their data."""
    name = ""
    with httpx.stream("GET", address(listener, query), headers=HEADERS, timeout=PATIENCE) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                yield name, json.loads(line[6:])
                most -= 1
                if not most:
                    return


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """A recording that gets 50 I/Os four times a second, until the test is over."""
    writer = RecordingWriter.create(
        tmp_path / "live", host="here", clock="realtime", origin={"kind": "record"}
    )
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(0.25):
            number += 1
            writer.append_events(
                events(50, number, start_ns=time.time_ns() - SECOND // 4, per_s=200)
            )

    thread = threading.Thread(target=write)
    thread.start()
    yield tmp_path / "live"
    over.set()
    thread.join()
    writer.close()


@pytest.mark.slow
def test_a_growing_recording_is_followed(growing: Path, served: Served) -> None:
    until(lambda: Recording(growing).span(), "the first events")
    listener = served(Store([growing]))
    ticks, totals, kinds = [], [], set()
    for name, data in heard(
        listener, "statistic=io.ops&statistic=io.ops[latency]&seconds=30&drawn=true", 9
    ):
        if name == "tick":
            assert data["live"]
            ticks.append(sum(data["events"].values()))
        elif name == "answer":
            kinds.add((data["statistic"], data["kind"]))
            totals += [data["total"]] if data["kind"] == "series" else []
    assert kinds == {("io.ops", "series"), ("io.ops[latency]", "map")}
    assert len(ticks) >= 3
    assert ticks == sorted(set(ticks))
    # an answer may be of a moment later than its tick
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]


WRITER = """
import sys, time
from pathlib import Path
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import events
writer = RecordingWriter.create(
    Path(sys.argv[1]), host="here", clock="realtime", origin={"kind": "record"}
)
writer.append_events(events(50, 1, start_ns=time.time_ns(), per_s=200))
print("written", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("lists_locks", [True, False])
def test_a_stopped_recorder_is_silent_and_a_killed_one_has_ended(
    lists_locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the kernel's list of locks, and by the process that the lock names."""
    if not lists_locks:
        monkeypatch.setattr(lock, "holder_of", lambda _: "")
    path = tmp_path / "live"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, env=environment
    ) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"written\n"
            store = Store([path])
            assert [stream.tick_of(store, "live").silent_s, listing.is_live(store, "live")] == [
                0,
                True,
            ]
            writer.send_signal(signal.SIGSTOP)
            ahead = SimpleNamespace(time=lambda: time.time() + 40)
            monkeypatch.setattr(listing, "time", ahead)
            tick = stream.tick_of(store, "live")
            assert tick.live
            assert 39 <= tick.silent_s <= 40 + PATIENCE
        finally:
            writer.kill()
            writer.wait()
    tick = stream.tick_of(store, "live")
    assert [tick.live, tick.silent_s, has_writer(path)] == [False, 0, False]


def test_a_process_that_got_the_id_of_an_ended_writer_is_not_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "rec"
    RecordingWriter.create(path, host="here", clock="realtime", origin={"kind": "record"}).close()
    with (path / LOCK).open("r+", encoding="ascii") as file:
        tell(file, None)
    assert has_writer(path)  # this process wrote it
    os.utime(path / LOCK, (1e9, 1e9))
    assert not has_writer(path)


def test_what_is_no_lock_has_no_writer(tmp_path: Path) -> None:
    assert not has_writer(tmp_path)
    for content in (b"", b"\xff\0", b"999999999999\n\n", b"-1\n\n"):
        (tmp_path / LOCK).write_bytes(content)
        assert not has_writer(tmp_path)
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).mkdir()
    assert not has_writer(tmp_path)


@pytest.mark.parametrize("interval", ["100ms", "1s"])
def test_what_the_stream_brings_is_what_is_asked(interval: str, served: Served) -> None:
    listener = served()
    query = f"recording=rec&statistic=io.ops[latency]&seconds=5&interval={interval}&drawn=true&lines=false&top=30"
    (_, tick), (name, answer) = heard(listener, query, 2)
    assert name == "answer"
    words = stream.Window(5 * SECOND, SECOND if interval == "1s" else SECOND // 10).words(
        tick["last_ns"]
    )
    found = httpx.get(
        f"http://127.0.0.1:{listener.door.port}/api/v1/query",
        headers=HEADERS,
        params={
            "recording": "rec",
            "statistic": "io.ops[latency]",
            "drawn": "true",
            "lines": "false",
            "top": "30",
            **words,
        },
    )
    assert answer == found.json()
    assert answer["interval_ns"] == (SECOND if interval == "1s" else SECOND // 10)
    assert answer["group"]["maps"][0]["overlays"] == []


@pytest.mark.slow
def test_what_is_at_rest_is_told_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_QUIET", 1)
    listener = served()
    found = list(heard(listener, "recording=rec&statistic=io.ops[op]", 4))
    assert [name for name, _ in found] == ["tick", "answer", "tick", "tick"]
    assert found[0][1]["live"] is False


def test_a_statistic_without_an_answer_is_a_problem_of_its_own(served: Served) -> None:
    found = list(heard(served(), "recording=rec&statistic=app.ops&statistic=io.ops", 3))
    assert [name for name, _ in found] == ["tick", "problem", "answer"]
    assert found[1][1]["error"].startswith("app.ops: ")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("recording=rec&statistic=io.opps", 400),
        ("recording=nothing", 404),
        ("recording=rec&seconds=0", 400),
        ("recording=rec&seconds=1e9", 400),
        ("recording=rec&seconds=3600&interval=100ms", 400),
        ("recording=rec&interval=0s", 400),
        ("recording=rec&" + "&".join(f"statistic=io.ops[pid={each}]" for each in range(9)), 400),
        ("recording=rec&statistic=", 400),
        ("", 400),
    ],
)
def test_what_can_not_be_followed(query: str, status: int, served: Served) -> None:
    assert httpx.get(address(served(), query), headers=HEADERS).status_code == status


def connected(listener: Listener, query: str, receive: int | None = None) -> socket.socket:
    """A reader that asks for a stream, and so far has read nothing of it."""
    one = socket.socket()
    if receive is not None:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    one.connect(("127.0.0.1", listener.door.port))
    one.sendall(
        (
            f"GET /api/v1/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1:{listener.door.port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n"
        ).encode()
    )
    return one


def test_streams_are_counted_and_given_back(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MOST_STREAMS", 3)
    listener = served()
    many = [connected(listener, "recording=rec") for _ in range(3)]
    for each in many:
        assert each.recv(12).endswith(b"200")
    assert httpx.get(address(listener, "recording=rec"), headers=HEADERS).status_code == 503
    for each in many:
        each.close()

    def accepted() -> bool:
        with httpx.stream(
            "GET", address(listener, "recording=rec"), headers=HEADERS, timeout=PATIENCE
        ) as answer:
            return answer.status_code == 200

    until(accepted, "a place")


def test_a_reader_that_never_reads_is_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[stream.Streams] = []
    before = stream.Streams.__init__

    def quick(self: stream.Streams, *arguments: Any) -> None:
        before(self, *arguments, patience=0.5, period=0.01)
        held.append(self)

    async def much(self: stream.Streams, *arguments: Any) -> Any:
        while not self._stopping():
            yield "event: answer\ndata: " + "x" * 200_000 + "\n\n"

    monkeypatch.setattr(stream.Streams, "__init__", quick)
    monkeypatch.setattr(stream.Streams, "events", much)
    with serving(store) as listener:
        one = connected(listener, "recording=rec", receive=4096)
        until(lambda: held[0].open == 1, "the reader to be there")
        until(lambda: held[0].open == 0, "it to be dropped")
        # everyone else is served meanwhile
        assert (
            httpx.get(
                f"http://127.0.0.1:{listener.door.port}/api/v1/recordings", headers=HEADERS
            ).status_code
            == 200
        )
        one.close()


def test_open_streams_end_with_the_service(store: Store) -> None:
    with serving(store) as listener:
        one = connected(listener, "recording=rec")
        one.settimeout(PATIENCE)
        one.recv(100)
    # `serving` has waited for its end
    with contextlib.suppress(ConnectionResetError):
        while one.recv(1 << 16):
            pass
    one.close()
