# SPDX-License-Identifier: Apache-2.0
"""`iolab record` for tests that look at what it recorded: a loop device in memory, a file system on
one, and the recording of a command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from iolab.recordings.store.read.recording import Recording
from support.disks import call, loop_device, need_loops
from support.probe import need_tracing
from support.waiting import PATIENCE

MEMORY = Path("/dev/shm")


@contextlib.contextmanager
def device_in_memory(tmp_path: Path, size: int = 64 << 20) -> Iterator[str]:
    """The node of a loop device whose file is in memory where that is to be had. The test is left
    out where nothing can be traced."""
    need_tracing()
    need_loops("fio")
    with (
        tempfile.TemporaryDirectory(
            dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path, prefix="iolab-test-"
        ) as place,
        loop_device(Path(place), size) as node,
    ):
        yield node


@contextlib.contextmanager
def ext4_in_memory(tmp_path: Path, size: int = 256 << 20) -> Iterator[tuple[str, Path]]:
    """A loop device with ext4 and where it is mounted."""
    with device_in_memory(tmp_path, size) as node:
        point = tmp_path / "mounted"
        point.mkdir()
        call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node)
        call("mount", node, str(point))
        try:
            yield node, point
        finally:
            call("umount", str(point))


def recorded(directory: Path, arguments: list[object], command: list[object]) -> Recording:
    """The recording of a command, made by `iolab record`; nothing may be lost."""
    words = [
        *map(str, arguments),
        "--budget",
        "none",
        "-o",
        str(directory),
        "--",
        *map(str, command),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "iolab.cli", "record", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    recording = Recording(directory)
    assert not [loss for loss in recording.losses() if loss["kind"] in ("overrun", "gap")], (
        done.stderr
    )
    return recording
