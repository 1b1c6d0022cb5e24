# SPDX-License-Identifier: Apache-2.0
"""Hostile use of a real socket: refused or bounded, and the service goes on."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import AppState, state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.store.read.recording import Recording
from support.depth import depth
from support.narrow import present
from support.service import TOKEN, Served, recorded, serving
from support.waiting import PATIENCE

HEADERS = {"authorization": f"Bearer {TOKEN}"}


def base(listener: Listener) -> str:
    return f"http://127.0.0.1:{listener.door.port}"


def still_serves(listener: Listener) -> None:
    for _ in range(50):
        answer = httpx.get(
            f"{base(listener)}/api/v1/query?recording=rec&statistic=io.ops",
            headers=HEADERS,
            timeout=PATIENCE,
        )
        if answer.status_code == 200:
            return
        time.sleep(0.1)
    pytest.fail(f"answers {answer.status_code}")


def raw(listener: Listener, data: bytes) -> bytes:
    """What comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", listener.door.port), timeout=PATIENCE) as one:
        try:
            one.sendall(data)
            return one.recv(4096)
        except ConnectionError:
            return b""


def test_a_statistic_of_a_megabyte(served: Served) -> None:
    listener = served()
    name = b"io.ops[process=" + b"x" * 1_000_000 + b"]"
    head = f"Host: 127.0.0.1:{listener.door.port}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    answer = raw(
        listener,
        b"GET /api/v1/query?recording=rec&statistic=" + name + b" HTTP/1.1\r\n" + head + b"\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 400")
    answer = raw(listener, b"GET / HTTP/1.1\r\n" + head + b"X: " + name + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    still_serves(listener)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"\0" * 1000,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /%00%ff%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)
def test_what_is_no_request(data: bytes, served: Served) -> None:
    listener = served()
    answer = raw(listener, data)
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"401", b"403")
    still_serves(listener)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/live.js/../../x",
        "//etc/passwd",
        "/api/v1/../../x",
        "/api/v1/query?recording=..%2F..%2Fetc&statistic=io.ops",
        "/live.css%00.html",
    ],
)
def test_paths_lead_nowhere_else(path: str, served: Served) -> None:
    listener = served()
    head = f"Host: 127.0.0.1:{listener.door.port}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    assert raw(listener, f"GET {path} HTTP/1.1\r\n{head}".encode()).startswith(b"HTTP/1.1 404")


@pytest.mark.slow
def test_thousands_of_requests_at_once(served: Served) -> None:
    """All sent before an answer is waited for: each is answered or refused, the memory for them is
    bounded, and then it goes on."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = min(2000, (most[0] - 200) // 2)
    each, listener = -(-depth(2_000, 10_000) // connections), served()
    request = (
        f"GET /api/v1/query?recording=rec&statistic=io.ops[device] HTTP/1.1\r\nHost: 127.0.0.1:{listener.door.port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\n"
    ).encode()
    before = resident()
    statuses: Counter[bytes] = Counter()

    async def ask(gate: asyncio.Event) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.door.port)
            await gate.wait()
            writer.write(
                b"".join(
                    [(request + b"\r\n")] * (each - 1) + [request + b"Connection: close\r\n\r\n"]
                )
            )
            data = await asyncio.wait_for(reader.read(), PATIENCE)
            for part in data.split(b"HTTP/1.1 ")[1:]:
                statuses[part[:3]] += 1
            writer.close()
        except (OSError, TimeoutError):
            statuses[b"cut"] += 1

    async def all_of_them() -> None:
        gate = asyncio.Event()
        tasks = [asyncio.create_task(ask(gate)) for _ in range(connections)]
        await asyncio.sleep(1)
        gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(all_of_them())
    assert set(statuses) <= {b"200", b"503", b"cut"}, statuses
    assert statuses[b"503"] > 0
    assert resident() - before < 300 << 20
    still_serves(listener)


def test_complete_requests_beyond_the_places_are_refused_and_not_reset(served: Served) -> None:
    connections, listener = 450, served()
    request = (
        f"GET /api/v1/query?recording=rec&statistic=io.ops[device] HTTP/1.1\r\nHost: 127.0.0.1:{listener.door.port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    ).encode()

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.door.port)
        writer.write(request)
        try:
            return (await asyncio.wait_for(reader.read(), PATIENCE))[9:12]
        finally:
            writer.close()

    async def all_of_them() -> list[bytes | BaseException]:
        return await asyncio.gather(*(ask() for _ in range(connections)), return_exceptions=True)

    answers = Counter(map(repr, asyncio.run(all_of_them())))
    assert set(answers) == {"b'200'", "b'503'"}, answers
    still_serves(listener)


def document_sent(
    listener: Listener, framing: str, more: bytes = b"", size: int = 10 << 20
) -> tuple[int, bytes]:
    """(status, body) of the answer to a worksheet of that size, by who sends all of it before
    reading anything."""
    line = (
        b"PUT /api/v1/worksheets/one HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        % listener.door.port
    )
    if framing == "chunked":
        body = (
            b"Transfer-Encoding: chunked\r\n\r\n"
            + (b"10000\r\n" + b"x" * (1 << 16) + b"\r\n") * (size >> 16)
            + b"0\r\n\r\n"
        )
    else:
        body = b"Content-Length: %d\r\n\r\n" % size + b"x" * size
    with socket.create_connection(("127.0.0.1", listener.door.port), timeout=PATIENCE) as one:
        one.sendall(line + more + body)
        answer = http.client.HTTPResponse(one)
        answer.begin()
        return answer.status, answer.read()


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"])
def test_a_document_that_is_much_too_large_is_answered(
    framing: str, close: bytes, served: Served, state: AppState
) -> None:
    listener = served(state)
    bears = b"Authorization: Bearer %s\r\n" % TOKEN.encode()
    for _ in range(3):  # whether a reset comes before the answer is read is a race
        status, body = document_sent(listener, framing, bears + close)
        assert (status, json.loads(body)["error"]) == (413, "a document has 1048576 bytes at most")
        status, body = document_sent(listener, framing, close)
        assert status == 401
        error = json.loads(body)["error"]
        assert "the token is missing" in error
        assert "Authorization: Bearer" in error
    still_serves(listener)


def test_what_is_refused_is_not_taken_for_ever(
    served: Served, state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iolab.output.server.http.serve.LINGER", 0.5)
    listener = served(state)
    head = (
        f"PUT /api/v1/worksheets/one HTTP/1.1\r\nHost: 127.0.0.1:{listener.door.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", listener.door.port), timeout=PATIENCE) as one:
        one.sendall(head.encode())
        answer = http.client.HTTPResponse(one)
        answer.begin()
        assert (answer.status, len(answer.read())) == (413, int(answer.headers["content-length"]))
        assert one.recv(1) == b""  # the answer has ended, and what comes is still taken
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < PATIENCE:
                one.sendall(b"x" * 1000)
                time.sleep(0.01)
        assert 0.2 < time.monotonic() - begun < PATIENCE
    still_serves(listener)


def test_connections_without_a_request_take_no_place(served: Served) -> None:
    """Nobody needs the token for them; a request is answered while all of them are open."""
    listener = served()
    idle = [
        socket.create_connection(("127.0.0.1", listener.door.port), timeout=PATIENCE)
        for _ in range(300)
    ]
    try:
        for each in idle[::2]:
            with contextlib.suppress(OSError):  # its place may be another's already
                each.sendall(b"GET / HTT")
        answers = [
            httpx.get(
                f"{base(listener)}/api/v1/query?recording=rec&statistic=io.ops",
                headers=HEADERS,
                timeout=PATIENCE,
            ).status_code
            for _ in range(3)
        ]
        assert answers == [200, 200, 200]
    finally:
        for each in idle:
            each.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"GET /absent HTTP/1.1\r\nHost: x\r\n\r\nGET / HT",
    ],
)
def test_a_head_that_does_not_come_is_not_waited_for(
    begun: bytes, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iolab.output.server.http.serve.HEAD_WITHIN", 0.5)
    listener = served()
    with socket.create_connection(
        ("127.0.0.1", listener.door.port), timeout=2 * PATIENCE
    ) as connection:
        connection.sendall(begun)
        while connection.recv(4096):
            pass  # until it is closed


@pytest.mark.slow
def test_a_head_that_comes_in_pieces_is_waited_for_in_all(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single bytes don't put the end off."""
    monkeypatch.setattr("iolab.output.server.http.serve.HEAD_WITHIN", 1.0)
    listener = served()
    with socket.create_connection(
        ("127.0.0.1", listener.door.port), timeout=PATIENCE
    ) as connection:
        connection.settimeout(0.1)
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            try:
                connection.sendall(b"G")
                if not connection.recv(100):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    pytest.fail("it is waited for")


def test_a_document_that_does_not_come(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of which the rest never comes is given up; the service goes on meanwhile."""
    monkeypatch.setattr("iolab.output.server.http.app.PATIENCE", 0.5)
    state = state_in(Store([recording]), tmp_path / "home", tmp_path / "log")
    with serving(state) as listener:
        head = (
            f"PUT /api/v1/worksheets/one HTTP/1.1\r\nHost: 127.0.0.1:{listener.door.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        many = [
            socket.create_connection(("127.0.0.1", listener.door.port), timeout=PATIENCE)
            for _ in range(50)
        ]
        for each in many:
            each.sendall(head.encode())
        still_serves(listener)
        for each in many:
            assert each.recv(12) == b"HTTP/1.1 408"
            each.close()
        assert not (tmp_path / "home/worksheets").exists()


RECORDER = """
import sys, time
from pathlib import Path
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events
writer = RecordingWriter.create(Path(sys.argv[1]), host="here", clock="realtime", origin={"kind": "record"})
for number in range(10_000):
    writer.append_events(events(50, number, start_ns=START + number * SECOND))
    print(number, flush=True)
    time.sleep(0.05)
"""
"""Keeps 50 I/Os twenty times a second, and says so."""


@pytest.mark.slow
def test_a_recorder_does_not_notice(tmp_path: Path) -> None:
    """A recording is complete while many clients ask the service, and they get answers."""
    place = tmp_path / "rec"
    with subprocess.Popen(
        [sys.executable, "-c", RECORDER, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as recorder:
        try:
            assert recorder.stdout is not None
            first = [int(recorder.stdout.readline()) for _ in range(3)][-1]
            with serving(Store([place])) as listener:
                request = f"{base(listener)}/api/v1/query?statistic=io.ops[latency]"
                askers = depth(16, 80)
                with ThreadPoolExecutor(askers) as pool:
                    answers = list(
                        pool.map(
                            lambda _: (
                                httpx.get(
                                    request, headers=HEADERS, timeout=4 * PATIENCE
                                ).status_code
                            ),
                            range(askers),
                        )
                    )
            assert set(answers) <= {200, 503}
            assert answers.count(200) > 0
            # it still records afterwards
            kept = [first, *(int(recorder.stdout.readline()) for _ in range(10))]
        finally:
            recorder.terminate()
        kept += [int(line) for line in recorder.stdout.read().split("\n")[:-1]]
    assert kept == list(range(first, kept[-1] + 1))
    recording = Recording(place)
    assert [loss for loss in recording.losses() if loss["kind"] != "gap"] == []
    assert present(recording.snapshot("events")[1]).table().num_rows >= 50 * (kept[-1] + 1)


def resident() -> int:
    """Memory of this process, the service's too."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_what_is_served_is_not_written(served: Served, recording: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in recording.rglob("*")}
    listener = served()
    still_serves(listener)
    httpx.get(
        f"{base(listener)}/api/v1/query?recording=rec&statistic=io.ops[latency]", headers=HEADERS
    )
    assert {path: path.stat().st_mtime_ns for path in recording.rglob("*")} == before


def test_a_recording_with_a_fifo_stops_no_other_one(tmp_path: Path, served: Served) -> None:
    for name in ("good", "bad"):
        recorded(tmp_path / name).close()
    for name in ("segments.jsonl", "losses/losses.jsonl"):
        (tmp_path / "bad" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "bad" / name)
    listener = served(Store([tmp_path / "good", tmp_path / "bad"]))
    for path in (
        "recordings",
        "query?recording=bad&statistic=io.ops",
        "query?recording=good&statistic=io.ops",
    ):
        answer = httpx.get(f"{base(listener)}/api/v1/{path}", headers=HEADERS, timeout=PATIENCE)
        assert answer.status_code == 200, (path, answer.text)
