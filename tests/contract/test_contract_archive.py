# SPDX-License-Identifier: Apache-2.0
"""Three hosts under load that push while they record: recorders and pushes are killed again and
again, and the archive has every I/O of fio exactly once."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from iolab.recordings.archive import Archive, tables
from iolab.recordings.archive.recordings import open_recordings
from iolab.recordings.ask.query import query
from support.depth import IS_FULL
from support.recorded import device_in_memory
from support.s3_server import BUCKET, reason_without, s3_server, use
from support.waiting import recorded_events

pytestmark = [
    pytest.mark.fio,
    pytest.mark.loops,
    pytest.mark.tracing,
    pytest.mark.deep,
    pytest.mark.skipif(not IS_FULL, reason="takes minutes: make test-all"),
]
HOSTS = ("alpha", "beta", "gamma")
KILLS = 21
BURST = 2_000


class Agent:
    """A host that records a device of its own into the archive."""

    def __init__(self, host: str, node: str, home: Path, url: str) -> None:
        self.host, self.node, self.path, self.url = host, node, home / host, url
        self.ios = self.ios_before = 0
        self._log = (home / f"{host}.log").open("ab")
        self.start()

    def start(self) -> None:
        words = [
            sys.executable, "-m", "iolab.cli", "record", "block", "--device", self.node, "-q",
            "--budget", "none", "-o", str(self.path), "--archive", self.url,
        ]  # fmt: skip
        script = 'hostname "$1"; shift; exec "$@"'
        self.process = subprocess.Popen(
            ["unshare", "--uts", "sh", "-c", script, "sh", self.host, *words], stderr=self._log
        )
        recorded_events(self.path, 0, pid=self.process.pid)
        self.ios_before = self.ios

    def load(self) -> subprocess.Popen[bytes]:
        """A burst of random reads."""
        report = self.path.parent / f"{self.host}.json"
        return subprocess.Popen(
            [
                "fio", "--name=j", f"--filename={self.node}", "--rw=randread", "--bs=4k",
                "--ioengine=libaio", "--iodepth=4", "--direct=1", f"--number_ios={BURST}",
                "--norandommap", "--output-format=json", f"--output={report}",
            ]
        )  # fmt: skip

    def count(self) -> None:
        """Add the I/Os of the burst that ended, and wait until they are recorded."""
        report = json.loads((self.path.parent / f"{self.host}.json").read_text())
        self.ios += sum(job["read"]["total_ios"] for job in report["jobs"])
        recorded_events(self.path, self.ios - self.ios_before, pid=self.process.pid)

    def pusher(self) -> int | None:
        """The process that pushes; None while none runs."""
        try:
            text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        except OSError:
            return None
        for pid in map(int, text.split()):
            try:
                if b"\0archive\0push\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
            except OSError:
                continue
        return None

    def kill(self, chance: random.Random) -> str:
        """Kill the recorder or its push at a random moment; a recorder begins again."""
        time.sleep(chance.uniform(0, 2))
        pid = self.pusher()
        if pid is not None and chance.random() < 0.5:
            subprocess.run(["kill", "-KILL", str(pid)], check=False)
            return "push"
        self.process.kill()
        self.process.wait()
        if pid is not None and chance.random() < 0.5:
            subprocess.run(["kill", "-KILL", str(pid)], check=False)
        self.start()
        return "recorder"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(300)


@pytest.fixture(params=["directory", "s3"])
def url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    if request.param == "directory":
        yield str(tmp_path / "archive")
        return
    if reason := reason_without():
        pytest.skip(reason)
    with s3_server(tmp_path / "buckets") as server:
        use(server.port, monkeypatch)
        yield f"s3://{BUCKET}/archive"


@pytest.fixture
def agents(tmp_path: Path, url: str) -> Iterator[list[Agent]]:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    with ExitStack() as stack:
        started: list[Agent] = []
        for host in HOSTS:
            place = tmp_path / f"disk-{host}"
            place.mkdir()
            node = stack.enter_context(device_in_memory(place))
            started.append(Agent(host, node, tmp_path, url))
            stack.callback(started[-1].stop)
        yield started


def test_each_io_of_three_hosts_arrives_once(agents: list[Agent]) -> None:
    chance = random.Random(24)
    kills = {"recorder": 0, "push": 0}
    for _ in range(KILLS // len(HOSTS)):
        bursts = [agent.load() for agent in agents]
        assert [burst.wait(300) for burst in bursts] == [0] * len(HOSTS)
        for agent in agents:
            agent.count()
            kills[agent.kill(chance)] += 1
    assert min(kills.values()) > 3
    for agent in agents:
        assert agent.end() == 0, (agent.path.parent / f"{agent.host}.log").read_text()

    archive = Archive.open(agents[0].url)
    expected = {agent.host: agent.ios for agent in agents}
    print(f"kills: {kills}; I/Os of fio: {expected}")
    archived = {item.host: item.events for item in archive.recordings()}
    assert archived == expected
    rows = archive.read(tables.EVENTS, None, ("host", "count"))
    sums = rows.group_by("host").aggregate([("count", "sum")]).to_pylist()
    assert {row["host"]: row["count_sum"] for row in sums} == expected
    for recording in open_recordings(archive, archive.recordings()):
        assert query(recording, "io.ops").total == expected[recording.archived.host]
