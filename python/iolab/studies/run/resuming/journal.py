# SPDX-License-Identifier: Apache-2.0
"""The journal of a study: what was planned, started and ended, one synced JSON line each.

After a kill it names the unfinished run, its process id and start time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from iolab.base.clock import Clock
from iolab.base.files import open_for_writing

from ...results.evidence.journal import EVENTS, FILE, checked_line


class Journal:
    """Appends to `journal.jsonl`; one writer at a time, which the results' lock ensures."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._path, self._clock = directory / FILE, clock
        self._size = self._lines = 0

    def write(self, event: str, **data: Any) -> None:
        """Append one event and wait until it is on disk."""
        self.write_all([(event, data)])

    def write_all(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Append events with one wait for the disk. A torn line that a crash left is ended first,
        so it costs only itself."""
        records = []
        for event, data in events:
            if event not in EVENTS:
                raise ValueError(f"no event is called {event}")
            records.append({"event": event, "time_ns": self._clock.realtime_ns(), **data})
        with os.fdopen(
            open_for_writing(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab+"
        ) as file:
            torn = b""
            if file.tell() != self._size:
                # of an earlier attempt, or a write that the disk refused in its midst
                file.seek(0)
                before = file.read()
                torn = b"\n" if before and not before.endswith(b"\n") else b""
                self._lines = before.count(b"\n") + len(torn)
            lines = [
                checked_line(event, number) for number, event in enumerate(records, self._lines + 1)
            ]
            file.write(torn + b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
            self._size, self._lines = file.tell(), self._lines + len(lines)
