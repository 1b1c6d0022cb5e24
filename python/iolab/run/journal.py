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
from ..errors import ResultsError

FILE = "journal.jsonl"
EVENTS = ("opened", "resumed", "planned", "started", "finished", "failed", "interrupted", "aside", "hook", "hook-ended", "ended-leftover",
          "drift", "stopped", "closed")
"""opened, resumed: a study began, or went on after it had ended early; closed: it came to its end; stopped: it ended early.
planned, started, finished, failed, interrupted: of one run; aside: what is there of a run counts no more, for it is done again.
hook, hook-ended: a command was started and ended. ended-leftover: a process that a killed iolab had left was ended.
drift: the environment is another one from here on."""


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


def read_journal(directory: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Events in order, and the numbers of lines that are none (torn by a crash, or damaged).

    ResultsError where there is no journal.
    """
    path = directory / FILE
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise ResultsError("has no journal: no study was run here", where=directory) from None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    events, damaged = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError:
            data = None
        if isinstance(data, dict) and data.get("event") in EVENTS:
            events.append(data)
        else:
            damaged.append(number)
    return events, damaged
