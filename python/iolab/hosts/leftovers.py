"""Processes that a killed iolab left behind: known for good by pid and start time, ended without ever touching a stranger."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PROC = Path("/proc")
_LOOK = 0.02
"""Seconds between looks at whether they are gone."""


def start_ticks(pid: int) -> int | None:
    """Start of a process in clock ticks since boot (proc_pid_stat(5), field 22); None where there is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def end_group(leader: int, started: int, mark: str, grace: float) -> list[int]:
    """SIGTERM to the members of a leftover group, SIGKILL to those that are there after `grace` seconds.

    See `Host.end_leftover` for who counts as a member. Members are held by pidfd between the look and the signal, so that a
    pid that is used again meanwhile isn't hit.
    """
    found: dict[int, int] = {}
    try:
        for pid in _members(leader):
            with contextlib.suppress(OSError):
                found[pid] = os.pidfd_open(pid)
                if not _is_ours(pid, leader, started, mark):
                    os.close(found.pop(pid))
        for number in (signal.SIGTERM, signal.SIGKILL):
            for handle in found.values():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
            deadline = time.monotonic() + grace
            while any(_alive(pid, handle) for pid, handle in found.items()) and time.monotonic() < deadline:
                time.sleep(_LOOK)
        return sorted(found)
    finally:
        for handle in found.values():
            os.close(handle)


def _members(group: int) -> list[int]:
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]
    return [pid for pid in pids if (fields := _stat(pid)) is not None and int(fields[2]) == group and fields[0] not in "ZX"]


def _is_ours(pid: int, leader: int, started: int, mark: str) -> bool:
    ticks = start_ticks(pid)
    if ticks is None:
        return False
    if pid == leader:
        return ticks == started
    # While a group has members its number isn't given away; members that start earlier belong to an older one.
    return ticks >= started and mark.encode() in _environ(pid)


def _environ(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _alive(pid: int, handle: int) -> bool:
    try:
        signal.pidfd_send_signal(handle, 0)
    except ProcessLookupError:
        return False
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the state on (field 3 is the first); the name before them may hold anything."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > 19 else None
