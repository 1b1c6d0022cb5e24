# SPDX-License-Identifier: Apache-2.0
"""Processes of qemu: ended without ever touching another process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from pathlib import Path

from ..base.orphans import start_ticks

_GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""


def end_process(pid: int, started: int) -> bool:
    """End a process that is identified by its start time too. False where it does not run."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_ticks(pid) != started:
            return False
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if select.select([handle], [], [], _GRACE)[0]:
                break
        reap(pid)
        return True
    finally:
        os.close(handle)


def reap(pid: int) -> bool:
    """Whether it was a child of this process that has ended: it would remain visible otherwise."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def cpu_wait(pid: int) -> float:
    """Seconds for which the thread that waited longest was ready to run and had no CPU; 0 where the
    kernel does not count it (/proc/PID/task/TID/schedstat)."""
    waits = [0]
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            waits.append(int(path.read_text("ascii").split()[1]))
    return max(waits) / 1e9
