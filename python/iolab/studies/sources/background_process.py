# SPDX-License-Identifier: Apache-2.0
"""Base of the sources that run another program during the load and write its output to a file."""

from __future__ import annotations

import contextlib
import re
from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import ClassVar

from iolab.base.clock import Clock
from iolab.hosts.base.host import Host, Process


class BackgroundProcess(ABC):
    """One process: its output is in a file, its errors are in a hidden file that is removed if empty.

    Attributes:
        readings: whole readings in the file; lost: expected readings that are missing.
        trouble: why it ended early; empty if it did not.
    """

    name: ClassVar[str]
    mark: ClassVar[re.Pattern[bytes]]
    """A pattern that occurs once in each reading."""
    ended_by: ClassVar[Signals] = Signals.SIGTERM

    def __init__(self, interval: int, host: Host, clock: Clock) -> None:
        self._interval, self._host, self._clock = interval, host, clock
        self._process: Process | None = None
        self._log = self._errors = Path()
        self._origin = self._seen = 0.0
        self.readings = 0
        self.lost = 0
        self.trouble = ""

    def due(self) -> float:
        """Time of the next check whether the process runs."""
        return self._seen + self._interval

    def poll(self) -> None:
        """Check whether the process runs."""
        if self._process is None or self._clock.monotonic() < self.due() - 1e-9:
            return
        self._seen = self._clock.monotonic()
        self._look(self._process)

    def latest(self) -> Mapping[str, float]:
        """Empty: the output is read after the run."""
        return {}

    def stop(self) -> None:
        """End the process if it runs, and compare the number of readings with the expected number."""
        process, self._process = self._process, None
        if process is None:
            return
        self._look(process)
        if not self.trouble:
            process.end(first=self.ended_by)
        with contextlib.suppress(OSError):
            self.readings = len(self.mark.findall(self._log.read_bytes()))
        expected_readings = 1 + int(
            (self._clock.monotonic() - self._origin) / self._interval + 1e-9
        )
        # its own clock starts a little after ours: the last reading may be on its way
        self.lost = max(0, expected_readings - 1 - self.readings)
        with contextlib.suppress(OSError):
            if not self._errors.stat().st_size:
                self._errors.unlink()

    def _begin(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start the process; RunError if it can't be started."""
        self.readings = self.lost = 0
        self.trouble = ""
        self._log, self._errors = log, log.parent / f".{self.name}.stderr"
        self._origin = self._seen = self._clock.monotonic()
        self._process = self._host.start(
            list(command),
            cwd=log.parent,
            stdout=log,
            stderr=self._errors,
            environment=dict(environment),
        )

    def _look(self, process: Process) -> None:
        if not self.trouble and (code := process.wait(0)) is not None:
            words = ""
            with contextlib.suppress(OSError):
                words = self._errors.read_text("utf-8", "replace").strip().partition("\n")[0][:120]
            passed = self._clock.monotonic() - self._origin
            self.trouble = f"ended early, within {passed:.0f} s, exit code {code}{': ' if words else ''}{words}"
