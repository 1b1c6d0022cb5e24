# SPDX-License-Identifier: Apache-2.0
"""How large a recording is on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..clock import Clock

_SHARE = 0.002
"""Share of the time that looking may take: the more files there are, the more seldom it is done."""
_SLICE = 0.01
"""Seconds that it looks at a time: after months there are files enough for seconds, in which the
probe would not be heard."""


class SizeWatch:
    """Adds up the files below a directory: once as it is made, then not more often than looking is
    cheap, and of many files some at a time."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        # what a continued recording holds isn't growth
        self._known = sum(_sizes(str(directory)))
        self._next = 0.0
        self._under_way: Iterator[int] | None = None
        self._sum = 0
        self._spent = 0.0

    def bytes(self, *, at_once: bool = False) -> int:
        """Bytes that the files hold, as of the last look that is done."""
        begin = self._clock.monotonic()
        if at_once:
            self._known, self._under_way = sum(_sizes(str(self._directory))), None
        elif self._under_way is not None or begin >= self._next:
            self._go_on(begin)
        return self._known

    def _go_on(self, begin: float) -> None:
        if self._under_way is None:
            self._under_way, self._sum, self._spent = _sizes(str(self._directory)), 0, 0.0
        for size in self._under_way:
            self._sum += size
            if self._clock.monotonic() - begin >= _SLICE:
                self._spent += self._clock.monotonic() - begin
                return
        end = self._clock.monotonic()
        self._known, self._under_way = self._sum, None
        self._next = end + (self._spent + end - begin) / _SHARE


def _sizes(directory: str) -> Iterator[int]:
    """Bytes of each file below a directory; files that vanish meanwhile count as nothing."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        yield from _sizes(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    except OSError:
        return
