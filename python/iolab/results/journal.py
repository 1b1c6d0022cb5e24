"""The journal of a study as its readers see it: what was planned, started and how it ended, one JSON line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ResultsError
from ..texts import parsed

FILE = "journal.jsonl"
EVENTS = ("opened", "resumed", "planned", "started", "finished", "failed", "interrupted", "aside", "hook", "hook-ended", "ended-leftover",
          "drift", "stopped", "closed")
"""opened, resumed: a study began, or went on after it had ended early; closed: it came to its end; stopped: it ended early.
planned, started, finished, failed, interrupted: of one run; aside: what is there of a run counts no more, for it is done again.
hook, hook-ended: a command was started and ended. ended-leftover: a process that a killed iolab had left was ended.
drift: the environment is another one from here on."""


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
            data = parsed(line)
        except ValueError:
            data = None
        if isinstance(data, dict) and data.get("event") in EVENTS:
            events.append(data)
        else:
            damaged.append(number)
    return events, damaged
