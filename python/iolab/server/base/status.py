# SPDX-License-Identifier: Apache-2.0
"""What a recorder says of its recording while it grows: `status.json`, read without trust."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ...files import read_regular

FILE = "status.json"
_LARGEST = 1 << 20
STALE = 30.0
"""Seconds without a change after which nobody records any more, whatever the last session says."""


def status_of(directory: Path) -> dict[str, Any]:
    """Its content; empty where there is none that can be read."""
    path = directory / FILE
    try:
        found = json.loads(read_regular(path, limit=_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def counts(status: dict[str, Any], name: str) -> dict[str, int]:
    """Whole numbers by source."""
    found = status.get(name)
    return (
        {key: value for key, value in found.items() if isinstance(value, int)}
        if isinstance(found, dict)
        else {}
    )


def changes(directory: Path, *, now: float | None = None) -> bool:
    """Whether something was written there within `STALE` seconds."""
    moment = time.time() if now is None else now
    newest = 0.0
    for path in (directory / FILE, *(directory / "hot").glob("*")):
        try:
            newest = max(newest, path.stat().st_mtime)
        except OSError:
            continue
    return moment - newest < STALE
