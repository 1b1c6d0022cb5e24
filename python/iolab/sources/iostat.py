"""sysstat's iostat beside the run, for studies that want its own columns: `iostat.json`.

Every report is kept, the first one too, which is the mean since boot: readers know it and leave it out. iostat's -y would
spare it, but breaks the JSON of sysstat up to 12.1.4.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Annotated, ClassVar

from pydantic import Field

from ..clock import Clock
from ..hosts.base import Host, Process
from ..hosts.options import Options

FILE = "iostat.json"
_ERRORS = ".iostat.stderr"
"""Hidden, so that nobody takes it for a measurement; removed where it stays empty."""

_REPORT = b'"timestamp"'
"""What every report has once."""


class IostatOptions(Options):
    """`[sources.iostat]`."""

    interval: Annotated[int, Field(ge=1, description="whole seconds between reports; the gates expect one")] = 1
    devices: Annotated[list[str], Field(
        default_factory=list, description="kernel names to watch, such as [\"sdb\"]; default: those behind the target")]


class IostatSource:
    """sysstat's iostat in JSON, a report a second; ended by SIGINT, upon which it closes its brackets.

    Attributes:
        readings: whole reports, the one since boot among them; lost: reports that were due and are not there.
        trouble: why it ended by itself, empty where it lived.
    """

    name: ClassVar[str] = "iostat"
    options: ClassVar[type[Options]] = IostatOptions

    def __init__(self, options: IostatOptions, host: Host, clock: Clock, devices: Sequence[str]) -> None:
        self._interval, self._host, self._clock = options.interval, host, clock
        self._devices = tuple(options.devices or devices)
        self._process: Process | None = None
        self._directory = Path()
        self._origin = self._seen = 0.0
        self.readings = 0
        self.lost = 0
        self.trouble = ""

    def unfit(self) -> str | None:
        """Without devices or without sysstat there is nothing to read."""
        if not self._devices:
            return "the target has no block devices to count for"
        if self._host.which("iostat") is None:
            return "iostat is not installed; it is part of sysstat: apt install sysstat (Debian, Ubuntu), dnf install sysstat (Fedora)"
        return None

    def start(self, run_dir: Path) -> None:
        """Start iostat; RunError where it can't be started."""
        self.readings = self.lost = 0
        self.trouble = ""
        self._directory = run_dir
        self._origin = self._seen = self._clock.monotonic()
        self._process = self._host.start(
            ["iostat", "-o", "JSON", "-xdt", str(self._interval), *self._devices], cwd=run_dir, stdout=run_dir / FILE,
            stderr=run_dir / _ERRORS, environment={"LC_ALL": "C", "S_TIME_FORMAT": "ISO"})

    def due(self) -> float:
        """When to look next whether it lives."""
        return self._seen + self._interval

    def poll(self) -> None:
        """Look whether it lives."""
        if self._process is None or self._clock.monotonic() < self.due() - 1e-9:
            return
        self._seen = self._clock.monotonic()
        self._look(self._process)

    def latest(self) -> Mapping[str, float]:
        """Nothing: its numbers are the devices', which diskstats tells."""
        return {}

    def stop(self) -> None:
        """End it where it still runs, and count what it wrote against what was due."""
        process, self._process = self._process, None
        if process is None:
            return
        self._look(process)
        if not self.trouble:
            process.end(first=Signals.SIGINT)
        with contextlib.suppress(OSError):
            self.readings = (self._directory / FILE).read_bytes().count(_REPORT)
        due = 1 + int((self._clock.monotonic() - self._origin) / self._interval + 1e-9)
        # Its own clock starts a little after ours: the last report may be on its way.
        self.lost = max(0, due - 1 - self.readings)
        errors = self._directory / _ERRORS
        with contextlib.suppress(OSError):
            if not errors.stat().st_size:
                errors.unlink()

    def _look(self, process: Process) -> None:
        if not self.trouble and (code := process.wait(0)) is not None:
            words = ""
            with contextlib.suppress(OSError):
                words = (self._directory / _ERRORS).read_text("utf-8", "replace").strip().partition("\n")[0][:120]
            passed = self._clock.monotonic() - self._origin
            self.trouble = f"ended by itself within {passed:.0f} s, exit code {code}{': ' if words else ''}{words}"
