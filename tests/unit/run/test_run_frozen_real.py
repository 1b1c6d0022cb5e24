# SPDX-License-Identifier: Apache-2.0
"""A target that stops answering: a real file system, frozen under a real load."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import iolab
from iolab.hosts.base.host import HungError
from iolab.hosts.ssh.host import SshHost
from iolab.studies.results.evidence.journal import read_journal
from support.disks import call, loop_device, need_loops
from support.sshd import sshd
from support.waiting import PATIENCE, until

pytestmark = [pytest.mark.fio, pytest.mark.loops, pytest.mark.exclusive]
PACKAGE = str(Path(iolab.__file__).parent.parent)
STUDY = """
[study]
repetitions = 2
[target]
path = "{point}"
[workload]
kind = "fio"
runtime = "2s"
options = {{size = "4m", rw = "randwrite", bs = "4k", fsync = 1, numjobs = 2}}
"""


@contextlib.contextmanager
def frozen(point: Path) -> Iterator[None]:
    """Freeze a file system; it is thawed in any case, by a process of its own too."""
    guard = subprocess.Popen(
        ["sh", "-c", 'sleep 60; fsfreeze --unfreeze "$1"', "sh", str(point)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        call("fsfreeze", "--freeze", str(point))
        yield
    finally:
        thaw(point)
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()


def thaw(point: Path) -> None:
    subprocess.run(["fsfreeze", "--unfreeze", str(point)], check=False, capture_output=True)


@pytest.fixture
def point(fio: str, tmp_path: Path) -> Iterator[Path]:
    """A mounted file system of its own."""
    need_loops("fsfreeze")
    place = tmp_path / "point"
    place.mkdir()
    with loop_device(tmp_path, 64 << 20) as node:
        call("mkfs.ext4", "-q", node)
        call("mount", node, str(place))
        try:
            yield place
        finally:
            thaw(place)
            until(
                lambda: (
                    subprocess.run(
                        ["umount", str(place)], check=False, capture_output=True
                    ).returncode
                    == 0
                ),
                "the mount to go",
            )


def study(tmp_path: Path, point: Path, *flags: str) -> subprocess.Popen[str]:
    file = tmp_path / "s.toml"
    file.write_text(STUDY.format(point=point))
    return subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "run", str(file), "-o", str(tmp_path / "out"), *flags],
        text=True,
        env={**os.environ, "PYTHONPATH": PACKAGE},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


class Words:
    """What a program says, as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.text = ""
        assert process.stdout is not None
        self._thread = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._thread.start()

    def _read(self, stream: Iterator[str]) -> None:
        for line in stream:
            self.text += line

    def joined(self) -> str:
        self._thread.join(PATIENCE)
        return " ".join(self.text.split())


def events(out: Path) -> list[str]:
    return (
        [event["event"] for event in read_journal(out)[0]]
        if (out / "journal.jsonl").exists()
        else []
    )


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ((signal.SIGINT, signal.SIGINT), 130),
        pytest.param((signal.SIGINT,), 130, marks=pytest.mark.deep),
        pytest.param((signal.SIGTERM,), 130, marks=pytest.mark.deep),
    ],
)
def test_a_frozen_file_system_is_told_and_both_ways_to_stop_are_answered(
    point: Path, tmp_path: Path, signals: tuple[signal.Signals, ...], code: int
) -> None:
    process = study(tmp_path, point)
    words = Words(process)
    try:
        until(lambda: "started" in events(tmp_path / "out"), "the load")
        time.sleep(1.0)
        with frozen(point):
            begin = time.monotonic()
            until(lambda: "has waited in the kernel" in " ".join(words.text.split()), "word of it")
            assert time.monotonic() - begin < 15
            begin = time.monotonic()
            for number in signals:
                process.send_signal(number)
                time.sleep(0.1)
            assert process.wait(PATIENCE) == code
            assert time.monotonic() - begin < 10
            said = words.joined()
            assert "(state D" in said
            assert "--resume removes them" in said
            assert events(tmp_path / "out")[-2:] == ["interrupted", "stopped"]
            again = study(tmp_path, point, "--resume")
            hindered = Words(again)
            assert again.wait(2 * PATIENCE) == 5
            assert "waits in the kernel and can't be ended" in hindered.joined()
        last = study(tmp_path, point, "--resume")
        end = Words(last)
        assert last.wait(4 * PATIENCE) == 0, end.joined()
        assert sorted(path.name for path in point.iterdir()) == ["lost+found"]
        assert not list((tmp_path / "out").glob("*.made"))
        assert events(tmp_path / "out")[-1] == "closed"
    finally:
        thaw(point)
        process.kill()
        process.wait()


def test_what_hangs_on_another_host_is_waited_for_within_bounds(
    point: Path, tmp_path: Path
) -> None:
    """A command, and a program of a run: neither can be ended, both are told, and the host is asked
    further."""
    with sshd(tmp_path / "ssh") as options, SshHost(options) as host:
        assert host.run(["true"]).exit_code == 0
        with frozen(point):
            begin = time.monotonic()
            with pytest.raises(
                HungError, match="'mkdir' did not end within 1 s: it waits in the kernel"
            ):
                host.run(["mkdir", str(point / "never")], timeout=1)
            assert time.monotonic() - begin < 15
            process = host.start(
                ["mkdir", str(point / "later")],
                cwd=tmp_path,
                stdout=tmp_path / "out",
                stderr=tmp_path / "err",
            )
            assert process.wait(1.0) is None
            begin = time.monotonic()
            assert process.end(grace=0.5, patience=1.0) is None
            assert time.monotonic() - begin < 15
            assert host.run(["echo", "there"]).stdout == "there\n"
        assert process.end(grace=5.0) is not None
        host.make_directory(str(point / "made"))
        host.remove_tree(str(point / "made"))
        with pytest.raises(FileNotFoundError):
            host.make_directory(str(point / "absent" / "made"))
        assert not (point / "made").exists()


def test_a_file_system_that_is_frozen_from_the_start_is_told(point: Path, tmp_path: Path) -> None:
    with frozen(point):
        process = study(tmp_path, point)
        words = Words(process)
        try:
            time.sleep(3)
            process.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            assert process.wait(PATIENCE) == 5
            assert time.monotonic() - begin < 20
            assert "waits in the kernel" in words.joined()
        finally:
            process.kill()
            process.wait()
