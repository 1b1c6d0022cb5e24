# SPDX-License-Identifier: Apache-2.0
"""One writer per results directory: two studies never interleave their runs."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.base.errors import ResultsError
from iolab.base.files import open_for_reading, open_for_writing

from .files import PROFILES, RUNS

FILE = ".lock"

_NO_FILE_OF_ITS_OWN = (errno.ELOOP, errno.EMLINK, errno.EINVAL, errno.EISDIR)


def check_free(directory: Path) -> None:
    """ResultsError naming the process that writes there, if one does. The directory stays as it
    is."""
    try:
        descriptor = open_for_writing(directory / FILE, os.O_RDWR)
    except OSError:
        return
    try:
        _take(descriptor, directory)
    finally:
        os.close(descriptor)


def is_locked(directory: Path) -> bool:
    """Whether a process writes there. The directory stays as it is."""
    try:
        descriptor = open_for_reading(directory / FILE)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextmanager
def lock(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; ResultsError names the process that has it.

    The kernel lets go of it with the process, so a killed study leaves nothing to clean up.
    ResultsError as well where something is in the directory through which it would be written
    elsewhere: a symbolic link, or a lock that is not a regular file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in (RUNS, PROFILES):
        if (directory / name).is_symlink():
            raise ResultsError(
                f"its {name} is a symbolic link, through which nothing is written",
                where=directory,
                hint="choose another directory with -o",
            )
    try:
        descriptor = open_for_writing(directory / FILE, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        if error.errno not in _NO_FILE_OF_ITS_OWN:
            raise
        raise ResultsError(
            error.strerror or str(error),
            where=directory / FILE,
            hint="remove it, or choose another directory with -o",
        ) from None
    try:
        _take(descriptor, directory)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, directory: Path) -> None:
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # `is_locked` of a reader holds it for microseconds
            time.sleep(0.05)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).strip()
        by = f" by process {holder.decode()}" if holder.isdigit() else ""
        raise ResultsError(
            f"is being written{by}", where=directory, hint="wait for it, or choose another -o"
        ) from None
