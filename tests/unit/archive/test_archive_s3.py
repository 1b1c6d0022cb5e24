# SPDX-License-Identifier: Apache-2.0
"""Archives in S3, on a server on loopback: every row exactly once, whatever is killed, away, full, slow
or torn. `make archive-test` builds the server."""

from __future__ import annotations

import contextlib
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

import pytest

from iolab.base.errors import ResultsError
from iolab.recordings.archive import Archive, choose, fetch, push, tables
from iolab.recordings.archive.recordings import open_recordings
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.depth import depth
from support.recordings import SECOND, START, events, samples
from support.s3_server import (
    BUCKET,
    SECRET,
    S3Server,
    client,
    reason_without,
    reason_without_mounts,
    s3_server,
    set_variable,
    use,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(reason := reason_without()), reason=reason or ""),
]


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
        after so many bytes from the client, None: never.
    """

    def __init__(self, port: int) -> None:
        self.delay_s = 0.0
        self.cut_after: int | None = None
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
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            threading.Thread(target=self._copy, args=(server, client, False), daemon=True).start()
            self._copy(client, server, True)

    def _copy(self, source: socket.socket, target: socket.socket, is_upload: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "buckets") as started:
        yield started


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """`s3://recordings/...` leads to the server by the environment alone."""
    use(server.port, monkeypatch)
    return server


@pytest.fixture
def proxy(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The same, by way of a proxy."""
    proxy = Proxy(server.port)
    use(proxy.port, monkeypatch)
    yield proxy
    proxy.close()


def url_of(path: Path) -> str:
    return f"s3://{BUCKET}/{path.name}"


def rows(archive: Archive) -> tuple[int, int]:
    """Rows of events and samples, and distinct ones."""
    table = archive.read(tables.EVENTS)
    keys = table.group_by(["segment", "time_ns", "source"]).aggregate([]).num_rows
    return table.num_rows, keys


PUSH = (
    "import sys; from pathlib import Path; from iolab.recordings.archive import Archive, push;"
    " push(Path(sys.argv[1]), Archive.open(sys.argv[2], create=True))"
)


def start_push(path: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PUSH, str(path), url], stderr=subprocess.DEVNULL)


def test_an_archive_in_s3_answers_as_the_recording(s3: S3Server, tmp_path: Path) -> None:
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


def test_no_credential_is_in_the_archive(s3: S3Server, tmp_path: Path) -> None:
    record(tmp_path / "rec", segments=1)
    push(tmp_path / "rec", Archive.open(url_of(tmp_path), create=True))
    listed = client().list_objects_v2(Bucket=BUCKET, Prefix=tmp_path.name)["Contents"]
    assert len(listed) > 8
    for item in listed:
        content = client().get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
        assert SECRET.encode() not in content


@pytest.mark.parametrize("victim", ["pusher", "store"])
def test_what_is_killed_again_and_again_leaves_each_row_once(
    s3: S3Server, tmp_path: Path, victim: str
) -> None:
    record(tmp_path / "rec", segments=6)
    url = url_of(tmp_path)
    chance = random.Random(20)
    kills = 0
    for _ in range(depth(3, 20)):
        process = start_push(tmp_path / "rec", url)
        try:
            process.wait(chance.uniform(0.8, 6))
        except subprocess.TimeoutExpired:
            kills += 1
            if victim == "pusher":
                process.send_signal(signal.SIGKILL)
                process.wait()
            else:
                s3.kill()
                process.wait()
                s3.start()
    assert kills
    archive = Archive.open(url, create=True)
    push(tmp_path / "rec", archive)
    assert rows(archive) == (600, 600)
    assert archive.read(tables.SAMPLES).num_rows == 30


@pytest.mark.parametrize("are_copies", [False, True])
def test_two_pushers_lose_and_double_no_row(s3: S3Server, tmp_path: Path, are_copies: bool) -> None:
    url = url_of(tmp_path)
    Archive.open(url, create=True)
    record(tmp_path / "a", segments=2, host="a")
    if are_copies:
        shutil.copytree(tmp_path / "a", tmp_path / "b")
    else:
        record(tmp_path / "b", segments=2, host="b")
    pushers = [start_push(tmp_path / name, url) for name in ("a", "b")]
    codes = [pusher.wait(240) for pusher in pushers]
    for name, code in zip(("a", "b"), codes, strict=True):
        if code:
            push(tmp_path / name, Archive.open(url))
    archive = Archive.open(url)
    counts = {item.host: (item.segments, item.samples) for item in archive.recordings()}
    assert counts == dict.fromkeys(["a"] if are_copies else ["a", "b"], (2, 10))
    assert archive.read(tables.EVENTS).num_rows == 200 * len(counts)


def test_a_writer_that_was_first_wins(s3: S3Server, tmp_path: Path) -> None:
    """An upload of the catalog on a version that is not the latest any more."""
    from pyiceberg.exceptions import CommitFailedException

    from iolab.recordings.archive.object_catalog import ObjectCatalog

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


def test_a_store_that_is_away_costs_one_line_and_no_row(s3: S3Server, tmp_path: Path) -> None:
    record(tmp_path / "rec", segments=2)
    url = url_of(tmp_path)
    archive = Archive.open(url, create=True)
    s3.kill()
    try:
        fails(tmp_path, archive, "the store does not answer")
    finally:
        s3.start()
    push(tmp_path / "rec", Archive.open(url))
    assert rows(Archive.open(url)) == (200, 200)


def test_a_torn_upload_costs_one_line_and_no_row(proxy: Proxy, tmp_path: Path) -> None:
    record(tmp_path / "rec", segments=2)
    url = url_of(tmp_path)
    archive = Archive.open(url, create=True)
    proxy.cut_after = 6_000
    fails(tmp_path, archive, "the store does not answer")
    proxy.cut_after = None
    push(tmp_path / "rec", Archive.open(url))
    assert rows(Archive.open(url)) == (200, 200)


@pytest.mark.skipif(
    bool(reason := reason_without() or reason_without_mounts()), reason=reason or ""
)
def test_a_full_store_costs_one_line_and_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for an archive without rows only, until objects of another user are deleted."""
    record(tmp_path / "rec", segments=2)
    url = url_of(tmp_path)
    with s3_server(tmp_path / "buckets", size=16 << 20) as small:
        use(small.port, monkeypatch)
        archive = Archive.open(url, create=True)
        filling = fill()
        fails(tmp_path, archive, "the store is full")
        for key in filling:
            client().delete_object(Bucket=BUCKET, Key=key)
        push(tmp_path / "rec", Archive.open(url))
        assert rows(Archive.open(url)) == (200, 200)


def fill() -> list[str]:
    """Put objects until there is room for a few KiB; their keys."""
    from botocore.exceptions import ClientError

    keys: list[str] = []
    size = 8 << 20
    while size >= 4 << 10:
        key = f"filling/{len(keys)}"
        try:
            client().put_object(Bucket=BUCKET, Key=key, Body=bytes(size))
            keys.append(key)
        except ClientError:
            size //= 2
    return keys


def fails(tmp_path: Path, archive: Archive, message: str) -> None:
    """A push ends with one line that names the store and what is wrong with it."""
    with pytest.raises(ResultsError) as error:
        push(tmp_path / "rec", archive)
    assert "\n" not in str(error.value)
    assert archive.url in str(error.value)
    assert message in str(error.value)
    assert error.value.hint
    assert SECRET not in str(error.value)


def test_a_slow_store_takes_its_time(proxy: Proxy, tmp_path: Path) -> None:
    record(tmp_path / "rec", segments=1)
    archive = Archive.open(url_of(tmp_path), create=True)
    proxy.delay_s = depth(1, 20) / 10
    push(tmp_path / "rec", archive)
    assert rows(archive) == (100, 100)


def test_an_address_that_is_no_archive(s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="is not an archive"):
        Archive.open(url_of(tmp_path))
    with pytest.raises(ResultsError) as error:
        Archive.open("s3://no-such-bucket/x", create=True)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("AWS_ACCESS_KEY_ID", "wrong", "the store refuses the credentials"),
        ("AWS_SECRET_ACCESS_KEY", "wrong", "the store refuses the credentials"),
        ("AWS_ENDPOINT_URL", "127.0.0.1:80", "the address of the store is not a URL"),
    ],
)
def test_a_wrong_environment_is_one_line(
    s3: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    message: str,
) -> None:
    set_variable(variable, value, monkeypatch)
    with pytest.raises(ResultsError) as error:
        Archive.open(url_of(tmp_path), create=True)
    assert "\n" not in str(error.value)
    assert message in str(error.value)
    assert error.value.hint
    assert SECRET not in str(error.value)
