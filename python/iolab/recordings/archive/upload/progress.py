# SPDX-License-Identifier: Apache-2.0
"""How far an archive is behind a recording: `archive.json` in the recording, which a push replaces
and the recorder, `iolab archive status` and `/metrics` read."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from iolab.base.files import read_regular, write_atomically

from ...store.base.layout import KINDS
from ...store.catalogue import Catalogue

FILE = "archive.json"
SCHEMA = 1
_LARGEST = 1 << 16


@dataclass(frozen=True)
class Progress:
    """The state of the archive of a recording after an attempt to push.

    Attributes:
        archive: its URL. recording: the key there; "" before the first push.
        through: all sealed segments up to this number are archived; 0: none.
        rows, bytes: rows that are not archived, with unsealed ones; bytes of their sealed files.
        from_ns: time of its first row; None: everything is archived.
        deleted: segments that retention deleted before they were archived.
        tried_ns, pushed_ns: time of the attempt, and of the last success (0: none).
        error: why the attempt failed; "" where it did not.
    """

    archive: str
    recording: str = ""
    through: int = 0
    rows: int = 0
    bytes: int = 0
    from_ns: int | None = None
    deleted: int = 0
    tried_ns: int = 0
    pushed_ns: int = 0
    error: str = ""

    def behind_s(self, now_ns: int) -> float:
        """Age in seconds of the first row that is not archived; 0.0 without one."""
        return 0.0 if self.from_ns is None else max(0, now_ns - self.from_ns) / 1e9

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"schema": SCHEMA, "kind": "archive-progress", **asdict(self)}


def write_progress(directory: Path, progress: Progress) -> None:
    """Replace `archive.json`. A recording of another user has none, and a full disk is no harm."""
    with contextlib.suppress(OSError):
        write_atomically(directory / FILE, json.dumps(progress.as_data()) + "\n", durable=False)


def read_progress(directory: Path) -> Progress | None:
    """The content of `archive.json`; None where there is none that can be read."""
    try:
        data = json.loads(read_regular(directory / FILE, limit=_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return None
    values: dict[str, Any] = {}
    for field in fields(Progress):
        value = data.get(field.name)
        kind = str if field.type == "str" else int
        is_missing = value is None and field.name == "from_ns"
        if not is_missing and (not isinstance(value, kind) or isinstance(value, bool)):
            return None
        values[field.name] = value
    return Progress(**values)


def count_unarchived(catalogue: Catalogue, through: int) -> tuple[int, int, int | None]:
    """(rows, bytes of sealed files, time of the first row in ns) of the segments after number
    `through`; the time is None without rows."""
    rows = size = 0
    first_ns: int | None = None
    for kind in KINDS:
        for segment in catalogue.segments_of(kind):
            if segment.number > through or segment.kind == "hot":
                rows += int(segment.facts["rows"])
                size += 0 if segment.kind == "hot" else int(segment.facts.get("bytes") or 0)
                first_ns = segment.first_ns if first_ns is None else min(first_ns, segment.first_ns)
    return rows, size, first_ns
