# SPDX-License-Identifier: Apache-2.0
"""Archives in S3, on a server on loopback: every row exactly once, whatever is killed, away, slow or
torn. `make archive-test` installs the server."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.archive import Archive, choose, fetch, push, tables
from iolab.archive.recordings import open_recordings
from iolab.errors import ResultsError
from iolab.recording.read.recording import Recording
from iolab.recording.write.writer import RecordingWriter
from iolab.statistics.answers.json_form import as_data
from iolab.statistics.ask.query import query
from iolab.statistics.question import parse
from support.depth import depth
from support.recordings import SECOND, START, events, samples

SERVER = shutil.which("moto_server")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        SERVER is None or importlib.util.find_spec("boto3") is None,
        reason="no S3 server is installed: make archive-test",
    ),
]
BUCKET = "recordings"
SECRET = "a-secret-that-no-message-has"


def record(path: Path, segments: int = 3, host: str = "db1") -> None:
    """A sealed recording of 100 I/Os and 5 samples a segment."""
    with RecordingWriter.create(
        path,
        host=host,
        clock="realtime",
        origin={"kind": "record", "files": [path.name]},
        sources={"block": {}, "diskstats": {}},
        live=False,
    ) as writer:
        for number in range(segments):
            first_ns = START + number * 5 * SECOND
            writer.append_events(events(100, number, start_ns=first_ns, per_s=20))
            writer.append_samples(samples(5, start_ns=first_ns))
            writer.seal()


class Proxy:
    """Passes connections on to a server, with faults.

    Attributes:
        delay_s: before each part of a request is passed on. cut_after: a connection is closed
        after so many bytes from the client, None: never. is_away: whether connections are closed.
    """

    def __init__(self, port: int) -> None:
        self.delay_s = 0.0
        self.cut_after: int | None = None
        self.is_away = False
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        if self.is_away:
            client.close()
            return
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            threading.Thread(target=self._copy, args=(server, client, False), daemon=True).start()
            self._copy(client, server, True)

    def _copy(self, source: socket.socket, target: socket.socket, is_upload: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.is_away:
                    break
                if is_upload:
                    time.sleep(self.delay_s)
                    passed += len(data)
                    if self.cut_after is not None and passed > self.cut_after:
                        target.sendall(data[: len(data) // 2])
                        break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the S3 server does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    port = _free_port()
    assert SERVER is not None
    process = subprocess.Popen(
        [SERVER, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def s3(server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The server behind a proxy; `s3://recordings/...` leads there by the environment alone."""
    proxy = Proxy(server)
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(name, value)
    client().create_bucket(Bucket=BUCKET)
    yield proxy
    proxy.close()


def client() -> Any:
    import boto3

    return boto3.client("s3")


def url_of(path: Path) -> str:
    return f"s3://{BUCKET}/{path.name}"


def rows(archive: Archive) -> tuple[int, int]:
    """Rows of events and samples, and distinct ones."""
    table = archive.read(tables.EVENTS)
    keys = table.group_by(["segment", "time_ns", "source"]).aggregate([]).num_rows
    return table.num_rows, keys


PUSH = (
    "import sys; from pathlib import Path; from iolab.archive import Archive, push;"
    " push(Path(sys.argv[1]), Archive.open(sys.argv[2], create=True))"
)


def start_push(path: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PUSH, str(path), url], stderr=subprocess.DEVNULL)


def test_an_archive_in_s3_answers_as_the_recording(s3: Proxy, tmp_path: Path) -> None:
    record(tmp_path / "rec")
    url = url_of(tmp_path)
    push(tmp_path / "rec", Archive.open(url, create=True))
    archive = Archive.open(url)
    [recording] = open_recordings(archive, archive.recordings())
    for text in ("io.ops", "io.ops[latency]", "io.bytes[process]", "io.ops[offset]"):
        answers = [
            as_data(parse(text), query(item, text, interval_ns=SECOND), None)
            for item in (recording, Recording(tmp_path / "rec"))
        ]
        assert answers[0] == answers[1]
    assert fetch(archive, tmp_path / "back", choose(archive)).samples == 15


def test_no_credential_is_in_the_archive(s3: Proxy, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-to-find")
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", Archive.open(url_of(tmp_path), create=True))
    listed = client().list_objects_v2(Bucket=BUCKET, Prefix=tmp_path.name)["Contents"]
    assert len(listed) > 8
    for item in listed:
        content = client().get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
        assert b"a-secret-to-find" not in content


def test_a_pusher_killed_again_and_again_leaves_each_row_once(s3: Proxy, tmp_path: Path) -> None:
    record(tmp_path / "rec", segments=6)
    url = url_of(tmp_path)
    chance = random.Random(20)
    kills = 0
    for _ in range(depth(3, 20)):
        process = start_push(tmp_path / "rec", url)
        try:
            process.wait(chance.uniform(0.8, 6))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills
    archive = Archive.open(url, create=True)
    push(tmp_path / "rec", archive)
    assert rows(archive) == (600, 600)
    assert archive.read(tables.SAMPLES).num_rows == 30


def test_pushers_of_two_recordings_do_not_lose_a_row(s3: Proxy, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    Archive.open(url, create=True)
    for host in ("a", "b"):
        record(tmp_path / host, segments=2, host=host)
    pushers = [start_push(tmp_path / host, url) for host in ("a", "b")]
    codes = [pusher.wait(240) for pusher in pushers]
    for host, code in zip(("a", "b"), codes, strict=True):
        if code:
            push(tmp_path / host, Archive.open(url))
    archive = Archive.open(url)
    counts = {item.host: (item.segments, item.samples) for item in archive.recordings()}
    assert counts == {"a": (2, 10), "b": (2, 10)}
    assert archive.read(tables.EVENTS).num_rows == 400


def test_a_writer_that_was_first_wins(s3: Proxy, tmp_path: Path) -> None:
    """An upload of the catalog on a version that is not the latest any more."""
    from pyiceberg.exceptions import CommitFailedException

    from iolab.archive.object_catalog import ObjectCatalog

    url = url_of(tmp_path)
    one = ObjectCatalog("iolab", url, "catalog.db", create=True)
    two = ObjectCatalog("iolab", url, "catalog.db", create=True)
    one.create_namespace("first")

    two._download()
    one.create_namespace("second")
    with pytest.raises(CommitFailedException):
        two._upload()
    two.create_namespace("third")
    one._download()
    assert {("first",), ("second",), ("third",)} <= set(one.list_namespaces())


@pytest.mark.parametrize("fault", ["away", "torn"])
def test_a_store_with_faults_costs_one_line_and_no_row(
    s3: Proxy, tmp_path: Path, fault: str
) -> None:
    record(tmp_path / "rec", segments=2)
    url = url_of(tmp_path)
    archive = Archive.open(url, create=True)
    if fault == "away":
        s3.is_away = True
    else:
        s3.cut_after = 6_000
    with pytest.raises(ResultsError) as error:
        push(tmp_path / "rec", archive)
    assert "\n" not in str(error.value)
    assert url in str(error.value)
    s3.is_away, s3.cut_after = False, None
    archive = Archive.open(url)
    push(tmp_path / "rec", archive)
    assert rows(archive) == (200, 200)


def test_a_slow_store_takes_its_time(s3: Proxy, tmp_path: Path) -> None:
    record(tmp_path / "rec", segments=1)
    archive = Archive.open(url_of(tmp_path), create=True)
    s3.delay_s = depth(1, 20) / 10
    push(tmp_path / "rec", archive)
    assert rows(archive) == (100, 100)


def test_an_address_that_is_no_archive(s3: Proxy, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="is not an archive"):
        Archive.open(url_of(tmp_path))
    with pytest.raises(ResultsError) as error:
        Archive.open("s3://no-such-bucket/x", create=True)
    assert "\n" not in str(error.value)


def test_wrong_credentials_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = _free_port()
    assert SERVER is not None
    # after the bucket is made, requests need a known key
    process = subprocess.Popen(
        [SERVER, "-H", "127.0.0.1", "-p", str(port)],
        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(port, process)
        for name, value in (
            ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
            ("AWS_ACCESS_KEY_ID", "wrong"),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        client().create_bucket(Bucket=BUCKET)
        with pytest.raises(ResultsError) as error:
            Archive.open(url_of(tmp_path), create=True)
        assert "\n" not in str(error.value)
        assert "InvalidAccessKeyId" in str(error.value)
        assert SECRET not in str(error.value)
    finally:
        process.terminate()
        process.wait()
