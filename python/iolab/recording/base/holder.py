# SPDX-License-Identifier: Apache-2.0
"""Who holds the lock of a file, as the kernel says, and a lock that is held for moments."""

from __future__ import annotations

import fcntl
import os
import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import ResultsError
from ...files import open_for_writing


def holder_of(file: int) -> str:
    """Who holds the lock of an open file, for an error: `process 17 of user ann`, as the kernel
    says; empty where it doesn't."""
    status = os.fstat(file)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    for words in map(str.split, lines):
        # one that waits has an arrow before its kind
        if words[1:2] == ["FLOCK"] and place in words and words[4].isdecimal():
            return f"process {words[4]}{_user_of(words[4])}"
    return ""


def _user_of(process: str) -> str:
    try:
        uid = Path(f"/proc/{process}").stat().st_uid
    except OSError:
        return ""
    try:
        return f" of user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f" of user {uid}"


@contextmanager
def short_lock(path: Path, seconds: float = 10.0) -> Iterator[None]:
    """The lock of what takes moments, in a file of its own. ResultsError names who has it where it
    isn't let go of within some seconds."""
    file = open_for_writing(path, os.O_RDWR | os.O_CREAT, mode=0o600)
    try:
        limit = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= limit:
                    holder = holder_of(file)
                    raise ResultsError(
                        f"is locked{f' by {holder}' if holder else ''}",
                        where=path,
                        hint="end that, or try again",
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(file)
