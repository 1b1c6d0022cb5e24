"""One writer per results directory: two studies never interleave their runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ResultsError

FILE = ".lock"


def check_free(directory: Path) -> None:
    """ResultsError naming the process that writes there, if one does. A directory that was never locked stays untouched."""
    if (directory / FILE).exists():
        with suppress(PermissionError), lock(directory):
            pass


@contextmanager
def lock(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; ResultsError names the process that has it.

    The kernel lets go of it with the process, so a killed study leaves nothing to clean up.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            by = f" by process {holder}" if holder else ""
            raise ResultsError(f"is being written{by}", where=directory, hint="wait for it, or choose another -o") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
