"""The journal of a study: what was planned, started and how it ended, one JSON line each, on disk before going on.

After a kill the journal tells which run was in flight, and under which process id with which start time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..clock import Clock
from ..results.journal import EVENTS, FILE


class Journal:
    """Appends to `journal.jsonl`; one writer at a time, which the results' lock ensures."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._path, self._clock = directory / FILE, clock

    def write(self, event: str, **data: Any) -> None:
        """Append one event and wait until it is on disk."""
        self.write_all([(event, data)])

    def write_all(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Append events with one wait for the disk. A torn line that a crash left is ended first, so it costs only itself."""
        lines = []
        for event, data in events:
            if event not in EVENTS:
                raise ValueError(f"no event is called {event}")
            lines.append(json.dumps({"event": event, "time_ns": self._clock.realtime_ns(), **data}, default=str) + "\n")
        with self._path.open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())
