"""What the sources have in common that let `zpool iostat` run beside the load: one process each, its words in one file."""

from __future__ import annotations

import contextlib
import re
from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from ..clock import Clock
from ..errors import RunError
from ..hosts.base import Host, Process
from ..hosts.options import Options
from .zfs_pools import watched


class ZpoolOptions(Options):
    """`[sources.zpool-iostat]` and its kin."""

    interval: Annotated[int, Field(ge=1, description="whole seconds between readings; the gates expect one")] = 1
    pool: str = Field("", description="pool to watch; default: those that iolab made, else every imported one")


class ZpoolProcess(ABC):
    """A shell that writes the log's head and then lets zpool speak, or asks it again and again.

    Attributes:
        readings: whole readings in the log; lost: readings that were due and are not there.
        trouble: why it ended by itself, empty where it lived.
    """

    name: ClassVar[str]
    options: ClassVar[type[Options]] = ZpoolOptions
    script: ClassVar[str]
    """Run with the interval and the pools' names as `$1`, `$2`..., after the head was written."""
    mark: ClassVar[re.Pattern[bytes]]
    """The line that each reading has once."""

    def __init__(self, options: ZpoolOptions, host: Host, clock: Clock, devices: Sequence[str]) -> None:
        self._interval, self._pool, self._host, self._clock = options.interval, options.pool, host, clock
        self._process: Process | None = None
        self._log = self._errors = Path()
        self._origin = self._seen = 0.0
        self.readings = 0
        self.lost = 0
        self.trouble = ""

    def unfit(self) -> str | None:
        """Without zpool there is nobody to ask; pools may be made after this is asked."""
        if self._host.which("zpool") is None:
            return "zpool is not installed: apt install zfsutils-linux (Debian, Ubuntu)"
        return None

    def start(self, run_dir: Path) -> None:
        """Start it; RunError where there is no pool, or where it can't be started."""
        self.readings = self.lost = 0
        self.trouble = ""
        # hidden, so that nobody takes it for a measurement; removed where it stays empty
        self._log, self._errors = run_dir / f"{self.name}.log", run_dir / f".{self.name}.stderr"
        try:
            pools = watched(self._host, self._pool)
        except OSError as error:
            raise RunError(f"{self.name} has nothing to watch: {error.strerror or error}", where=error.filename,
                           hint="import a pool, or leave the source out") from None
        self._origin = self._seen = self._clock.monotonic()
        self._process = self._host.start(
            ["sh", "-c", f"echo '# iolab {self.name} 1'\n{self.script}", self.name, str(self._interval), *pools], cwd=run_dir,
            stdout=self._log, stderr=self._errors, environment={"LC_ALL": "C"})

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
        """Nothing: what it writes is read when the run is over."""
        return {}

    def stop(self) -> None:
        """End it where it still runs, and count what it wrote against what was due."""
        process, self._process = self._process, None
        if process is None:
            return
        self._look(process)
        if not self.trouble:
            process.end()
        with contextlib.suppress(OSError):
            self.readings = len(self.mark.findall(self._log.read_bytes()))
        due = 1 + int((self._clock.monotonic() - self._origin) / self._interval + 1e-9)
        # its own clock starts a little after ours: the last reading may be on its way
        self.lost = max(0, due - 1 - self.readings)
        with contextlib.suppress(OSError):
            if not self._errors.stat().st_size:
                self._errors.unlink()

    def _look(self, process: Process) -> None:
        if not self.trouble and (code := process.wait(0)) is not None:
            words = ""
            with contextlib.suppress(OSError):
                words = self._errors.read_text("utf-8", "replace").strip().partition("\n")[0][:120]
            passed = self._clock.monotonic() - self._origin
            self.trouble = f"ended by itself within {passed:.0f} s, exit code {code}{': ' if words else ''}{words}"
