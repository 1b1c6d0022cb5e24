# SPDX-License-Identifier: Apache-2.0
"""Counters that the kernel keeps in text files, copied line by line once a second: what such
sources have in common.

The file, `<source>.log`, holds the kernel's own lines so that any later reader can see more in them
than today's:

    # iolab <source> 1
    @ <realtime ns> <monotonic ns>
    <lines, as the kernel wrote them>
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, TextIO

from pydantic import Field

from iolab.base.clock import Clock
from iolab.base.files import open_for_writing
from iolab.formats.host.counter_set import CounterSet
from iolab.hosts.base.host import Host
from iolab.hosts.base.options import Duration, Options


class CounterOptions(Options):
    """What every source of counters lets a study choose."""

    interval: Annotated[
        Duration, Field(gt=0, description="time between readings; the gates expect a second")
    ] = 1.0


class CounterSource(ABC):
    """Readings at fixed times after the start: a late reading does not delay the next, and a
    missed reading is counted."""

    name: ClassVar[str]
    options: ClassVar[type[Options]] = CounterOptions
    trouble = ""

    def __init__(
        self, options: CounterOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        self._interval, self._host, self._clock = options.interval, host, clock
        self._file: TextIO | None = None
        self._origin = 0.0
        self._next = 0
        self._last = 0.0
        self._before: tuple[float, Mapping[str, float]] | None = None
        self._latest: Mapping[str, float] = {}
        self.readings = 0
        self.lost = 0

    @abstractmethod
    def lines(self) -> list[str]:
        """The lines of one reading, each with its line end. Raises OSError where the kernel doesn't
        tell."""

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """What `live` needs of a reading, by a name of its own; ValueError or LookupError for odd
        lines."""
        return {}

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """What two readings `passed` seconds apart tell whoever watches, base units."""
        return {}

    def unfit(self) -> str | None:
        """Where the kernel doesn't tell, there is nothing to read."""
        try:
            return None if self.lines() else "the kernel lists nothing for it"
        except OSError as error:
            return f"{error.filename or 'its file'} can't be read: {error.strerror or error}"

    def start(self, run_dir: Path) -> None:
        """Write the head and the first reading."""
        self.readings = self.lost = 0
        self._before, self._latest = None, {}
        self._file = os.fdopen(
            open_for_writing(run_dir / f"{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            "w",
            encoding="utf-8",
        )
        self._file.write(f"# iolab {self.name} 1\n")
        self._origin = self._clock.monotonic()
        self._next = 1
        self._read()

    def due(self) -> float:
        """Second of the next reading on the monotonic clock."""
        return self._origin + self._next * self._interval

    def poll(self) -> None:
        """Read at the next time; times that passed unread meanwhile are counted as lost."""
        if self._file is None:
            return
        passed = int((self._clock.monotonic() - self._origin) / self._interval + 1e-9)
        if passed < self._next:
            return
        self.lost += passed - self._next
        self._next = passed + 1
        self._read()

    def latest(self) -> Mapping[str, float]:
        """What the last two readings say."""
        return dict(self._latest)

    def stop(self) -> None:
        """One more reading, so that the window's last part is covered, then close.

        Not right after another: rates over a sliver of an interval would weigh as much as those
        over a whole one.
        """
        if self._file is not None:
            if self._clock.monotonic() - self._last >= self._interval / 2:
                self._read()
            self._file.close()
            self._file = None

    def _read(self) -> None:
        assert self._file is not None
        try:
            lines = self.lines()
        except OSError:
            self.lost += 1
            return
        self._last = self._clock.monotonic()
        self._file.write(
            "".join([f"@ {self._clock.realtime_ns()} {round(self._last * 1e9)}\n", *lines])
        )
        # Handed to the kernel at once: a killed study keeps its readings.
        self._file.flush()
        self.readings += 1
        try:
            now = self.counts(lines)
        except (ValueError, LookupError):
            return
        if self._before is not None and self._last > self._before[0]:
            self._latest = self.live(self._last - self._before[0], self._before[1], now)
        self._before = (self._last, now)


class _SetSource(CounterSource):
    """Polls a counter set."""

    counters: ClassVar[type[CounterSet]]

    def __init__(
        self, options: CounterOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options, host, clock, devices)
        self._set = self.counters()

    def lines(self) -> list[str]:
        """The set's lines."""
        return self._set.lines(self._host)

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """The set's counts."""
        return self._set.counts(lines)

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """What the set shows live."""
        return self._set.live(passed, before, now)

    def unfit(self) -> str | None:
        """Why the set can't be read on this host."""
        return self._set.unfit(self._host)


@cache
def source_of(counters: type[CounterSet]) -> type[CounterSource]:
    """The source that polls a counter set, with its name and description."""
    return type(
        f"{counters.__name__}Source",
        (_SetSource,),
        {"name": counters.name, "counters": counters, "__doc__": counters.__doc__},
    )
