# SPDX-License-Identifier: Apache-2.0
"""A recording is its owner's alone unless it is shared; a lock that somebody holds is told with who
does."""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.base.clock import SystemClock
from iolab.base.errors import ResultsError
from iolab.recordings.record.command import Command
from iolab.recordings.record.session import open_writer
from iolab.recordings.record.settings import Retention
from iolab.recordings.store.base.lock import holder_of, short_lock, take_lock
from iolab.recordings.store.write.writer import RecordingWriter
from support.waiting import until

HELLO = {
    "monotonic_ns": 5 * 10**9,
    "realtime_ns": 17 * 10**17,
    "sources": {"block": {}},
    "hostname": "here",
}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_recording_is_its_owners_alone(tmp_path: Path) -> None:
    RecordingWriter.create(
        tmp_path / "deep/r", host="", clock="trace", origin={"kind": "import"}
    ).close()
    assert mode(tmp_path / "deep/r") == 0o700


@pytest.mark.parametrize(("is_shared", "expected"), [(False, 0o700), (True, 0o755)])
def test_one_that_is_gone_on_with_becomes_so(
    tmp_path: Path, is_shared: bool, expected: int
) -> None:
    before = os.umask(0o022)
    try:
        (tmp_path / "r").mkdir(mode=0o755)
        for _ in range(2):
            open_writer(
                tmp_path / "r",
                HELLO,
                Retention(),
                {"kind": "record"},
                SystemClock(),
                is_shared=is_shared,
            ).close()
            assert mode(tmp_path / "r") == expected
        open_writer(
            tmp_path / "new",
            HELLO,
            Retention(),
            {"kind": "record"},
            SystemClock(),
            is_shared=is_shared,
        ).close()
        assert mode(tmp_path / "new") == expected
    finally:
        os.umask(before)


def test_the_command_keeps_its_own_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        command = Command(["sh", "-c", f"umask > {tmp_path}/told"], 0o027)
        command.start()
        until(lambda: command.exit_code() is not None, "its end")
    finally:
        os.umask(before)
    assert (tmp_path / "told").read_text() == "0027\n"


def test_who_holds_a_lock_is_named_though_the_file_says_another(tmp_path: Path) -> None:
    RecordingWriter.create(
        tmp_path / "r", host="", clock="trace", origin={"kind": "import"}
    ).close()
    code = "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print('held', flush=True); time.sleep(600)"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "r/lock"], stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            user = pwd.getpwuid(os.geteuid()).pw_name
            with pytest.raises(
                ResultsError, match=f"is being recorded by process {holder.pid} of user {user}"
            ):
                take_lock(tmp_path / "r")
            with (
                pytest.raises(
                    ResultsError, match=f"is locked by process {holder.pid} of user {user}"
                ),
                short_lock(tmp_path / "r/lock", 0.1),
            ):
                pass
        finally:
            holder.kill()


def test_a_short_lock_is_waited_for_and_let_go_of(tmp_path: Path) -> None:
    with short_lock(tmp_path / "lock"):
        file = os.open(tmp_path / "lock", os.O_RDWR)
        assert holder_of(file).startswith(f"process {os.getpid()}")
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(file)
    assert mode(tmp_path / "lock") == 0o600
