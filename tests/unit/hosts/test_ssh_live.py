# SPDX-License-Identifier: Apache-2.0
"""`iolab live` of several hosts, over an sshd of the tests' own: a recording for each, one page of
all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from iolab.cli.main import run
from iolab.cli.record import live
from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.recordings.store.read.recording import Recording
from support.sshd import nothing_is_left, sshd
from support.waiting import PATIENCE

FRAMES = Path(__file__).parents[2] / "support/frames.py"

pytestmark = pytest.mark.fio
HOSTS = ("alpha", "beta")


@pytest.fixture(scope="module")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshOptions]:
    if os.geteuid() != 0:
        pytest.skip("the far side must be root's, and it is this user's")
    with sshd(tmp_path_factory.mktemp("sshd")) as options:
        yield options


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With a probe of a script, as in `test_ssh_recorded`."""
    path = tmp_path / "probe"
    check = json.dumps({"sources": {"block": {"available": True, "words": []}}})
    script = json.dumps({"rate": 500})
    path.write_text(
        f"#!/bin/sh\nif [ \"$1\" = --check ]; then echo '{check}'; exit; fi\n"
        f"exec {sys.executable} {FRAMES} '{script}' \"$@\"\n"
    )
    path.chmod(0o755)
    environment = {**os.environ, "IOLAB_PROBE": str(path), "XDG_DATA_HOME": str(tmp_path / "data")}
    for name in ("SUDO_UID", "SUDO_GID"):
        environment.pop(name, None)
    return environment


def ask(address: str, path: str, **words: str) -> Any:
    """The answer of the service, or the text of a page."""
    url = urlsplit(address)
    request = urllib.request.Request(
        f"{url.scheme}://{url.netloc}{path}?{urlencode(words)}",
        headers={"authorization": f"Bearer {parse_qs(url.query)['token'][0]}"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read().decode()
    return json.loads(text) if path.startswith("/api") else text


def rates_of_hosts(address: str, seconds: float) -> dict[str, int]:
    """Columns with I/Os of each host, once all hosts have some."""
    end = time.monotonic() + seconds
    while True:
        answer = ask(address, "/api/v1/fleet", measure="iops")
        counts = {
            row["host"]: sum(1 for value in row["values"] if value) for row in answer["hosts"]
        }
        assert answer["live"]
        if (len(counts) == len(HOSTS) and min(counts.values()) > 0) or time.monotonic() > end:
            return counts
        time.sleep(0.3)


def test_several_hosts_have_a_row_each_and_a_lost_host_does_not_end_the_others(
    far_side: SshOptions, environment: dict[str, str], tmp_path: Path
) -> None:
    hosts = {name: SshHost(far_side.model_copy(update={"name": name})).words for name in HOSTS}
    folder = tmp_path / "all"
    words = ["live", "block", "--port", "0", "-o", str(folder), "--budget", "none"]
    words += [word for text in hosts.values() for word in ("--host", text)]
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), process.communicate(timeout=PATIENCE)
        counts = rates_of_hosts(address, PATIENCE)
        assert set(counts) == set(HOSTS)
        assert min(counts.values()) > 0
        assert "/fleet.js" in ask(address, "/")
        [beta] = [
            row for row in ask(address, "/api/v1/fleet", measure="p99")["hosts"]
            if row["host"] == "beta"
        ]  # fmt: skip
        name = beta["recordings"][0]["name"]
        assert ask(address, "/api/v1/query", recording=name, statistic="io.ops")["total"] > 0
        assert run(["record", "--stop", str(folder / "alpha")]) == 0
        before = Recording(folder / "beta").span()
        end = time.monotonic() + PATIENCE
        while Recording(folder / "beta").span() == before and time.monotonic() < end:
            time.sleep(0.2)
        assert Recording(folder / "beta").span() != before
        assert set(rates_of_hosts(address, 0)) == set(HOSTS)
    finally:
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=PATIENCE)
        nothing_is_left()
    assert process.returncode in (0, 130), messages
    for host in HOSTS:
        assert [line for line in messages.splitlines() if line.startswith(f"{host}: recorded ")]
        sessions = Recording(folder / host).facts.sessions
        assert sessions[-1]["until_ns"] is not None


def test_a_host_that_is_given_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["live", "--host", "root@there", "--host", "root@there", "-o", str(tmp_path / "all")]
    assert run(words) == 2
    assert "given twice" in capsys.readouterr().err
    assert not (tmp_path / "all").exists()


def test_hosts_with_the_same_directory_name(tmp_path: Path) -> None:
    hosts = ("root@[fe80::1]", "root@fe80-1", "root@[fe80:1]")
    places = live._places(hosts, tmp_path)
    assert list(places) == list(hosts)
    assert len(set(places.values())) == len(hosts)
    assert {place.parent for place in places.values()} == {tmp_path}


def test_places_of_hosts(tmp_path: Path) -> None:
    assert live._places(("root@a",), tmp_path) == {"root@a": tmp_path}
    places = live._places(("root@a", "rig:b", "local", "root@[fe80::1]"), tmp_path)
    assert len({*places.values()}) == 4
    assert {place.parent for place in places.values()} == {tmp_path}
    assert not any(set(":[]/") & set(place.name) for place in places.values())
