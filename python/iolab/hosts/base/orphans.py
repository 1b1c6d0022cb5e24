# SPDX-License-Identifier: Apache-2.0
"""Processes that a killed iolab left behind: known by pid and start time or by marks, ended without
ever touching a stranger."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Container, Sequence
from pathlib import Path

_PROC = Path("/proc")
_LOOK = 0.02
"""Seconds between looks at whether they ended."""


def start_ticks(pid: int) -> int | None:
    """Start of a process in clock ticks since boot (proc_pid_stat(5), field 22); None where there
    is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def end_group(leader: int, started: int, mark: str, grace: float) -> list[int]:
    """End the members of a leftover group; see `Host.end_leftover` for who counts as one."""
    return _end(lambda pid, group: group == leader and _is_ours(pid, leader, started, mark), grace)


def end_marked(marks: Sequence[str], grace: float) -> list[int]:
    """End every process that carries all marks; see `Host.end_marked`."""
    wanted_words = {mark.encode() for mark in well_formed(marks)}
    return _end(lambda pid, group: wanted_words <= _environ(pid), grace)


def state(pid: int) -> str:
    """The letter for what a process does (proc_pid_stat(5), field 3), empty where there is none: D
    waits in the kernel, deaf to signals."""
    fields = _stat(pid)
    return "" if fields is None else fields[0]


def members(group: int) -> list[int]:
    """Live processes of a process group."""
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]
    return [
        pid
        for pid in pids
        if (fields := _stat(pid)) is not None and int(fields[2]) == group and fields[0] not in "ZX"
    ]


def well_formed(marks: Sequence[str]) -> set[str]:
    """The marks themselves. ValueError for such as every process may carry: none, or what is no
    `NAME=value`."""
    if not marks or not all(
        name and value for name, _, value in (mark.partition("=") for mark in marks)
    ):
        raise ValueError(f"processes can't be identified by {list(marks)}")
    return set(marks)


def _end(ours: Callable[[int, int], bool], grace: float) -> list[int]:
    """SIGTERM to processes, SIGKILL to those that are there after `grace` seconds; which they were.

    Processes are held by pidfd before it is looked whether they are `ours` (by pid and group), so
    that a pid that is used again meanwhile isn't hit. It is looked again after each signal: what
    they forked before it reached them is theirs too.
    """
    signalled: dict[int, int] = {}
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + grace
            fresh = {**signalled, **_hold(ours, signalled)}
            while fresh:
                signalled.update(fresh)
                for handle in fresh.values():
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(handle, number)
                while (
                    any(_alive(pid, handle) for pid, handle in signalled.items())
                    and time.monotonic() < deadline
                ):
                    time.sleep(_LOOK)
                fresh = _hold(ours, signalled) if time.monotonic() < deadline else {}
        return sorted(signalled)
    finally:
        for handle in signalled.values():
            os.close(handle)


def _hold(ours: Callable[[int, int], bool], known: Container[int]) -> dict[int, int]:
    """Live processes that are ours and not known yet, with their pidfds."""
    handles: dict[int, int] = {}
    for pid in [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]:
        fields = _stat(pid)
        if fields is None or fields[0] in "ZX" or pid in known or not ours(pid, int(fields[2])):
            continue
        with contextlib.suppress(OSError):
            handles[pid] = os.pidfd_open(pid)
            if not ours(pid, int(fields[2])):
                os.close(handles.pop(pid))
    return handles


def _is_ours(pid: int, leader: int, started: int, mark: str) -> bool:
    ticks = start_ticks(pid)
    if ticks is None:
        return False
    if pid == leader:
        return ticks == started
    # While a group has members its number isn't given away; members that start earlier belong to an
    # older one.
    return ticks >= started and mark.encode() in _environ(pid)


def _environ(pid: int) -> set[bytes]:
    try:
        return set((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def _alive(pid: int, handle: int) -> bool:
    try:
        signal.pidfd_send_signal(handle, 0)
    except ProcessLookupError:
        return False
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the state on (field 3 is the first); the name before them may
    hold anything."""
    try:
        fields = (
            (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return fields if len(fields) > 19 else None
