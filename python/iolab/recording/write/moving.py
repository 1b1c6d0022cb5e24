# SPDX-License-Identifier: Apache-2.0
"""Sealed segments of one recording moved into another on the same file system, as they are: nothing
is read or written again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...errors import ResultsError
from ..base.layout import SEGMENTS, map_file, sealed_file, sealed_numbers, sync_folder, telling
from ..ledger import append_line
from ..segments.segments import MAP_NAMES, noted_segments


def move_segments(origin: Path, directory: Path, take_number: Callable[[], int]) -> int:
    """Move all segments of events in `origin` into `directory`, each under a new number, on disk
    when this returns. Returns how many.

    ResultsError where one is not listed, or the disk refuses; those that were moved by then stay
    where they are, under their label.
    """
    noted = noted_segments(origin)
    numbers = sealed_numbers(origin / "events")
    if any(number not in noted for number in numbers):
        raise ResultsError("holds segments that its list does not name", where=origin)
    with telling(directory, "take in segments"):
        folders: set[Path] = set()
        for number in numbers:
            new = take_number()
            # maps first: one without its segment is not looked at
            for source, target in (
                *(
                    (map_file(origin, number, name), map_file(directory, new, name))
                    for name in MAP_NAMES
                ),
                (sealed_file(origin, number, "events"), sealed_file(directory, new, "events")),
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
                folders.add(target.parent)
            append_line(directory / SEGMENTS, {**noted[number], "number": new}, durable=True)
        for folder in folders:
            sync_folder(folder)
    return len(numbers)
