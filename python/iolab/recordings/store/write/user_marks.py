# SPDX-License-Identifier: Apache-2.0
"""Marks that users set on a recording, also while it is recorded: lines of its marks.

Only lines are added, each by one write, so that a recorder that adds marks of runs meanwhile loses
nothing. A line of the kind `REMOVED` deletes a mark; readers leave out both.
"""

from __future__ import annotations

from pathlib import Path

from iolab.base.errors import UsageError
from iolab.base.untrusted_text import writable

from ..base.layout import MARKS, telling
from ..ledger import append_line
from ..read.recording import REMOVED, Recording, is_same_mark

MOST = 10_000
"""Marks of users in one recording."""


def add_mark(recording: Recording, label: str, from_ns: int, until_ns: int, note: str) -> None:
    """Name a span of time, or a moment, where both ends are equal. UsageError where that can't be
    marked."""
    if not 0 <= from_ns <= until_ns < 2**63:
        raise UsageError("the span of a mark ends before it begins", where="until_ns")
    if sum(mark["kind"] == "user" for mark in recording.marks()) >= MOST:
        raise UsageError(f"{MOST} marks are the most of a recording", hint="remove some")
    facts = {"facts": {"note": writable(note)}} if note else {}
    _append(recording, writable(label), from_ns, until_ns, {"kind": "user", **facts})


def remove_mark(recording: Recording, label: str, from_ns: int) -> None:
    """Delete a user's mark. UsageError where there is none of that label and begin."""
    key = {"label": label, "from_ns": from_ns}
    matches = [
        mark for mark in recording.marks() if mark["kind"] == "user" and is_same_mark(mark, key)
    ]
    if not matches:
        raise UsageError("there is no such mark of a user", where="label")
    mark = matches[0]
    _append(recording, mark["label"], mark["from_ns"], mark["until_ns"], {"kind": REMOVED})


def _append(
    recording: Recording, label: str, from_ns: int, until_ns: int, more: dict[str, object]
) -> None:
    path: Path = recording.path / MARKS
    line = {"label": label, "from_ns": from_ns, "until_ns": until_ns, **more}
    with telling(path, "add a line"):
        append_line(path, line, durable=True)
