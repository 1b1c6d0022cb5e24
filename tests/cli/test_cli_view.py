# SPDX-License-Identifier: Apache-2.0
"""`iolab view` and `iolab live` as a user starts and ends them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import IolabError
from iolab.cli.main import run
from iolab.output.report.page.html import bundle_file
from iolab.output.server.alerts import commands
from iolab.recordings.store.read.recording import Recording
from support.waiting import PATIENCE, recorded_events, until

FRAMES = Path(__file__).parents[1] / "support/frames.py"
URL = re.compile(r"(http://127\.0\.0\.1:\d+)/\?token=([\w-]{40,})")

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    try:
        bundle_file("live.js")
    except IolabError as error:
        pytest.skip(f"the page has not been built: {error.hint}")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("time:ms,latency:us,op\n" + "".join(f"{at},100,read\n" for at in range(1000)))
    return path


Started = tuple[subprocess.Popen[str], str, str]


@pytest.fixture
def started() -> Iterator[Callable[..., Started]]:
    """Start a command; the process, its address and its token."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> Started:
        process = subprocess.Popen(
            [sys.executable, "-m", "iolab.cli", *map(str, arguments)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = URL.fullmatch(line.strip())
        assert found, (line, process.communicate(timeout=PATIENCE))
        return process, found[1], found[2]

    yield start
    for process in processes:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE)


def get(address: str, token: str) -> Any:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def test_view_serves_until_it_is_ended(trace: Path, started: Callable[..., Started]) -> None:
    process, base, token = started("view", trace, "--port", 0)
    assert get(f"{base}/api/v1/query?statistic=io.ops", token)["total"] == 1000
    with pytest.raises(urllib.error.HTTPError, match="401"):
        get(f"{base}/api/v1/recordings", "x")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE) == ("", "Ctrl-C ends it\n")
    assert process.returncode == 0


def test_a_token_may_be_kept(trace: Path, started: Callable[..., Started], tmp_path: Path) -> None:
    file = tmp_path / "token"
    process, _, token = started("view", trace, "--port", 0, "--token-file", file)
    assert file.read_text().strip() == token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    process.terminate()
    assert process.wait(PATIENCE) == 0
    assert started("view", trace, "--port", 0, "--token-file", file)[2] == token


def test_a_token_that_somebody_else_wrote_is_refused(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, link = tmp_path / "token", tmp_path / "link"
    file.write_text("x" * 40)
    file.chmod(0o600)
    link.symlink_to(file)
    assert run(["view", str(trace), "--token-file", str(link)]) == 2
    assert "is a symbolic link" in capsys.readouterr().err
    monkeypatch.setattr(commands, "owners", lambda: {os.geteuid() + 1})
    assert run(["view", str(trace), "--token-file", str(file)]) == 2
    assert "belongs to somebody else" in capsys.readouterr().err
    assert file.read_text() == "x" * 40


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing.csv"], 2, "no such file"),
        (["-"], 2, "standard input"),
        (["t.csv", "--port", "99999"], 2, "99999 is not a port"),
        (["t.csv", "--listen", "no.such.host.invalid"], 2, "there is no host"),
        (["t.csv", "--metric", "io.opps"], 2, "there is no statistic"),
        (["t.csv", "--metric", "io.ops[offset]"], 2, "makes no metric"),
        ([], 2, "Missing argument"),
        (["."], 2, "no recordings, results or histories"),
        (["t.csv", "--token-file", "open"], 2, "others can read"),
        (["t.csv", "--token-file", "short"], 2, "holds no token"),
        (["t.csv", "--token-file", "none/such"], 2, "holds no token"),
        (["t.csv", "--token-file", "fifo"], 2, "is a FIFO, not a regular file"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    code: int,
    said: str,
    trace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, mode, text in (("open", 0o644, "x" * 40), ("short", 0o600, "x")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert run(["view", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_a_taken_port_is_said(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run(["view", str(trace), "--port", str(taken.getsockname()[1])]) == 5
    assert "can't listen there" in capsys.readouterr().err


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe of a script (see `support.frames`), which runs anywhere as root."""
    if os.geteuid() != 0:
        pytest.skip("recording block needs root")
    log = tmp_path / "probe.log"
    log.touch()
    path = tmp_path / "probe"
    path.write_text(
        f"#!/bin/sh\nexec {sys.executable} {FRAMES} '{json.dumps({'log': str(log)})}' \"$@\"\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("IOLAB_PROBE", str(path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_live_records_and_serves_and_ends_both(
    number: signal.Signals, probe: None, started: Callable[..., Started], tmp_path: Path
) -> None:
    process, base, token = started("live", "-o", tmp_path / "rec", "--port", 0)
    [facts] = until(
        lambda: [
            each
            for each in get(f"{base}/api/v1/recordings", token)["recordings"]
            if each.get("events")
        ],
        "events",
    )
    assert facts["live"]
    arguments = json.loads((tmp_path / "probe.log").read_text())["arguments"]
    assert ["--exclude-pid", str(process.pid)] in [
        arguments[at : at + 2] for at in range(len(arguments))
    ]  # what serves
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "recorded " in err
    assert "Traceback" not in err
    session = Recording(tmp_path / "rec").facts.sessions[-1]
    assert session["until_ns"] is not None


def test_a_killed_server_does_no_harm_to_the_recording(
    probe: None, started: Callable[..., Started], tmp_path: Path
) -> None:
    process, _, _ = started("live", "-o", tmp_path / "rec", "--port", 0)
    process.kill()
    process.wait(PATIENCE)
    try:
        status = recorded_events(tmp_path / "rec")
        recorded_events(tmp_path / "rec", sum(status["events"].values()) + 200, pid=status["pid"])
    finally:
        assert run(["record", "--stop", str(tmp_path / "rec")]) == 0
    assert Recording(tmp_path / "rec").facts.sessions[-1]["until_ns"] is not None


def test_live_says_why_it_does_not_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IOLAB_PROBE", str(tmp_path / "none"))
    done = subprocess.run(
        [sys.executable, "-m", "iolab.cli", "live", "-o", str(tmp_path / "rec")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 5
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    wrong = subprocess.run(
        [sys.executable, "-m", "iolab.cli", "live", "tape"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert wrong.returncode == 2
    assert "unknown source 'tape'" in wrong.stderr
