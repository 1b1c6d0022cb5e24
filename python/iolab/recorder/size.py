"""How large a recording is on disk."""

from __future__ import annotations

import os
from pathlib import Path

from ..clock import Clock

_SHARE = 0.002
"""Share of the time that looking may take: the more files there are, the more seldom it is done."""


class SizeWatch:
    """Adds up the files below a directory, not more often than looking is cheap."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        self._known = 0
        self._next = 0.0

    def bytes(self, *, at_once: bool = False) -> int:
        """Bytes that the files hold, as of the last look."""
        begin = self._clock.monotonic()
        if at_once or begin >= self._next:
            self._known = size_of(self._directory)
            end = self._clock.monotonic()
            self._next = end + (end - begin) / _SHARE
        return self._known


def size_of(directory: Path) -> int:
    """Bytes of all files below a directory; files that vanish meanwhile count as nothing."""
    whole = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                whole += os.lstat(f"{folder}/{name}").st_size
            except OSError:
                continue
    return whole
