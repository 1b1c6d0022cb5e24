# SPDX-License-Identifier: Apache-2.0
"""The journal of a study as its readers see it: what was planned, started and how it ended, one
JSON line each."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.base.files import EVIDENCE, read_regular
from iolab.base.untrusted_text import parse_json

FILE = "journal.jsonl"
EVENTS = (
    "opened",
    "resumed",
    "planned",
    "started",
    "finished",
    "failed",
    "interrupted",
    "aside",
    "hook",
    "hook-ended",
    "ended-leftover",
    "drift",
    "look",
    "session",
    "stopped",
    "closed",
)
"""opened, resumed: a study began, or went on after it had ended early; closed: it came to its end;
stopped: it ended early. planned, started, finished, failed, interrupted: of one run; aside: what is
there of a run counts no more, for it is done again. hook, hook-ended: a command was started and
ended. ended-leftover: a process that a killed iolab had left was ended. drift: the environment is
another one from here on. look: a study that ends once its rules are decided was looked at. session: a step to a session of
a study over several boots."""

_GO_ON = ("resumed", "aside", "ended-leftover", "look", "closed")
"""Events that are written first where a study continues."""

_CHECKED = re.compile(rb', "line": (\d+), "crc32": "([0-9a-f]{8})"\}\Z')


def checked_line(event: Mapping[str, Any], number: int) -> bytes:
    """A line of the journal with its line end: the event, the number of the line, and the CRC-32 of
    all before that."""
    body = json.dumps(event, default=str).encode()[:-1] + b', "line": %d' % number
    return body + b', "crc32": "%08x"}\n' % zlib.crc32(body)


def read_journal(directory: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Events in order, and the numbers of lines that are none: torn by a crash, damaged, or missing
    before an existing line.

    ResultsError where there is no journal.
    """
    events, torn, damaged = examine_journal(directory)
    return events, sorted({*torn, *damaged})


def examine_journal(directory: Path) -> tuple[list[dict[str, Any]], list[int], list[int]]:
    """Events in order, the numbers of lines that are as a kill leaves them, and of those that are
    damaged, or missing before one. A line without a checksum is damaged. ResultsError where there is
    no journal.
    """
    path = directory / FILE
    try:
        lines = read_regular(path, limit=EVIDENCE).split(b"\n")
    except FileNotFoundError:
        raise ResultsError("has no journal: no study was run here", where=directory) from None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    events: dict[int, dict[str, Any]] = {}
    torn: list[int] = []
    damaged: list[int] = []
    shift = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        event, stated = _event(line)
        if event is None or stated is None:
            (damaged if line.endswith(b"}") else torn).append(number)
            continue
        if torn and torn[-1] == number - 1 and event["event"] not in _GO_ON:
            damaged.append(torn.pop())  # a kill is followed by another attempt
        events[number] = event
        if stated - number != shift:
            damaged.append(number)
            shift = stated - number
    return list(events.values()), torn, sorted(damaged)


def _event(line: bytes) -> tuple[dict[str, Any] | None, int | None]:
    """(the event of a line, None where it is none; the number of the line as it says, None without
    a checksum)."""
    checked = _CHECKED.search(line)
    if (checked is None and b'"crc32"' in line) or (
        checked is not None and int(checked[2], 16) != zlib.crc32(line[: checked.end(1)])
    ):
        return None, None
    try:
        data = parse_json(line)
    except ValueError:
        return None, None
    if not isinstance(data, dict) or data.get("event") not in EVENTS:
        return None, None
    data.pop("crc32", None)
    return data, None if checked is None else int(data.pop("line"))
