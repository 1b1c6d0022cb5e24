# SPDX-License-Identifier: Apache-2.0
"""Segments whose events retention removed and whose default maps remain. After months there are a
hundred thousand, so what is known of them is made once, until one comes or goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...recording.base import layout
from ...recording.ledger import Line
from .snapshot import Snapshot, Span

FRESH_NS = 10**9
"""A folder that changed so short a time ago may change again without its time telling: what is seen
of it then is not remembered."""
MOST = 4
"""Recordings that are remembered."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Gone:
    """Ascending by number. numbers; first_ns, last_ns: of their events. of: by source, whether they
    have events of it."""

    numbers: Integers
    first_ns: Integers
    last_ns: Integers
    of: Mapping[str, npt.NDArray[np.bool_]]

    def within(self, span: Span) -> list[int]:
        """Numbers of those that meet a window."""
        found: list[int] = self.numbers[
            (self.first_ns < span[1]) & (self.last_ns >= span[0])
        ].tolist()
        return found

    def span(self, source: str) -> Span | None:
        """(first, last) ns of a source; None where there is nothing of it."""
        held = self.of.get(source)
        if held is None or not held.any():
            return None
        return int(self.first_ns[held].min()), int(self.last_ns[held].max())


_held: dict[Path, tuple[tuple[int, ...], Gone]] = {}
_guard = threading.Lock()


def gone(snap: Snapshot) -> Gone:
    """What is known of them; those without a readable line count for nothing."""
    catalogue = snap.recording.catalogue()
    through, lines = catalogue.facts.dropped_through, catalogue.segments
    folder = snap.place / layout.MAPS / "io.latency"
    try:
        status = folder.stat()
    except OSError:
        return _made({}, [])
    # a repair rebuilds the list: more of its lines can be read then
    list_inode = _inode(snap.place / layout.SEGMENTS)
    seen = (status.st_ino, status.st_mtime_ns, through, lines.damaged, list_inode)
    with _guard:
        held = _held.pop(folder, None)
        if held is None or held[0] != seen:
            held = (
                seen,
                _made(
                    lines.lines,
                    [number for number in layout.sealed_numbers(folder) if number <= through]
                    if through
                    else [],
                ),
            )
        if time.time_ns() - status.st_mtime_ns > FRESH_NS:
            _held[folder] = held
            while len(_held) > MOST:
                del _held[next(iter(_held))]
        return held[1]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _made(lines: Mapping[int, Line], numbers: list[int]) -> Gone:
    told = [
        (number, line["first_ns"], line["last_ns"], line.get("sources", {}))
        for number in numbers
        if isinstance((line := lines.get(number, {})).get("first_ns"), int)
        and isinstance(line.get("last_ns"), int)
    ]
    names = {source for *_, sources in told for source in sources}
    first, last = (np.array([each[place] for each in told], dtype=np.int64) for place in (1, 2))
    return Gone(
        np.array([each[0] for each in told], dtype=np.int64),
        first,
        last,
        {name: np.array([name in sources for *_, sources in told], dtype=bool) for name in names},
    )
