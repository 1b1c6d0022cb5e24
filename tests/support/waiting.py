# SPDX-License-Identifier: Apache-2.0
"""Waiting for what other processes do: as long as a busy machine takes, and no longer than it
takes."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from iolab.hosts.base.orphans import start_ticks
from iolab.recordings.store.read.recording import Recording

_T = TypeVar("_T")

PATIENCE = 90.0
"""Seconds that a busy machine may take to a process's next step."""


def until(met: Callable[[], _T], what: str, seconds: float = PATIENCE) -> _T:
    """Wait until something holds; what it is then. AssertionError with `what` where it never does."""
    limit = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < limit, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)
    return found


def gone(pid: int, started: int | None = None, seconds: float = PATIENCE) -> bool:
    """Whether a process, told by its id and where that is known its start time too, ends by itself."""
    limit = time.monotonic() + seconds
    while _lives(pid, started):
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def _lives(pid: int, started: int | None) -> bool:
    found = start_ticks(pid)
    if found is None or (started is not None and found != started):
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def recorded_events(recording: Path, wanted: int = 1, *, pid: int | None = None) -> dict[str, Any]:
    """What the status of a recording says once so many events were recorded (by the recorder with
    this id) and it goes on."""

    def there() -> dict[str, Any] | None:
        with contextlib.suppress(OSError, ValueError):
            status: dict[str, Any] = json.loads((recording / "status.json").read_text())
            if (
                sum(status["events"].values()) >= wanted
                and status["state"] == "recording"
                and pid in (None, status["pid"])
            ):
                return status
        return None

    found = until(there, f"{wanted} events in {recording}")
    assert found is not None
    return found


def up_to_date(recording: Path, seconds: float = 1.0) -> None:
    """Wait until what is recorded comes into the recording within so many seconds: a busy machine
    may be behind."""

    def there() -> bool:
        span = Recording(recording).span()
        return span is not None and time.time_ns() - span[1] < seconds * 1e9

    until(there, f"{recording} to be less than {seconds:g} s behind")
